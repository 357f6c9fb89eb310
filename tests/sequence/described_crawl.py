"""A crawl of a JSON API that flags describe, under virtual time: what the command makes of them, without sockets."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from sequence_parts import desk

from sanderling.cli.sequence.flags import SequencePace, SequenceUpstream
from sanderling.fetch.attempts import Fetcher
from sanderling.formats.instance import Message, decode
from sanderling.limit.memory import Memory
from sanderling.observe.report import Report
from sanderling.sequence.cursor import Position
from sanderling.sequence.report import SequenceFacts, SequenceWatch
from sanderling.sequence.retries import Missed
from sanderling.sequence.state import SequenceState
from sanderling.sequence.system import SequenceServices, SequenceSystem
from sanderling.stores.queue import WholeQueue
from sanderling.stores.sqlite_queue import SqliteQueue
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

URL = "https://items.example/{id}"
TOOK = 0.05  # seconds, an answer
LOOK = 0.05  # seconds between two looks at how it stands

# What is said of an id at a time in seconds: an HTTP status and a body.
Says = Callable[[int, float], tuple[int, bytes]]


@dataclass(slots=True)
class Items:
    """The API: sends what `says` says."""

    says: Says
    clock: LoopClock = field(default_factory=LoopClock)
    asked: list[tuple[float, int]] = field(default_factory=list)  # when, and for which id

    async def send(self, task: Task) -> Reply:
        """The reply, after a while."""
        number = int(task.url.rpartition("/")[2])
        self.asked.append((self.clock.now(), number))
        await self.clock.sleep(TOOK)
        status, body = self.says(number, self.clock.now())
        return Reply(status, (), body, task.url, TOOK)


@dataclass(frozen=True, slots=True)
class Followed:
    """What came of a crawl."""

    records: dict[int, Message]  # what the queue holds, by id
    missed: dict[int, str]  # and the reason
    report: Report[SequenceFacts]
    asked: list[tuple[float, int]]


def follow(
    folder: Path,
    says: Says,
    seconds: float,
    given: SequenceUpstream,
    *,
    begin: int = 1,
    rps: float | None = None,
    missed: Sequence[Missed] = (),
    queue: Callable[[LoopClock], WholeQueue] | None = None,
    until: int | None = None,
    watch: Callable[[SequenceSystem, float], object] | None = None,
) -> Followed:
    """Follow the ids from `begin`, or from where the crawl in the folder was, for so many seconds."""

    async def main() -> Followed:
        clock, items = LoopClock(), Items(says)
        state = SequenceState(folder / "sequence.db")
        state._db.execute("PRAGMA synchronous = OFF")  # nobody pulls a plug here
        state.add_new(missed)
        letters = queue(clock) if queue else SqliteQueue(folder / "instance_store.db", clock, desk)
        limiter = replace(given, rps=rps).limiter(clock)
        tools = SequenceServices(
            given.describe(), Fetcher(items, limiter, clock=clock), limiter, Memory(2**28), state, letters, desk
        )
        saved = state.load()
        position = Position(begin) if saved is None else saved.position
        system = SequenceSystem(tools, position, SequencePace().rules(), say=lambda _: None, clock=clock, rng=Random(1))
        system.end_at(until)
        status_of = SequenceWatch(system, None, clock.wall())

        async def stop() -> None:
            await clock.sleep(seconds)
            system.stop()

        async def look() -> None:
            while watch is not None:
                watch(system, clock.now())
                await clock.sleep(LOOK)

        await system.run(stop(), look())
        report = status_of.report(clock.now(), clock.wall(), running=False)
        taken = await letters.take(10**6, 0.0)
        ranges = state.missed(limit=-1)
        await letters.close()
        state.close()
        absent = {number: each.reason.value for each in ranges for number in range(each.low, each.high + 1)}
        return Followed({int(each.key): decode(each.body) for each in taken}, absent, report, items.asked)

    return run_virtual(asyncio.wait_for(main(), seconds + 3600))
