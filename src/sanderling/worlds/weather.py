"""What happens to requests on the way to a simulated host: quotas, queues, outages, and connections that are cut."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import Enum
from math import ceil
from random import Random
from types import MappingProxyType
from typing import Any

from sanderling.task import Headers
from sanderling.worlds.hosts import FixedWindowQuota, HostQuota, OpenQuota, SimulatedHost, steady

NEAR = 0.05  # seconds there and back to most hosts, the median
PIECES = 4  # that a slow body comes in
# Seconds between two pieces of a slow body. The last is longer than a client should wait.
PAUSES = (0.25, 0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 20.0)
# What the hosts' own clocks say when they are first asked. An instant of theirs is to be read beside their Date.
WALL = 1_750_000_000


class TransportFault(Enum):
    """What becomes of an answer on the way."""

    NONE = "none"
    REFUSED = "refused"  # no connection
    RESET = "reset"  # before the first byte
    CUT = "cut"  # a reset in mid-body
    TRUNCATED = "truncated"  # the body ends early, and the connection with it
    STALL = "stall"  # the body comes in pieces, with pauses


@dataclass(frozen=True, slots=True)
class WorldAnswer:
    """What comes back, and how. Times in seconds."""

    status: int  # 0 where nothing comes back at all
    headers: Headers
    body: bytes
    latency: float  # to the first byte
    fault: TransportFault = TransportFault.NONE
    pause: float = 0.0  # between two pieces of a body that stalls

    def pieces(self) -> Iterator[tuple[float, bytes]]:
        """What arrives of the body: seconds to wait, and then bytes."""
        if self.fault in (TransportFault.CUT, TransportFault.TRUNCATED):
            yield 0.0, self.body[: len(self.body) // 2]
        elif self.fault is TransportFault.STALL:
            size = len(self.body) // PIECES + 1
            for start in range(0, len(self.body), size):
                yield self.pause if start else 0.0, self.body[start : start + size]
        else:
            yield 0.0, self.body


# For whoever asks with another method than GET or HEAD.
NOT_ALLOWED = WorldAnswer(405, (("Allow", "GET, HEAD"), ("Content-Length", "0")), b"", latency=0.0)


@dataclass(frozen=True, slots=True)
class Sky:
    """The weather that one request met. Times in seconds."""

    status: int  # 200: the page itself is served
    latency: float
    headers: Headers = ()
    fault: TransportFault = TransportFault.NONE
    pause: float = 0.0


@dataclass(slots=True)
class Weather:
    """All that happens to the requests of one host. Its time begins when it is first asked."""

    host: SimulatedHost
    faults: Mapping[TransportFault, float] = field(default_factory=dict)  # the share of requests that meets each
    advertises: Callable[[float, int], Headers] = lambda _since, _status: ()  # by time and status
    began: float | None = None

    def meet(self, now: float) -> Sky:
        """What a request that is sent at `now` meets."""
        if self.began is None:
            self.began = now
        since = max(0.0, now - self.began)
        answer = self.host.ask(since)
        wait: Headers = () if answer.retry_after is None else (("Retry-After", f"{ceil(answer.retry_after)}"),)
        fault = self._fault()
        pause = self.host.rng.choices(PAUSES)[0] if fault is TransportFault.STALL else 0.0
        return Sky(answer.status, answer.latency, wait + self.advertises(since, answer.status), fault, pause)

    def _fault(self) -> TransportFault:
        if not self.faults:
            return TransportFault.NONE
        kinds, shares = tuple(self.faults), tuple(self.faults.values())
        return self.host.rng.choices((*kinds, TransportFault.NONE), (*shares, max(0.0, 1 - sum(shares))))[0]


def weather(
    quota: Callable[[], HostQuota] = OpenQuota,
    faults: Mapping[TransportFault, float] = MappingProxyType({}),
    **host: Any,  # noqa: ANN401 - fields of several types
) -> Callable[[Random], Weather]:
    """The weather over a `SimulatedHost` with these fields, for whoever brings the chance."""
    return lambda rng: Weather(SimulatedHost(rng, quota(), **{"network": NEAR} | host), faults)


fair = weather()
queueing = weather(service=steady(0.2))  # gets 5 a second done, and queues what comes faster
mute = weather(network=3600.0, spread=0.0)  # answers after an hour, which nobody waits for


def with_faults(**shares: float) -> Callable[[Random], Weather]:
    """Shares of requests that go wrong, by the names of the faults."""
    return weather(faults={TransportFault(name): share for name, share in shares.items()})


def lying_quota(rng: Random) -> Weather:
    """Allows 20 in 10 seconds, and advertises ten times as many."""
    window = FixedWindowQuota(20, 10.0)

    def boast(since: float, _status: int) -> Headers:
        left = window.seconds - since % window.seconds
        said = (("Limit", 10 * window.limit), ("Remaining", 10 * window.limit - window.used), ("Reset", ceil(left)))
        return tuple((f"X-RateLimit-{name}", str(value)) for name, value in said)

    return Weather(SimulatedHost(rng, window, NEAR), advertises=boast)


def announced_quota(rng: Random) -> Weather:
    """Allows 30 in each 10 seconds, as the network's own hosts allow 6,000 in each 300, and says what is left."""
    window = FixedWindowQuota(30, 10.0)

    def announce(since: float, status: int) -> Headers:
        left = window.seconds - since % window.seconds
        return (
            *((("Retry-After", str(ceil(left))),) if status == 429 else ()),
            ("Date", formatdate(WALL + since, usegmt=True)),
            ("RateLimit-Limit", str(window.limit)),
            ("RateLimit-Remaining", str(window.limit - window.used)),
            ("RateLimit-Reset", str(ceil(WALL + since + left))),
            ("RateLimit-Policy", f"{window.limit};w={window.seconds:g}"),
        )

    return Weather(SimulatedHost(rng, window, NEAR), advertises=announce)
