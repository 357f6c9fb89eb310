from itertools import pairwise

from letters import Bench
from looping import virtual
from raids import letter, raid, usual

from sanderling.sequence.store import DepthRules, StoreRules
from sanderling.stores.instances import InstancesFault
from sanderling.stores.queue import Letter

ONE = DepthRules(start=1, most=1)

# --- what is the store's fault ---


@virtual
async def test_an_outage_is_waited_for_and_costs_no_letter_a_try() -> None:
    bench = Bench()
    bench.store.down_until = 3600.0
    await bench.queue.publish([letter(each) for each in usual(2000)])

    async with bench.running():
        await bench.until(lambda: bench.clock.now() > 3000)
        assert bench.tally.trouble == "nobody answers"
        assert bench.tally.outages == 1
        await bench.until(lambda: not len(bench.queue))

    assert len(bench.store.kept) == 2000
    assert not bench.queue.graves
    assert bench.queue.delays == []
    assert (bench.tally.stored, bench.tally.retried, bench.tally.trouble) == (2000, 0, "")


@virtual
async def test_during_an_outage_nothing_more_is_taken_and_the_pauses_grow() -> None:
    bench = Bench(StoreRules(depth=ONE))
    bench.store.down_until = 400.0
    await bench.queue.publish([letter(each) for each in usual(500)])

    async with bench.running():
        await bench.until(lambda: bench.clock.now() > 399)
        assert bench.queue.deliveries == 100, "one batch, which is in hand"
        await bench.until(lambda: not len(bench.queue))

    pauses = [round(second - first) for (first, _), (second, _) in pairwise(bench.store.calls)]
    assert pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]


@virtual
async def test_while_one_has_trouble_the_others_wait() -> None:
    bench = Bench(StoreRules(depth=DepthRules(start=8)))
    bench.store.down_until = 200.0
    await bench.queue.publish([letter(each) for each in usual(5)])

    async with bench.running():
        await bench.clock.sleep(5)
        await bench.queue.publish([letter(each) for each in usual(500, 6)])
        await bench.until(lambda: bench.clock.now() > 199)
        assert bench.queue.deliveries == 5
        await bench.until(lambda: not len(bench.queue))

    assert bench.tally.stored == 505


@virtual
async def test_a_lease_that_ends_during_an_outage_makes_a_copy_and_no_harm() -> None:
    bench = Bench(StoreRules(depth=ONE))
    bench.queue.lease_seconds = 60.0
    bench.store.down_until = 100.0
    await bench.queue.publish([letter(each) for each in usual(20)])

    async with bench.running():
        await bench.clock.sleep(90)
        assert len(await bench.queue.take(5, 1)) == 5, "by another process, which then dies"
        await bench.until(lambda: not len(bench.queue))

    assert (bench.tally.stored, bench.tally.duplicates) == (20, 5)


@virtual
async def test_what_the_api_said_is_stored_first() -> None:
    bench = Bench(StoreRules(depth=ONE), raw=True)
    assert bench.raw is not None
    bench.store.down_until = 50.0
    await bench.queue.publish([letter(each) for each in usual(10)])

    async with bench.running():
        await bench.until(lambda: bench.clock.now() > 40)
        assert len(bench.raw.kept) == 10
        assert not bench.store.kept
        await bench.until(lambda: not len(bench.queue))

    assert bench.raw.kept[3] == bytes(raid(3).raw)
    assert {rows.raw for rows in bench.store.kept.values()} == {None}


@virtual
async def test_while_its_store_is_not_to_be_had_there_are_no_rows_either() -> None:
    bench = Bench(raw=True)
    assert bench.raw is not None
    bench.raw.down_until = 100.0
    await bench.queue.publish([letter(each) for each in usual(10)])

    async with bench.running():
        await bench.until(lambda: bench.clock.now() > 90)
        assert not bench.store.calls
        assert bench.tally.trouble == "nobody answers here either"
        await bench.until(lambda: not len(bench.queue))

    assert bench.tally.stored == 10


# --- what is the queue's fault ---


@virtual
async def test_what_the_queue_did_not_hear_is_said_again() -> None:
    bench = Bench(StoreRules(depth=ONE))
    bench.store.faults = [InstancesFault.REFUSED, None, InstancesFault.BUSY]
    bench.store.seconds = 5.0
    await bench.queue.publish([letter(each) for each in usual(1)] + [Letter("9", b"")])

    async with bench.running():
        await bench.clock.sleep(2)
        bench.queue.failures = 4
        await bench.until(lambda: not len(bench.queue))

    assert set(bench.queue.graves) == {"1", "9"}
    assert bench.tally.last_error == "the queue is away"
    assert bench.tally.buried == 2


@virtual
async def test_a_queue_that_is_away_is_asked_again() -> None:
    bench = Bench(StoreRules(depth=ONE))
    await bench.queue.publish([letter(each) for each in usual(3)])
    bench.queue.failures = 10

    async with bench.running():
        await bench.until(lambda: not len(bench.queue))

    assert bench.tally.stored == 3
