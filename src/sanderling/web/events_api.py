"""The routes of `events`: what was found in social media, and the processing of it.

`/api/v1/analytics` is for those who read, `/api/v1/events` for those who run it. Every answer of both is in an
envelope, as `events_envelope` has it.
"""

from random import Random

from aiohttp import web
from msgspec import UNSET
from msgspec.structs import replace

from sanderling.clock import Clock
from sanderling.events.analysis.impact import Risk
from sanderling.events.lately import in_short
from sanderling.events.modes import Modes
from sanderling.events.report import EventsFacts
from sanderling.events.watch import EventsControl
from sanderling.observe import logs
from sanderling.observe.report import Report
from sanderling.stores.analytics import AnalyticsError, ErrorFilter, PostFilter, PostPage, PostSummary
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.durable import FolderError
from sanderling.stores.queue import DeadLetters, QueueError
from sanderling.web.app import AppRules, application
from sanderling.web.events_envelope import (
    VERSION,
    WRONG,
    EventsEnvelope,
    PageOf,
    around,
    enveloping,
    moment,
    refused,
)
from sanderling.web.events_types import (
    AlertsQuery,
    AllPostsQuery,
    Chosen,
    DeadQuery,
    ErrorsChosen,
    ErrorsQuery,
    KeywordsQuery,
    ModesGiven,
    PostPath,
    PostsQuery,
    Replay,
    TrendsQuery,
    filter_of,
    offset_of,
)
from sanderling.web.events_views import (
    ALERTED,
    AlertCounts,
    Alive,
    DeadPage,
    ErrorCounts,
    ErrorView,
    KeywordView,
    Parts,
    PostAlerts,
    PostDetail,
    PostItem,
    Replayed,
    TrendView,
    dead_view,
    error_view,
    post_detail,
    post_item,
    view_of,
)
from sanderling.web.openapi import About
from sanderling.web.problems import ProblemError, problem
from sanderling.web.routes import route, routes_of
from sanderling.web.stream import Streams

log = logs.get(__name__)

ABOUT = About(
    title="Sanderling events",
    version=VERSION,
    description="What was found in social media, what it amounts to, and how the processing of it stands.",
    around=around,
)
ANALYTICS, EVENTS = "/api/v1/analytics", "/api/v1/events"
# Seconds until it is worth asking again.
SOON, LATER = {"Retry-After": "5"}, {"Retry-After": "60"}
OK, CRISIS = "ok", "CRISIS"
# Posts that are read at once. They come with all their texts, of which a list needs little; and a store that is asked
# for too many bytes gives none.
PIECE = 1_000


def events_app(
    rows: AnalyticsStore,
    letters: DeadLetters,
    control: EventsControl,
    clock: Clock,
    rng: Random,
    rules: AppRules | None = None,
) -> web.Application:
    """The application, to be opened by `serving`. `rng` makes the ids of requests."""
    envelope = EventsEnvelope()
    routes = (*routes_of(PostRoutes(rows), envelope), *routes_of(AdminRoutes(control, letters), envelope))
    app = application(ABOUT, routes, Streams(clock), clock, translate=translate, rules=rules)
    app.middlewares.insert(0, enveloping(rng))
    return app


class PostRoutes:
    """They answer what was found: posts, what they amount to, what somebody should look at, and what went wrong."""

    def __init__(self, rows: AnalyticsStore) -> None:
        self._rows = rows

    @route("GET", f"{ANALYTICS}/posts")
    async def posts(self, query: PostsQuery) -> PageOf[PostItem]:
        """Posts of a project, page by page. Texts are cut after 300 characters."""
        found = await self._page(query, offset_of(query.page, query.page_size), query.page_size)
        items = tuple(map(post_item, found.posts))
        return PageOf(data=items, page=query.page, size=query.page_size, total=found.total)

    @route("GET", f"{ANALYTICS}/posts/all")
    async def all_posts(self, query: AllPostsQuery) -> list[PostItem]:
        """Posts of a project, without pages. Texts are cut after 300 characters."""
        items: dict[int, PostItem] = {}  # by number: what is new meanwhile moves others into the next piece
        for offset in range(0, query.limit, PIECE):
            most = min(PIECE, query.limit - offset)
            found = await self._page(query, offset, most)
            items |= {each.id: post_item(each) for each in found.posts}
            if len(found.posts) < most:
                break
        return list(items.values())

    async def _page(self, query: PostsQuery | AllPostsQuery, offset: int, most: int) -> PostPage:
        descending = query.order == "desc"
        return await self._rows.posts(
            filter_of(PostFilter, query), sort=query.sort_by, descending=descending, offset=offset, most=most
        )

    @route("GET", f"{ANALYTICS}/posts/{{id}}", problems=(404,))
    async def post(self, path: PostPath) -> PostDetail:
        """One post, with all that is known of it and its comments."""
        found = await self._rows.post(path.id)
        if found is None:
            raise problem(404, f"there is no post {path.id}")
        return post_detail(*found)

    @route("GET", f"{ANALYTICS}/summary")
    async def summary(self, query: Chosen) -> PostSummary:
        """Posts of a project, summed up."""
        return await self._rows.summary(filter_of(PostFilter, query))

    @route("GET", f"{ANALYTICS}/trends")
    async def trends(self, query: TrendsQuery) -> list[TrendView]:
        """Posts of a project by day, week or month, the first before the others.

        They are counted by their time of publication, or of analysis where that is unknown.
        """
        found = await self._rows.trends(filter_of(PostFilter, query), query.granularity)
        return [view_of(TrendView, each, period=moment(each.start).date()) for each in found]

    @route("GET", f"{ANALYTICS}/top-keywords")
    async def top_keywords(self, query: KeywordsQuery) -> list[KeywordView]:
        """What posts of a project are about, the most frequent first."""
        return [
            KeywordView(**each._asdict())
            for each in await self._rows.keywords(filter_of(PostFilter, query), query.limit)
        ]

    @route("GET", f"{ANALYTICS}/alerts")
    async def alerts(self, query: AlertsQuery) -> PostAlerts:
        """What somebody should look at: critical posts, viral ones, and those about a crisis, the newest first.

        Texts are cut after 200 characters.
        """
        scope = filter_of(PostFilter, query)
        lists = {
            "critical_posts": await self._newest(replace(scope, risk_level=Risk.CRITICAL.value), query.limit),
            "viral_posts": await self._newest(replace(scope, is_viral=True), query.limit),
            "crisis_intents": await self._newest(replace(scope, intent=CRISIS), query.limit),
        }
        shown = {name: tuple(post_item(each, ALERTED) for each in found.posts) for name, found in lists.items()}
        return PostAlerts(**shown, totals=AlertCounts(**{name: found.total for name, found in lists.items()}))

    async def _newest(self, chosen: PostFilter, most: int) -> PostPage:
        return await self._rows.posts(chosen, sort="analyzed_at", descending=True, offset=0, most=most)

    @route("GET", f"{ANALYTICS}/errors")
    async def errors(self, query: ErrorsQuery) -> PageOf[ErrorView]:
        """Items that were not fetched or cannot be read, the newest first, page by page."""
        offset = offset_of(query.page, query.page_size)
        found, total = await self._rows.errors(filter_of(ErrorFilter, query), offset=offset, most=query.page_size)
        return PageOf(data=tuple(map(error_view, found)), page=query.page, size=query.page_size, total=total)

    @route("GET", f"{ANALYTICS}/errors/counts")
    async def error_counts(self, query: ErrorsChosen) -> ErrorCounts:
        """How many of them there are, by code."""
        return ErrorCounts(by_code=await self._rows.error_counts(filter_of(ErrorFilter, query)))


