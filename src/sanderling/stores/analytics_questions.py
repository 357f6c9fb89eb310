"""What people ask of the rows of `events`, as SQL for either database, and what the answers mean. Pure.

Tricky bits:

- All names in a statement are from this file, all values are parameters.
- A post's time is when it was published, or analysed where that is unknown: days, weeks and months go by it, and so do
  the dates of a filter. Days are of UTC.
- "" as a project means: without one, as posts of a dry run are.
- Sums of counters are taken in two halves: SQLite gives up where a sum needs more than 64 bits.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import Any, NamedTuple, get_args

import msgspec

from sanderling.stores.analytics import (
    AnalyticsError,
    CommentRow,
    ErrorFilter,
    ErrorRow,
    EventFilter,
    Granularity,
    PostFilter,
    PostRow,
    PostSummary,
    Sort,
    StoredError,
    StoredPost,
    Trend,
)
from sanderling.stores.analytics_rows import (
    COMMENT_COLUMNS,
    EARLIEST,
    ERROR_COLUMNS,
    FLAG_COLUMNS,
    JSON_COLUMNS,
    LATEST,
    POST_COLUMNS,
    TIME_COLUMNS,
)
from sanderling.stores.database import POSTGRES, SQLITE, Dialect, Row
from sanderling.stores.polling_rows import LARGEST, SMALLEST, is_text

MOST_ROWS = 10_000  # of a page
MOST_GROUPS = 100_000  # that are summed up: of days and sentiments, some 90 years
MOST_CODES = 1000
MOST_MESSAGE_BYTES = 16 << 20  # of messages that are handed out at once; one may be larger
COUNTERS = ("view_count", "like_count", "comment_count", "share_count", "save_count")
BY = ("overall_sentiment", "risk_level", "primary_intent", "platform")
AT = "coalesce(published_at, analyzed_at)"
DAY = 86_400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOTHING = "1 = 0"
# As the indexes have it: without these very words they are of no use.
REPLAYABLE, WITHOUT_MESSAGE = "NOT replayed AND message IS NOT NULL", "message IS NULL"


class Keywords(NamedTuple):
    """How a database says what the keywords of a post are."""

    rows: str  # the list of keywords as rows `item`
    keyword: str  # of such a row
    aspect: str


KEYWORDS = {
    SQLITE: Keywords(
        rows="json_each(keywords) AS item",
        keyword="""CAST(CASE item.type WHEN 'text' THEN item.value
            WHEN 'object' THEN json_extract(item.value, '$.keyword') END AS TEXT)""",
        aspect="""CAST(coalesce(
            CASE item.type WHEN 'object' THEN json_extract(item.value, '$.aspect') END, '') AS TEXT)""",
    ),
    POSTGRES: Keywords(
        rows="jsonb_array_elements(keywords) AS item (value)",
        keyword="""(CASE jsonb_typeof(item.value) WHEN 'string' THEN item.value #>> '{}'
            ELSE item.value ->> 'keyword' END) COLLATE "C\"""",
        aspect="""coalesce(item.value ->> 'aspect', '') COLLATE "C\"""",
    ),
}


class Question(NamedTuple):
    """A statement and its values; `wide` if its rows may be large."""

    sql: str
    values: tuple[object, ...] = ()
    wide: bool = False


class SqlCondition(NamedTuple):
    """What is meant, in SQL, with the values for it."""

    sql: str
    values: tuple[object, ...]


def meant_posts(chosen: PostFilter, dialect: Dialect) -> SqlCondition:
    """Which posts a filter means."""
    texts = {
        "project_id": chosen.project_id,
        "brand_name": chosen.brand_name,
        "keyword": chosen.keyword,
        "platform": chosen.platform,
        "overall_sentiment": chosen.sentiment,
        "risk_level": chosen.risk_level,
        "primary_intent": chosen.intent,
    }
    flags = {"is_viral": chosen.is_viral, "is_kol": chosen.is_kol}
    said = [name if flag else f"NOT {name}" for name, flag in flags.items() if flag is not None]
    return _meant(texts, said, (chosen.from_date, chosen.to_date), AT, dialect)


