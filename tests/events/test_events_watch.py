"""How a running system stands, whoever asks, and also while something it needs is away."""

import asyncio
from dataclasses import replace
from pathlib import Path

from event_house import awaited, house

from sanderling.clock import SystemClock
from sanderling.events.modes import Modes, read_modes
from sanderling.events.report import EventsFacts
from sanderling.events.watch import OK, EventsControl, EventsWatch
from sanderling.observe.report import Report
from sanderling.stores.control_file import NOTHING, Control
from sanderling.stores.queue import Depth, QueueError
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo

BATCHES = 6


class Away:
    """A queue that does not answer."""

    async def depth(self) -> Depth:
        raise QueueError("localhost:5672: connection refused")


@awaited
async def test_the_status_counts_what_is_in_the_rows(tmp_path: Path) -> None:
    social = Social(1, demo())
    async with house(tmp_path, social) as at:
        await at.publish(0, BATCHES)
        watch = EventsWatch(at.system, SystemClock())
        await watch.look()
        before = watch.report()
        await at.consume()
        await watch.look()
        after = watch.report(running=False)
        ((posts,),) = at.rows("SELECT sum(posts) FROM processed_events")
        ((errors,),) = at.rows("SELECT count(*) FROM crawl_errors")

    assert before.facts.queue is not None
    assert (before.facts.queue["ready"], before.facts.batches, before.process.running) == (BATCHES, 0, True)
    done = after.facts
    assert (done.batches, done.posts, done.errors, after.process.running) == (BATCHES, posts, errors, False)
    assert done.queue is not None
    assert (done.queue["ready"], done.outbox, after.work.asked) == (0, 0, BATCHES)
    assert {each.name: each for each in after.metrics}["events_received"].samples[0].value == BATCHES


@awaited
async def test_what_does_not_answer_is_not_known_and_nothing_breaks(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as at:
        at.system.stations = replace(at.system.stations, queue=Away())  # type: ignore[arg-type] # nothing else is asked
        watch = EventsWatch(at.system, SystemClock())
        await watch.look()
        found = watch.report()
        health = await EventsControl(watch).health()

    assert (found.facts.queue, found.facts.outbox) == (None, 0)
    assert found.doing == "waiting for the queue"
    assert health == {"database": OK, "objects": OK, "queue": "localhost:5672: connection refused"}


@awaited
async def test_modes_that_are_set_are_in_force_at_once_and_on_disk(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as at:
        control = EventsControl(EventsWatch(at.system, SystemClock()))
        await control.set_modes(Modes(new=False, canary=0.5))
        found = await control.modes()

    assert found == read_modes(tmp_path) == Modes(new=False, canary=0.5)


@awaited
async def test_while_it_is_paused_nothing_is_taken_and_afterwards_everything(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as at:
        watch = EventsWatch(at.system, SystemClock())
        at.system.control(Control(paused=True))
        await at.publish(0, BATCHES)
        resting: list[Report[EventsFacts]] = []

        async def rest() -> None:
            await asyncio.sleep(0.3)  # six times as long as a worker waits for a message
            await watch.look()
            resting.append(watch.report())
            at.system.control(NOTHING)
            while at.system.measures.counted["received"] < BATCHES or at.system.measures.active:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            at.system.stop()

        async with asyncio.timeout(300):
            await at.system.run(rest())
        after = watch.report()

    (found,) = resting
    assert found.facts.queue is not None
    assert (found.process.paused, found.facts.batches, found.facts.queue["ready"]) == (True, 0, BATCHES)
    assert "paused" in found.doing
    assert (after.process.paused, after.facts.batches) == (False, BATCHES)


@awaited
async def test_one_that_is_paused_ends_when_it_is_stopped(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as at:
        at.system.control(Control(paused=True))

        async def stop() -> None:
            at.system.stop()

        async with asyncio.timeout(300):
            await at.system.run(stop())
