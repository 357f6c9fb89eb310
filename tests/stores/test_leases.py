"""Leases in memory, and what a holder makes of one: never two that send, whatever the clocks and the network do."""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from leases_contract import PARTS, SECONDS, LeasesContract

from sanderling.stores.leases import GONE, HeldLease, Lease, LeaseTable, MemoryLeases, SteadyClock, fair_share
from sanderling.testing import FakeClock

STEPS = (0.05, 0.2, 0.5, 0.68, 0.76, 1.01)  # of a lease: either side of what counts
DRIFT = 1.4  # times as fast, or as slow, as the server's clock


class MemoryPlace:
    """A table in this process."""

    def __init__(self) -> None:
        self._clock = FakeClock()
        self._table = LeaseTable(range(PARTS), SECONDS, self._clock.now)

    async def holder(self, name: str) -> MemoryLeases:
        return MemoryLeases(self._table, name)

    async def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    async def end_connection(self, name: str) -> None:
        self._table.gone.add(name)

    async def accept_write(self, name: str, lease: Lease) -> None:
        assert self._table.advance(name, lease)

    async def close(self) -> None:
        pass


class TestMemoryLeases(LeasesContract):
    @pytest.fixture
    def place(self) -> MemoryPlace:
        return MemoryPlace()


@dataclass
class Holder:
    """Has a clock that runs at a speed of its own, from any time on."""

    name: str
    speed: float
    began: float
    server: FakeClock
    held: dict[int, HeldLease] = field(default_factory=dict)

    def boot(self) -> float:
        return self.began + self.speed * self.server.now()


@dataclass
class Request:
    """Something that was asked, and is on its way; then with an answer that is on its way back."""

    holder: Holder
    asked: float
    renewed: list[Lease] | None  # None if new parts are asked for
    found: list[Lease] | None = None
    kept: list[int] | None = None

    @property
    def is_served(self) -> bool:
        return self.found is not None or self.kept is not None


@dataclass
class SlowRow:
    """A part as a child would keep it: who has it, since when, and how often it was given away."""

    holder: str = ""
    since: float = 0.0
    epoch: int = 0

    def is_free(self, now: float, gone: set[str]) -> bool:
        return not self.holder or now - self.since > SECONDS * (GONE if self.holder in gone else 1)

    def is_of(self, holder: str, epoch: int) -> bool:
        return (self.holder, self.epoch) == (holder, epoch)


class LeasePlay:
    """Holders ask, the server answers, each some time later, and connections break; all of it by chance."""

    def __init__(self, chance: Random) -> None:
        self.chance, self.clock = chance, FakeClock()
        self.parts = chance.randint(1, 2)
        self.table = LeaseTable(range(self.parts), SECONDS, self.clock.now)
        self.holders = [
            Holder(f"h{number}", DRIFT ** chance.uniform(-1, 1), chance.uniform(-1e6, 1e6), self.clock)
            for number in range(chance.randint(2, 3))
        ]
        self.holders[0].speed = 1 / DRIFT
        self.requests: list[Request] = []
        self.rows = [SlowRow() for _ in range(self.parts)]

    def step(self) -> None:
        act = self.chance.choice((self.pass_time, self.ask, self.ask, self.ask_at_once, self.serve, self.answer))
        if self.chance.random() < 0.1:
            act = self.chance.choice((self.give_back, self.break_off))
        act(self.chance.choice(self.holders))
        self.check()

    def pass_time(self, _: Holder) -> None:
        self.clock.advance(SECONDS * self.chance.choice(STEPS) * self.chance.uniform(0.9, 1))

    def ask(self, holder: Holder) -> None:
        self.requests.append(self.new_request(holder))

    def ask_at_once(self, holder: Holder) -> None:
        request = self.new_request(holder)
        self.served(request)
        self.heard(request)

    def new_request(self, holder: Holder) -> Request:
        """More parts, or more time with those that it has."""
        renewed = [each.lease for each in holder.held.values()] if self.chance.random() < 0.5 else None
        return Request(holder, holder.boot(), renewed)

    def serve(self, _: Holder) -> None:
        if waiting := [each for each in self.requests if not each.is_served]:
            self.served(self.chance.choice(waiting))

    def served(self, request: Request) -> None:
        holder, now = request.holder.name, self.clock.now()
        if request.renewed is None:
            gone = self.table.gone - {holder}
            free = [part for part, row in enumerate(self.rows) if row.is_free(now, gone)]
            request.found = self.table.acquire(holder, self.parts, ())
            assert [each.part for each in request.found] == free
            for each in request.found:
                self.rows[each.part] = SlowRow(holder, now, self.rows[each.part].epoch + 1)
                assert each.epoch == self.rows[each.part].epoch
            return
        ours = [each.part for each in request.renewed if self.rows[each.part].is_of(holder, each.epoch)]
        request.kept = self.table.renew(holder, request.renewed)
        assert request.kept == ours
        for part in ours:
            self.rows[part].since = now

    def answer(self, _: Holder) -> None:
        """Also in another order than they were asked; some are lost on the way."""
        if served := [each for each in self.requests if each.is_served]:
            request = self.chance.choice(served)
            self.requests.remove(request)
            if self.chance.random() < 0.8:
                self.heard(request)

    def heard(self, request: Request) -> None:
        holder = request.holder
        for lease in request.found or ():
            if lease.part not in holder.held or holder.held[lease.part].lease.epoch < lease.epoch:
                holder.held[lease.part] = HeldLease(lease, SECONDS, holder.boot, request.asked)
        for lease in request.renewed or ():
            held = holder.held.get(lease.part)
            if held is None or held.lease.epoch != lease.epoch:
                continue
            if request.kept is not None and lease.part in request.kept:
                held.renewed(request.asked)
            else:
                held.lost.set()

    def give_back(self, holder: Holder) -> None:
        """It sends no more, and then says so."""
        while holder.held:
            part, held = holder.held.popitem()
            self.table.release(holder.name, [held.lease])
            if self.rows[part].is_of(holder.name, held.lease.epoch):
                self.rows[part].holder = ""

    def break_off(self, holder: Holder) -> None:
        """Its connection is gone: it goes on sending for a while, for it does not know."""
        self.table.gone.add(holder.name)

    def check(self) -> None:
        for part in range(self.parts):
            senders = [each.name for each in self.holders if part in each.held and each.held[part].may_send()]
            assert len(senders) <= 1, f"{senders} send for part {part}"