def meant_errors(chosen: ErrorFilter, dialect: Dialect) -> SqlCondition:
    """Which errors a filter means."""
    texts = {
        "project_id": chosen.project_id,
        "job_id": chosen.job_id,
        "error_code": chosen.error_code,
        "error_category": chosen.error_category,
    }
    return _meant(texts, [], (chosen.from_date, chosen.to_date), "created_at", dialect)


def meant_events(chosen: EventFilter, dialect: Dialect) -> SqlCondition:
    """Which events a filter means."""
    texts = {"project_id": chosen.project_id, "job_id": chosen.job_id}
    return _meant(texts, [], (chosen.from_date, chosen.to_date), "processed_at", dialect)


def _meant(
    texts: Mapping[str, str | None],
    said: list[str],
    between: tuple[float | None, float | None],
    at: str,
    dialect: Dialect,
) -> SqlCondition:
    terms, values = [*said], list[object]()
    for name, text in texts.items():
        if text == "" and name == "project_id":
            terms.append("project_id IS NULL")
        elif text is not None:
            terms.append(f"{name} = ?")
            values.append(text)
    for sign, seconds in zip((">=", "<"), between, strict=True):
        if seconds is not None:
            terms.append(f"{at} {sign} {dialect.moment.format('?')}")
            values.append(float(max(EARLIEST, min(seconds, LATEST))))
    if not all(map(is_text, filter(None, texts.values()))) or any(map(isnan, filter(None, between))):
        return SqlCondition(NOTHING, ())  # no row has that
    return SqlCondition(" AND ".join(terms) or "1 = 1", tuple(values))


def bounded(most: int) -> int:
    """As many rows as may be asked for at once."""
    return max(0, min(most, MOST_ROWS))


def columns(names: Iterable[str], dialect: Dialect) -> str:
    """These columns as they are read."""
    return ", ".join(dialect.seconds.format(name) if name in TIME_COLUMNS else name for name in names)


def page_of_posts(meant: SqlCondition, sort: Sort, order: tuple[bool, int, int], dialect: Dialect) -> Question:
    """Some of them; `order`: whether downwards, how many to pass over, and how many to give."""
    if sort not in get_args(Sort):
        raise ValueError(f"cannot sort by {sort[:40]!r}, expected one of {', '.join(get_args(Sort))}")
    descending, offset, most = order
    way = "DESC" if descending else "ASC"
    # One whose publication is unknown counts as the earliest.
    unknown = {"DESC": " NULLS LAST", "ASC": " NULLS FIRST"}[way] if sort == "published_at" else ""
    sql = f"""SELECT id, {columns(POST_COLUMNS, dialect)} FROM post_analytics WHERE {meant.sql}
        ORDER BY {sort} {way}{unknown}, id {way} LIMIT ? OFFSET ?"""
    return Question(sql, (*meant.values, bounded(most), max(0, min(offset, LARGEST))), wide=True)


def page_of_errors(meant: SqlCondition, offset: int, most: int, dialect: Dialect) -> Question:
    """Some of them, the newest first."""
    sql = f"""SELECT id, {columns(ERROR_COLUMNS, dialect)} FROM crawl_errors WHERE {meant.sql}
        ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"""
    return Question(sql, (*meant.values, bounded(most), max(0, min(offset, LARGEST))), wide=True)


def counted(table: str, meant: SqlCondition) -> Question:
    """How many there are."""
    return Question(f"SELECT count(*) FROM {table} WHERE {meant.sql}", meant.values)


def counted_events(meant: SqlCondition) -> tuple[Question, Question]:
    """How many can be replayed, and how many cannot."""
    can, cannot = (SqlCondition(f"{meant.sql} AND {which}", meant.values) for which in (REPLAYABLE, WITHOUT_MESSAGE))
    return counted("processed_events", can), counted("processed_events", cannot)


