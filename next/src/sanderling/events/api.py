"""The API: posts, their summary and trends, alerts, errors, health. It only reads.

Every query finds its rows by an index and ends after a page of them; a test explains each. Summary and trends read one
index alone, from which they cut at most 400 days.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sanderling.clock import Clock
from sanderling.events.store import EventStore, StoreAway
from sanderling.events.tables import ERRORS, POSTS, as_datetime, as_object
from sanderling.formats.loose import moment
from sanderling.serving import Input, Needs, Problem, Route

DAY = 86_400.0
MOST_DAYS = 400
RISKY = "risk_level IN ('HIGH', 'CRITICAL')"
SHORT, SHORTER = 300, 200  # characters of a text in lists
_LISTED = tuple(
    each.name for each in POSTS if each.name not in ("aspects_breakdown", "sentiment_probabilities", "impact_breakdown")
)
Size = Annotated[int, Meta(ge=1, le=100)]


class PostsQuery(Input, frozen=True):
    """Which posts. Times are ISO 8601, or seconds since 1970; `after` is the `next` of the page before."""

    project_id: str
    platform: str | UnsetType = UNSET
    sentiment: Literal["POSITIVE", "NEUTRAL", "NEGATIVE"] | UnsetType = UNSET
    risk_level: Literal["LOW", "MEDIUM", "HIGH", "CRITICAL"] | UnsetType = UNSET
    fetch_status: Literal["success", "error"] | UnsetType = UNSET
    from_date: str | UnsetType = UNSET
    to_date: str | UnsetType = UNSET
    sort_by: Literal["analyzed_at", "published_at", "impact_score"] = "analyzed_at"
    page_size: Size = 20
    after: str | UnsetType = UNSET


class PostPath(Input, frozen=True):
    """A post by its id."""

    id: str


class PeriodQuery(Input, frozen=True):
    """A project and a period, by default the last thirty days."""

    project_id: str
    from_date: str | UnsetType = UNSET
    to_date: str | UnsetType = UNSET


class TrendsQuery(PeriodQuery, frozen=True):
    """The same, and how it is cut."""

    granularity: Literal["day", "week", "month"] = "day"


class ErrorsQuery(Input, frozen=True):
    """Which errors; the newest first."""

    project_id: str | UnsetType = UNSET
    job_id: str | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    page_size: Size = 20
    after: int | UnsetType = UNSET


class AlertsQuery(Input, frozen=True):
    """Of which project, and how many of each kind."""

    project_id: str
    limit: Annotated[int, Meta(ge=1, le=50)] = 10


class RowsPage(msgspec.Struct):
    """Some rows, and where the next page begins; empty: this is the last."""

    items: list[dict[str, Any]]
    next: str = ""


class PeriodSummary(msgspec.Struct):
    """What a project's posts add up to."""

    start: float
    end: float
    posts: int = 0
    failed: int = 0  # could not be fetched
    views: int = 0
    likes: int = 0
    viral: int = 0
    mean_impact: float = 0.0
    by_platform: dict[str, int] = {}
    by_sentiment: dict[str, int] = {}
    by_risk: dict[str, int] = {}
    by_intent: dict[str, int] = {}


class PostAlerts(msgspec.Struct):
    """What somebody should look at."""

    critical_posts: list[dict[str, Any]]
    viral_posts: list[dict[str, Any]]
    crisis_intents: list[dict[str, Any]]


class HealthShape(msgspec.Struct):
    """Whether it works."""

    status: str
    troubles: list[str] = []


