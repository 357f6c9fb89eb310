"""What people do to systems through the dashboard. Each action is recorded, whether it was done or refused.

None of it is told to a process directly. It is written where the system looks every second: control.json and modes.json
in its folder, or its database or queue. So it does not matter which process serves the dashboard, nor whether the
system runs at that moment.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sanderling.apis.numbered import LARGEST_ID
from sanderling.clock import Clock
from sanderling.events.modes import Modes, write_modes
from sanderling.ids import HostError
from sanderling.observe import logs
from sanderling.polling.settings import SettingError
from sanderling.sequence.state import Hurry, SequenceState
from sanderling.stores.control_file import Wish
from sanderling.stores.durable import FolderError
from sanderling.stores.polling import PollingStoreError, Query
from sanderling.stores.queue import QueueError
from sanderling.web.house import KINDS, Found
from sanderling.web.house_asking import settings_in
from sanderling.web.house_audit import Audit, AuditEntry
from sanderling.web.house_control import ASKING, MOST_NAMED, UnknownHostError, spell_host, want
from sanderling.web.house_live import Live
from sanderling.web.house_reach import QUEUES, ElsewhereError, Reach
from sanderling.web.problems import ProblemError, problem
from sanderling.words import count

log = logs.get(__name__)

STATE, MOST_RANGES = "sequence.db", 1000
PATIENCE = 15.0  # seconds that a database or a queue may take
SOON = {"Retry-After": "5"}
MISTAKE = "this is a mistake of ours; the log has more"

Text = Annotated[str, Meta(min_length=1, max_length=1000)]

# What each takes beside the system, and of which systems; the systems are all if there are none here.
TAKES: Mapping[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "pause": (frozenset(), ()),
    "resume": (frozenset(), ()),
    "stop": (frozenset(), ()),
    "drain": (frozenset(), ()),
    "pause_host": (frozenset({"host"}), ASKING),
    "resume_host": (frozenset({"host"}), ASKING),
    "pause_target": (frozenset({"kind", "id"}), ("polling",)),
    "resume_target": (frozenset({"kind", "id"}), ("polling",)),
    "promote_target": (frozenset({"kind", "id"}), ("polling",)),
    "set": (frozenset({"key", "value"}), ("polling",)),
    "replay_dead": (frozenset({"key", "all"}), tuple(QUEUES)),
    "retry_missed": (frozenset({"id"}), ("sequence",)),
    "modes": (frozenset({"modes"}), ("events",)),
}

WISHES: Mapping[str, Wish] = {
    "pause": "pause",
    "resume": "resume",
    "stop": "stop",
    "drain": "drain",
    "pause_host": "leave",
    "resume_host": "let-go",
}


class Action(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be done, and to which system."""

    action: Text
    system: Text
    host: Text | UnsetType = UNSET
    kind: Text | UnsetType = UNSET
    id: Text | UnsetType = UNSET
    key: Text | UnsetType = UNSET
    value: Annotated[str, Meta(max_length=1000)] | UnsetType | None = UNSET  # null goes back to the default
    all: bool | UnsetType = UNSET
    modes: Modes | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.action not in TAKES:
            raise ValueError(f"action is {self.action!a:.60}, expected one of {', '.join(TAKES)}")

    @property
    def given(self) -> frozenset[str]:
        """What it has beside the system."""
        fields = {field.name for field in msgspec.structs.fields(Action)} - {"action", "system"}
        return frozenset(name for name in fields if getattr(self, name) is not UNSET)

    @property
    def what(self) -> str:
        """What it is about, for the record."""
        match self.action:
            case "set":
                return f"{self.key} = {'its default' if self.value is None else self.value}"
            case "modes":
                return msgspec.json.encode(self.modes).decode()
            case "replay_dead":
                return "all" if self.all is True else str(self.key)
        return " ".join(str(each) for each in (self.host, self.kind, self.id) if each is not UNSET)


class Done(msgspec.Struct, frozen=True):
    """What was done, as a sentence."""

    done: str


class Who(NamedTuple):
    """Who wants it, and from which address."""

    name: str
    peer: str


