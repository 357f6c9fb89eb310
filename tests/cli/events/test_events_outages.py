"""Servers that go away under load, one after the other: the same consumer goes on by itself, and nothing is lost."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from command_line import run
from events_commands import Place, consuming, ended, own_place, proven, said, status_with, until_done
from events_servers import PrivateServer, private
from services.postgres import POSTGRES
from services.rabbitmq_proxy import Proxy
from services.s3 import S3
from services.s3 import SERVICE as OBJECTS

from sanderling.clock import SystemClock
from sanderling.events.report import EventsFacts
from sanderling.stores.queue import QueueError
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import day

BATCHES, CHUNK = 90, 15
LAST = 3  # of a chunk, that come when the server is gone
AWAY = 3.0  # seconds in which it is measured what waiting costs
TICKS = os.sysconf("SC_CLK_TCK")


async def fed(place: Place, bodies: list[bytes]) -> None:
    """Publish one after the other, also while the broker is away; some may be published twice then."""
    waiting = list(bodies)
    async with place.crawler() as send:
        while waiting:
            try:
                await send(waiting[:1])
                del waiting[0]
                await asyncio.sleep(0.08)
            except QueueError:
                await asyncio.sleep(0.2)


@asynccontextmanager
async def away(server: PrivateServer | Proxy, how: signal.Signals) -> AsyncIterator[None]:
    """While a server is gone; a broker takes seconds of work to begin again, so only the way to it is cut."""
    if isinstance(server, Proxy):
        server.refuses = True
        server.cut()
        yield
        server.refuses = False
    else:
        await server.stop(how)
        yield
        await server.start()


def cpu(pid: int) -> float:
    """Seconds of work so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def events(place: Place) -> list[dict[str, object]]:
    """The lines of the log so far, but for those about single batches."""
    lines = [json.loads(line) for line in said(place).splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] != "batch_is_odd"]


def without(word: str) -> Callable[[EventsFacts], bool]:
    return lambda status: word in status.trouble


@pytest.mark.timeout(300)
def test_servers_that_go_and_come_back_cost_nothing_but_time(tmp_path: Path, rabbitmq: str) -> None:
    async def main(postgres: PrivateServer, objects: PrivateServer) -> None:
        social, s3 = Social(8, day()), S3.of(objects.url)
        bodies = [social.envelope(number) for number in range(BATCHES)]
        chunks = [bodies[first : first + CHUNK] for first in range(0, BATCHES, CHUNK)]
        async with (
            Proxy(rabbitmq) as broker,
            own_place(tmp_path / "out", postgres.url, broker.url, s3) as place,
        ):
            plan: list[tuple[PrivateServer | Proxy, signal.Signals, Callable[[EventsFacts], object]]] = [
                (postgres, signal.SIGINT, without("postgresql:")),  # its fast shutdown
                (objects, signal.SIGTERM, without("s3+http:")),
                (postgres, signal.SIGQUIT, without("postgresql:")),  # its immediate one
                (broker, signal.SIGTERM, lambda status: status.queue is None),
                (postgres, signal.SIGKILL, without("postgresql:")),
            ]
            await place.put(social, range(BATCHES))
            async with consuming(place, "@log-format", "json") as process:
                await place.publish(chunks[0])
                for chunk, (server, how, noticed) in zip(chunks[1:], plan, strict=True):
                    await until_done(place, 5, process)
                    async with asyncio.TaskGroup() as group:
                        group.create_task(fed(place, chunk[LAST:]))
                        async with away(server, how):
                            # All that came before may be done by now, and who has nothing to do notices nothing.
                            group.create_task(fed(place, chunk[:LAST]))
                            await status_with(place, noticed, process)
                            if server is broker:
                                await assert_waiting_is_cheap(place, process.pid)
                await until_done(place, BATCHES, process)
                await status_with(place, lambda status: not status.trouble and status.queue, process)
                process.terminate()
                assert await ended(process) == 0, "the same one all the time"
            await proven(place, social, range(BATCHES))
            assert await place.dead() == []
            depth = await place.depth()
            assert (depth.ready, depth.taken, depth.delayed) == (0, 0, 0)
            assert "Traceback" not in said(place)

    with private(POSTGRES) as postgres, private(OBJECTS) as objects:
        run(lambda: main(postgres, objects))


async def assert_waiting_is_cheap(place: Place, pid: int) -> None:
    """While the broker is away: no busy loop, and no flood in the log."""
    clock = SystemClock()
    lines, work, began = len(events(place)), cpu(pid), clock.now()
    await asyncio.sleep(AWAY)
    new = events(place)[lines:]
    assert cpu(pid) - work < 0.5 * (clock.now() - began)
    assert len(new) <= 4, new
