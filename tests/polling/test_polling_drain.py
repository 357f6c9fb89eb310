"""Polling that drains: what is due is asked for once more, all of it is stored, and it ends."""

import asyncio
from math import inf
from pathlib import Path
from typing import Any

import pytest
from race_polling import Polling, play, replayed, stored

from sanderling.stores.control_file import Control
from sanderling.stores.polling import PollingStoreError

DRAIN = Control(ending="drain")


async def drained(polling: Polling, after: float, rest: float) -> tuple[float, float, dict[str, int]]:
    """Poll for so long, rest, and drain: when that was and when it ended, and how often each path was asked then."""
    at = 0.0
    before: dict[str, int] = {}
    system = await polling.open()

    async def drain() -> None:
        nonlocal at
        await polling.clock.sleep(after)
        system.control(Control(paused=rest > 0))
        await polling.clock.sleep(rest)
        at = polling.clock.now()
        before.update({path: len(times) for path, times in polling.network.times.items()})
        system.control(DRAIN)
        await polling.clock.sleep(600.0)
        system.stop()

    async with asyncio.timeout(900):
        await system.run(drain())
    times = polling.network.times
    return at, polling.clock.now(), {path: len(times[path]) - before.get(path, 0) for path in times}


@pytest.mark.parametrize(("after", "rest"), [(12.0, 0.0), (31.3, 0.0), (12.0, 60.0)])
def test_what_is_due_is_asked_for_once_more_and_then_it_ends(tmp_path: Path, after: float, rest: float) -> None:
    async def script() -> None:
        polling = Polling(tmp_path)
        at, ended, asked = await drained(polling, after, rest)
        targets = len(polling.system.schedule.entries)

        assert ended - at < 5.0
        assert max(asked.values()) <= 1
        assert targets > 5
        assert sum(asked.values()) >= targets if rest else sum(asked.values()) < targets  # all are due after a rest
        await polling.store.close()

    play(script())


def test_documents_that_wait_for_the_database_are_written_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script() -> None:
        polling = Polling(tmp_path)
        system = await polling.open()
        keep, away, back = polling.store.keep, [False], [inf]

        async def refuses(*given: Any) -> Any:  # noqa: ANN401 - as the real one
            if away[0]:
                raise PollingStoreError("away", transient=True)
            return await keep(*given)

        monkeypatch.setattr(polling.store, "keep", refuses)

        async def drain() -> None:
            await polling.clock.sleep(12.0)
            away[0] = True
            while not system.writer.trouble:
                await polling.clock.sleep(0.1)
            system.control(DRAIN)
            await polling.clock.sleep(30.0)
            back[0] = polling.clock.now()
            away[0] = False
            await polling.clock.sleep(60.0)
            raise AssertionError("it did not end")

        async with asyncio.timeout(900):
            await system.run(drain())
        assert back[0] <= polling.clock.now() < back[0] + 5.0
        assert replayed(await everything_of(polling)) == await stored(polling)
        await polling.store.close()

    play(script())


async def everything_of(polling: Polling) -> list[Any]:
    """All changes there are."""
    return await polling.store.changes(0, 100_000)
