"""`sanderling polling targets` and `settings`: what is polled, when next, and by which rules."""

import json as jsonlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.table import Table

from sanderling.cli.command_error import CommandError
from sanderling.cli.polling.admin import Json, done, told
from sanderling.cli.polling.flags import full_key
from sanderling.cli.polling.place import USUAL, PollingFolder, known_kinds
from sanderling.clock import SystemClock
from sanderling.observe.report import Report
from sanderling.polling.live_settings import LiveSettings
from sanderling.polling.report import SHORT, PollingFacts, describe_interval
from sanderling.polling.settings import PollingSetting, SettingError
from sanderling.stores.polling import PollingTarget, Query, StoredTargetCounts
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.status_file import FILE as STATUS
from sanderling.stores.status_file import is_running, read_status
from sanderling.words import count, duration, printable

WIDE = 120  # columns from which on ids are shown as a whole
FILE = 500  # columns of what is no terminal
NARROWEST = 10  # columns of the status
COLUMNS = ("kind", "id", "every", "due", "runs", "missed", "changed", "status")
RIGHT = COLUMNS[2:6]


def targets(  # noqa: PLR0913 - flags
    *,
    kind: Annotated[str | None, Parameter(help="Only of this kind.")] = None,
    event: Annotated[str | None, Parameter(help="Only of this event.")] = None,
    due: Annotated[bool, Parameter(negative=(), help="Only those that are due now.")] = False,
    live: Annotated[bool, Parameter(negative=(), help="Only those that are accelerated now.")] = False,
    paused: Annotated[bool, Parameter(negative=(), help="Only those that are paused.")] = False,
    gone: Annotated[bool, Parameter(negative=(), help="Only those that discovery does not list any more.")] = False,
    limit: Annotated[int, Parameter(validator=Number(gte=1, lte=100_000), help="How many at most.")] = 50,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object to a line.")] = False,
    place: PollingFolder = USUAL,
) -> None:
    """List targets, those first that are due first."""
    wall = SystemClock().wall()
    query = Query(
        kind=kind,
        event=event,
        enabled=False if paused else None,
        gone=gone,
        due_before=wall if due else None,
        accelerated_at=wall if live else None,
        most=limit,
    )

    async def work(store: PollingStore) -> tuple[list[PollingTarget], StoredTargetCounts]:
        return await store.list(query), await store.count(wall)

    found, counts = done(place, work)
    if json:
        for target in found:
            print(jsonlib.dumps(document(target, wall)))
        return
    console = printer()
    if found:
        console.print(table(found, wall, console.width))
    console.print(_summed(found, counts) + asleep(place, wall), style="dim" if found else "")


def printer() -> Console:
    """Where tables go: into a file as wide as they are."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=FILE)


def _summed(found: Sequence[PollingTarget], counts: StoredTargetCounts) -> str:
    sorts = (
        (counts.accelerated, "live"),
        (counts.paused, "paused"),
        (counts.failing, "failing"),
        (counts.gone, "gone"),
    )
    more = "".join(f", {number:,} {what}" for number, what in sorts if number)
    shown = "none of these" if not found else f"{len(found):,} of these" if len(found) < counts.targets else ""
    all_of_them = f"{count(counts.targets, 'target')}{more}"
    return f"{shown}; in all {all_of_them}" if shown else all_of_them


def asleep(place: PollingFolder, wall: float) -> str:
    """That nobody polls, as far as the folder tells: then due times mean little."""
    said = read_status(place.out, Report[PollingFacts])
    return "; nobody polls just now" if said and not is_running(said.process, wall) else ""


def document(target: PollingTarget, wall: float) -> dict[str, object]:
    """A target as `--json` prints it."""
    found: dict[str, object] = msgspec.to_builtins(target)
    return {**found, "digest": target.digest.hex(), "interval": target.interval, "due_in": target.next_due - wall}


def table(found: Sequence[PollingTarget], wall: float, width: int) -> Table:
    """Targets for people. Where there is too little room, ids are shorter, and the status is cut."""
    length = None if width >= WIDE else enough(found)
    rows = [list(map(printable, _cells(target, wall, length))) for target in found]
    *others, _ = zip(COLUMNS, *rows, strict=True)
    room = max(NARROWEST, width - sum(max(map(len, column)) + 2 for column in others))
    made = Table(box=None, pad_edge=False, header_style="dim")
    for name in COLUMNS:
        made.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=True)
    for target, row in zip(found, rows, strict=True):
        style = "dim" if not target.wanted else "green" if _live(target, wall) else "red" if target.failures else ""
        made.add_row(*row[:-1], row[-1] if len(row[-1]) <= room else f"{row[-1][: room - 1]}…", style=style)
    return made


def enough(found: Iterable[PollingTarget]) -> int:
    """How many characters of their ids tell targets of one kind from each other."""
    names = {(target.kind, target.source_id) for target in found}
    for length in range(SHORT, 1 + max((len(source_id) for _, source_id in names), default=SHORT)):
        if len({(kind, source_id[:length]) for kind, source_id in names}) == len(names):
            return length
    return SHORT


def _live(target: PollingTarget, wall: float) -> bool:
    return target.until is not None and target.until > wall


def _cells(target: PollingTarget, wall: float, length: int | None) -> Iterator[str]:
    yield target.kind
    yield target.source_id[:length]
    yield "live" if _live(target, wall) else describe_interval(target.interval)
    yield _due(target, wall)
    yield f"{target.runs:,}"
    yield f"{target.missed:,}"
    yield "never" if target.changed is None else f"{duration(max(0.0, wall - target.changed))} ago"
    yield target.status or "new"


def _due(target: PollingTarget, wall: float) -> str:
    if target.gone is not None:
        return "gone"
    if not target.enabled:
        return "paused"
    if target.interval <= 0:
        return "off"
    left = target.next_due - wall
    return (
        f"in {f'{left:.1f} s' if left < 100 else duration(left)}"
        if left > 0
        else f"{duration(-left)} late"
        if left < -1
        else "now"
    )


def settings(
    key: Annotated[
        str | None, Parameter(help="The setting to write, as in raceActiveMs; without one, all are listed.")
    ] = None,
    value: Annotated[str | None, Parameter(help="What to write, as in 250ms.")] = None,
    /,
    *,
    default: Annotated[bool, Parameter(negative=(), help="Go back to the default instead.")] = False,
    json: Json = False,
    place: PollingFolder = USUAL,
) -> None:
    """List the settings, or write one; whoever polls heeds it within a second."""
    if default and key is None:
        raise CommandError("--default: expected the setting that goes back to its default", code=2)
    if key is not None and (value is None) != default:
        raise CommandError(f"{key[:60]}: expected a value, or --default, and not both", code=2)

    async def work(store: PollingStore) -> tuple[PollingSetting, ...]:
        folder = place.out if (place.out / STATUS).is_file() else None  # then whoever polls takes it from the database
        live = LiveSettings(store, await known_kinds(store), SystemClock(), folder)
        await live.read()
        return await live.listed() if key is None else (await live.set(full_key(key), value),)

    try:
        found = done(place, work)
    except SettingError as error:
        raise CommandError(str(error), code=2) from None
    if key is not None:
        told(found[0]._asdict(), f"{found[0].key} is {found[0].text}", json=json)
        return
    if json:
        print(jsonlib.dumps({each.key: each._asdict() for each in found}))
        return
    made = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("setting", "value", "default", "meaning"):
        made.add_column(name, no_wrap=name != "meaning")
    for each in found:
        made.add_row(each.key, each.text, each.default, each.meaning, style="bold" if each.set else "")
    printer().print(made)