class Actions:
    """Does what people want."""

    def __init__(self, live: Live, reach: Reach, audit: Audit, clock: Clock) -> None:
        self._live = live
        self._reach = reach
        self._audit = audit
        self._clock = clock
        self._turn = asyncio.Lock()  # files are read, changed and written

    async def do(self, action: Action, who: Who) -> Done:
        """Do it, and record it. Raises ProblemError, which is recorded as well."""
        await self._recordable()
        try:
            async with self._turn, asyncio.timeout(PATIENCE):
                said = await self._done(action)
        except Exception as error:
            refusal = translated(error)
            await self._record(self._entry(action, who, why=refusal.problem.detail if refusal else MISTAKE))
            if refusal is None:
                raise
            raise refusal from None
        await self._record(self._entry(action, who))
        self._live.asking.forget(action.system)
        return Done(said)

    async def logged_out(self, who: Who) -> Done:
        """Record that somebody logged out. Raises ProblemError."""
        wall = round(self._clock.wall(), 3)
        await self._record(
            AuditEntry(at=wall, who=who.name, from_=who.peer, action="log_out", system="", what="", done=True)
        )
        return Done("you are logged out")

    async def recorded(self, limit: int) -> list[AuditEntry]:
        """What was done, the newest first. Raises ProblemError."""
        try:
            return await asyncio.to_thread(self._audit.newest, limit)
        except FolderError as error:
            raise problem(503, str(error), SOON) from None

    async def _recordable(self) -> None:
        try:
            await asyncio.to_thread(self._audit.check)
        except FolderError as error:
            raise problem(503, f"nothing was done, since it could not be recorded: {error}", SOON) from None

    def _entry(self, action: Action, who: Who, why: str = "") -> AuditEntry:
        return AuditEntry(
            at=round(self._clock.wall(), 3),
            who=who.name,
            from_=who.peer,
            action=action.action,
            system=action.system,
            what=action.what,
            done=not why,
            why=why,
        )

    async def _record(self, entry: AuditEntry) -> None:
        log.info("dashboard_action", action=entry.action, system=entry.system, who=entry.who, done=entry.done)
        try:
            await asyncio.to_thread(self._audit.write, entry)
        except FolderError as error:
            happened = "it was done" if entry.done else "it was refused"
            raise problem(503, f"{happened}, and could not be recorded: {error}", SOON) from None

    async def _done(self, action: Action) -> str:
        check(action)
        found = self._live.found(action.system)
        systems = TAKES[action.action][1] or tuple(KINDS)
        if found.system not in systems:
            said = f"{action.system!a:.100} is of {found.system}, and {action.action} is for {' and '.join(systems)}"
            raise problem(400, said)
        if action.action in WISHES:
            return await self._want(WISHES[action.action], action, found)
        return await self._by_verb(action.action)(action, found)

    def _by_verb(self, verb: str) -> Callable[[Action, Found], Awaitable[str]]:
        verbs: Mapping[str, Callable[[Action, Found], Awaitable[str]]] = {
            "pause_target": self._pause_target,
            "resume_target": self._pause_target,
            "promote_target": self._promote,
            "set": self._set,
            "replay_dead": self._replay,
            "retry_missed": self._retry,
            "modes": self._modes,
        }
        return verbs[verb]

    async def _want(self, wish: Wish, action: Action, found: Found) -> str:
        host = ""
        if action.host is not UNSET:
            try:
                host = spell_host(found, str(action.host), (row.host for row in self._live.rows_of(found)))
            except HostError as error:
                raise problem(400, str(error)) from None
            except UnknownHostError as error:
                raise problem(404, str(error)) from None
        return await asyncio.to_thread(want, found, wish, self._clock.wall(), host)

    async def _pause_target(self, action: Action, found: Found) -> str:
        wanted = action.action == "pause_target"
        async with self._reach.open_polling(found) as store:
            if not await store.change(str(action.kind), str(action.id), {"enabled": not wanted}):
                raise _no_target(action, [each.kind for each in await store.list(Query(most=1000))])
        return f"{action.kind} {action.id} {'is polled no more' if wanted else 'is polled again'}"

    async def _promote(self, action: Action, found: Found) -> str:
        async with self._reach.open_polling(found) as store:
            if not await store.promote(Query(kind=str(action.kind), source_id=str(action.id)), 0.0):
                if await store.find(str(action.kind), str(action.id)) is not None:
                    raise problem(409, f"{action.kind!a:.100} {action.id!a:.100} is paused or gone; resume it first")
                raise _no_target(action, [each.kind for each in await store.list(Query(most=1000))])
        return f"{action.kind} {action.id} is run now"

    async def _set(self, action: Action, found: Found) -> str:
        value = None if action.value is UNSET else action.value
        async with self._reach.open_polling(found) as store:
            setting = await (await settings_in(store, self._clock, found.folder)).set(str(action.key), value)
        return f"{setting.key} is {setting.text}{'' if setting.set else ', as by default'}"

    async def _replay(self, action: Action, found: Found) -> str:
        async with self._reach.open_queue(found) as queue:
            number = await queue.replay(None if action.all is True else {str(action.key)})
        if not number and action.all is not True:
            raise problem(404, f"there is no message {action.key!a:.200} among those that were given up")
        return f"{count(number, 'message')} ready again"

    async def _retry(self, action: Action, found: Found) -> str:
        low, high = _ids(str(action.id))
        number = await asyncio.to_thread(hasten, found.folder / STATE, Hurry(self._clock.wall(), low, high))
        if not number:
            raise problem(404, f"no id of {action.id!a:.100} is missed; it may have been found by now")
        return f"{count(number, 'missed id')} due at once; the crawl asks, or the next one"

    async def _modes(self, action: Action, found: Found) -> str:
        modes = action.modes if isinstance(action.modes, Modes) else Modes()
        await asyncio.to_thread(write_modes, found.folder, modes)
        on = [name for name in ("new", "legacy", "inline") if getattr(modes, name)]
        share = f", of the new ones {modes.canary:.0%}" if modes.new and modes.canary < 1 else ""
        return f"{found.name} processes {', '.join(on) or 'no format'}{share}"


