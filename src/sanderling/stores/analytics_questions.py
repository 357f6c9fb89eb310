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
from typing import NamedTuple, TypeVar, get_args

import msgspec

from sanderling.stores.analytics import (
    AnalyticsError,
    ErrorFilter,
    EventFilter,
    Granularity,
    PostFilter,
    PostSummary,
    Sort,
    Trend,
)
from sanderling.stores.analytics_rows import (
    EARLIEST,
    FLAG_COLUMNS,
    JSON_COLUMNS,
    LATEST,
    POST_COLUMNS,
    TIME_COLUMNS,
)
from sanderling.stores.database import POSTGRES, SQLITE, Dialect, Row, SqlCondition
from sanderling.stores.polling_rows import LARGEST, SMALLEST, is_text

T = TypeVar("T")

MOST_ROWS = 10_000  # of a page
MOST_GROUPS = 100_000  # that are summed up: of days and sentiments, some 90 years
MOST_CODES = 1000
MOST_MESSAGE_BYTES = 16 << 20  # of messages that are handed out at once; one may be larger
COUNTERS = ("view_count", "like_count", "comment_count", "share_count", "save_count")
BY = ("overall_sentiment", "risk_level", "primary_intent", "platform")
AT = "coalesce(published_at, analyzed_at)"
DAY = 86_400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOTHING = SqlCondition("1 = 0", ())  # no row has that
# Filters whose names are not those of columns; from the one on, before the other; and the time that this is about.
OTHER_NAMES = {"sentiment": "overall_sentiment", "intent": "primary_intent"}
BETWEEN = {"from_date": ">=", "to_date": "<"}
TIMES: Mapping[type, str] = {PostFilter: AT, ErrorFilter: "created_at", EventFilter: "processed_at"}
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


def meant(chosen: PostFilter | ErrorFilter | EventFilter, dialect: Dialect) -> SqlCondition:
    """Which rows a filter means: those that have each of its values in the column of that name, or of another."""
    terms, values = list[str](), list[object]()
    for name in chosen.__struct_fields__:
        value, column = getattr(chosen, name), OTHER_NAMES.get(name, name)
        if value is None or name in BETWEEN:
            continue
        if isinstance(value, bool):
            terms.append(column if value else f"NOT {column}")
        elif value == "" and name == "project_id":
            terms.append("project_id IS NULL")
        elif not is_text(value):
            return NOTHING
        else:
            terms.append(f"{column} = ?")
            values.append(value)
    for name, sign in BETWEEN.items():
        seconds = getattr(chosen, name)
        if seconds is not None and isnan(seconds):
            return NOTHING
        if seconds is not None:
            terms.append(f"{TIMES[type(chosen)]} {sign} {dialect.moment.format('?')}")
            values.append(float(max(EARLIEST, min(seconds, LATEST))))
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


def waiting(after: int, most: int, dialect: Dialect) -> Question:
    """The next messages of the outbox. Those end where the ones before them are large enough."""
    sql = f"""SELECT number, exchange, routing_key, body, {columns(["created_at"], dialect)} FROM (
            SELECT outbox.*, coalesce(sum(length(body)) OVER (
                ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
            FROM (SELECT * FROM outbox WHERE number > ? ORDER BY number LIMIT ?) AS outbox) AS outbox
        WHERE before < {MOST_MESSAGE_BYTES} ORDER BY number"""
    return Question(sql, (max(SMALLEST, min(after, LARGEST)), bounded(most)))


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


def read_row(kind: type[T], names: Iterable[str], row: Row, **others: object) -> T:
    """A row of these columns, as what it is."""
    values = dict(zip(names, row, strict=True))
    for name in JSON_COLUMNS & values.keys():
        values[name] = msgspec.json.decode(values[name])
    for name in FLAG_COLUMNS & values.keys():
        values[name] = bool(values[name])
    return kind(**values, **others)
