"""The routes of polling: its admin API, the webhook it listens to, and what it has found."""

from collections.abc import Mapping, Sequence

from aiohttp import web
from msgspec import UNSET

from sanderling.clock import Clock
from sanderling.observe.report import Report
from sanderling.polling.control import PollingControl
from sanderling.polling.discovery import DiscoveryError
from sanderling.polling.report import PollingFacts
from sanderling.polling.settings import SettingError
from sanderling.stores.polling import Field, PollingStoreError, Query
from sanderling.web.app import AppRules, application
from sanderling.web.openapi import About
from sanderling.web.parsing import given
from sanderling.web.polling_stream import ChangeStream, position_of
from sanderling.web.polling_types import (
    ChangePage,
    ChangesQuery,
    Confirmation,
    EventKindPath,
    EventPath,
    EventsQuery,
    EventTargetPath,
    Hook,
    IngestedList,
    KeyPath,
    KindAndId,
    Promoted,
    Promotion,
    Promotions,
    Purged,
    Ready,
    Received,
    RowPage,
    RowsQuery,
    RowView,
    SettingList,
    SettingValue,
    SettingView,
    TablePath,
    TargetPage,
    TargetPatch,
    TargetsQuery,
    TargetView,
    Trimming,
    cursor_of,
    ingested_list,
    read_cursor,
    setting_view,
    target_view,
)
from sanderling.web.problems import ProblemError, problem, title
from sanderling.web.routes import route, routes_of
from sanderling.web.stream import Streams

ABOUT = About(
    title="Sanderling polling",
    version="1",
    description="Live documents, polled each at its own pace: what is polled, what was found, and what changes.",
)
# Seconds until it is worth asking again.
SOON, LATER = {"Retry-After": "5"}, {"Retry-After": "60"}
GONE = {"true": True, "false": False, "any": None}
TARGET, EVENT = "/targets/{kind}/{id}", "/ingest/events/{event}"


def polling_app(
    control: PollingControl, clock: Clock, streams: Streams, snapshot: Sequence[str], rules: AppRules | None = None
) -> web.Application:
    """The application, to be opened by `serving`. `snapshot`: the kinds that are never live."""
    routes = (*routes_of(PollingRoutes(control, clock, streams)), *routes_of(IngestRoutes(control, snapshot)))
    return application(ABOUT, routes, streams, clock, translate=translate, rules=rules)


