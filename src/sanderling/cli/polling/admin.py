"""`sanderling polling set` and `purge`: what people do to targets.

All of it is written to the database. Whoever polls hears of it within a second; otherwise it counts from the next run.
"""

import asyncio
import json as jsonlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter
from msgspec.structs import replace

from sanderling.cli.command_error import CommandError
from sanderling.cli.polling.place import USUAL, PollingFolder, known
from sanderling.clock import SystemClock
from sanderling.polling.report import describe_interval
from sanderling.polling.settings import DAY, LONGEST, SHORTEST, KnownSetting, SettingError, Sort
from sanderling.stores.polling import Field, PollingStoreError, PollingTarget, Query
from sanderling.stores.polling_store import PollingStore
from sanderling.words import count, printable

PAGE = 1000
DEFAULT = "default"  # goes back to what discovery says
HEAVIEST = 1000  # that a priority may be
MOST_NAMED = 5  # ids in a message

Json = Annotated[bool, Parameter(negative=(), help="Print one JSON object.")]
Kind = Annotated[str | None, Parameter(help="The kind of the target, as in race.")]
Id = Annotated[str | None, Parameter(help="Its id, or as much of it as no other has; without one, all of the kind.")]
All = Annotated[bool, Parameter(name="--all", negative=(), help="All targets there are.")]

T = TypeVar("T")
Fields = Mapping[Field, bool | float | int | None]


def done(place: PollingFolder, work: Callable[[PollingStore], Awaitable[T]]) -> T:
    """What comes of the work at the database. Raises CommandError."""

    async def run() -> T:
        async with known(place) as store:
            return await work(store)

    try:
        return asyncio.run(run())
    except PollingStoreError as error:
        raise CommandError(printable(str(error))) from None


def told(document: Mapping[str, Any], text: str, *, json: bool) -> None:
    """Print what was done."""
    print(jsonlib.dumps(document) if json else printable(text))


def change(  # noqa: PLR0913 - a flag each
    kind: Kind = None,
    source_id: Id = None,
    /,
    *,
    every: All = False,
    interval: Annotated[
        str | None, Parameter(help="How often it is run, as in 500ms or 5s; 'default' leaves that to discovery.")
    ] = None,
    priority: Annotated[
        str | None, Parameter(help="How much it weighs under load, as in 5; 'default' leaves that to discovery.")
    ] = None,
    pause: Annotated[bool | None, Parameter(help="Stop polling it, until --no-pause.")] = None,
    now: Annotated[bool, Parameter(negative=(), help="Run it now.")] = False,
    lasting: Annotated[
        str | None, Parameter(name="--for", help="Run it now, and often for so long, as in 30s.")
    ] = None,
    json: Json = False,
    place: PollingFolder = USUAL,
) -> None:
    """Change how targets are polled; discovery leaves that alone."""
    fields, said = _fields(interval, priority, pause=pause)
    seconds = 0.0 if lasting is None else _seconds("--for", lasting, 1000, DAY)
    promotes = now or lasting is not None
    if not fields and not promotes:
        raise CommandError("nothing to set; expected --interval, --priority, --pause, --now or --for", code=2)
    _check(kind, every=every)
    document: dict[str, object] = {}
    if fields:
        number = _change(place, kind, source_id, fields)
        document |= {"changed": number, **{str(key): value for key, value in fields.items()}}
        said = [f"{count(number, 'target')}: {', '.join(said)}"]
    if promotes:
        number = _promote(place, kind, source_id, seconds)
        document |= {"promoted": number, "seconds": seconds}
        said.append(f"promoted {count(number, 'target')}{f', for {describe_interval(seconds)}' if seconds else ''}")
    told(document, "; ".join(said), json=json)


def _fields(
    interval: str | None, priority: str | None, *, pause: bool | None
) -> tuple[dict[Field, bool | float | int | None], list[str]]:
    """What is changed of a target, and the same in words. Raises CommandError."""
    fields: dict[Field, bool | float | int | None] = {}
    said: list[str] = []
    if interval is not None:
        seconds = None if interval == DEFAULT else _seconds("--interval", interval, SHORTEST, LONGEST)
        fields["set_seconds"] = seconds
        said.append("usual interval" if seconds is None else f"every {describe_interval(seconds)}")
    if priority is not None:
        weight = None if priority == DEFAULT else _priority(priority)
        fields["set_priority"] = weight
        said.append("usual priority" if weight is None else f"priority {weight}")
    if pause is not None:
        fields["enabled"] = not pause
        said.append("paused" if pause else "not paused")
    return fields, said


