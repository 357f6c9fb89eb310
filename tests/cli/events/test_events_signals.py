"""`sanderling events consume` when it is asked to stop, once or twice: what is in hand is finished, nothing is lost."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from command_line import run
from events_commands import HeldObjects, Place, consuming, drain, ended, proven, said, until
from forked import Forked as Process

from sanderling.cli.loop import TOGETHER
from sanderling.stores.queue import Depth
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo


def stored(social: Social, end: int) -> list[int]:
    """The first batches that have an object, so that it can be held back."""
    return [number for number in range(end) if social.batch(number).body is not None]


@asynccontextmanager
async def held_back(folder: Path) -> AsyncIterator[tuple[Place, HeldObjects, Social, list[int]]]:
    """Three batches whose objects do not come until they may."""
    held, social = HeldObjects(), Social(1, demo())
    numbers = stored(social, 10)[:3]
    held.put(social, numbers)
    async with held.serving() as url:
        place = Place(folder / "out", objects=url)
        await place.publish([social.envelope(number) for number in numbers])
        held.may.clear()
        yield place, held, social, numbers


async def asked(held: HeldObjects, process: Process) -> None:
    """Return when the first batch is being fetched: somebody has it in hand."""
    await until(lambda: set(held.asked) - {"sanderling-ping/ping"}, process)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_batch_in_hand_is_finished_and_no_other_is_begun(tmp_path: Path, number: signal.Signals, code: int) -> None:
    async def main() -> None:
        async with held_back(tmp_path) as (place, held, social, numbers):
            async with consuming(place, "--batches", "1") as process:
                await asked(held, process)
                process.send_signal(number)
                await until(lambda: "finishing 1 batch; once more stops at once" in said(place), process)
                held.may.set()
                assert await ended(process) == code
            await proven(place, social, numbers[:1])
            assert await place.depth() == Depth(ready=2, taken=0, delayed=0, dead=0), "it is not delivered again"
            await drain(place)
            await proven(place, social, numbers)
            assert sum(held.asked[path] for path in held.bodies) == 3, "each was fetched once"

    run(main)


def test_the_second_signal_stops_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        async with held_back(tmp_path) as (place, held, social, numbers):
            async with consuming(place) as process:
                await asked(held, process)
                process.terminate()
                await until(lambda: "once more stops at once" in said(place), process)
                await asyncio.sleep(TOGETHER)  # sooner it would count as the same
                process.terminate()
                assert await ended(process) == 130
            held.may.set()
            assert "stopped at once; what was kept is safe. Go on with:" in said(place)
            assert "Traceback" not in said(place)
            assert await place.done() == 0
            await drain(place)
            await proven(place, social, numbers)

    run(main)
