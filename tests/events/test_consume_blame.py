"""Whose fault is it? One message at which a store always fails ends with its own reason and stalls nobody; a store that
is away is waited for, and no message is blamed for it."""

from dataclasses import replace

import pytest
from blamed_house import BlamedHouse, letter

from sanderling.events.rules import ConsumeRules
from sanderling.testing.virtual import run_virtual

GOOD = 300
RULES = ConsumeRules(most_tries=4)
POSTS = b'[{"meta": {"id": "7000000000000000001", "fetch_status": "success"}, "content": {"text": "ok"}}]'


def seconds_of(house: BlamedHouse) -> float:
    """How long the good ones took."""
    return max(at for event, at in house.store.kept.items() if event.startswith("good"))


async def consumed(rules: ConsumeRules, *, bad: bool) -> BlamedHouse:
    house = BlamedHouse(rules)
    letters = [house.put(f"good/{number}.json", POSTS) for number in range(GOOD)]
    if bad:
        garbage, never, always = (
            house.put("bad/garbage.json", b"\xff\xfe no JSON"),
            letter("bad/never.json"),
            house.put("bad/500.json", POSTS),
        )
        house.objects.bad.add("bad/500.json")
        rows = house.put("bad/rows.json", POSTS)
        house.store.bad.add("bad/rows.json")
        for place, each in enumerate((garbage, never, always, rows)):
            letters.insert(place * 60, each)
    await house.run(letters)
    return house


@pytest.mark.parametrize("batches", [1, 5])
def test_among_hundreds_of_good_messages_bad_ones_cost_little_and_end_with_their_own_reasons(batches: int) -> None:
    rules = replace(RULES, batches=batches)
    without = run_virtual(consumed(rules, bad=False))
    house = run_virtual(consumed(rules, bad=True))

    assert sum(event.startswith("good") for event in house.store.kept) == GOOD
    assert seconds_of(without) >= 0.9 * seconds_of(house), f"{seconds_of(without)} s, with them {seconds_of(house)} s"
    reasons = house.reasons()
    assert reasons.keys() == {"bad/garbage.json", "bad/never.json", "bad/500.json", "bad/rows.json"}
    assert "no JSON" in reasons["bad/garbage.json"]
    assert "is not there; after 4 tries" in reasons["bad/never.json"]
    assert reasons["bad/500.json"] == "bad/500.json: 500 Internal Server Error; after 4 tries"
    assert reasons["bad/rows.json"] == "bad/rows.json: internal error; after 4 tries"
    pauses = [seconds for key, seconds in house.queue.delays if key == "bad/500.json"]
    assert [round(each) for each in pauses] == [2, 10, 30]


@pytest.mark.parametrize(("begins", "batches"), [(0.0, 5), (0.5, 1)])
@pytest.mark.parametrize("how", ["down", "failed"])
@pytest.mark.parametrize("what", ["lookups", "objects", "rows"])
def test_an_outage_is_no_messages_fault_and_all_goes_on_within_seconds(
    begins: float, what: str, how: str, batches: int
) -> None:
    lasts, number = 300.0, 60

    async def main() -> tuple[BlamedHouse, dict[float, int]]:
        house = BlamedHouse(replace(RULES, batches=batches))
        begin = house.clock.now() + begins
        taken: dict[float, int] = {}

        def away(asked: str) -> str:
            return how if asked == what and begin <= house.clock.now() < begin + lasts else ""

        async def look() -> None:
            for second in (100.0, 299.0):
                await house.clock.sleep(begin + second - house.clock.now())
                taken[second] = house.system.measures.counted["received"]
                assert house.system.trouble

        house.objects.away = house.store.away = away
        await house.run([house.put(f"good/{each}.json", POSTS) for each in range(number)], look())
        return house, taken

    house, taken = run_virtual(main())
    assert len(house.store.kept) == number
    assert not house.queue.graves
    assert taken[100.0] == taken[299.0], "nothing more is taken meanwhile"
    last = max(house.store.kept.values())
    assert last < begins + lasts + 35, "within seconds, and what 60 batches take anyway"
    assert not house.system.trouble


def test_to_stop_while_a_store_fails_at_messages_leaves_them_in_the_queue() -> None:
    async def main() -> BlamedHouse:
        house = BlamedHouse(RULES)
        house.store.away = lambda what: "failed" if what == "rows" else ""

        async def stop() -> None:
            await house.clock.sleep(60.0)
            house.system.stop()

        await house.queue.publish([house.put(f"good/{each}.json", POSTS) for each in range(20)])
        await house.system.run(stop())
        return house

    house = run_virtual(main())
    counts = house.system.measures
    assert (len(house.queue), len(house.queue.graves), counts.active) == (20, 0, 0)
