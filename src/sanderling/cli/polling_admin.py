"""`sanderling polling pause`, `resume`, `promote`, `set`, `purge`: what people do to targets.

All of it is written to the database. Whoever polls hears of it within a second; otherwise it counts from the next run.
"""

import asyncio
import json as jsonlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from sanderling.cli import CommandError
from sanderling.cli.pages_summary import count, printable
from sanderling.cli.polling_place import USUAL, Place, known
from sanderling.cli.polling_words import often
from sanderling.clock import SystemClock
from sanderling.polling.settings import DAY, LONGEST, SHORTEST, Entry, SettingError, Sort
from sanderling.stores.polling import Field, PollingStore, PollingStoreError, Query

PAGE = 1000
DEFAULT = "default"  # goes back to what discovery says
HEAVIEST = 1000  # that a priority may be

Json = Annotated[bool, Parameter(negative=(), help="Print one JSON object.")]
Kind = Annotated[str | None, Parameter(help="The kind of the target, as in race.")]
Id = Annotated[str | None, Parameter(help="Its id; without one, all of the kind.")]
All = Annotated[bool, Parameter(name="--all", negative=(), help="All targets there are.")]

T = TypeVar("T")


def done(place: Place, work: Callable[[PollingStore], Awaitable[T]]) -> T:
    """What comes of the work at the database. Raises CommandError."""

    async def run() -> T:
        async with known(place) as store:
            return await work(store)

    try:
        return asyncio.run(run())
    except PollingStoreError as error:
        raise CommandError(str(error)) from None


def told(document: Mapping[str, Any], text: str, *, json: bool) -> None:
    """Print what was done."""
    print(jsonlib.dumps(document) if json else printable(text))


def selection(kind: str | None, source_id: str | None, *, every: bool) -> Query:
    """The targets that are meant. Raises CommandError."""
    if every == (kind is not None):
        raise CommandError("found " + ("a kind and --all" if every else "neither a kind nor --all"), code=2)
    return Query(kind=kind, source_id=source_id, gone=None, most=PAGE)


def pause(
    kind: Kind = None, source_id: Id = None, /, *, every: All = False, json: Json = False, place: Place = USUAL
) -> None:
    """Stop polling a target, until it is resumed; discovery leaves it alone."""
    number = done(place, lambda store: _change(store, selection(kind, source_id, every=every), {"enabled": False}))
    told({"paused": number}, f"paused {count(number, 'target')}", json=json)


def resume(
    kind: Kind = None, source_id: Id = None, /, *, every: All = False, json: Json = False, place: Place = USUAL
) -> None:
    """Poll a target again that was paused."""
    number = done(place, lambda store: _change(store, selection(kind, source_id, every=every), {"enabled": True}))
    told({"resumed": number}, f"resumed {count(number, 'target')}", json=json)


def promote(
    kind: Kind = None,
    source_id: Id = None,
    /,
    *,
    every: All = False,
    lasting: Annotated[
        str | None, Parameter(name="--for", help="And run it often for so long, as in 30s; by default just once.")
    ] = None,
    json: Json = False,
    place: Place = USUAL,
) -> None:
    """Run a target now."""
    seconds = 0.0 if lasting is None else _seconds("--for", lasting, 1000, DAY)
    query = selection(kind, source_id, every=every)

    async def work(store: PollingStore) -> int:
        number = await store.promote(query, seconds)
        if not number:
            await _some(store, query)
        return number

    number = done(place, work)
    told({"promoted": number, "seconds": seconds}, f"promoted {count(number, 'target')}", json=json)


def change(
    kind: Annotated[str, Parameter(help="The kind of the target, as in race.")],
    source_id: Id = None,
    /,
    *,
    interval: Annotated[
        str | None, Parameter(help="How often it is run, as in 500ms or 5s; 'default' leaves that to discovery.")
    ] = None,
    priority: Annotated[
        str | None, Parameter(help="How much it weighs under load, as in 5; 'default' leaves that to discovery.")
    ] = None,
    json: Json = False,
    place: Place = USUAL,
) -> None:
    """Change how often a target is polled, and how much it weighs; discovery leaves that alone."""
    fields: dict[Field, bool | float | int | None] = {}
    if interval is not None:
        fields["set_seconds"] = None if interval == DEFAULT else _seconds("--interval", interval, SHORTEST, LONGEST)
    if priority is not None:
        fields["set_priority"] = None if priority == DEFAULT else _priority(priority)
    if not fields:
        raise CommandError("nothing to set; expected --interval or --priority", code=2)
    number = done(place, lambda store: _change(store, selection(kind, source_id, every=False), fields))
    said = [f"every {often(value)}" for key, value in fields.items() if key == "set_seconds" and value]
    told(
        {"changed": number, **dict(fields.items())},
        f"changed {count(number, 'target')} {' '.join(said)}".rstrip(),
        json=json,
    )


def purge(
    *,
    yes: Annotated[bool, Parameter(negative=(), help="Really do it.")] = False,
    json: Json = False,
    place: Place = USUAL,
) -> None:
    """Remove all rows and all targets; settings stay. Whoever polls finds everything again."""
    if not yes:
        raise CommandError("this removes all rows and targets; say --yes if that is what you want", code=2)
    counts = done(place, lambda store: store.purge(SystemClock().wall()))
    rows = sum(number for table, number in counts.items() if table != "targets")
    told(counts, f"removed {count(rows, 'row')} and {count(counts['targets'], 'target')}", json=json)


async def _change(store: PollingStore, query: Query, fields: Mapping[Field, bool | float | int | None]) -> int:
    """Change all that are meant; how many."""
    names: list[tuple[str, str]] = []
    after: tuple[float, int] | None = None
    while page := await store.list(_following(query, after)):
        names += [(target.kind, target.source_id) for target in page]
        after = page[-1].next_due, page[-1].id
    if not names:
        await _some(store, query)
    for kind, source_id in names:
        await store.change(kind, source_id, fields)
    return len(names)


def _following(query: Query, after: tuple[float, int] | None) -> Query:
    return Query(kind=query.kind, source_id=query.source_id, gone=None, after=after, most=PAGE)


async def _some(store: PollingStore, query: Query) -> None:
    """Say that there is nothing of the sort, and what there is. Raises CommandError."""
    found = await store.list(Query(most=PAGE))
    if found and not query.kind:
        return
    kinds = sorted({target.kind for target in found})
    meant = " ".join(filter(None, (query.kind, query.source_id))) or "any"
    there = f"there are {', '.join(kinds)}" if kinds else "there are none at all; poll first"
    raise CommandError(f"no target is {meant}, or all of them are paused; {there}. See: sanderling polling targets")


def _seconds(flag: str, text: str, least: float, most: float) -> float:
    """A duration, of at least and at most so many milliseconds. Raises CommandError."""
    try:
        return Entry(flag, Sort.DURATION, 0.0, "", least, most).read(text, flag) / 1000
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
