"""The robots.txt of each host: fetched before anything else is, remembered in the ledger, asked about each address."""

import asyncio

import msgspec

from sanderling.clock import Clock
from sanderling.extract.robots import AGAIN, MAX_ROBOTS, Robots, read_robots
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.ids import origin_of
from sanderling.limit import Permit
from sanderling.outcome import Outcome

MOST = 20_000  # origins whose rules are in memory
LONG = 16 << 10  # bytes, above which reading them takes longer than a turn of the event loop should
SOON = 3600.0  # seconds after which rules that could not be renewed are requested again


class Known(msgspec.Struct, array_like=True):
    """The rules of one origin, and until when they hold."""

    origin: str
    until: float
    rules: Robots


class RobotsRules:
    """The rules of all origins that were asked about."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, Known] = {}
        self._fetching: dict[str, asyncio.Future[HttpResponse | None]] = {}
        self._changed: set[str] = set()  # hosts
        self._sitemaps: dict[str, tuple[str, ...]] = {}  # by host, until they are stored

    def restore(self, saved: bytes) -> None:
        """Take up what `saved` returned in an earlier run."""
        for each in msgspec.msgpack.decode(saved, type=list[Known]):
            self._keep(each)  # with its sitemaps, which this run may not know yet

    def saved(self, host: str) -> bytes | None:
        """The rules of a host, if they have changed since this was last asked."""
        if host not in self._changed:
            return None
        self._changed.discard(host)
        origins = (f"{scheme}://{host}" for scheme in ("https", "http"))
        return msgspec.msgpack.encode([self._known[each] for each in origins if each in self._known])

    def sitemaps(self, host: str) -> tuple[str, ...]:
        """The sitemaps that a host's rules name, if they were read since this was last asked."""
        return self._sitemaps.pop(host, ())

    def now(self, url: str) -> Robots | None:
        """The rules for an address, if they are known without a request."""
        known = self._known.get(origin_of(url))
        return known.rules if known is not None and known.until > self._clock.wall() else None

    async def fetch(self, url: str, permit: Permit | None) -> Robots | Outcome:
        """The rules for an address, requested with that permit; how the request ended if nobody knows them."""
        origin = origin_of(url)
        while (rules := self.now(url)) is None:
            if (fetching := self._fetching.get(origin)) is not None:
                response = await asyncio.shield(fetching)
                if response is not None:
                    return _failure(response)
                continue
            future = self._fetching[origin] = asyncio.get_running_loop().create_future()
            failed: HttpResponse | None = None
            try:
                failed = await self._request(origin, permit)
            finally:
                del self._fetching[origin]
                future.set_result(failed)
            if failed is not None:
                return _failure(failed)
        return rules

    async def _request(self, origin: str, permit: Permit | None) -> HttpResponse | None:
        """Request the rules and keep them; the response if it says nothing."""
        request = HttpRequest(f"{origin}/robots.txt", largest=MAX_ROBOTS + 1, cut=True)
        response = await self._client.send(request, permit, of_host=True)
        outcome, wall = response.outcome, self._clock.wall()
        rules = (
            read_robots(response.status, response.body)
            if len(response.body) <= LONG
            else await asyncio.to_thread(read_robots, response.status, response.body)
        )
        is_heard = response.status > 0 and (outcome.ok or not 200 <= response.status < 300)
        if not (rules.known and is_heard):
            old = self._known.get(origin)
            if old is None or not old.rules.known:
                return response
            rules = old.rules  # better than nothing, for a while
        self._keep(Known(origin, wall + (AGAIN if is_heard and outcome.ok else SOON), rules))
        self._changed.add(origin.split("/", 3)[2])
        return None

    def _keep(self, known: Known) -> None:
        if len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[known.origin] = known
        host = known.origin.split("/", 3)[2]
        if known.rules.sitemaps:
            self._sitemaps[host] = self._sitemaps.get(host, ()) + known.rules.sitemaps
        # A Crawl-delay is the host's word for its pace.
        if known.rules.delay:
            self._client.limiter.set_cap(host, 1 / known.rules.delay, "its Crawl-delay")


def _failure(response: HttpResponse) -> Outcome:
    outcome = response.outcome
    said = f"robots.txt: {outcome.detail or f'status {response.status}'}"
    return Outcome(outcome.code, outcome.status, said[:300], outcome.retry_after, sent=outcome.sent)
