"""Several consumers in one folder, as the unit of systemd starts them: each works, and each has its status."""

import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from command_line import here, run
from events_commands import Place, consuming, ended, proven, until, until_done
from sanderling.events.status import EventsStatus, published

from sanderling.clock import SystemClock
from sanderling.stores.queue import open_queue
from sanderling.stores.status_file import read_statuses
from sanderling.web.house import Reader
from sanderling.worlds.social import Social
from sanderling.worlds.social_presets import demo

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

    def running() -> int:
        found = published(place.out)
        return 0 if found is None else sum(each.running for each in found.consumers)

    def written_since(wall: float) -> bool:
        return all(each.wall > wall for each in read_statuses(place.out, EventsStatus))

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
            found = published(place.out)
            assert found is not None
            assert {each.pid for each in found.consumers} == {each.pid for each in some}
            assert found.batches == sum(each.batches for each in found.consumers) == BATCHES
            assert found.sent == {key: await ready(place, key) for key in found.sent}, "each message by one of them"
            assert found.sent["analyze.result"] > BATCHES / 2
            (seen,) = Reader(tmp_path).read()
            assert isinstance(seen.status, EventsStatus)
            assert (seen.trouble, seen.status.batches, len(seen.status.consumers)) == ("", BATCHES, CONSUMERS)
            shown = await here("status", str(place.out))
            assert all(f"process {each.pid}, waiting for messages" in shown.out for each in some)
            # One is killed, one ends: the third is alone, and the next start removes what they left.
            some[1].kill()
            some[0].terminate()
            assert await ended(some[0]) == 0
            await until(lambda: running() == 1, some[2])
            told = json.loads((await here("status", str(place.out), "--json")).out)
            assert told["running"]
            assert [each["running"] for each in told["status"]["consumers"]].count(True) == 1
        await proven(place, social, range(BATCHES))
        async with consuming(place) as alone:
            await until(lambda: (now := published(place.out)) and now.pid == alone.pid and not now.consumers, alone)
        assert len(read_statuses(place.out, EventsStatus)) == 1

    run(main)