def next_to_replay(meant: SqlCondition, most: int) -> Question:
    """The ids of those that are replayed next, the first processed first."""
    sql = f"""SELECT event_id FROM processed_events WHERE {meant.sql} AND {REPLAYABLE}
        ORDER BY processed_at, event_id LIMIT ?"""
    return Question(sql, (*meant.values, bounded(most)))


def one_post(number: int, dialect: Dialect) -> tuple[Question, Question]:
    """One, and its comments, the most liked first."""
    post = f"SELECT id, {columns(POST_COLUMNS, dialect)} FROM post_analytics WHERE id = ?"
    comments = f"""SELECT {columns(COMMENT_COLUMNS, dialect)} FROM post_comments WHERE post_id = ?
        ORDER BY likes DESC, comment_id LIMIT {MOST_ROWS}"""
    return Question(post, (number,), wide=True), Question(comments, (number,), wide=True)


def waiting(after: int, most: int, dialect: Dialect) -> Question:
    """The next messages of the outbox. Those end where the ones before them are large enough."""
    sql = f"""SELECT number, exchange, routing_key, body, {columns(["created_at"], dialect)} FROM (
            SELECT outbox.*, coalesce(sum(length(body)) OVER (
                ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
            FROM (SELECT * FROM outbox WHERE number > ? ORDER BY number LIMIT ?) AS outbox) AS outbox
        WHERE before < {MOST_MESSAGE_BYTES} ORDER BY number"""
    return Question(sql, (max(SMALLEST, min(after, LARGEST)), bounded(most)))


def sums(meant: SqlCondition) -> Question:
    """What `summed` makes a summary of."""
    halves = ", ".join(f"sum({name} >> 32), sum({name} & 4294967295)" for name in COUNTERS)
    flags = ", ".join(f"sum(CASE WHEN {name} THEN 1 ELSE 0 END)" for name in ("is_viral", "is_kol"))
    sql = f"""SELECT {", ".join(BY)}, count(*), sum(overall_sentiment_score), sum(impact_score), {flags}, {halves}
        FROM post_analytics WHERE {meant.sql} GROUP BY {", ".join(BY)} LIMIT {MOST_GROUPS + 1}"""
    return Question(sql, meant.values)


def summed(rows: Sequence[Row]) -> PostSummary:
    """All groups together. Raises AnalyticsError if there are too many of them."""
    _check_groups(rows)
    by: list[dict[str, int]] = [{} for _ in BY]
    totals: list[float] = [0] * (5 + 2 * len(COUNTERS))
    for row in rows:
        numbers = row[len(BY) :]
        for counts, name in zip(by, row, strict=False):
            counts[name] = counts.get(name, 0) + int(numbers[0])
        # Whole numbers come as decimals from one of the databases.
        whole = [numbers[0], *numbers[3:]]
        added = [int(whole[0]), float(numbers[1]), float(numbers[2]), *map(int, whole[1:])]
        totals = [one + other for one, other in zip(totals, added, strict=True)]
    posts, score, impact, viral, kol, *halves = totals
    counters = [(int(high) << 32) + int(low) for high, low in zip(halves[::2], halves[1::2], strict=True)]
    return PostSummary(
        posts=int(posts),
        by_sentiment=by[0],
        by_risk=by[1],
        by_intent=by[2],
        by_platform=by[3],
        mean_score=score / posts if posts else 0.0,
        mean_impact=impact / posts if posts else 0.0,
        viral=int(viral),
        kol=int(kol),
        **dict(zip(("views", "likes", "comments", "shares", "saves"), counters, strict=True)),
    )


