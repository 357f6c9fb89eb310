"""Quotas that hosts of several machines share."""

from hypothesis import given
from hypothesis import strategies as st

from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.crawls.fleet_quotas import REST, FleetSlices
from sanderling.limit.slices import SharedQuota
from sanderling.stores.fleet import BookedTime, FleetCrawl, WorkerIdentity
from sanderling.stores.fleet_memory import FleetMemory, MemoryFleet
from sanderling.stores.leases import LeasesAwayError
from sanderling.testing import FakeClock

CRAWL = FleetCrawl(
    name="web", id="1", system="pages", plan="{}", parts=2, seconds=30.0, ledger="1", objects="", started=0.0
)


class Machines:
    """Workers with clocks of their own that share one server."""

    def __init__(self, number: int) -> None:
        self.clock = FakeClock()
        memory = FleetMemory(self.clock.wall)
        self.servers = [MemoryFleet(memory, "web", WorkerIdentity(f"w{each}", "m", "1")) for each in range(number)]
        for server in self.servers:
            DirectStoreCaller().wait_for(server.begin(CRAWL, range(2)))
        self.slices = [FleetSlices(FleetStores([each], DirectStoreCaller()), self.clock, 30.0) for each in self.servers]


@given(
    st.integers(2, 4),
    st.floats(0.05, 3.0),
    st.lists(st.tuples(st.integers(0, 3), st.floats(0.0, 1.5)), min_size=5, max_size=60),
)
def test_all_together_are_no_faster_than_one_may_be(
    number: int, interval: float, asks: list[tuple[int, float]]
) -> None:
    machines = Machines(number)
    quotas = [SharedQuota(each, "credential/key") for each in machines.slices]
    sent: list[float] = []
    for who, pause in asks:
        quota, clock = quotas[who % number], machines.clock
        clock.advance(pause)
        due = quota.claim(clock.now(), interval, 5)
        if due <= clock.now():
            quota.use(clock.now(), interval, 1.0)
            sent.append(clock.now())

    for first in range(len(sent)):
        for last in range(first, len(sent)):
            # A slice may be used at once within its time, and a little late.
            allowed = (sent[last] - sent[first] + 1.2) / interval + 2
            assert last - first + 1 <= allowed


def test_a_quota_that_one_machine_is_told_to_leave_alone_is_left_alone_by_all() -> None:
    machines = Machines(2)
    one, two = (SharedQuota(each, "ip/192.0.2.1") for each in machines.slices)
    assert one.claim(machines.clock.now(), 1.0, 1) == machines.clock.now()

    one.hush(machines.clock.now() + 100)
    machines.clock.advance(10)

    assert two.claim(machines.clock.now(), 1.0, 1) >= 90


class AwayFleet(MemoryFleet):
    """A server that does not answer, and counts how often it was to."""

    asked = 0

    async def book(self, quota: str, seconds: float) -> BookedTime:
        self.asked += 1
        raise LeasesAwayError(f"no answer for {quota}, {seconds}")

    async def hush(self, quota: str, until: float) -> None:
        self.asked += 1
        raise LeasesAwayError(f"no answer for {quota}, {until}")


def test_nothing_is_promised_while_the_server_is_away_and_it_is_not_asked_for_every_quota() -> None:
    """All that runs here waits for its answer, and for each that does not come in time."""
    machines = Machines(1)
    server = machines.servers[0]
    server.__class__ = AwayFleet
    assert isinstance(server, AwayFleet)
    quotas = [SharedQuota(machines.slices[0], f"ip/192.0.2.{each}") for each in range(100)]

    dues = [each.claim(machines.clock.now(), 1.0, 1) for each in quotas]
    assert min(dues) >= machines.clock.now() + CRAWL.seconds
    assert server.asked == 1
    machines.clock.advance(2 * REST)
    quotas[0].hush(machines.clock.now() + 1)
    assert server.asked == 2


def test_a_retry_after_that_no_server_heard_is_said_before_anything_is_booked() -> None:
    machines = Machines(2)
    one, two = (SharedQuota(each, "ip/192.0.2.1") for each in machines.slices)
    server = machines.servers[0]
    server.__class__ = AwayFleet
    one.hush(machines.clock.now() + 100)
    server.__class__ = MemoryFleet
    machines.clock.advance(2 * REST)
    SharedQuota(machines.slices[0], "ip/192.0.2.2").claim(machines.clock.now(), 1.0, 1)

    assert two.claim(machines.clock.now(), 1.0, 1) >= 100


def test_quotas_that_are_over_are_let_go_and_do_not_make_stretches_longer() -> None:
    machines = Machines(1)
    slices, clock = machines.slices[0], machines.clock
    slices.hush("quiet", clock.now() + 1e6)
    for number in range(3_000):
        slices.take(f"key {number}", clock.now(), 1.0, 1)
        clock.advance(0.1)

    assert len(slices._states) < 100
    assert len(slices._ends) < 100
    assert slices.quiet("quiet") > clock.now()
    booked = machines.servers[0].book

    async def noted(quota: str, seconds: float) -> BookedTime:
        assert seconds < 4
        return await booked(quota, seconds)

    machines.servers[0].book = noted  # type: ignore[method-assign]
    slices.take("another", clock.now(), 1.0, 1)
