"""`sanderling demo polling`: real polling, over real HTTP, of a simulated race day on this machine, then proof."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sanderling.apis.polled import PolledSource, Wanted
from sanderling.cli.command_error import CommandError
from sanderling.cli.demos.folder import make_room, mark
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import Options
from sanderling.cli.polling.flags import Pace, PollFlags, Upstream
from sanderling.cli.polling.place import Place, opened
from sanderling.cli.polling.poll import Lateness, run_polling
from sanderling.cli.polling.summary import punctuality
from sanderling.cli.reach import KNOWN
from sanderling.cli.report_screen import fitting
from sanderling.cli.running import Ran
from sanderling.clock import Clock, ScaledClock
from sanderling.observe.report import Report
from sanderling.polling.report import PollingFacts
from sanderling.stores.documents import Document
from sanderling.stores.polling import Op, Query
from sanderling.stores.polling_store import PollingStore
from sanderling.task import Reply
from sanderling.words import count, duration
from sanderling.worlds.race import RaceDay, RaceServer, RaceTally, demo

OUT = Path("sanderling-demo-polling")
COMMAND = "sanderling demo polling"
SEED = 1  # the same day each time, so that what one person sees another can look for
SPEED = 4.0  # times as fast as by the clock on the wall, races and polling alike
AFTER = 15.0  # seconds of its own time that it goes on after the last change

Tables = dict[str, dict[str, dict[str, object]]]


@dataclass(frozen=True, slots=True)
class Proof:
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


def demo_polling(out: Path, options: Options, *, as_json: bool) -> None:
    """Poll a simulated race day: two races, each asked for every 200 ms while it is flown, and nothing is lost."""
    make_room(out, COMMAND, "--out")
    mark(out, COMMAND)
    with explain_end(COMMAND, KNOWN):
        stopped = run(_run(out, options, ScaledClock(SPEED), as_json=as_json))
    if stopped:
        raise KeyboardInterrupt


async def _run(out: Path, options: Options, clock: ScaledClock, *, as_json: bool) -> bool:
    """Serve, poll, prove, tell; whether somebody stopped it."""
    day = RaceDay(SEED, demo(), began=clock.wall())
    screen = fitting(json=as_json, logs=options.log_format is not None)
    async with RaceServer(day, clock) as server:
        flags = PollFlags(Place(out=out), Upstream(trackside=server.url(), private=True, rps=200.0), Pace())
        screen.note(f"A simulated race day on this machine; nothing leaves it. Time passes {SPEED:g}x.")
        ran, late = await run_polling(flags, options, clock, screen, until=lambda _: _wait_for_end(day, clock))
        # Whoever ends it early ends it in the middle of something: then the upstream has gone on.
        proof = await _prove(flags, None if ran.signals else day, clock.wall())
    story = Story(ran, late, proof, server.tally, day)
    screen.end(story.words(out), story.document(out))
    if not proof.ok:
        raise CommandError("what is stored is not what it should be; please tell us")
    return ran.stopped


async def _wait_for_end(day: RaceDay, clock: Clock) -> None:
    await clock.sleep(day.over + AFTER - (clock.wall() - day.began))


async def _prove(flags: PollFlags, day: RaceDay | None, wall: float) -> Proof:
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
    return Proof(
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


@dataclass(frozen=True, slots=True)
class Story:
    """What happened."""

    ran: Ran[Report[PollingFacts]]
    late: Lateness
    proof: Proof
    tally: RaceTally
    day: RaceDay

    def document(self, out: Path) -> dict[str, Any]:
        """What `--json` prints."""
        last, seconds = self.ran.last.facts, self.ran.last.process.seconds
        return {
            "ok": self.proof.ok,
            "seconds": round(seconds / SPEED, 3),
            "day_seconds": round(seconds, 3),
            "requests": self.tally.asked,
            "runs": last.ran,
            "missed": last.missed,
            "races": {heat.id: self._asked(heat.id) for heat in self.day.heats},
            "proof": asdict(self.proof),
            "out": str(out),
        }

    def _asked(self, race: str) -> int:
        return self.tally.paths[self.day.race_path(race)]

    def words(self, out: Path) -> Iterator[str]:
        """The same as lines; those that are indented must not be broken."""
        seconds, early = self.ran.last.process.seconds, self.ran.stopped
        yield ""
        yield (
            f"{'Ended early: polled' if early else 'Polled'} a race day for {duration(seconds)} of its time, "
            f"{duration(seconds / SPEED)} of yours: {count(self.tally.asked, 'request')}."
        )
        if not early:
            yield from self._races()
        yield from punctuality(self.late)
        yield from self._proven(early=early)
        yield ""
        yield "To look at the targets and settings; and to serve a larger day, to poll by hand:"
        yield ""
        where = shlex.quote(str(out))
        yield f"    sanderling polling targets --out {where}"
        yield f"    sanderling polling settings --out {where}"
        yield "    sanderling world race --preset day"
        yield ""

    def _races(self) -> Iterator[str]:
        for number, heat in enumerate(self.day.heats, 1):
            flown = (heat.end - heat.start) / 1000
            yield (
                f"Race {number} was flown for {duration(flown)} and asked for {self._asked(heat.id):,} times: every "
                "200 ms while it was flown, every 10 s before and after."
            )

    def _proven(self, *, early: bool) -> Iterator[str]:
        proof = self.proof
        numbered = f"numbered from 1 to {proof.changes:,} with {proof.holes or 'no'} holes"
        yield (
            f"The {count(proof.changes, 'change')}, {numbered}, {'add' if proof.adds_up else 'do not add'} up to the "
            f"{count(proof.rows, 'row')} that are stored."
        )
        if not early:
            yield f"Compared with the upstream, {proof.differ or 'none'} of these rows are other than it has them."