class AdminRoutes:
    """They answer how `events` stands, switch its modes, and take up again what was given up.

    Times are Unix seconds, as in status.json.
    """

    def __init__(self, control: EventsControl, letters: DeadLetters) -> None:
        self._control = control
        self._letters = letters

    @route("GET", "/ready", everyone=True)
    async def ready(self) -> Alive:
        """Whether the database, the object store and the queue answer."""
        if any(said != OK for said in (await self._control.health()).values()):
            raise problem(503, "not ready", SOON)  # everyone may ask this, so it says no more
        return Alive()

    @route("GET", f"{ANALYTICS}/health", everyone=True)
    async def analytics_health(self) -> Alive:
        """Whether it answers."""
        return Alive()

    @route("GET", f"{ANALYTICS}/health/detailed")
    async def detailed_health(self) -> Parts:
        """How it stands with the database, the object store and the queue.

        Status 200 whatever it says: `status` is `ok` or `degraded`.
        """
        parts = {name: in_short(said) for name, said in (await self._control.health()).items()}
        return Parts(status=OK if all(said == OK for said in parts.values()) else "degraded", parts=parts)

    @route("GET", f"{EVENTS}/status")
    async def status(self) -> Report[EventsFacts]:
        """How the processing of events stands."""
        return await self._control.status()

    @route("GET", f"{EVENTS}/modes")
    async def modes(self) -> Modes:
        """Which formats of messages are processed."""
        try:
            return await self._control.modes()
        except ValueError as error:
            raise problem(503, f"the modes cannot be read: {error}", LATER) from error

    @route("PUT", f"{EVENTS}/modes")
    async def change_modes(self, body: ModesGiven) -> Modes:
        """Process these formats from now on. Messages of the others wait in the queue."""
        modes = Modes(new=body.new, legacy=body.legacy, inline=body.inline, canary=body.canary)
        await self._control.set_modes(modes)
        return modes

    @route("GET", f"{EVENTS}/dead", problems=(410,))
    async def dead(self, query: DeadQuery) -> DeadPage:
        """Messages that were given up, the first buried first. Their bodies are cut after 500 characters.

        Status 410 if `after` is a message that is no longer among them: then begin with the first page.
        """
        try:
            found = await self._letters.dead(query.limit, query.after)
        except QueueError as error:
            if not query.after:
                raise
            await self._letters.dead(1)  # raises as well if it is the queue's fault, and not that of `after`
            raise problem(410, str(error)) from None
        return DeadPage(letters=tuple(dead_view(each) for each in found), next=found[-1].key if found else None)

    @route("POST", f"{EVENTS}/dead/replay", body_rule={"minProperties": 1, "maxProperties": 1})
    async def replay(self, body: Replay) -> Replayed:
        """Process messages again that were given up, as if they had never failed. Unknown keys are passed over."""
        if (body.keys is UNSET) == (body.all is UNSET) or body.all is False:
            raise refused(WRONG, "body: expected either keys or all, which is true, and not both")
        replayed = await self._letters.replay(None if body.keys is UNSET else set(body.keys))
        log.info("dead_letters_replayed", letters=replayed)
        return Replayed(replayed=replayed)


def translate(error: Exception) -> ProblemError | None:
    """What the errors of what is behind mean to a client."""
    match error:
        case AnalyticsError():
            return problem(503, f"the database is not to be had: {error}", SOON if error.transient else LATER)
        case QueueError():
            return problem(503, f"the queue is not to be had: {error}", SOON)
        case FolderError():
            return problem(503, f"what was asked for cannot be written: {error}", LATER)
    return None
