"""Lists of items: what the numbers of a system count, one by one. Searched, and by pages, of which one is in memory."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from sanderling.clock import Clock
from sanderling.observe.report import shorten
from sanderling.sequence import state as sequence_state
from sanderling.sequence.retries import Reason
from sanderling.stores import frontier_file, listing, sqlite_progress
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.stores.listing import Item, Listing, PositionError, Row
from sanderling.stores.polling import PollingStoreError, PollingTarget, Query
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.ports import ProgressError
from sanderling.stores.queue import DeadLetters, QueueError
from sanderling.web.house import Found
from sanderling.web.house_reach import QUEUES, ElsewhereError, Reach
from sanderling.web.problems import problem

MOST_READ = listing.MOST
MOST_TARGETS, MOST_LETTERS = 10_000, 1_000  # the same of a database or a queue that may be far away
BATCH = 500
PATIENCE = 10.0  # seconds that a page may take
SOON = {"Retry-After": "5"}


class ItemsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which items: of a system, in a state (the first that it has if none is given), with this text in them."""

    system: Annotated[str, Meta(min_length=1, max_length=500)]
    state: Annotated[str, Meta(max_length=100)] = ""
    search: Annotated[str, Meta(max_length=300)] = ""
    after: Annotated[str, Meta(max_length=2000)] = ""
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class ItemPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of them. `after` is where the next page begins; empty if this is the last one."""

    states: tuple[str, ...] = ()  # that the system can list
    state: str
    items: tuple[Item, ...]
    after: str = ""
    read: int = 0  # items that were looked at for this page
    again: str = ""  # the action that asks for one again
    how: str = ""  # how to ask for them again otherwise, in words


class _File(NamedTuple):
    name: str
    application: int
    lists: Mapping[str, Listing]
    how: str
    again: str = ""


_FRONTIER: Mapping[str, Listing] = {
    "failed": listing.ended(End.FAILED),
    "again": listing.again,
    "set aside": listing.aside,
    "refused": listing.ended(End.REFUSED),
    "left out": listing.ended(End.LEFT_OUT),
}
_FILES: Mapping[str, _File] = {
    "pages": _File(
        "ledger.db",
        frontier_file.APPLICATION,
        _FRONTIER,
        "When the crawl has ended, ask for all that failed again: sanderling pages failed FOLDER --retry",
    ),
    "jobs": _File(
        "frontier.db",
        frontier_file.APPLICATION,
        _FRONTIER,
        "When the job has ended, ask for all that failed again: sanderling run FILE --out FOLDER --retry",
    ),
    "repos": _File(
        "progress.db",
        sqlite_progress.PROGRESS.application,
        {"again": listing.repos_again, "failed": listing.repos_failed},
        "What failed for now is asked again by itself when it is due. What failed for good stays so.",
    ),
    "sequence": _File(
        "sequence.db",
        sequence_state.KIND.application,
        {each.value: listing.missed(each.value) for each in Reason},
        "Each is asked again by itself. To have all asked at once: sanderling sequence missed retry --out FOLDER",
        "retry_missed",
    ),
}
_TARGETS: Mapping[str, Callable[[PollingTarget], bool]] = {
    "failing": lambda target: target.failures > 0,
    "paused": lambda target: not target.enabled,
    "all": lambda target: True,  # noqa: ARG005 - as the others
}
_DEAD = "given up"


class Items:
    """Lists them."""

    def __init__(self, reach: Reach, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock

    async def page(self, found: Found, query: ItemsQuery) -> ItemPage:
        """A page of a system's items. Raises ProblemError."""
        states = _states(found.system)
        if not states:
            raise problem(409, f"the status of {found.name!a:.100} cannot be read, so nothing can be listed")
        state = query.state or states[0]
        if state not in states:
            raise problem(400, f"state: {state!a:.100} is none of this system; it has {', '.join(states)}")
        read = self._letters if state == _DEAD else self._targets if found.system == "polling" else self._of_file
        try:
            async with asyncio.timeout(PATIENCE):
                return msgspec.structs.replace(await read(found, state, query), states=states)
        except PositionError as error:
            raise problem(400, f"after: {error}") from None
        except ElsewhereError as error:
            raise problem(409, str(error)) from None
        except (FolderError, PollingStoreError, QueueError, ProgressError) as error:
            raise problem(503, str(error), SOON) from None
        except TimeoutError:
            raise problem(503, f"there was no answer within {PATIENCE:.0f} s", SOON) from None

    async def _of_file(self, found: Found, state: str, query: ItemsQuery) -> ItemPage:
        file = _FILES[found.system]
        taken = await asyncio.to_thread(self._read, found, state, query, self._clock.now() + PATIENCE)
        return taken.page(state, again=file.again, how=file.how)

    def _read(self, found: Found, state: str, query: ItemsQuery, until: float) -> "_Taken":
        taken, file, source = _Taken(query, MOST_READ), _FILES[found.system], self._reach.progress(found)
        if source is not None:
            taken.take_all(source.items(state, query.after))
            return taken
        with listing.opened(found.folder / file.name, file.application, lambda: self._clock.now() > until) as db:
            taken.take_all(file.lists[state](db, query.after))
        return taken

    async def _targets(self, found: Found, state: str, query: ItemsQuery) -> ItemPage:
        after = _due_and_id(query.after)
        taken = _Taken(query, MOST_TARGETS)
        async with self._reach.open_polling(found) as store:
            await _take_targets(store, state, after, taken)
        return taken.page(state, again="resume_target" if state == "paused" else "promote_target")

    async def _letters(self, found: Found, state: str, query: ItemsQuery) -> ItemPage:
        taken = _Taken(query, MOST_LETTERS)
        async with self._reach.open_queue(found) as queue:
            await _take_letters(queue, state, query, taken)
        return taken.page(state, again="replay_dead")


