import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import Bench
from looping import virtual
from raids import letter, raid, usual

from sanderling.sequence.store import DepthRules, StoreRules
from sanderling.stores.instances import InstancesFault
from sanderling.stores.queue import Depth, Letter
from sanderling.testing.virtual import run_virtual

ONE = DepthRules(start=1, most=1)


@virtual
async def test_letters_become_rows_and_are_done() -> None:
    bench = Bench()

    await bench.drain([letter(each) for each in usual(250)])

    assert sorted(bench.store.kept) == [*range(1, 251)]
    assert (bench.tally.stored, bench.tally.duplicates, bench.tally.buried, bench.tally.retried) == (250, 0, 0, 0)
    assert max(size for _, size in bench.store.calls) == 100
    assert bench.store.kept[7].raw is not None


@virtual
async def test_copies_are_counted_and_done() -> None:
    bench = Bench(StoreRules(depth=ONE))

    await bench.drain([letter(each) for each in usual(5) * 3])

    assert (bench.tally.stored, bench.tally.duplicates) == (5, 10)


@virtual
async def test_a_few_letters_are_gathered_into_one_batch() -> None:
    bench = Bench(StoreRules(depth=ONE))
    async with bench.running():
        for each in usual(10):
            await bench.queue.publish([letter(each)])
            await bench.clock.sleep(0.02)
        await bench.until(lambda: not len(bench.queue))

    assert [size for _, size in bench.store.calls] == [10]


# --- what is wrong with a letter ---


@virtual
async def test_a_letter_that_is_none_of_ours_is_buried_at_once_and_holds_nobody_up() -> None:
    bench = Bench(StoreRules(depth=ONE))
    good = [letter(each) for each in usual(4)]
    bad = [Letter("77", b"{}"), Letter("78", good[0].body), Letter("x", b""), letter(raid(2**63))]

    await bench.drain([good[0], bad[0], bad[1], good[1], bad[2], good[2], bad[3], good[3]])

    assert sorted(bench.store.kept) == [1, 2, 3, 4]
    assert {key: grave.tries for key, grave in bench.queue.graves.items()} == {each.key: 0 for each in bad}
    assert "is not what this version writes" in bench.queue.graves["77"].why
    assert "expected the same three times" in bench.queue.graves["78"].why
    assert "expected a number from 0 to 9223372036854775807" in bench.queue.graves[str(2**63)].why
    assert (bench.tally.stored, bench.tally.buried) == (4, 4)
    assert bench.tally.last_error.startswith(f"letter {2**63}: the id of a instance")


@pytest.mark.parametrize("refused", [{1}, {100}, {37}, {1, 2}, {10, 60}, {*range(40, 50)}, {*range(1, 101)}])
@virtual
async def test_of_a_batch_that_is_refused_only_those_are_buried_that_are_to_blame(refused: set[int]) -> None:
    bench = Bench(StoreRules(depth=ONE))
    bench.store.refused = refused

    await bench.drain([letter(each) for each in usual(100)])

    assert {int(key) for key in bench.queue.graves} == refused
    assert set(bench.store.kept) == {*range(1, 101)} - refused
    assert {grave.why for grave in bench.queue.graves.values()} == {"refuses one of 1"}
    assert len(bench.store.calls) <= 1 + 2 * 7 * len(refused), "it halves"
    assert bench.tally.outages == 0


# --- what is nobody's fault ---


@virtual
async def test_a_batch_that_crossed_another_comes_back_later() -> None:
    bench = Bench(StoreRules(depth=ONE))
    bench.store.faults = [InstancesFault.BUSY]

    await bench.drain([letter(each) for each in usual(3)])

    assert bench.queue.delays == [("1", 1.0), ("2", 1.0), ("3", 1.0)]
    assert (bench.tally.stored, bench.tally.retried, bench.tally.outages) == (3, 3, 0)
    assert bench.tally.last_error == "for once it is busy"


@virtual
async def test_it_comes_back_ever_later_and_is_buried_after_many_tries() -> None:
    bench = Bench(StoreRules(depth=ONE, most_tries=14))
    bench.store.faults = [InstancesFault.BUSY] * 15

    await bench.drain([letter(raid(1))])

    assert [seconds for _, seconds in bench.queue.delays] == [2.0**n for n in range(11)] + [1800.0] * 3
    assert bench.queue.graves["1"].why == "not stored in 15 tries: for once it is busy"
    assert (bench.tally.retried, bench.tally.buried, bench.tally.stored) == (14, 1, 0)


# --- stopping ---


