"""Asks for one repo, or first whether it has changed, and packs what came. Nothing here decides when."""

from dataclasses import dataclass, replace

from sanderling.apis.atproto import Category, get_latest_commit, get_repo, latest_rev, why_not
from sanderling.clock import Clock
from sanderling.engine.ports import Settled
from sanderling.fetch.attempts import Fetcher
from sanderling.flow.desk import Desk
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter, Permit
from sanderling.observe.histogram import Histogram
from sanderling.outcome import Code, Outcome
from sanderling.repos.hosts import Ask
from sanderling.repos.measures import SECONDS, Exchanges
from sanderling.repos.packing import Packed, pack
from sanderling.repos.rules import RepoRules
from sanderling.repos.since import EarlierRevs
from sanderling.task import Blame, Reply, Task

# How often a repo may lack records before it is archived without them: it may be written to while it is sent.
MOST_PARTIAL = 2
# What a name in the answer stands for, whatever its status says.
CODES = {
    Category.NOT_FOUND: Code.CONTENT_NOT_FOUND,
    Category.DEACTIVATED: Code.CONTENT_REMOVED,
    Category.TAKENDOWN: Code.CONTENT_UNAVAILABLE,
    Category.SUSPENDED: Code.CONTENT_UNAVAILABLE,
    Category.RATE_LIMITED: Code.RATE_LIMITED,
}
Understood = Packed | Category


@dataclass(frozen=True, slots=True)
class Hands:
    """Who does the slow work: `disk` in order and one at a time, `cores` as many at once as there are."""

    disk: Desk
    cores: Desk
    memory: Memory


class RepoHandler:
    """Sends requests for which there is leave. Bodies are read and packed at the desk `cores`."""

    def __init__(
        self,
        exchanges: Exchanges,
        limiter: Limiter,
        hands: Hands,
        earlier: EarlierRevs | None,
        rules: RepoRules,
        clock: Clock,
    ) -> None:
        self.durations = Histogram(SECONDS)  # from asking for a repo to its block
        self._earlier = earlier  # what it has need not be archived again
        self._exchanges = exchanges
        # Each try is one request: when the next is due, the engine says.
        self._fetcher = Fetcher(exchanges, limiter, clock=clock, retry=False)
        self._memory = hands.memory
        self._cores = hands.cores
        self._rules = rules
        self._clock = clock

    async def __call__(self, work: Ask, permit: Permit, blame: Blame) -> Settled[Understood]:
        """What came of it."""
        started = self._clock.now()
        settled = await self._unless_changed(work, permit, blame)
        if settled is None:
            settled = await self._fetch(work, permit, blame)
        self.durations.add(self._clock.now() - started)
        return settled

    def received(self, work: Ask) -> int | None:
        """Bytes of the answer so far; None while nothing is on its way, since it waits for leave or is packed."""
        url = self._exchanges.urls.get(work.did)
        return None if url is None else self._memory.held(url)

    async def _unless_changed(self, work: Ask, permit: Permit, blame: Blame) -> Settled[Understood] | None:
        """What came of asking for the revision; None if the repo must be asked for. Only if there is an archive."""
        rev = "" if self._earlier is None else await self._cores(self._earlier.rev, work.did)
        if not rev:
            return None
        outcome, reply = await self._ask(get_latest_commit(work.url, work.did), permit, blame)
        if reply is None or outcome.code is Code.RATE_LIMITED:
            return Settled(outcome)  # who does not answer that will not give us a repo either
        self._memory.release(reply.url)
        same = outcome.code is Code.OK and latest_rev(reply.body) == rev
        return Settled(outcome, Category.UNCHANGED, size=len(reply.body)) if same else None

    async def _ask(self, task: Task, permit: Permit, blame: Blame) -> tuple[Outcome, Reply | None]:
        fetched = await self._fetcher.fetch(replace(task, blame=blame), permit, _read)
        # Where a redirect leads to a host that cannot be reached, the host that was asked is not at fault.
        elsewhere = fetched.outcome.unsent and fetched.requests > 1
        return replace(fetched.outcome, unsent=False) if elsewhere else fetched.outcome, fetched.reply

    async def _fetch(self, work: Ask, permit: Permit, blame: Blame) -> Settled[Understood]:
        outcome, reply = await self._ask(get_repo(work.url, work.did), permit, blame)
        if reply is None:
            return Settled(outcome, flawed=why_not(outcome, None) is Category.HTTP_ERROR)
        try:
            if outcome.code is Code.OK:
                return await self._pack(work, outcome, reply, blame)
        finally:
            self._memory.release(reply.url)
        category = why_not(outcome, reply)
        return Settled(outcome, category, flawed=category is Category.HTTP_ERROR, size=len(reply.body))

    async def _pack(self, work: Ask, outcome: Outcome, reply: Reply, blame: Blame) -> Settled[Understood]:
        at, size = int(self._clock.wall() * 1e6), len(reply.body)
        packed = await self._cores(pack, reply.body, work.did, work.url, at, self._rules)
        if isinstance(packed, Packed):
            if packed.stats.missing and blame.failures < MOST_PARTIAL:
                return _flawed(Category.INCOMPLETE, outcome, f"lacks {packed.stats.missing} records", size)
            return Settled(outcome, packed, size=size)
        if packed.permanent:
            return Settled(outcome, packed, size=size)
        return _flawed(packed, outcome, "is no repo, or not all of it", size)


def _flawed(category: Category, outcome: Outcome, detail: str, size: int) -> Settled[Understood]:
    code = Code.TRUNCATED if category is Category.INCOMPLETE else Code.HTTP_ERROR
    return Settled(Outcome(code, outcome.status, detail), flawed=True, size=size)


def category_of(outcome: Outcome) -> Category:
    """Why there is no repo, where nothing but the outcome is known."""
    if outcome.code is Code.TRUNCATED and outcome.status:  # the answer was whole, and its repo is not
        return Category.INCOMPLETE
    return why_not(outcome, None)


def _read(reply: Reply, outcome: Outcome) -> Outcome:
    """An error that says by its name what is the matter means that, whatever its status is."""
    category = why_not(outcome, reply)
    code = None if outcome.ok else CODES.get(category)
    return outcome if code is None else replace(outcome, code=code)
