"""`sanderling events forget`: what is older than people want to keep."""

import json as jsonlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.events.migrate import where
from sanderling.cli.events.place import OWN_ROWS, USUAL, EventsDatabase, EventsFolder
from sanderling.cli.reach import explained
from sanderling.cli.times import read_age, written
from sanderling.clock import SystemClock
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.words import count, printable

Age = Annotated[
    str | None,
    Parameter(help="How old, such as 30m, 12h, 90d or 2w, at least a minute; by default 90d, of processed 365d."),
]
Forget = Callable[[AnalyticsStore, float], Awaitable[int]]  # removes some that are older, and says how many
KINDS: dict[str, tuple[str, Forget, str]] = {
    "errors": ("90d", lambda store, before: store.forget_errors(before), "error"),
    "processed": ("365d", lambda store, before: store.forget_events(before), "processed event"),
}


def forget(
    what: Annotated[
        Literal["errors", "processed"],
        Parameter(help="errors: what could not be read. processed: which events were processed, and their messages."),
    ],
    /,
    *,
    older_than: Age = None,
    json: AsJson = False,
    rows: EventsDatabase = OWN_ROWS,
    folder: EventsFolder = USUAL,
) -> None:
    """Remove errors, or records of events that were processed."""
    usual, forgets, noun = KINDS[what]
    before = SystemClock().wall() - read_age("--older-than", older_than or usual)
    number = explained(_forget(forgets, before, rows, folder))
    _tell(number, noun, before, as_json=json)


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


def _tell(number: int, what: str, before: float, *, as_json: bool) -> None:
    if as_json:
        print(jsonlib.dumps({"removed": number, "before": before}))
    else:
        print(f"Removed {count(number, what)} from before {written(before)}.")