class PostsApi:
    """The routes over a store; `postgres`: times are its TIMESTAMP. `troubles` are those of the run."""

    def __init__(self, store: EventStore, clock: Clock, troubles: Mapping[str, str], *, postgres: bool) -> None:
        self._store, self._clock, self._troubles, self._postgres = store, clock, troubles, postgres

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("GET", "/posts", self.posts),
            Route("GET", "/posts/{id}", self.post, problems=(404,)),
            Route("GET", "/summary", self.summary),
            Route("GET", "/trends", self.trends),
            Route("GET", "/alerts", self.alerts),
            Route("GET", "/errors", self.errors),
            Route("GET", "/health", self.health, Needs.NOTHING),
        ]

    async def posts(self, query: PostsQuery) -> RowsPage:
        """The posts of a project, the highest first."""
        where, values = ["project_id = $1"], [query.project_id]

        def add(condition: str, value: object) -> None:
            values.append(value)  # type: ignore[arg-type]
            where.append(condition.replace("$", f"${len(values)}"))

        for name, column in (("platform", "platform"), ("sentiment", "overall_sentiment"),
                             ("risk_level", "risk_level"), ("fetch_status", "fetch_status")):  # fmt: skip
            if (wanted := getattr(query, name)) is not UNSET:
                add(f"{column} = $", wanted)
        if query.risk_level in ("HIGH", "CRITICAL"):
            where.append(RISKY)  # as its index has it
        for name, sign in (("from_date", ">="), ("to_date", "<")):
            if (wanted := getattr(query, name)) is not UNSET:
                add(f"published_at {sign} $", self._time(_moment(name, wanted)))
        sort, is_time = query.sort_by, query.sort_by != "impact_score"
        if query.after is not UNSET:
            value, _, last = query.after.partition("~")
            try:
                number = float(value)
            except ValueError:
                raise Problem(400, f"after is {query.after[:60]!r}, expected the next of a page") from None
            before = self._time(number) if is_time else number
            add(f"{sort} <= $", before)
            values += [before, last]  # type: ignore[list-item]
            where.append(f"({sort} < ${len(values) - 1} OR id < ${len(values)})")
        sql = (
            f"SELECT {', '.join(_LISTED)} FROM post_analytics WHERE {' AND '.join(where)}"
            f" ORDER BY {sort} DESC, id DESC LIMIT {query.page_size + 1}"
        )
        rows = [as_object(_LISTED, row, SHORT) for row in await self._read(sql, *values)]
        more = rows[query.page_size - 1] if len(rows) > query.page_size else None
        return RowsPage(rows[: query.page_size], f"{more[sort]!r}~{more['id']}" if more else "")

    async def post(self, path: PostPath) -> RowsPage:
        """A post with all that is known of it, in each project that has it."""
        names = tuple(each.name for each in POSTS)
        sql = f"SELECT {', '.join(names)} FROM post_analytics WHERE id = $1"
        rows = [as_object(names, row) for row in await self._read(sql, path.id)]
        if not rows:
            raise Problem(404, f"there is no post {path.id[:60]!r}")
        return RowsPage(rows)

    async def summary(self, query: PeriodQuery) -> PeriodSummary:
        """What the posts of a period add up to."""
        start, end = self._period(query)
        sql = """SELECT platform, overall_sentiment, risk_level, primary_intent, fetch_status, is_viral, count(*),
            sum(impact_score), sum(view_count), sum(like_count) FROM post_analytics
            WHERE project_id = $1 AND published_at >= $2 AND published_at < $3 GROUP BY 1, 2, 3, 4, 5, 6"""
        return _sum(start, end, await self._read(sql, query.project_id, self._time(start), self._time(end)))

    async def trends(self, query: TrendsQuery) -> list[PeriodSummary]:
        """The same for each day, week or month of a period."""
        start, end = self._period(query)
        day = (
            "floor(extract(epoch FROM published_at) / 86400)" if self._postgres else "CAST(published_at / 86400 AS INT)"
        )
        sql = f"""SELECT {day}, platform, overall_sentiment, risk_level, primary_intent, fetch_status, is_viral,
            count(*), sum(impact_score), sum(view_count), sum(like_count) FROM post_analytics
            WHERE project_id = $1 AND published_at >= $2 AND published_at < $3 GROUP BY 1, 2, 3, 4, 5, 6, 7"""
        parts: dict[float, list[tuple[Any, ...]]] = {}
        for number, *row in await self._read(sql, query.project_id, self._time(start), self._time(end)):
            parts.setdefault(_begin(float(number) * DAY, query.granularity), []).append(tuple(row))
        return [_sum(begin, _end(begin, query.granularity), rows) for begin, rows in sorted(parts.items())]

    async def alerts(self, query: AlertsQuery) -> PostAlerts:
        """Critical, viral and crisis posts, the newest first."""
        # Each as the condition of its index has it.
        found = []
        for condition in (RISKY, "is_viral", "primary_intent = 'CRISIS'"):
            sql = (
                f"SELECT {', '.join(_LISTED)} FROM post_analytics WHERE project_id = $1 AND {condition}"
                f" ORDER BY analyzed_at DESC LIMIT {query.limit}"
            )
            found.append([as_object(_LISTED, row, SHORTER) for row in await self._read(sql, query.project_id)])
        return PostAlerts(*found)

    async def errors(self, query: ErrorsQuery) -> RowsPage:
        """Items that failed, the newest first."""
        names = ("id", *(each.name for each in ERRORS))
        where, values = ["id > 0"], list[Any]()
        for column in ("project_id", "job_id", "error_code"):
            if (wanted := getattr(query, column)) is not UNSET:
                values.append(wanted)
                where.append(f"{column} = ${len(values)}")
        if query.after is not UNSET:
            values.append(query.after)
            where.append(f"id < ${len(values)}")
        sql = (
            f"SELECT {', '.join(names)} FROM crawl_errors WHERE {' AND '.join(where)}"
            f" ORDER BY id DESC LIMIT {query.page_size + 1}"
        )
        rows = [as_object(names, row) for row in await self._read(sql, *values)]
        page = rows[: query.page_size]
        return RowsPage(page, str(page[-1]["id"]) if len(rows) > query.page_size else "")

    async def health(self) -> HealthShape:
        """Whether messages are processed, and if not, why."""
        troubles = [f"{service}: {why}" for service, why in self._troubles.items()]
        return HealthShape("degraded" if troubles else "ok", troubles)

    async def _read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return await self._store.read(sql, *values)
        except StoreAway as error:
            raise Problem(503, str(error), {"Retry-After": "5"}) from None

    def _time(self, seconds: float) -> Any:  # noqa: ANN401 - what the database takes
        return as_datetime(seconds) if self._postgres else seconds

    def _period(self, query: PeriodQuery) -> tuple[float, float]:
        end = self._clock.wall() if query.to_date is UNSET else _moment("to_date", query.to_date)
        start = end - 30 * DAY if query.from_date is UNSET else _moment("from_date", query.from_date)
        if not 0 < end - start <= MOST_DAYS * DAY:
            days = f"{(end - start) / DAY:.0f} days"
            raise Problem(400, f"from_date to to_date is {days}, expected up to {MOST_DAYS}")
        return start, end


