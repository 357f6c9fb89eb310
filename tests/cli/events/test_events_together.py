"""Several consumers in one folder, as the unit of systemd starts them: each works, and each has its status."""

import json
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from command_line import here, run
from events_commands import Place, consuming, ended, proven, until, until_done

from sanderling.clock import SystemClock
from sanderling.events.report import EventsFacts
from sanderling.observe.report import Report
from sanderling.stores.queue import open_queue
from sanderling.stores.status_file import is_running, read_statuses
from sanderling.web.house import HouseReader
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo

CONSUMERS, BATCHES = 3, 12


async def ready(place: Place, name: str) -> int:
    """How many messages there are in a queue that nobody reads."""
    queue = open_queue(f"sqlite:{place.out}", name, SystemClock())
    try:
        return (await queue.depth()).ready
    finally:
        await queue.close()


@pytest.mark.timeout(240)
def test_consumers_side_by_side_share_the_work_and_each_has_its_status(tmp_path: Path) -> None:
    place, social = Place(tmp_path / "out"), Social(1, demo())

    def reports() -> list[Report[EventsFacts]]:
        return read_statuses(place.out, Report[EventsFacts])

    def running() -> int:
        return sum(is_running(each.process, SystemClock().wall()) for each in reports())

    def written_since(wall: float) -> bool:
        return all(each.process.wall > wall for each in reports())

    async def main() -> None:
        await place.put(social, range(BATCHES))
        async with AsyncExitStack() as stack:
            some = [await stack.enter_async_context(consuming(place)) for _ in range(CONSUMERS)]
            await until(lambda: running() == CONSUMERS, some[0])
            await place.publish([social.envelope(number) for number in range(BATCHES)])
            await until_done(place, BATCHES, some[0])
            since = SystemClock().wall()
            await until(lambda: written_since(since + 3), some[0])  # three times over the same folder
            assert [each.returncode for each in some] == [None] * CONSUMERS
            found = reports()
            assert {each.process.pid for each in found} == {each.pid for each in some}
            assert sum(each.facts.batches for each in found) == BATCHES
            sent: Counter[str] = sum((Counter(each.facts.sent) for each in found), Counter())
            assert sent == {key: await ready(place, key) for key in sent}, "each message by one of them"
            assert sent["analyze.result"] > BATCHES / 2
            seen = HouseReader(tmp_path).read()
            assert [each.name for each in seen] == ["out", *(f"out:{number}" for number in range(2, CONSUMERS + 1))]
            assert not any(each.trouble for each in seen)
            shown, home = await here("status", str(place.out)), await here("status", "--home", str(tmp_path))
            assert all(f"process  {each.pid}, running for" in shown.out for each in some)
            assert all(f"process {each.pid}" in home.out for each in some)
            # One is killed, one ends: the third is alone, and the next start removes what they left.
            some[1].kill()
            some[0].terminate()
            assert await ended(some[0]) == 0
            await until(lambda: running() == 1, some[2])
            told = json.loads((await here("status", str(place.out), "--json")).out)
            assert told["running"]
            assert [each["running"] for each in told["processes"]].count(True) == 1
        await proven(place, social, range(BATCHES))
        async with consuming(place) as alone:
            await until(lambda: [each.process.pid for each in reports()] == [alone.pid], alone)

    run(main)
