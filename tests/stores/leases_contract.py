"""What leases promise, wherever they are kept. A subclass says only where: see `LeasePlace`."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import pytest

from sanderling.stores.leases import GONE, Lease, Leases, LeasesAwayError, PartHolder

PARTS, SECONDS = 8, 60.0


class LeasePlace(Protocol):
    """Where leases are kept, and a hand on its clock."""

    async def holder(self, name: str) -> Leases:
        """The leases as one of this name sees them."""

    async def pass_time(self, seconds: float) -> None:
        """For the server, so much time has passed."""

    async def end_connection(self, name: str) -> None:
        """A holder is gone without a word."""

    async def accept_write(self, name: str, lease: Lease) -> None:
        """A write of a part is accepted."""

    async def close(self) -> None:
        """Let go of it."""


def placed(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, on a loop of its own, at whose end the place is closed."""

    @functools.wraps(test)
    def run(self: Any, place: LeasePlace, *args: Any, **more: Any) -> None:  # noqa: ANN401 - as the test
        async def main() -> None:
            try:
                await test(self, place, *args, **more)
            finally:
                await place.close()

        asyncio.run(main())

    return run


async def owners(leases: Leases) -> dict[int, str]:
    return {each.part: each.holder for each in await leases.holders()}


class LeasesContract:
    @placed
    async def test_nobody_has_a_part_at_first(self, place: LeasePlace) -> None:
        one = await place.holder("one")

        assert await one.holders() == [PartHolder(part, "", 0, 0.0) for part in range(PARTS)]

    @placed
    async def test_who_acquires_a_part_has_it_for_a_whole_lease(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        (lease,) = await one.acquire(1, [3])

        assert lease == Lease(3, 1, 0)
        (held,) = [each for each in await two.holders() if each.holder]
        assert held[:3] == (3, "one", 1)
        assert SECONDS - 20 < held.seconds <= SECONDS

    @placed
    async def test_no_more_is_taken_than_was_asked_for(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")

        assert await one.acquire(0) == await one.acquire(-1) == []
        assert len(await one.acquire(3)) == 3
        assert len(await two.acquire(99)) == PARTS - 3
        assert await one.acquire(1) == []

    @placed
    async def test_preferred_parts_come_first_where_they_are_free(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        await one.acquire(1, [5])

        assert {each.part for each in await two.acquire(3, [6, 5, 6, 2, 1])} == {6, 2, 1}
        assert len(await two.acquire(99, [5])) == PARTS - 4

    @pytest.mark.parametrize("passed", [0.0, 0.5, GONE + 0.05, 0.9])
    @placed
    async def test_a_lease_that_has_not_expired_is_nobody_elses(self, place: LeasePlace, passed: float) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        await one.acquire(PARTS)
        await place.pass_time(SECONDS * passed)

        assert await two.acquire(PARTS) == await one.acquire(PARTS) == []

    @placed
    async def test_an_expired_lease_is_free_and_the_epoch_grows(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        before = sorted(await one.acquire(PARTS))
        await place.pass_time(SECONDS + 1)
        after = sorted(await two.acquire(PARTS))

        assert after == [each._replace(epoch=2) for each in before]
        assert set((await owners(one)).values()) == {"two"}
        await place.pass_time(SECONDS + 1)
        (again,) = await two.acquire(1, [0])
        assert again.epoch == 3  # from its own hands too

    @placed
    async def test_a_renewed_lease_begins_anew(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        kept, other = sorted(await one.acquire(2, [0, 1]))
        await place.pass_time(SECONDS * 0.9)

        assert list(await one.renew([kept])) == [0]
        await place.pass_time(SECONDS * 0.9)
        assert 0 not in {each.part for each in await two.acquire(99)}
        assert (await owners(one))[other.part] == "two"

    @placed
    async def test_an_expired_lease_that_nobody_took_is_renewed(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        leases = await one.acquire(2)
        await place.pass_time(SECONDS * 5)
        (taken,) = await two.acquire(1, [leases[0].part])

        assert list(await one.renew(leases)) == [leases[1].part]
        assert list(await two.renew([taken])) == [taken.part]

    @placed
    async def test_only_the_owner_renews_and_releases(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        (lease,) = await one.acquire(1, [4])
        for each in (lease, lease._replace(epoch=2), lease._replace(epoch=0)):
            assert list(await two.renew([each])) == []
            await two.release([each])
        for each in (lease._replace(epoch=2), lease._replace(epoch=0), Lease(5, 1, 0)):
            assert list(await one.renew([each])) == []
            await one.release([each])

        assert (await owners(two))[4] == "one"
        assert list(await one.renew([lease])) == [4]

    @placed
    async def test_a_server_that_has_forgotten_writes_is_found_out(self, place: LeasePlace) -> None:
        one = await place.holder("one")
        (lease,) = await one.acquire(1, [4])
        await place.accept_write("one", lease)

        assert list(await one.renew([lease])) == list(await one.renew([lease._replace(head=1)])) == [4]
        assert list(await one.renew([lease._replace(head=2)])) == []

    @placed
    async def test_a_released_part_is_free_at_once(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        leases = await one.acquire(PARTS)
        await one.release(leases[:2])

        assert sorted(each.part for each in await two.acquire(99)) == sorted(each.part for each in leases[:2])
        assert sorted(await one.renew(leases)) == sorted(each.part for each in leases[2:])

    @placed
    async def test_who_is_gone_is_waited_for_less(self, place: LeasePlace) -> None:
        one, two, three = [await place.holder(name) for name in ("one", "two", "three")]
        mine, others = await one.acquire(3), await two.acquire(3)
        await place.pass_time(SECONDS * (GONE - 0.1))
        await place.end_connection("one")

        assert len(await three.acquire(99)) == PARTS - 6
        await place.pass_time(SECONDS * 0.11)
        assert {each.part for each in await three.acquire(99)} == {each.part for each in mine}
        assert sorted(await two.renew(others)) == sorted(each.part for each in others)

    @placed
    async def test_who_comes_back_is_waited_for_again(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        leases = await one.acquire(PARTS)
        await place.end_connection("one")
        await _until_back(one, leases)
        await place.pass_time(SECONDS * 0.9)

        assert await two.acquire(99) == []

    @placed
    async def test_accepted_writes_are_counted_across_hands(self, place: LeasePlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        (lease,) = await one.acquire(1, [7])
        await place.accept_write("one", lease)
        await place.accept_write("one", lease._replace(head=1))
        await one.release([lease])

        assert await two.acquire(1, [7]) == [Lease(7, 2, 2)]

    @placed
    async def test_those_who_acquire_at_once_never_share_a_part(self, place: LeasePlace) -> None:
        holders = [await place.holder(str(number)) for number in range(8)]
        epochs = dict.fromkeys(range(PARTS), 0)
        for rounds in range(12):
            asked = [each.acquire(1 + (number + rounds) % 3) for number, each in enumerate(holders)]
            found = await asyncio.gather(*asked)
            taken = [each for some in found for each in some]

            assert len({each.part for each in taken}) == len(taken) <= PARTS
            assert all(len(some) <= 1 + (number + rounds) % 3 for number, some in enumerate(found))
            assert all(each.epoch == epochs[each.part] + 1 for each in taken)
            epochs |= {each.part: each.epoch for each in taken}
            await asyncio.gather(*(each.release(some) for each, some in zip(holders, found, strict=True)))


async def _until_back(leases: Leases, held: list[Lease]) -> None:
    """It notices only when it asks that its connection is gone, and then makes another."""
    for _ in range(3):
        try:
            assert len(await leases.renew(held)) == len(held)
        except LeasesAwayError:
            continue
        return
    raise AssertionError("it does not come back")