class PollingRoutes:
    """They answer: how it stands, what is polled and how, and what was found."""

    def __init__(self, control: PollingControl, clock: Clock, streams: Streams) -> None:
        self._control = control
        self._clock = clock
        self._streams = streams

    @route("GET", "/ready", everyone=True)
    async def ready(self) -> Ready:
        """Whether it polls, and has its database."""
        status = self._control.status()
        if not status.process.running or status.facts.store_trouble:
            raise problem(503, "not ready", {"Retry-After": "5"})  # everyone may ask this, so it says no more
        return Ready()

    @route("GET", "/status")
    async def status(self) -> Report[PollingFacts]:
        """How polling stands."""
        return self._control.status()

    @route("GET", "/targets")
    async def targets(self, query: TargetsQuery) -> TargetPage:
        """Targets, those that are due first before the others.

        Due times move while a client turns the pages: a target may be met twice, or not at all.
        """
        wall = self._clock.wall()
        found = await self._control.targets(
            Query(
                kind=given(query.kind),
                event=given(query.event),
                enabled=None if query.enabled is UNSET else query.enabled == "true",
                gone=GONE[query.gone],
                due_before=wall if query.due == "true" else None,
                accelerated_at=wall if query.accelerated == "true" else None,
                after=None if query.cursor is UNSET else read_cursor(query.cursor),
                most=query.limit + 1,  # one more, to know whether there is another page
            )
        )
        page = found[: query.limit]
        return TargetPage(
            targets=tuple(target_view(target, wall) for target in page),
            next=cursor_of(page[-1]) if len(found) > query.limit else None,
        )

    @route("GET", TARGET, problems=(404,))
    async def target(self, path: KindAndId) -> TargetView:
        """One target."""
        target = await self._control.target(path.kind, path.id)
        if target is None:
            raise _unknown(path)
        return target_view(target, self._clock.wall())

    @route("PATCH", TARGET, problems=(404,), body_rule={"minProperties": 1})
    async def change_target(self, path: KindAndId, body: TargetPatch) -> TargetView:
        """Set what an admin may set of a target; what is not given stays as it is."""
        fields: dict[Field, bool | float | int | None] = {}
        if body.enabled is not UNSET:
            fields["enabled"] = body.enabled
        if body.seconds is not UNSET:
            fields["set_seconds"] = body.seconds
        if body.priority is not UNSET:
            fields["set_priority"] = body.priority
        if not fields:
            raise problem(400, "body: found nothing to change, expected some of enabled, seconds, priority")
        return await self._change(path, fields)

    @route("POST", f"{TARGET}/promote", problems=(404,))
    async def promote_target(self, path: KindAndId, body: Promotion) -> Promoted:
        """Run a target now. One that is paused stays so."""
        promoted = await self._promote(path, body.seconds)
        if promoted is None:
            raise _unknown(path)
        return Promoted(promoted=promoted)

    @route("POST", f"{TARGET}/pause", problems=(404,))
    async def pause(self, path: KindAndId) -> TargetView:
        """Poll a target no more, until it is resumed."""
        return await self._change(path, {"enabled": False})

    @route("POST", f"{TARGET}/resume", problems=(404,))
    async def resume(self, path: KindAndId) -> TargetView:
        """Poll a target again."""
        return await self._change(path, {"enabled": True})

    @route("POST", "/promote")
    async def promote(self, body: Promotions) -> Promoted:
        """Run many targets now: those of a kind, of an event, or all. Those that are paused stay so."""
        query = Query(kind=given(body.kind), event=given(body.event))
        return Promoted(promoted=await self._control.promote(query, body.seconds))

    @route("POST", "/hooks/promote", status=202, hook=True, body_rule={"minProperties": 1, "maxProperties": 1})
    async def hook(self, body: Hook) -> Received:
        """Be told by the upstream that something has changed, and run what it names now.

        It may be told twice: a target that is to run now anyway runs once.
        """
        if (body.targets is UNSET) == (body.event is UNSET):
            raise problem(400, "body: expected either targets or event, and not both")
        if body.targets is UNSET:
            return Received(promoted=await self._control.promote(Query(event=given(body.event)), 0.0))
        numbers = {name: await self._promote(name, 0.0) for name in dict.fromkeys(body.targets)}
        unknown = tuple(name for name, number in numbers.items() if number is None)
        return Received(promoted=sum(number or 0 for number in numbers.values()), unknown=unknown)

    async def _promote(self, name: KindAndId, seconds: float) -> int | None:
        """Run one now. How many that are; None if there is no such target."""
        number = await self._control.promote(Query(kind=name.kind, source_id=name.id), seconds)
        if number == 0 and await self._control.target(name.kind, name.id) is None:
            return None
        return number

    async def _change(self, name: KindAndId, fields: Mapping[Field, bool | float | int | None]) -> TargetView:
        if not await self._control.change(name.kind, name.id, fields):
            raise _unknown(name)
        return await self.target(name)

    @route("GET", "/settings")
    async def settings(self) -> SettingList:
        """All settings."""
        return SettingList(settings=tuple(setting_view(each) for each in await self._control.settings()))

    @route("PUT", "/settings/{key}", problems=(422,))
    async def change_setting(self, path: KeyPath, body: SettingValue) -> SettingView:
        """Change a setting; it is in force at once. Status 422 if it cannot be set to that."""
        return setting_view(await self._control.set(path.key, body.value))

    @route("DELETE", "/settings/{key}", problems=(422,))
    async def reset_setting(self, path: KeyPath) -> SettingView:
        """Go back to the default of a setting."""
        return setting_view(await self._control.set(path.key, None))

    @route("GET", "/rows/{table}", problems=(404,))
    async def rows(self, path: TablePath, query: RowsQuery) -> RowPage:
        """Rows of a table, in the order of their keys.

        To have a copy of a table: read all pages, then follow the changes after the `seq` of the first page.
        """
        table, limit = path.table, query.limit
        # Before the rows: a change in between is told again, and none is missed.
        seq = self._control.feed.newest
        try:
            found = await self._control.rows(table, event=given(query.event), after=query.after, most=limit + 1)
        except KeyError:
            raise problem(404, f"there is no table {table!a:.100}") from None
        rows = tuple(RowView(key=row.key, values=row.values) for row in found[:limit])
        return RowPage(rows=rows, next=rows[-1].key if len(found) > limit else None, seq=seq)

    @route("GET", "/changes", problems=(410,))
    async def changes(self, query: ChangesQuery) -> ChangePage:
        """Changes after a number, in order.

        Status 410 if some of them are no longer to be had, or there never was such a number: then read the rows anew.
        """
        since, feed = query.since, self._control.feed
        found = await self._control.changes(since, query.limit)
        complete = found[0].seq == since + 1 if found else since == feed.newest
        if not complete:
            # What is missing was trimmed, or belongs to nobody, or we are behind.
            await feed.look()
            if not feed.oldest - 1 <= since <= feed.newest:
                there = f"those from {feed.oldest} to {feed.newest} are there"
                detail = f"changes after {since} were asked for, and {there}"
                trimmed = Trimming(title=title(410), status=410, detail=detail, oldest=feed.oldest, newest=feed.newest)
                raise ProblemError(trimmed)
        return ChangePage(changes=tuple(found), newest=max(feed.newest, found[-1].seq if found else 0))

    @route("GET", "/events")
    async def events(self, query: EventsQuery, request: web.Request) -> web.StreamResponse:
        """The stream of changes, as server-sent events: `change`, with a change as data.

        It begins after `since`, or after Last-Event-ID if a client comes back; without either, with what comes. An
        event `reset` says that changes are missing, and that it goes on after the newest: read the rows anew. A purge
        is told whatever the filters.
        """
        since = position_of(request.headers.get("Last-Event-ID", ""), query)
        stream = ChangeStream(self._control.feed, since, query)
        return await self._streams.serve(request, stream.frames(), stream.silent)