def days(meant: SqlCondition, dialect: Dialect) -> Question:
    """What `trended` makes trends of."""
    sql = f"""SELECT {dialect.day.format(AT)} AS day, overall_sentiment, count(*), sum(overall_sentiment_score),
        sum(impact_score) FROM post_analytics WHERE {meant.sql}
        GROUP BY 1, 2 ORDER BY 1, 2 LIMIT {MOST_GROUPS + 1}"""
    return Question(sql, meant.values)


def trended(rows: Sequence[Row], granularity: Granularity) -> list[Trend]:
    """Days by period, in order. Raises AnalyticsError if there are too many of them."""
    _check_groups(rows)
    periods: dict[int, tuple[dict[str, int], list[float]]] = {}
    for day, sentiment, posts, score, impact in rows:
        counts, totals = periods.setdefault(first_day(int(day), granularity), ({}, [0.0, 0.0]))
        counts[sentiment] = counts.get(sentiment, 0) + posts
        totals[0] += score
        totals[1] += impact
    return [
        Trend(
            start=float(start * DAY),
            posts=sum(counts.values()),
            by_sentiment=counts,
            mean_score=totals[0] / sum(counts.values()),
            mean_impact=totals[1] / sum(counts.values()),
        )
        for start, (counts, totals) in periods.items()
    ]


def first_day(day: int, granularity: Granularity) -> int:
    """The first day of the period that a day is in, both as days after 1970. Raises ValueError for no period."""
    match granularity:
        case "day":
            return day
        case "week":
            return day - (day + 3) % 7  # 1970 began with a Thursday
        case "month":
            return day - (EPOCH + timedelta(day)).day + 1
    raise ValueError(f"{granularity!r:.40} is no period, expected one of {', '.join(get_args(Granularity))}")


def _check_groups(rows: Sequence[Row]) -> None:
    if len(rows) > MOST_GROUPS:
        message = f"more than {MOST_GROUPS:,} groups to sum up; narrow the filter, by dates for one"
        raise AnalyticsError(message, transient=False)


def frequent_keywords(meant: SqlCondition, most: int, dialect: Dialect) -> Question:
    """Keyword, aspect, posts, mean score. A post that has one twice counts once."""
    said = KEYWORDS[dialect]
    sql = f"""SELECT keyword, aspect, count(*), avg(score) FROM (
            SELECT DISTINCT post_analytics.id, {said.keyword} AS keyword, {said.aspect} AS aspect,
                overall_sentiment_score AS score
            FROM (SELECT * FROM post_analytics WHERE {meant.sql}) AS post_analytics CROSS JOIN {said.rows}
        ) AS found WHERE keyword IS NOT NULL GROUP BY keyword, aspect
        ORDER BY count(*) DESC, keyword, aspect LIMIT ?"""
    return Question(sql, (*meant.values, bounded(most)))


def errors_by_code(meant: SqlCondition) -> Question:
    """The most frequent codes and how many there are of each."""
    sql = f"""SELECT error_code, count(*) FROM crawl_errors WHERE {meant.sql} GROUP BY error_code
        ORDER BY count(*) DESC, error_code LIMIT {MOST_CODES}"""
    return Question(sql, meant.values)


def post_of(row: Row) -> StoredPost:
    """A post, of a row that begins with its id."""
    return StoredPost(id=row[0], row=PostRow(**_read(POST_COLUMNS, row[1:])))


def comment_of(row: Row) -> CommentRow:
    """A comment; the place of its post is 0."""
    return CommentRow(post=0, **_read(COMMENT_COLUMNS, row))


def error_of(row: Row) -> StoredError:
    """An error, of a row that begins with its id."""
    return StoredError(id=row[0], row=ErrorRow(**_read(ERROR_COLUMNS, row[1:])))


def _read(names: Iterable[str], row: Row) -> dict[str, Any]:
    values = dict(zip(names, row, strict=True))
    for name in JSON_COLUMNS & values.keys():
        values[name] = msgspec.json.decode(values[name])
    for name in FLAG_COLUMNS & values.keys():
        values[name] = bool(values[name])
    return values
