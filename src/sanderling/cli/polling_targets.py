"""`sanderling polling targets` and `settings`: what is polled, when next, and by which rules."""

import json as jsonlib
from collections.abc import Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.table import Table

from sanderling.cli import CommandError
from sanderling.cli.pages_summary import count, duration, printable
from sanderling.cli.polling_admin import Json, done, told
from sanderling.cli.polling_place import USUAL, Place, known_kinds
from sanderling.cli.polling_words import often
from sanderling.clock import SystemClock
from sanderling.polling.live import LiveSettings
from sanderling.polling.settings import Setting, SettingError
from sanderling.stores.polling import Counts, PollingStore, Query, Target


def targets(  # noqa: PLR0913 - flags
    *,
    kind: Annotated[str | None, Parameter(help="Only of this kind.")] = None,
    event: Annotated[str | None, Parameter(help="Only of this event.")] = None,
    due: Annotated[bool, Parameter(negative=(), help="Only those that are due now.")] = False,
    live: Annotated[bool, Parameter(negative=(), help="Only those that are accelerated now.")] = False,
    paused: Annotated[bool, Parameter(negative=(), help="Only those that are paused.")] = False,
    gone: Annotated[bool, Parameter(negative=(), help="Only those that discovery does not list any more.")] = False,
    limit: Annotated[int, Parameter(validator=Number(gte=1, lte=100_000))] = 50,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object to a line.")] = False,
    place: Place = USUAL,
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

    async def work(store: PollingStore) -> tuple[list[Target], Counts]:
        return await store.list(query), await store.count(wall)

    found, counts = done(place, work)
    if json:
        for target in found:
            print(jsonlib.dumps(document(target, wall)))
        return
    console = Console(highlight=False)
    console.print(table(found, wall))
    more = f", {counts.targets - len(found):,} more" if counts.targets > len(found) else ""
    shown = f"{count(len(found), 'target')}{more}; {counts.paused:,} paused, {counts.failing:,} failing"
    console.print(f"{shown}, {counts.gone:,} gone")


def document(target: Target, wall: float) -> dict[str, object]:
    """A target as JSON."""
    found: dict[str, object] = msgspec.to_builtins(target)
    return {**found, "digest": target.digest.hex(), "interval": target.interval, "due_in": target.next_due - wall}


def table(found: list[Target], wall: float) -> Table:
    """Targets for people."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("kind", "id", "every", "due", "runs", "missed", "changed", "status"):
        made.add_column(name, justify="right" if name in ("every", "due", "runs", "missed") else "left", no_wrap=True)
    for target in found:
        live = target.until is not None and target.until > wall
        style = "dim" if not target.wanted else "green" if live else "red" if target.failures else ""
        made.add_row(*map(printable, _cells(target, wall)), style=style)
    return made


def _cells(target: Target, wall: float) -> Iterator[str]:
    yield target.kind
    yield target.source_id
    yield "live" if target.until is not None and target.until > wall else often(target.interval)
    yield _due(target, wall)
    yield f"{target.runs:,}"
    yield f"{target.missed:,}"
    yield "never" if target.changed is None else f"{duration(max(0.0, wall - target.changed))} ago"
    yield target.status or "new"


def _due(target: Target, wall: float) -> str:
    if target.gone is not None:
        return "gone"
    if not target.enabled:
        return "paused"
    if target.interval <= 0:
        return "off"
    left = target.next_due - wall
    return f"in {left:.1f} s" if left > 0 else f"{duration(-left)} late" if left < -1 else "now"


def settings(
    key: Annotated[
        str | None, Parameter(help="The setting to write, as in raceActiveMs; without one, all are listed.")
    ] = None,
    value: Annotated[str | None, Parameter(help="What to write, as in 250ms.")] = None,
    /,
    *,
    default: Annotated[bool, Parameter(negative=(), help="Go back to the default instead.")] = False,
    json: Json = False,
    place: Place = USUAL,
) -> None:
    """List the settings, or write one; whoever polls heeds it within a second."""
    if key is not None and (value is None) != default:
        raise CommandError(f"{key}: expected a value, or --default", code=2)

    async def work(store: PollingStore) -> tuple[Setting, ...]:
        live = LiveSettings(store, await known_kinds(store), SystemClock())
        await live.read()
        return await live.listed() if key is None else (await live.set(key, value),)

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
    Console(highlight=False).print(made)
