"""Ask for one URL of a host: how often at once, with what is known of it, and where a session leads.

Bodies that trickle in keep at most half of a host's places from what was not asked for yet; see `make_room`.
"""

import asyncio

from sanderling.clock import Clock
from sanderling.fetch.attempts import MOST_HOPS, Fetched, Fetcher, Sends
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter, Permit
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.ends import Queued
from sanderling.pages.hosts import Flight, HostQueue
from sanderling.pages.permissions import Permissions
from sanderling.pages.urls import origin_of
from sanderling.task import Blame, Reply, Task

# Seconds in flight, and bytes a second since then, from and below which an answer trickles. Headers take 40 at most.
LONG, TRICKLE = 45.0, 1024.0
LOOK_AGAIN = 10.0  # seconds until it is looked at once more what trickles


class Asking:
    """Sends requests for which there is leave. Whoever gets a reply releases its memory."""

    def __init__(self, http: Sends, limiter: Limiter, permissions: Permissions, memory: Memory, clock: Clock) -> None:
        # What never failed is asked once: a second try at once would keep a place from what may be well.
        self._once = Fetcher(http, limiter, clock=clock, follow=False, retry=False)
        self._often = Fetcher(http, limiter, clock=clock, follow=False)
        self._permissions = permissions
        self._memory = memory
        self._clock = clock

    async def ask(self, host: HostQueue, queued: Queued, permit: Permit) -> Fetched:
        """How the URL was answered; DEFERRED if it had to make room."""
        host.flights = host.flights or {}
        try:
            async with asyncio.timeout(None) as limit:
                host.flights[queued.id] = Flight(self._clock.now(), queued.url, limit)
                return await self._fetch(host, queued, permit)
        except TimeoutError:
            return Fetched(Outcome(Code.DEFERRED, detail="slow, while others waited"), None, 1)
        finally:
            host.flights.pop(queued.id, None)

    def make_room(self, host: HostQueue, places: int) -> float:
        """Cut the oldest of those that trickle, if they are more than half of all; when to look again."""
        now, flights = self._clock.now(), host.flights or {}
        by_age = sorted(flights.items(), key=lambda flight: flight[1].since)
        slow = [number for number, flight in by_age if self._trickles(flight, now)]
        for number in slow[: max(0, len(slow) - places // 2)]:
            flights.pop(number).limit.reschedule(0.0)  # which is past, so it runs out now
        next_slow = by_age[places // 2 :][:1]
        return max([now + LOOK_AGAIN, *(flight.since + LONG for _, flight in next_slow)])

    def _trickles(self, flight: Flight, now: float) -> bool:
        age = now - flight.since
        return age >= LONG and self._memory.held(flight.url) < TRICKLE * age

    async def _fetch(self, host: HostQueue, queued: Queued, permit: Permit) -> Fetched:
        """The limiter blames the host for the first failure of a URL only, and for none if it is trusted."""
        tries = (host.tries or {}).get(queued.id)
        blame = Blame(queued.url, int(host.trusted) if tries is None else tries.number)
        # What takes minutes to fail would take three times as long.
        fetcher = self._once if tries is None or tries.slow else self._often
        fetched = await fetcher.fetch(Task(queued.url, headers=record.conditions(queued), blame=blame), permit)
        for _ in range(MOST_HOPS):
            if (same := self._with_session(queued, fetched.reply)) is None:
                break
            fetched = await fetcher.fetch(Task(same, blame=blame))
        return fetched

    async def probe(self, url: str, permit: Permit) -> Fetched:
        """How a URL is answered that was answered well before."""
        return await self._once.fetch(Task(url), permit)

    def _with_session(self, queued: Queued, reply: Reply | None) -> str | None:
        """Where the reply leads, if that is this very URL with a session in it: as a URL of its own it were a loop."""
        same = None if reply is None else record.respelled(queued, reply)
        known = None if same is None else self._permissions.known(origin_of(queued.url))
        return same if same is None or known is None or known.allows(same) else None