def purge(
    *,
    yes: Annotated[bool, Parameter(negative=(), help="Really do it.")] = False,
    json: Json = False,
    place: PollingFolder = USUAL,
) -> None:
    """Remove all rows and all targets; settings stay. Whoever polls finds everything again."""
    if not yes:
        raise CommandError("this removes all rows and targets; say --yes if that is what you want", code=2)
    counts = done(place, lambda store: store.purge(SystemClock().wall()))
    rows = sum(number for table, number in counts.items() if table != "targets")
    told(counts, f"removed {count(rows, 'row')} and {count(counts['targets'], 'target')}", json=json)


# Which targets are meant.


def _check(kind: str | None, *, every: bool) -> None:
    """See that somebody said which. Raises CommandError."""
    if every == (kind is not None):
        found = "found a kind and --all" if every else "found neither a kind nor --all"
        raise CommandError(f"{found}; expected a kind like race, perhaps with an id, or --all", code=2)


def _promote(place: PollingFolder, kind: str | None, source_id: str | None, seconds: float) -> int:
    """Run all that are meant now, and often for so long; how many. Raises CommandError."""

    async def work(store: PollingStore) -> int:
        query = replace(await selected(store, kind, source_id), gone=False)
        number = await store.promote(query, seconds)
        if not number:
            raise CommandError(f"all {_meant(kind, source_id)} are paused or gone; see: sanderling polling targets")
        return number

    return done(place, work)


def _change(place: PollingFolder, kind: str | None, source_id: str | None, fields: Fields) -> int:
    """Change all that are meant; how many. Raises CommandError."""

    async def work(store: PollingStore) -> int:
        # All pages before the first change: that may move targets from one page to another.
        found = [target async for target in pages(store, await selected(store, kind, source_id))]
        for target in found:
            await store.change(target.kind, target.source_id, fields)
        return len(found)

    return done(place, work)


async def selected(store: PollingStore, kind: str | None, source_id: str | None) -> Query:
    """Those that are meant, of which there is at least one. Raises CommandError."""
    query = Query(kind=kind, gone=None, most=PAGE)
    if kind is None or source_id is None:
        if not await store.list(replace(query, most=1)):
            raise await _nothing(store, kind)
        return query
    if await store.find(kind, source_id) is not None:
        return replace(query, source_id=source_id)
    ids = [target.source_id async for target in pages(store, query)]
    if not ids:
        raise await _nothing(store, kind)
    found = [each for each in ids if each.startswith(source_id)]
    if len(found) == 1:
        return replace(query, source_id=found[0])
    if not found:
        raise CommandError(f"no {kind} has the id {source_id[:60]!r}; see: sanderling polling targets --kind {kind}")
    shown = ", ".join(found[:MOST_NAMED]) + (", …" if len(found) > MOST_NAMED else "")
    raise CommandError(f"{len(found):,} ids begin with {source_id[:60]!r}, expected one: {printable(shown)}", code=2)


async def _nothing(store: PollingStore, kind: str | None) -> CommandError:
    """What to say if there is nothing of a kind."""
    kinds = sorted({target.kind async for target in pages(store, Query(gone=None, most=PAGE))})
    if not kinds:
        return CommandError("there are no targets yet; they are found by: sanderling polling run")
    near = get_close_matches(kind or "", kinds, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(kinds)}"
    return CommandError(printable(f"no target is of the kind {kind!r:.60}; {hint}"))


async def pages(store: PollingStore, query: Query) -> AsyncIterator[PollingTarget]:
    """All targets of a query, each once, though whoever polls moves them about meanwhile."""
    seen: set[int] = set()
    while page := await store.list(query):
        new = [target for target in page if target.id not in seen]
        seen.update(target.id for target in new)
        for target in new:
            yield target
        if not new or len(page) < query.most:
            return
        query = replace(query, after=(page[-1].next_due, page[-1].id))


def _meant(kind: str | None, source_id: str | None) -> str:
    return printable(" ".join(filter(None, ("targets of the kind", kind, source_id)))) if kind else "targets"


# What they are set to.


def _seconds(flag: str, text: str, least: float, most: float) -> float:
    """A duration, of at least and at most so many milliseconds. Raises CommandError."""
    try:
        return KnownSetting(flag, Sort.DURATION, 0.0, "", least, most).read(text, flag) / 1000
    except SettingError as error:
        raise CommandError(str(error), code=2) from None


def _priority(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = None
    if number is None or abs(number) > HEAVIEST:
        raise CommandError(f"--priority is {text[:40]!r}, expected -{HEAVIEST} to {HEAVIEST}, or 'default'", code=2)
    return number
