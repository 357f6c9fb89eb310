"""What was stored is handed on, and a letter is done after that, and not before."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from letters import Bench
from looping import virtual
from raids import letter, usual

from sanderling.formats.instance import Message
from sanderling.sequence.store import DepthRules, StoreRules
from sanderling.stores.queue import Depth, Letter
from sanderling.testing.virtual import LoopClock

ONE = StoreRules(depth=DepthRules(start=1, most=1))


@dataclass(slots=True)
class Hands:
    """Somebody who takes what it is handed, as soon as that is possible."""

    free: asyncio.Event = field(default_factory=asyncio.Event)
    ending: bool = False
    stops: int = 0
    got: list[int] = field(default_factory=list)

    async def hand(self, messages: Sequence[Message]) -> bool:
        await self.free.wait()
        if not self.ending:
            self.got += [int(message.id) for message in messages]
        return not self.ending

    def stop(self) -> None:
        self.stops += 1


@virtual
async def test_what_was_stored_is_handed_on_once() -> None:
    hands = Hands()
    hands.free.set()
    bench = Bench(hand_over=hands)

    await bench.drain([letter(each) for each in usual(250)])

    assert sorted(hands.got) == sorted(bench.store.kept) == [*range(1, 251)]


@virtual
async def test_a_letter_is_done_after_it_was_handed_on() -> None:
    hands = Hands()
    bench = Bench(ONE, hand_over=hands)
    await bench.queue.publish([letter(each) for each in usual(3)])

    async with bench.running():
        await bench.until(lambda: len(bench.store.kept) == 3)
        await LoopClock().sleep(100)
        waiting = await bench.queue.depth()
        hands.free.set()
        await bench.until(lambda: not len(bench.queue))

    assert waiting == Depth(ready=0, taken=3, delayed=0, dead=0)
    assert hands.got == [1, 2, 3]


@virtual
async def test_what_is_not_taken_any_more_is_left_in_the_queue() -> None:
    hands = Hands(ending=True)
    bench = Bench(ONE, hand_over=hands)
    await bench.queue.publish([letter(each) for each in usual(3)])

    async with bench.running():
        await bench.until(lambda: len(bench.store.kept) == 3)
        bench.workers.stop()
        assert hands.stops == 1
        hands.free.set()
    await bench.queue.close()

    assert (hands.got, await bench.queue.depth()) == ([], Depth(ready=3, taken=0, delayed=0, dead=0))
    # The next one stores them again, which changes nothing, and hands them on.
    hands.ending = False
    again = Bench(ONE, hand_over=hands)
    again.store.kept = bench.store.kept
    await again.drain([letter(each) for each in usual(3)])
    assert (hands.got, again.tally.stored, again.tally.duplicates) == ([1, 2, 3], 0, 3)


@virtual
async def test_what_is_buried_is_not_handed_on() -> None:
    hands = Hands()
    hands.free.set()
    bench = Bench(ONE, hand_over=hands)
    bench.store.refused = {7}

    await bench.drain([*(letter(each) for each in usual(10)), Letter("bad", b"no message")])

    assert sorted(hands.got) == [1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert set(bench.queue.graves) == {"7", "bad"}


@virtual
async def test_who_cannot_take_it_for_good_ends_the_storing() -> None:
    class Broken:
        async def hand(self, messages: Sequence[Message]) -> bool:
            raise ValueError(f"cannot take {len(messages)}")

        def stop(self) -> None:
            pass

    bench = Bench(ONE, hand_over=Broken())
    await bench.queue.publish([letter(each) for each in usual(3)])

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="cannot take 3"), flatten_subgroups=True):
        await bench.workers.run()

    assert len(bench.queue) == 3