@virtual
async def test_who_is_told_to_stop_finishes_what_is_in_hand() -> None:
    bench = Bench(StoreRules(batch=10, depth=ONE))
    bench.store.seconds = 30.0
    await bench.queue.publish([letter(each) for each in usual(50)])

    async with bench.running():
        await bench.clock.sleep(40)

    assert bench.tally.stored == len(bench.store.kept) == 20
    assert await bench.queue.depth() == Depth(30, 0, 0, 0)


@virtual
async def test_who_is_told_to_stop_does_not_wait_for_a_store_that_is_away() -> None:
    bench = Bench()
    bench.store.down_until = float("inf")
    await bench.queue.publish([letter(each) for each in usual(50)])

    async with bench.running():
        await bench.clock.sleep(500)
    stopped = bench.clock.now()
    await bench.queue.close()

    assert stopped < 502
    assert await bench.queue.depth() == Depth(50, 0, 0, 0)
    assert not bench.queue.graves


@virtual
async def test_who_is_told_to_stop_does_not_wait_for_a_queue_that_is_away() -> None:
    bench = Bench()
    await bench.queue.publish([letter(each) for each in usual(5)])
    bench.store.seconds = 10.0

    async with bench.running():
        await bench.clock.sleep(5)
        bench.queue.failures = 10**9
        await bench.clock.sleep(300)

    assert bench.clock.now() < 310
    assert bench.tally.stored == 5


@virtual
async def test_who_is_stopped_before_it_began_takes_nothing() -> None:
    bench = Bench()
    await bench.queue.publish([letter(each) for each in usual(5)])
    bench.workers.stop()

    await bench.workers.run()

    assert bench.queue.deliveries == 0


# --- how many ---


@virtual
async def test_a_deep_queue_gets_more_workers_and_a_shallow_one_fewer() -> None:
    bench = Bench(StoreRules(batch=1, depth=DepthRules(every=10.0, cooldown=10.0)))
    bench.store.seconds = 1.0
    await bench.queue.publish([letter(raid(number)) for number in range(1, 6001)])
    most = 0

    async with bench.running():
        assert bench.tally.workers == 0
        while len(bench.queue):
            await bench.clock.sleep(10)
            most = max(most, bench.tally.workers)
        await bench.clock.sleep(1000)
        assert bench.tally.workers == 1
        await bench.queue.publish([letter(raid(9_999))])
        await bench.until(lambda: not len(bench.queue))

    assert most == 16
    assert bench.tally.stored == 6001


@virtual
async def test_an_outage_gets_no_more_workers() -> None:
    bench = Bench(StoreRules(depth=DepthRules(every=10.0, cooldown=10.0)))
    bench.store.down_until = 900.0
    await bench.queue.publish([letter(each) for each in usual(3000)])

    async with bench.running():
        await bench.clock.sleep(890)
        assert bench.tally.workers == 4


@virtual
async def test_a_depth_that_cannot_be_read_stops_nobody() -> None:
    bench = Bench(StoreRules(depth=DepthRules(every=10.0)))
    async with bench.running():
        await bench.clock.sleep(9.9)
        bench.queue.failures = 1
        await bench.clock.sleep(1)
        await bench.queue.publish([letter(raid(1))])
        await bench.until(lambda: not len(bench.queue))

    assert bench.tally.stored == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0}, {"most_tries": 0}, {"wait": 0}, {"gather": -1}, {"first_delay": 0}, {"first_delay": 2000},
        {"first_pause": 0}, {"longest_pause": 0.5},
    ],
)  # fmt: skip
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        StoreRules(**wrong)  # type: ignore[arg-type]  # on purpose


# --- whatever happens ---


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 40), max_size=40),
    st.sets(st.integers(1, 40), max_size=5),
    st.lists(st.sampled_from([None, None, *InstancesFault]), max_size=12),
    st.integers(0, 4),
)
def test_every_letter_ends_among_the_rows_or_among_the_dead(
    numbers: list[int], refused: set[int], faults: list[InstancesFault | None], failures: int
) -> None:
    async def play() -> None:
        bench = Bench(StoreRules(batch=8, depth=DepthRules(start=3)))
        bench.store.refused, bench.store.faults = refused, faults
        await bench.queue.publish([letter(raid(number)) for number in numbers])
        bench.queue.failures = failures
        async with bench.running():
            await bench.until(lambda: not len(bench.queue))

        dead = {int(key) for key in bench.queue.graves}
        assert set(bench.store.kept) | dead == set(numbers)
        assert refused & set(numbers) <= dead
        assert bench.tally.stored == len(bench.store.kept)

    run_virtual(play())