def _moment(name: str, value: str) -> float:
    found = moment(value)
    if found is None:
        raise Problem(400, f"{name} is {value[:60]!r}, expected a time such as 2025-12-06T10:15:30Z")
    return found


def _sum(start: float, end: float, rows: list[tuple[Any, ...]]) -> PeriodSummary:
    total = PeriodSummary(start, end, by_platform={}, by_sentiment={}, by_risk={}, by_intent={})
    impact = 0.0
    for platform, sentiment, risk, intent, status, viral, number, score, views, likes in rows:
        if status != "success":
            total.failed += number
            continue
        total.posts += number
        total.viral += number if viral else 0
        total.views += int(views or 0)
        total.likes += int(likes or 0)
        impact += float(score or 0)
        for table, name in (
            (total.by_platform, platform), (total.by_sentiment, sentiment), (total.by_risk, risk),
            (total.by_intent, intent),
        ):  # fmt: skip
            table[name] = table.get(name, 0) + number
    total.mean_impact = round(impact / total.posts, 4) if total.posts else 0.0
    return total


def _begin(day: float, granularity: str) -> float:
    """The begin of the week or month of a day; weeks begin on Monday."""
    if granularity == "week":
        return day - (int(day // DAY) + 3) % 7 * DAY  # 1970 began on a Thursday
    date = as_datetime(day)
    return day if granularity == "day" or date is None else day - (date.day - 1) * DAY


def _end(begin: float, granularity: str) -> float:
    if granularity == "month":
        return _begin(begin + 31 * DAY, "month")
    return begin + (DAY if granularity == "day" else 7 * DAY)
