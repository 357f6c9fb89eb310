"""From a message to rows: how many items a second a core takes, how long a batch does, and how others fare beside it.

The whole consumer, five batches at once: a queue, objects, analysis by the lexicon, one transaction for each batch, and
what goes out because of it. Full batches of the simulated crawler's day: 50 items of TikTok, 20 of YouTube, with some
14 comments each. Sides alternate, each on batches that it has not seen; a ratio is the median of those of each round.

CPU is that of this process, all threads of it: what PostgreSQL, RabbitMQ and S3 use is their own, and elsewhere. The
rival (`events_rival.py`) is aio-pika with the ORM of SQLAlchemy and a commit for each item, in the same process, on the
same server and the same batches.

`--soak ITEMS` consumes so many on SQLite and watches how large the process gets, instead.
"""

import argparse
import logging
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import structlog
import uvloop
from events_parts import Cost, Place, Supply, Urls, make_tables, place, schema
from events_rival import Rival
from events_soak import soak
from events_stages import stages
from harness import Report, at_least, at_most
from processes import ROOT, busy

sys.path.insert(0, str(ROOT / "tests"))  # where it is known how to find each server, or to start it

from services.fixtures import guess
from services.postgres import POSTGRES
from services.process import Missing, StartError, ask, private_folder
from services.rabbitmq import RABBITMQ
from services.s3 import S3
from services.s3 import SERVICE as S3_SERVICE

ROUNDS, BATCHES = 3, 30  # of each side in each round; some 1,050 items
RIVAL_BATCHES = 8  # of those
TIMED = 30  # batches of 50 whose latency is measured, one at a time and five at a time
STAGED = 30  # batches that go through one stage after the other
BUCKET = "crawl-results"
SQLITE, POSTGRESQL, ON_S3 = "sqlite", "postgresql", "postgresql, S3"
NEED = {SQLITE: 2_000, POSTGRESQL: 1_000}  # items a second of a core


# Where.


@dataclass(slots=True)
class Servers:
    """What answers here; None for what does not."""

    postgres: str | None
    rabbitmq: str | None
    s3: str | None = None
    notes: list[str] = field(default_factory=list)


@contextmanager
def servers() -> Iterator[Servers]:
    """Those at their usual places; S3 is started if need be."""
    found = Servers(guess(POSTGRES), guess(RABBITMQ))
    with ExitStack() as stack:
        try:
            url = guess(S3_SERVICE)
            if url is None:
                folder = Path(stack.enter_context(private_folder()))
                url = stack.enter_context(S3_SERVICE.start(folder)).url
        except (Missing, StartError) as why:
            found.notes.append(f"no S3: {why}")
        else:
            ask("PUT", S3.of(url).signed("PUT", BUCKET), 10.0)
            found.s3 = f"s3+{url.rpartition('/')[0]}"
        if found.postgres is None:
            found.notes.append("no PostgreSQL at its usual place: SQLite alone")
        if found.rabbitmq is None:
            found.notes.append("no RabbitMQ at its usual place: queues are files, and there is no rival")
        yield found


@asynccontextmanager
async def sides(found: Servers, folder: Path) -> AsyncIterator[dict[str, Place]]:
    """Every side that can be had."""
    files = Urls(f"sqlite:{folder}", f"file:{folder}/objects", f"sqlite:{folder}/events.db")
    urls = {SQLITE: files}
    if found.postgres:
        urls[POSTGRESQL] = Urls(found.rabbitmq or files.queue, files.objects, found.postgres)
        if found.s3:
            urls[ON_S3] = urls[POSTGRESQL]._replace(objects=found.s3)
    async with AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(place(each, folder)) for name, each in urls.items()}


@dataclass(frozen=True, slots=True)
class Other:
    """The rival at its place."""

    rival: Rival
    amqp: str
    name: str

    async def consume(self, *args: object) -> Cost:
        """The same as ours."""
        return await self.rival.consume(self.amqp, self.name, *args)  # type: ignore[arg-type]  # batches


