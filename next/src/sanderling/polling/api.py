"""The API: routes of seed 004, targets and settings, rows, changes and their stream."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from sanderling.options import OptionError
from sanderling.polling.feed import Feed
from sanderling.polling.scheduler import Scheduler
from sanderling.polling.settings import PREFIX, parse_pairs
from sanderling.polling.store import PollTarget
from sanderling.polling.tables import RECORDS, SNAPSHOT, TARGET_TYPES, Value
from sanderling.serving import Input, Needs, Problem, Route, Streams

MOST_ROWS = 10_000


class TargetFigures(msgspec.Struct, frozen=True, rename="camel"):
    """A target, under the names of seed 004."""

    type: str
    source_id: str
    interval_ms: int
    next_due_at: str
    priority: int
    enabled: bool
    etag: str | None
    last_fetched_at: str | None
    last_status: str | None
    failures: int
    live: bool


class Promoted(msgspec.Struct, frozen=True):
    """How many targets are polled next."""

    promoted: int


class RowsFound(msgspec.Struct, frozen=True):
    """Rows of a table by their keys."""

    table: str
    position: int  # of the newest change by then
    rows: dict[str, dict[str, Any]]


class ChangeFigures(msgspec.Struct, frozen=True):
    """A change."""

    position: int
    at: str
    table: str
    key: str
    op: str
    data: dict[str, Any]


class ChangesFound(msgspec.Struct, frozen=True):
    """Changes behind a position; `reset` says that some of them are not in the log any more."""

    position: int
    reset: bool
    changes: list[ChangeFigures]


class EventPath(Input, frozen=True, kw_only=True):
    """An event."""

    event: str


class RacePath(Input, frozen=True, kw_only=True):
    """A race of an event."""

    event: str
    race: str


class TargetPath(Input, frozen=True, kw_only=True):
    """A target."""

    type: str
    id: str


class TablePath(Input, frozen=True, kw_only=True):
    """A table of records."""

    table: str


class RowPath(Input, frozen=True, kw_only=True):
    """A row of a table of records."""

    table: str
    id: str


class SettingPath(Input, frozen=True, kw_only=True):
    """A setting."""

    key: str


class SinceQuery(Input, frozen=True, kw_only=True):
    """From where."""

    since: int | None = None
    limit: int = 500
    ticket: str | None = None


class PromoteBody(Input, frozen=True, kw_only=True, rename="camel"):
    """What may have changed upstream."""

    type: str
    source_id: str
    priority: int | None = None


class TargetBody(Input, frozen=True, kw_only=True, rename="camel"):
    """What to change of a target."""

    interval_ms: int | None = None
    priority: int | None = None
    enabled: bool | None = None


class SettingBody(Input, frozen=True, kw_only=True):
    """A value."""

    value: str


class Api:
    """What its routes do."""

    def __init__(self, scheduler: Scheduler, feed: Feed, streams: Streams) -> None:
        self._scheduler = scheduler
        self._store = scheduler.store
        self._feed = feed
        self._streams = streams

    def routes(self) -> list[Route]:
        """All of them."""
        change = partial(Route, needs=Needs.CHANGE)
        return [
            change("POST", "/ingest/full", self.ingest_full),
            change("POST", "/ingest/purge", self.ingest_purge),
            change("POST", "/ingest/events/{event}/snapshot", self.ingest_snapshot, problems=(404,)),
            change("POST", "/ingest/events/{event}/full", self.ingest_event, problems=(404,)),
            change("POST", "/ingest/events/{event}/results", self.ingest_results, problems=(404,)),
            change("POST", "/ingest/events/{event}/race/{race}", self.ingest_race, problems=(404,)),
            change("POST", "/promote", self.promote, problems=(404,)),
            change("GET", "/admin/scheduler/targets", self.admin_targets),
            Route("GET", "/targets", self.targets),
            change("PATCH", "/targets/{type}/{id}", self.change_target, problems=(404,)),
            Route("GET", "/settings", self.settings),
            change("PUT", "/settings/{key}", self.put_setting),
            change("DELETE", "/settings/{key}", self.delete_setting),
            Route("GET", "/rows/{table}", self.rows, problems=(404,)),
            change("PATCH", "/rows/{table}/{id}", self.change_row, problems=(404,)),
            Route("GET", "/changes", self.changes),
            Route("GET", "/stream", self.stream),
        ]

    async def ingest_full(self) -> Promoted:
        """Discover the event and poll everything next."""
        await self._scheduler.discover()
        return await self._promoted([each.key for each in await self._store.targets()], missing_ok=True)

    async def ingest_purge(self) -> dict[str, int]:
        """Delete all records and targets, and say how many there were; discovery begins anew."""
        counts = await self._store.purge()
        self._scheduler.forget()
        return counts

    async def ingest_snapshot(self, path: EventPath) -> Promoted:
        """Poll what describes an event next."""
        return await self._promoted([(kind, path.event) for kind in SNAPSHOT])

    async def ingest_event(self, path: EventPath) -> Promoted:
        """Poll all targets of an event next."""
        return await self._promoted([each.key for each in await self._store.targets() if each.event == path.event])

    async def ingest_results(self, path: EventPath) -> Promoted:
        """Poll the results of an event next, and those of its races."""
        every = await self._store.targets()
        return await self._promoted([each.key for each in every if each.event == path.event and each.type == "results"])

    async def ingest_race(self, path: RacePath) -> Promoted:
        """Poll a race next."""
        return await self._promoted([("race", path.race)])

    async def promote(self, body: PromoteBody) -> Promoted:
        """Poll a target next, since it may have changed: the webhook of an upstream that says so."""
        number = await self._scheduler.promote(body.type, body.source_id, body.priority)
        if not number:
            raise _unknown(f"target {body.type} {body.source_id[:60]}")
        return Promoted(number)

    async def admin_targets(self) -> list[TargetFigures]:
        """All targets, those that are due first at the beginning; for the admin."""
        return await self.targets()

    async def targets(self) -> list[TargetFigures]:
        """All targets, those that are due first at the beginning."""
        return [self._figures(each) for each in await self._store.targets(MOST_ROWS)]

    async def change_target(self, path: TargetPath, body: TargetBody) -> TargetFigures:
        """Set a target's interval or priority, or pause it."""
        key = path.type, path.id
        target = await self._store.target(key)
        if target is None:
            raise _unknown(f"target {path.type[:60]} {path.id[:60]}")
        given: dict[str, Value] = {
            "intervalMs": body.interval_ms, "priority": body.priority, "enabled": body.enabled
        }  # fmt: skip
        changes = {name: value for name, value in given.items() if value is not None}
        if (body.interval_ms or 0) < 0 or max(body.interval_ms or 0, abs(body.priority or 0)) > 10**9:
            raise Problem(400, "expected an intervalMs from 0 to 1,000,000,000, and a priority of that size")
        if changes:
            await self._store.change_target(key, changes)
            target = await self._store.target(key) or target
        return self._figures(target)

    async def settings(self) -> dict[str, str]:
        """The rows of server_settings."""
        return await self._store.settings()

    async def put_setting(self, path: SettingPath, body: SettingBody) -> dict[str, str]:
        """Set one; it holds within a second."""
        try:
            rows = parse_pairs((f"{path.key}={body.value}",))
        except OptionError as error:
            raise Problem(400, str(error)) from None
        await self._store.set_settings(rows)
        return rows

    async def delete_setting(self, path: SettingPath) -> dict[str, str]:
        """Let the default hold again."""
        await self._store.remove_setting(PREFIX + path.key.removeprefix(PREFIX))
        return await self._store.settings()

    async def rows(self, path: TablePath) -> RowsFound:
        """All rows of a table of records."""
        _check_table(path.table)
        position = await self._store.position()
        return RowsFound(path.table, position, dict(await self._store.records(path.table)))

    async def change_row(self, path: RowPath, body: dict[str, Any]) -> RowsFound:
        """Set columns of a record by hand, until upstream says otherwise."""
        _check_table(path.table)
        kinds = {each.name: each.kind for each in RECORDS[path.table]}
        wrong = [name for name, value in body.items() if name not in kinds or not _holds(kinds[name], value)]
        if wrong or not body:
            raise Problem(400, f"found {wrong[0][:60] if wrong else 'nothing'!r}, expected columns with their types")
        if path.id not in await self._store.records(path.table, 'WHERE "sourceId" = $1', path.id):
            raise _unknown(f"row {path.id[:60]} of {path.table}")
        await self._store.edit(path.table, path.id, body)
        await self._scheduler.look()
        found = await self._store.records(path.table, 'WHERE "sourceId" = $1', path.id)
        return RowsFound(path.table, await self._store.position(), dict(found))

    async def changes(self, query: SinceQuery) -> ChangesFound:
        """Changes behind a position."""
        since = query.since or 0
        limit = min(max(1, query.limit), MOST_ROWS)
        oldest, newest = await self._store.oldest(), await self._store.position()
        found = await self._store.changes(since, limit) if 0 <= since < 2**62 else []
        return ChangesFound(
            found[-1].position if found else newest,
            since + 1 < oldest or since > newest,
            [ChangeFigures(*each[:5], msgspec.json.decode(each.data)) for each in found],
        )

    async def stream(self, query: SinceQuery, request: web.Request) -> web.StreamResponse:
        """Changes as they come, as Server-Sent Events: behind Last-Event-ID, else behind `since`, else from now."""
        text = request.headers.get("Last-Event-ID", "")
        after = query.since
        if text:
            if not (text.isascii() and text.isdecimal() and len(text) < 19):
                raise Problem(400, f"Last-Event-ID is {text[:40]!r}, expected the position of an event")
            after = int(text)
        if after is not None and not 0 <= after < 2**62:
            raise Problem(400, f"since is {after}, expected a position")
        return await self._streams.send(request, self._feed.follow(after))

    def _figures(self, target: PollTarget) -> TargetFigures:
        return TargetFigures(*target[:9], target.failures, target.key in self._scheduler.live)

    async def _promoted(self, keys: Sequence[tuple[str, str]], *, missing_ok: bool = False) -> Promoted:
        number = 0
        for kind, source_id in keys:
            number += await self._scheduler.promote(kind, source_id)
        if not number and not missing_ok:
            raise _unknown("target of that event or race")
        return Promoted(number)


def _check_table(name: str) -> None:
    if name not in RECORDS:
        raise Problem(404, f"there is no table {name[:60]}; expected one of {', '.join(RECORDS)}")


def _holds(kind: str, value: object) -> bool:
    match kind:
        case "int":
            return value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62)
        case "real":
            return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        case "bool":
            return value is None or isinstance(value, bool)
    return value is None or (isinstance(value, str) and len(value) < 65_536 and "\0" not in value)


def _unknown(what: str) -> Problem:
    return Problem(404, f"there is no {what}; GET /targets lists the targets of {len(TARGET_TYPES)} types")
