"""`sanderling forget` of events: what is older than people want to keep."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.events.migrate import where
from sanderling.cli.events.place import EventsDatabase, EventsFolder
from sanderling.cli.reach import explained
from sanderling.cli.times import read_age, written
from sanderling.clock import SystemClock
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.words import count, printable

Age = Annotated[
    str | None,
    Parameter(help="Of events, how old: as 30m, 12h, 90d or 2w, at least a minute; by default 90d, of processed 365d."),
]


class OldRemoved(NamedTuple):
    """How many of what were removed that are from before a time."""

    noun: str
    removed: int
    before: float

    @property
    def words(self) -> str:
        """The same for people."""
        return f"Removed {count(self.removed, self.noun)} from before {written(self.before)}."


Forget = Callable[[AnalyticsStore, float], Awaitable[int]]  # removes some that are older, and says how many
KINDS: dict[str, tuple[str, Forget, str]] = {
    "errors": ("90d", lambda store, before: store.forget_errors(before), "error"),
    "processed": ("365d", lambda store, before: store.forget_events(before), "processed event"),
}


def forget_old(
    what: Sequence[str], older_than: str | None, rows: EventsDatabase, folder: EventsFolder
) -> Iterator[OldRemoved]:
    """Remove errors, or records of events that were processed, that are older. Raises CommandError."""
    if not what or not set(what) <= KINDS.keys():
        raise CommandError(
            printable(f"{' '.join(what) or 'nothing'!r} is named, expected {' or '.join(KINDS)}"), code=2
        )
    for each in what:
        usual, forgets, noun = KINDS[each]
        before = SystemClock().wall() - read_age("--older-than", older_than or usual)
        yield OldRemoved(noun, explained(_forget(forgets, before, rows, folder)), before)


def known(rows: EventsDatabase, folder: EventsFolder) -> None:
    """See that there is a database, and make none. Raises CommandError."""
    if not rows.there(folder):
        choose = "choose another folder with --out" if rows.database is None else "choose another with --database"
        raise CommandError(printable(f"nothing was consumed yet: there is no {where(rows, folder)}; {choose}"), code=2)


async def _forget(forget: Forget, before: float, rows: EventsDatabase, folder: EventsFolder) -> int:
    """Some at a time, so that whoever consumes has its turn in between; how many in all. Raises CommandError."""
    known(rows, folder)
    total = 0
    async with rows.opened(folder, writers=1, readers=1) as store:
        try:
            while some := await forget(store, before):
                total += some
        except AnalyticsError as error:
            raise CommandError(printable(f"{error}; {total:,} were removed before that, run it again")) from None
    return total