def check(action: Action) -> None:
    """See that it has what it takes, and nothing else. Raises ProblemError."""
    takes = TAKES[action.action][0]
    if action.action == "replay_dead":
        if action.given not in ({"key"}, {"all"}) or action.all is False:
            raise problem(400, "body: replay_dead takes either key, or all, which is true")
        return
    if action.given != takes:
        found, expected = (", ".join(sorted(each)) or "nothing" for each in (action.given, takes))
        raise problem(400, f"body: {action.action} takes {expected} beside the system, found {found}")


def _ids(text: str) -> tuple[int, int]:
    """The first and the last id of `7` or `7-9`. Raises ProblemError."""
    found = re.fullmatch(r"([0-9]{1,19})(?:-([0-9]{1,19}))?", text)
    low, high = (0, -1) if found is None else (int(found[1]), int(found[2] or found[1]))
    if not low <= high <= LARGEST_ID:
        raise problem(400, f"body: id is {text!a:.60}, expected an id, or two that ascend, as 7-9")
    return low, high


def hasten(path: Path, hurry: Hurry) -> int:
    """Have missed ids asked soon; how many there are. Blocks. Raises FolderError."""
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"there is no {path.name} in the folder")  # and none is made
    with closing(SequenceState(path)) as state:
        first = state.missed(hurry.low - 1, MOST_RANGES)
        if len(first) == MOST_RANGES and first[-1].low <= hurry.high:
            # All of them are written at once, and the crawl waits meanwhile.
            raise ValueError(f"more than {MOST_RANGES:,} ranges at once; use: sanderling sequence missed retry")
        return state.hasten(hurry)


def _no_target(action: Action, kinds: list[str]) -> ProblemError:
    named = ", ".join(f"{each!a:.60}" for each in sorted(set(kinds))[:MOST_NAMED])
    there = f"there are targets of {named}" if named else "there are no targets yet"
    return problem(404, f"there is no target of kind {action.kind!a:.100} with the id {action.id!a:.100}; {there}")


def translated(error: Exception) -> ProblemError | None:
    """What the errors of what is behind mean to whoever asked; None if they mean nothing to them."""
    found: tuple[int, str] | None = None
    match error:
        case ProblemError():
            return error
        case ElsewhereError():
            found = 409, str(error)
        case SettingError():
            found = 422, str(error)
        case PollingStoreError() | QueueError() | FolderError():
            found = 503, str(error)
        case TimeoutError():
            found = 503, f"there was no answer within {PATIENCE:.0f} s, and it may still be done"
        case ValueError():
            found = 409, f"it cannot be changed as it is: {error}"
    return None if found is None else problem(*found, SOON if found[0] == 503 else None)
