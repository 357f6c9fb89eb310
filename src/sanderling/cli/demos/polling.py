"""`sanderling demo polling`: real polling, over real HTTP, of a simulated race day on this machine, then proof."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sanderling.apis.polled import PolledSource, Wanted
from sanderling.cli.demos.shell import DemoEnd, next_steps
from sanderling.cli.options import Options
from sanderling.cli.polling.flags import PollFlags, PollingPace, PollingUpstream
from sanderling.cli.polling.place import PollingFolder, opened
from sanderling.cli.polling.poll import run_polling
from sanderling.cli.polling.summary import punctuality
from sanderling.cli.report_screen import fitting
from sanderling.clock import ScaledClock
from sanderling.observe.report import Report
from sanderling.polling.report import PollingFacts
from sanderling.stores.documents import Document
from sanderling.stores.polling import Op, Query
from sanderling.stores.polling_store import PollingStore
from sanderling.task import Reply
from sanderling.words import count, duration
from sanderling.worlds.race import RaceDay, RaceServer, RaceTally, demo

SEED = 1  # the same day each time, so that what one person sees another can look for
SPEED = 4.0  # times as fast as by the clock on the wall, races and polling alike
AFTER = 15.0  # seconds of its own time that it goes on after the last change

Tables = dict[str, dict[str, dict[str, object]]]


@dataclass(frozen=True, slots=True)
class PollingProof:
    """What is stored, beside what the upstream says."""

    rows: int
    differ: int  # rows that are not as the upstream has them, or that it has not
    changes: int
    holes: int  # numbers of changes that are missing, or there twice
    adds_up: bool  # whether the changes, one after the other, make the rows

    @property
    def ok(self) -> bool:
        """Whether nothing is lost."""
        return not self.differ and not self.holes and self.adds_up


async def run(out: Path, options: Options, *, as_json: bool) -> DemoEnd:
    """Poll a simulated race day: two races, each asked for every 200 ms while it is flown, and nothing is lost."""
    clock = ScaledClock(SPEED)
    day = RaceDay(SEED, demo(), began=clock.wall())
    screen = fitting(json=as_json, logs=options.log_format is not None)
    async with RaceServer(day, clock) as server:
        flags = PollFlags(
            PollingFolder(out=out), PollingUpstream(trackside=server.url(), private=True, rps=200.0), PollingPace()
        )
        screen.note(f"A simulated race day on this machine; nothing leaves it. Time passes {SPEED:g}x.")
        over = day.began + day.over + AFTER
        ran, late = await run_polling(flags, options, clock, screen, until=lambda _: clock.sleep(over - clock.wall()))
        # Whoever ends it early ends it in the middle of something: then the upstream has gone on.
        proof = await _prove(flags, None if ran.signals else day, clock.wall())
    asked = {heat.id: server.tally.paths[day.race_path(heat.id)] for heat in day.heats}
    document = _document(ran.last, proof, server.tally, asked) | {"out": str(out)}
    races = [] if ran.stopped else [*_describe_races(day, asked)]
    told = [_describe_run(ran.last, server.tally, early=ran.stopped), *races, *punctuality(late)]
    lines = ["", *told, *describe_proof(proof, early=ran.stopped), *_next(out)]
    return DemoEnd(screen, lines, document, proof.ok, ran.stopped)


async def _prove(flags: PollFlags, day: RaceDay | None, wall: float) -> PollingProof:
    """Compare what is stored with its changes, and with what the upstream says now."""
    source = flags.upstream.describe()
    async with opened(flags.place, source.schema, source.name) as (store, _):
        rows = await _rows(store, source)
        numbers, made = await _replayed(store)
        differ = 0
        for target in await store.list(Query(most=1000)) if day else ():
            wanted = Wanted(target.kind, target.source_id, target.event, target.only)
            url = source.task(wanted).url
            body = day.document("/" + url.split("/", 3)[3], wall - day.began) if day else None
            if body is not None:
                differ += differing(rows, source.read(wanted, Reply(200, (), body, url, 0.0)))
    return PollingProof(
        rows=sum(map(len, rows.values())),
        differ=differ,
        changes=len(numbers),
        holes=len(set(range(1, len(numbers) + 1)) ^ set(numbers)) + len(numbers) - len(set(numbers)),
        adds_up=made == rows,
    )


def differing(rows: Tables, document: Document) -> int:
    """How many rows of a document are not stored as it has them, and how many are stored that it has not."""
    other = sum(1 for row in document.rows if rows.get(row.table, {}).get(row.key) != dict(row.values))
    for whole in document.whole:
        stored = rows.get(whole.table, {}).items()
        other += sum(1 for key, row in stored if row[whole.column] == whole.parent and key not in whole.keys)
    return other


async def _rows(store: PollingStore, source: PolledSource) -> Tables:
    tables: Tables = {}
    for table in source.schema.tables:
        rows: dict[str, dict[str, object]] = {}
        while page := await store.rows(table.name, after=max(rows, default="")):
            rows |= {row.key: dict(row.values) for row in page}
        tables[table.name] = rows
    return {name: rows for name, rows in tables.items() if rows}


async def _replayed(store: PollingStore) -> tuple[list[int], Tables]:
    """The numbers of all changes, and the rows that they add up to."""
    found: list[int] = []
    tables: Tables = {}
    while page := await store.changes(found[-1] if found else 0, 1000):
        for change in page:
            found.append(change.seq)
            table = tables.setdefault(change.table, {})
            if change.op is Op.DELETE:
                table.pop(change.key, None)
            else:
                table[change.key] = dict(change.values)
    return found, {name: rows for name, rows in tables.items() if rows}


def _document(
    last: Report[PollingFacts], proof: PollingProof, tally: RaceTally, asked: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "ok": proof.ok,
        "seconds": round(last.process.seconds / SPEED, 3),
        "day_seconds": round(last.process.seconds, 3),
        "requests": tally.asked,
        "runs": last.facts.ran,
        "missed": last.facts.missed,
        "races": asked,
        "proof": asdict(proof),
    }


def _describe_run(last: Report[PollingFacts], tally: RaceTally, *, early: bool) -> str:
    took = f"{duration(last.process.seconds)} of its time, {duration(last.process.seconds / SPEED)} of yours"
    return f"{'Ended early: polled' if early else 'Polled'} a race day for {took}: {count(tally.asked, 'request')}."


def _describe_races(day: RaceDay, asked: Mapping[str, int]) -> Iterator[str]:
    for number, heat in enumerate(day.heats, 1):
        yield (
            f"Race {number} was flown for {duration((heat.end - heat.start) / 1000)} and asked for {asked[heat.id]:,} "
            "times: every 200 ms while it was flown, every 10 s before and after."
        )


def describe_proof(proof: PollingProof, *, early: bool) -> Iterator[str]:
    """What is stored, in words."""
    yield (
        f"The {count(proof.changes, 'change')}, numbered from 1 to {proof.changes:,} with {proof.holes or 'no'} holes, "
        f"{'add' if proof.adds_up else 'do not add'} up to the {count(proof.rows, 'row')} that are stored."
    )
    if not early:
        yield f"Compared with the upstream, {proof.differ or 'none'} of these rows are other than it has them."


def _next(out: Path) -> Iterator[str]:
    where = shlex.quote(str(out))
    commands = {f"sanderling polling targets --out {where}": "what is polled"}
    commands[f"sanderling polling settings --out {where}"] = "how often"
    yield from next_steps("To try next:", {**commands, "sanderling world race --preset day": "serve a larger day"})
