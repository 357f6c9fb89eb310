"""The whole of `events` as it runs: what it asks of the process around it, and gives back."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from event_house import awaited, house

from sanderling.events.system import LOOK, YOUNG
from sanderling.stores.control_file import Control
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo


@pytest.fixture
def nothing_put_aside() -> Iterator[None]:
    """The tests themselves have put aside what they are."""
    gc.unfreeze()
    yield
    gc.freeze()


async def seen_while_it_runs(folder: Path) -> tuple[int, int]:
    """How many objects the collector lets pass before it looks, and how many it does not look at at all."""
    seen: list[tuple[int, int]] = []
    async with house(folder, Social(1, demo())) as here:

        async def look() -> None:
            seen.append((gc.get_threshold()[0], gc.get_freeze_count()))
            here.system.stop()

        await here.system.run(look())
    return seen[0]


@pytest.mark.usefixtures("nothing_put_aside")
@awaited
async def test_the_collector_is_spared_meanwhile_and_is_afterwards_as_it_was(tmp_path: Path) -> None:
    before = gc.get_threshold()

    threshold, aside = await seen_while_it_runs(tmp_path)

    assert threshold == YOUNG
    assert aside > 10_000
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


@awaited
async def test_what_others_have_put_aside_stays_there(tmp_path: Path) -> None:
    gc.freeze()

    await seen_while_it_runs(tmp_path)

    assert gc.get_freeze_count() > 10_000


@awaited
async def test_a_drain_waits_while_it_is_paused(tmp_path: Path) -> None:
    waited = list[bool]()
    async with house(tmp_path, Social(1, demo())) as here:

        async def resume() -> None:
            await asyncio.sleep(5 * LOOK)
            waited.append(True)
            here.system.control(Control(ending="drain"))
            await asyncio.sleep(3600)

        here.system.control(Control(paused=True, ending="drain"))
        async with asyncio.timeout(60):
            await here.system.run(resume())

    assert waited
