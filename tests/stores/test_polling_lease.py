"""Who polls: one at a time, whatever stops it, and another one within two leases."""

import asyncio
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.stores.leases import LeasesAwayError, LeaseTable, MemoryLeases
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_lease import SECONDS, PolledElsewhereError, PollingLease
from sanderling.testing import LoopClock, run_virtual


class StalledClock(LoopClock):
    """A clock of a process that is stopped now and then: whatever it waits for comes later."""

    stopped_until = 0.0

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        while self.now() < self.stopped_until:
            await super().sleep(self.stopped_until - self.now())


class Player:
    """A process that polls when it may."""

    def __init__(self, table: LeaseTable, name: str) -> None:
        self.clock = StalledClock()
        self.name = name
        self.lease = PollingLease(MemoryLeases(table, name), "a place", self.clock, self.clock.now)

    def sends(self) -> bool:
        """Whether it would send now: one that is stopped does nothing at all."""
        return self.clock.now() >= self.clock.stopped_until and self.lease.may_send()

    async def play(self) -> None:
        """Poll, and wait; again and again."""
        while True:
            with suppress(PolledElsewhereError):
                await self.lease.acquire()
                await self.lease.hold(bool)


@given(seed=st.integers(0, 10**9), players=st.integers(1, 4))
def test_one_at_a_time_sends_and_none_for_two_leases_at_most(seed: int, players: int) -> None:
    async def main() -> None:
        rng, clock = Random(seed), LoopClock()
        table = LeaseTable(range(1), SECONDS, clock.now)
        everybody = [Player(table, f"{number}") for number in range(players)]
        silent = clock.now()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(player.play()) for player in everybody]
            for _ in range(400):
                await clock.sleep(0.1)
                sending = [player.name for player in everybody if player.sends()]
                assert len(sending) <= 1, sending
                going = any(clock.now() >= each.clock.stopped_until + 2 * SECONDS for each in everybody)
                silent = clock.now() if sending or not going else silent
                assert clock.now() - silent <= 2 * SECONDS
                if rng.random() < 0.05:
                    rng.choice(everybody).clock.stopped_until = clock.now() + rng.uniform(0, 4 * SECONDS)
            for task in tasks:
                task.cancel()

    run_virtual(main())


def test_who_gives_it_back_is_followed_within_a_beat() -> None:
    async def main() -> tuple[float, bool]:
        clock = LoopClock()
        table = LeaseTable(range(1), SECONDS, clock.now)
        first, second = Player(table, "first"), Player(table, "second")
        await first.lease.acquire()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(first.lease.hold(bool)), group.create_task(second.play())]
            await clock.sleep(60)
            assert not second.sends()
            tasks[0].cancel()
            await first.lease.release()
            began = clock.now()
            while not second.sends():
                await clock.sleep(0.01)
            tasks[1].cancel()
        return clock.now() - began, first.sends()

    seconds, still = run_virtual(main())
    assert seconds <= SECONDS / 3
    assert not still


class AwayLeases(MemoryLeases):
    """Those of a server that cannot be reached."""

    away = False

    async def renew(self, leases):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201 - as in the port
        if self.away:
            raise LeasesAwayError("no answer")
        return await super().renew(leases)

    async def acquire(self, most, preferred=()):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201 - the same
        if self.away:
            raise LeasesAwayError("no answer")
        return await super().acquire(most, preferred)


def test_while_the_server_is_away_nothing_is_sent_from_half_a_lease_on_and_then_it_goes_on() -> None:
    async def main() -> list[bool]:
        clock = LoopClock()
        leases = AwayLeases(LeaseTable(range(1), SECONDS, clock.now), "one")
        lease = PollingLease(leases, "a place", clock, clock.now)
        await lease.acquire()
        seen = []
        async with asyncio.TaskGroup() as group:
            holding = group.create_task(lease.hold(bool))
            await clock.sleep(1)
            leases.away = True
            for seconds in (0.1, SECONDS / 2, 600):
                await clock.sleep(seconds)
                seen.append(lease.may_send())
            with pytest.raises(PollingStoreError, match="no answer") as error:
                await PollingLease(leases, "a place", clock, clock.now).acquire()
            assert error.value.transient
            leases.away = False
            await clock.sleep(1)
            holding.cancel()
        return [*seen, lease.may_send()]

    assert run_virtual(main()) == [True, False, False, True]
