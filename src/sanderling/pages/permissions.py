"""What a host's robots.txt says: from memory, else from the crawl's own folder if that is fresh, else from the host."""

from collections import OrderedDict
from typing import NamedTuple

from sanderling.clock import Clock
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.classify import Relayed
from sanderling.fetch.guard import Refused
from sanderling.limit import Permit
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.pages.robots import MOST, UNREACHABLE, Robots, read
from sanderling.stores.frontier import Frontier
from sanderling.task import Blame, Task

KEPT = 86_400.0  # seconds to trust a copy; RFC 9309, 2.4
BIG = 32 * 1024  # bytes of one that is read in a thread; a tenth of a second for the longest
NOT_ASKED = Outcome(Code.DEFERRED, detail="robots.txt is in the folder")


class RobotsAnswer(NamedTuple):
    """The rules of an origin, or why they are not known yet."""

    rules: Robots | None
    outcome: Outcome


class Permissions:
    """The rules of many origins. Those that were asked for last are held in memory, up to `most` bytes."""

    def __init__(
        self, fetcher: Fetcher, frontier: Frontier, executor: Executor, memory: Memory, clock: Clock, most: int
    ) -> None:
        self.held = 0  # bytes, more or less
        self._fetcher = fetcher
        self._frontier = frontier
        self._executor = executor
        self._memory = memory
        self._clock = clock
        self._most = most
        # With when it is too old; the longest unasked first.
        self._known: OrderedDict[str, tuple[Robots, float]] = OrderedDict()

    def known(self, origin: str) -> Robots | None:
        """The rules of an origin, if they are in memory and fresh."""
        found = self._known.pop(origin, None)
        if found is None:
            return None
        if self._clock.now() >= found[1]:
            self.held -= found[0].size
            return None
        self._known[origin] = found
        return found[0]

    async def learn(self, origin: str, permit: Permit | None) -> RobotsAnswer:
        """Find out the rules of an origin. A permit that was not needed is given back; without one, wait for leave."""
        kept = await self._executor(self._frontier.robots, origin)
        age = KEPT if kept is None else abs(self._clock.wall() - kept.fetched_at)  # the clock may have been set back
        if kept is not None and age < KEPT:
            if permit is not None:
                permit.release()
            return RobotsAnswer(self._hold(origin, await self._read(kept.status, kept.body), KEPT - age), NOT_ASKED)
        return await self._ask(origin, permit)

    async def look_up(self, origin: str) -> Robots:
        """The rules of an origin that a redirect leads to.

        Raises Refused where they are not available, and Relayed where nobody could be asked for them yet.
        """
        answer = await self.learn(origin, None)
        if answer.outcome.code is Code.DEFERRED and answer.rules is None:
            raise Relayed(answer.outcome)
        if answer.rules is None:
            raise Refused(f"{origin}/{answer.outcome.detail}"[:200])
        return answer.rules

    async def _ask(self, origin: str, permit: Permit | None) -> RobotsAnswer:
        task = Task(f"{origin}/robots.txt", most=MOST, blame=Blame(origin, of_host=True))
        fetched = await self._fetcher.fetch(task, permit)
        outcome, status, body = fetched.outcome, 0, b""
        if fetched.reply is not None:
            status, body = fetched.reply.status, fetched.reply.body
            self._memory.release(fetched.reply.url)
        if outcome.code is Code.REDIRECT_LOOP:
            status, body = 404, b""  # RFC 9309, 2.3.1.2: after too many redirects there is none
        known = await self._read(status, body)
        if known is UNREACHABLE:
            said = f"robots.txt: {outcome.detail or outcome.status or outcome.code}"
            return RobotsAnswer(None, Outcome(outcome.code, outcome.status, said[:200], outcome.retry_after))
        await self._executor(self._frontier.keep_robots, origin, status, body, self._clock.wall())
        return RobotsAnswer(self._hold(origin, known, KEPT), outcome)

    async def _read(self, status: int, body: bytes) -> Robots:
        return await self._executor(read, status, body) if len(body) > BIG else read(status, body)

    def _hold(self, origin: str, known: Robots, fresh: float) -> Robots:
        self._known[origin] = (known, self._clock.now() + fresh)
        self.held += known.size
        while self.held > self._most and len(self._known) > 1:
            _, (dropped, _) = self._known.popitem(last=False)
            self.held -= dropped.size
        return known