def _states(system: str) -> tuple[str, ...]:
    """The states that a system can list; none of one that is not known."""
    own = tuple(_TARGETS) if system == "polling" else tuple(_FILES[system].lists) if system in _FILES else ()
    return (*own, _DEAD) if system in QUEUES else own


async def _take_letters(queue: DeadLetters, state: str, query: ItemsQuery, taken: "_Taken") -> None:
    after = query.after
    while letters := await queue.dead(min(query.limit, 100), after):
        for each in letters:
            after = each.key
            item = Item(id=each.key, state=state, why=each.why, tries=each.tries, at=each.at)
            if not taken.take((after, item)):
                return


async def _take_targets(store: PollingStore, state: str, after: tuple[float, int] | None, taken: "_Taken") -> None:
    wanted = _TARGETS[state]
    while True:
        targets = await store.list(Query(after=after, most=BATCH, enabled=False if state == "paused" else None))
        for each in targets:
            after = (each.next_due, each.id)
            item = _target(each, state) if wanted(each) else None
            if not taken.take((msgspec.json.encode(after).decode(), item)):
                return
        if len(targets) < BATCH:
            return


def _target(target: PollingTarget, state: str) -> Item:
    return Item(
        id=target.source_id,
        kind=target.kind,
        state=state,
        why=shorten(target.status),
        tries=target.failures,
        at=target.asked,
        next=target.next_due if target.enabled else None,
    )


def _due_and_id(after: str) -> tuple[float, int] | None:
    """A position among targets. Raises PositionError."""
    if not after:
        return None
    try:
        due, number = msgspec.json.decode(after, type=tuple[float, int])
    except (msgspec.MsgspecError, UnicodeError):
        raise PositionError(f"{after!a:.60} is no position in this list; begin without one") from None
    return due, max(-listing.LARGEST, min(number, listing.LARGEST))


class _Taken:
    """What is taken for a page: those that match, as long as neither they nor those that were read are too many."""

    def __init__(self, query: ItemsQuery, most: int) -> None:
        self._wanted = query.search.strip().lower()
        self._limit = query.limit
        self._most = most
        self._items: list[Item] = []
        self._read = 0
        self._after = ""
        self._full = False

    def take(self, row: Row) -> bool:
        """Whether there is room for more. What there was no room for is not taken."""
        if len(self._items) == self._limit or self._read == self._most:
            self._full = True
            return False
        self._after, item = row
        self._read += 1
        if item is not None and self._matches(item):
            short = msgspec.structs.replace(item, why=shorten(item.why))
            self._items.append(short)
        return True

    def take_all(self, rows: Iterable[Row]) -> None:
        """Take as many as there is room for."""
        for row in rows:
            if not self.take(row):
                return

    def _matches(self, item: Item) -> bool:
        return not self._wanted or any(self._wanted in each.lower() for each in (item.id, item.why, item.host))

    def page(self, state: str, again: str = "", how: str = "") -> ItemPage:
        """The page."""
        after = self._after if self._full else ""
        return ItemPage(state=state, items=tuple(self._items), after=after, read=self._read, again=again, how=how)
