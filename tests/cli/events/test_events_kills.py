"""kill -9 of the consumer, again and again, at any moment: every item is in one row, once.

SANDERLING_SOAK=1 makes it long: a day of two thousand batches, and twenty kills.
"""

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from command_line import run
from events_commands import Place, begin, drain, own_place, proven, until_done
from services.s3 import S3

from sanderling.clock import SystemClock
from sanderling.stores.queue import open_queue
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import day


@dataclass(frozen=True, slots=True)
class Play:
    """How much there is to do, and how often it is killed meanwhile."""

    batches: int
    kills: int
    between: int  # batches from a start to its kill, at most
    seconds: float  # for all of it


SOAK = "SANDERLING_SOAK" in os.environ
LONG = Play(batches=2000, kills=20, between=80, seconds=1700)
EMBEDDED = LONG if SOAK else Play(batches=40, kills=3, between=7, seconds=250)
SERVERS = LONG if SOAK else Play(batches=40, kills=3, between=7, seconds=250)


async def killed(place: Place, rng: Random, more: int, seconds: float | None) -> int | None:
    """Start it, and kill it after so many more batches; or within so many seconds, wherever it is then."""
    process = await begin(place)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await until_done(place, await place.done() + more, process)
            await asyncio.sleep(rng.random() * 0.1)
    assert process.returncode is None, "it has ended by itself"
    process.kill()
    await process.communicate()
    return process.returncode


async def killed_again_and_again(place: Place, play: Play, seed: int) -> Social:
    """Consume a day under a hail of kills, and compare."""
    social, rng = Social(seed, day()), Random(seed)
    await place.put(social, range(play.batches))
    await place.publish([delivery.envelope for delivery in social.deliveries(play.batches)])
    async with asyncio.timeout(play.seconds):
        for number in range(play.kills):
            # Every third also in the middle of the tables being made, or of anything else before the first batch.
            seconds = None if number % 3 else rng.uniform(0.0, 0.5)
            assert await killed(place, rng, rng.randint(1, play.between), seconds) == -9
        assert 0 < await place.done() < play.batches, "all in the middle of it"
        await drain(place)
    await proven(place, social, range(play.batches))
    depth = await place.depth()
    assert (depth.ready, depth.taken, depth.delayed, depth.dead) == (0, 0, 0, 0)
    return social


async def told(place: Place) -> int:
    """The items of which somebody was told how they ended."""
    queue, items = open_queue(f"sqlite:{place.out}", "analyze.result", SystemClock()), 0
    try:
        while taken := await queue.take(500, 0.01):
            items += sum(json.loads(each.body)["batch_size"] for each in taken)
            await queue.done(taken)
    finally:
        await queue.close()
    return items


@pytest.mark.timeout(1900 if SOAK else 300)
def test_killed_again_and_again_every_item_is_in_one_row_once_and_told_of_once(tmp_path: Path) -> None:
    async def main() -> None:
        place = Place(tmp_path / "out")
        social = await killed_again_and_again(place, EMBEDDED, 5)
        truths = [social.truth(number) for number in range(EMBEDDED.batches)]
        assert await told(place) == sum(len(truth.items) for truth in truths if truth.project)

    run(main)


@pytest.mark.timeout(1900 if SOAK else 300)
def test_the_same_holds_between_a_broker_a_database_server_and_an_object_server(
    tmp_path: Path, postgres: str, rabbitmq: str, s3: S3
) -> None:
    async def main() -> None:
        async with own_place(tmp_path / "out", postgres, rabbitmq, s3) as place:
            await killed_again_and_again(place, SERVERS, 6)

    run(main)