class IngestRoutes:
    """They answer when what they were asked to run has run. `snapshot`: the kinds that are never live."""

    def __init__(self, control: PollingControl, snapshot: Sequence[str]) -> None:
        self._control = control
        self._snapshot = tuple(snapshot)

    @route("POST", f"{EVENT}/snapshot", problems=(404,))
    async def ingest_snapshot(self, path: EventPath) -> IngestedList:
        """Run all targets of an event now that are never live by themselves."""
        return await self._ingest(path.event, self._snapshot)

    @route("POST", f"{EVENT}/full", problems=(404,))
    async def ingest_event(self, path: EventPath) -> IngestedList:
        """Run all targets of an event now."""
        return await self._ingest(path.event, None)

    @route("POST", f"{EVENT}/{{kind}}", problems=(404,))
    async def ingest_kind(self, path: EventKindPath) -> IngestedList:
        """Run all targets of a kind of an event now."""
        return await self._ingest(path.event, (path.kind,))

    @route("POST", f"{EVENT}/{{kind}}/{{id}}", problems=(404,))
    async def ingest_target(self, path: EventTargetPath) -> IngestedList:
        """Run a target of an event now, paused or not."""
        target = await self._control.target(path.kind, path.id)
        done = await self._control.ingest(path.kind, path.id) if target and target.event == path.event else None
        if done is None:
            raise _unknown(path, f" in the event {path.event!a:.100}")
        return ingested_list([done])

    @route("POST", "/ingest/full", problems=(502,))
    async def ingest_all(self) -> IngestedList:
        """Find out what there is to poll, and run all of it once."""
        return ingested_list(await self._control.full())

    @route("POST", "/ingest/purge")
    async def purge(self, body: Confirmation) -> Purged:
        """Remove all rows and all targets. Settings stay; what there is to poll is found anew."""
        if not body.confirm:
            raise problem(400, "body: confirm is false, expected true")
        return Purged(removed=await self._control.purge())

    async def _ingest(self, event: str, kinds: Sequence[str] | None) -> IngestedList:
        done = await self._control.ingest_event(event, kinds)
        if not done:
            which = "" if kinds is None else f" of {', '.join(kinds)}"
            raise problem(404, f"the event {event!a:.100} has no targets{which:.200}")
        return ingested_list(done)


def _unknown(name: KindAndId | EventTargetPath, where: str = "") -> ProblemError:
    return problem(404, f"there is no target of kind {name.kind!a:.100} with the id {name.id!a:.100}{where}")


def translate(error: Exception) -> ProblemError | None:
    """What the errors of polling mean to a client."""
    match error:
        case ExceptionGroup():
            # Several targets ran at once; what stopped the first of them stopped all.
            known = [translate(each) for each in error.exceptions]
            return known[0] if all(known) else None
        case PollingStoreError():
            return problem(503, f"the database is not to be had: {error}", SOON if error.transient else LATER)
        case SettingError():
            return problem(422, str(error))
        case DiscoveryError():
            return problem(502, f"what there is to poll could not be found out: {error}")
    return None