@given(st.integers(0, 2**32))
def test_at_most_one_sends_for_a_part(seed: int) -> None:
    play = LeasePlay(Random(seed))
    for _ in range(1_500):
        play.step()


def test_a_holder_sends_for_half_of_its_lease() -> None:
    clock = FakeClock()
    held = HeldLease(Lease(0, 1, 0), 30.0, clock.now, 0.0)

    assert held.may_send()
    clock.advance(14.9)
    assert held.may_send()
    held.renewed(10.0)
    held.renewed(5.0)  # an answer that was overtaken
    clock.advance(10.0)
    assert held.may_send()
    clock.advance(0.2)
    assert not held.may_send()
    held.renewed(25.1)
    assert held.may_send()
    held.lost.set()
    assert not held.may_send()


@given(st.integers(1, 200), st.integers(1, 40), st.data())
def test_holders_that_go_by_their_fair_share_soon_have_it(parts: int, number: int, data: st.DataObject) -> None:
    """Whatever each had before, and whoever is asked first: nobody has two more than another, and nothing is free."""
    has = data.draw(st.lists(st.integers(0, parts // number + 2), min_size=number, max_size=number))
    free = parts - sum(has)
    while free < 0:
        largest = has.index(max(has))
        has[largest] -= 1
        free += 1
    for _ in range(4):
        for each in range(number):
            lacking = min(has) < parts // number
            want = fair_share(parts, 100, 100 * number, lacking=lacking)
            change = max(-has[each], min(want - has[each], free))
            has[each] += change
            free -= change

    assert max(has) - min(has) <= 1
    assert (sum(has), free) == (parts, 0)


class Clocks:
    """A clock of ours, and one of a server that is ahead, and may be set."""

    def __init__(self) -> None:
        self.now, self.ahead = 100.0, 5_000.0
        self.watch = SteadyClock(lambda: self.now)

    def look(self, took: float) -> None:
        asked = self.now
        self.now += took
        self.watch.look(asked, asked + took / 2 + self.ahead)


@given(st.lists(st.tuples(st.floats(0.1, 5.0), st.floats(0.0, 4.0), st.floats(0.7, 1.3)), min_size=1, max_size=40))
def test_slow_answers_and_drift_are_no_step(looks: list[tuple[float, float, float]]) -> None:
    clocks = Clocks()
    for pause, took, speed in looks:
        clocks.now += pause
        clocks.ahead += pause * (speed - 1)
        clocks.look(took)

    assert clocks.watch.since == 100.0


@given(st.sampled_from((-3600.0, -40.0, 40.0, 3600.0)), st.floats(0.0, 4.0))
def test_a_clock_that_was_set_is_not_steady_for_a_while(step: float, took: float) -> None:
    clocks = Clocks()
    for _ in range(20):
        clocks.now += 5.0
        clocks.look(took)
    assert clocks.watch.is_steady(30.0)

    clocks.ahead += step
    clocks.now += 5.0
    clocks.look(took)
    assert not clocks.watch.is_steady(30.0)
    for _ in range(6):
        clocks.now += 5.0
        clocks.look(took)
    assert clocks.watch.is_steady(30.0)