@asynccontextmanager
async def rival(found: Servers, at: Place) -> AsyncIterator[Other | None]:
    """The other one, with tables of its own, and the objects of ours."""
    if found.postgres is None or found.rabbitmq is None:
        yield None
        return
    name = f"bench_events_rival_{os.getpid()}"
    async with schema(found.postgres, name) as url:
        await make_tables(url)
        other = await Rival.open(found.postgres, name, at.objects)
        try:
            yield Other(other, found.rabbitmq, name)
        finally:
            await other.close()


# What.


async def throughput(
    report: Report, supply: Supply, places: dict[str, Place], other: Other | None, rounds: int
) -> None:
    """All sides in turn, on the same batches."""
    costs: dict[str, list[Cost]] = {}
    for number in range(rounds + 1):
        some = supply.some(BATCHES)
        made = {name: await each.consume(some) for name, each in places.items()}
        if other is not None:
            made["rival"] = await other.consume(some[:RIVAL_BATCHES])
        if number:  # the first round is for connections, statements and caches
            for name, cost in made.items():
                costs.setdefault(name, []).append(cost)
    for name, runs in costs.items():
        core, wall = (median(run.items / getattr(run, what) for run in runs) for what in ("cpu", "wall"))
        least, most = (choose(run.items / run.cpu for run in runs) for choose in (min, max))
        print(f"  {name:16}{core:8,.0f} items a second of a core ({least:,.0f} to {most:,.0f}){wall:8,.0f} of the wall")
        report.figures |= {f"{name}: items per core second": round(core), f"{name}: per second": round(wall)}
        if name in NEED:
            report.bars.append(at_least(f"{name}: items per core second", NEED[name], core))
    if "rival" in costs:
        _compare(report, costs[POSTGRESQL], costs["rival"])


def _compare(report: Report, ours: list[Cost], theirs: list[Cost]) -> None:
    pairs = list(zip(ours, theirs, strict=True))
    wall = median((our.items / our.wall) / (their.items / their.wall) for our, their in pairs)
    cpu = median((our.items / our.cpu) / (their.items / their.cpu) for our, their in pairs)
    print(f"  beside a commit for each item: {wall:.1f} times the items of a second, {cpu:.1f} times those of a core")
    report.figures["times the rival, by CPU"] = round(cpu, 2)
    report.bars.append(at_least("times the items a second of aio-pika and ORM", 5, wall))


async def latency(report: Report, supply: Supply, places: dict[str, Place]) -> None:
    """From taken to committed, of batches of 50."""
    for at_once in (1, 5):
        some = supply.of("tiktok", TIMED)
        for name, each in places.items():
            each.seconds.clear()
            await each.consume(some, at_once)
            ms = [seconds * 1000 for seconds in each.seconds["tiktok"]]
            half, late = median(ms), quantiles(ms, n=20)[-1]
            print(
                f"  {name:16}{at_once} at a time: a batch of 50 takes {half:.0f} ms, {late:.0f} ms at the 95th percent"
            )
            report.figures[f"{name}: ms of a batch, {at_once} at a time"] = round(half, 1)
            if name in NEED:
                report.bars.append(at_most(f"{name}: ms of a batch of 50, p95, {at_once} at a time", 250, late))


async def parts(report: Report, supply: Supply, places: dict[str, Place]) -> None:
    """What each stage takes."""
    found = await stages(supply, places, STAGED)
    print("  us of CPU for an item: " + ", ".join(f"{name} {cost:.0f}" for name, cost in found.items()))
    report.figures |= {f"us: {name}": round(cost, 1) for name, cost in found.items()}
    report.bars.append(at_most("us of CPU to analyse an item", 200, found["analyse"]))


async def measure(report: Report, found: Servers, rounds: int) -> None:
    """All of it."""
    supply = Supply()
    for note in found.notes:
        print(f"  {note}")
    with tempfile.TemporaryDirectory() as folder:
        async with sides(found, Path(folder)) as places, rival(found, places[SQLITE]) as other:
            await throughput(report, supply, places, other, rounds)
            await latency(report, supply, places)
            await parts(report, supply, places)


def main() -> None:
    """Exit code 1 if a bar falls short."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--soak", type=int, default=0)  # items
    options, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    report = Report("events")
    report.figures["load"] = busy()
    if options.soak:
        uvloop.run(soak(report, options.soak))
    else:
        with servers() as found:
            uvloop.run(measure(report, found, options.rounds))
    report.finish()


if __name__ == "__main__":
    main()
