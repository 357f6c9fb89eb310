"""Asks for one repo, or first whether it has changed, and packs what came. Nothing here decides when."""

from dataclasses import replace

from sanderling.apis.atproto import AtprotoCategory, get_latest_commit, get_repo, latest_rev, why_not
from sanderling.clock import Clock
from sanderling.engine.ports import Settled
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetched, Fetcher
from sanderling.fetch.transport import Transport
from sanderling.limit import Permit
from sanderling.observe.histogram import Histogram
from sanderling.outcome import Code, Outcome
from sanderling.repos.hosts import RepoRequest
from sanderling.repos.measures import SECONDS, Exchanges
from sanderling.repos.packing import Packed, pack
from sanderling.repos.rules import RepoRules
from sanderling.repos.since import EarlierRevs
from sanderling.task import Blame, Reply

# How often a repo may lack records before it is archived without them: it may be written to while it is sent.
MOST_PARTIAL = 2
# What a name in the answer stands for, whatever its status says.
CODES = {
    AtprotoCategory.NOT_FOUND: Code.CONTENT_NOT_FOUND,
    AtprotoCategory.DEACTIVATED: Code.CONTENT_REMOVED,
    AtprotoCategory.TAKENDOWN: Code.CONTENT_UNAVAILABLE,
    AtprotoCategory.SUSPENDED: Code.CONTENT_UNAVAILABLE,
    AtprotoCategory.RATE_LIMITED: Code.RATE_LIMITED,
}
Understood = Packed | AtprotoCategory


class RepoHandler:
    """Sends requests for which there is leave. Bodies are read and packed by the executor `cores`."""

    def __init__(
        self,
        transport: Transport[Exchanges],
        cores: Executor,
        earlier: EarlierRevs | None,
        rules: RepoRules,
        clock: Clock,
    ) -> None:
        self.durations = Histogram(SECONDS)  # from asking for a repo to its block
        self._earlier = earlier  # what it has need not be archived again
        self._exchanges = transport.http
        # Each try is one request: when the next is due, the engine says.
        self._fetcher = Fetcher(transport.http, transport.limiter, clock=clock, retry=False)
        self._memory = transport.memory
        self._cores = cores
        self._rules = rules
        self._clock = clock

    async def __call__(self, work: RepoRequest, permit: Permit, blame: Blame) -> Settled[Understood]:
        """What came of it."""
        started = self._clock.now()
        settled = None if self._earlier is None else await self._unless_changed(self._earlier, work, permit, blame)
        if settled is None:
            fetched = await self._fetcher.fetch(get_repo(work.url, work.key, blame), permit, _read)
            try:
                settled = await self._understand(work, fetched, blame)
            finally:
                if fetched.reply is not None:
                    self._memory.release(fetched.reply.url)
        self.durations.add(self._clock.now() - started)
        return settled

    def received(self, work: RepoRequest) -> int | None:
        """Bytes of the answer so far; None while nothing is on its way, since it waits for leave or is packed."""
        url = self._exchanges.urls.get(work.key)
        return None if url is None else self._memory.held(url)

    async def _unless_changed(
        self, earlier: EarlierRevs, work: RepoRequest, permit: Permit, blame: Blame
    ) -> Settled[Understood] | None:
        """What came of asking for the revision; None if the repo must be asked for."""
        rev = await self._cores(earlier.rev, work.key)
        if not rev:
            return None
        fetched = await self._fetcher.fetch(get_latest_commit(work.url, work.key, blame), permit, _read)
        outcome, reply = fetched.outcome, fetched.reply
        if reply is None or outcome.code is Code.RATE_LIMITED:
            return Settled(_of_host(fetched))  # who does not answer that will not give us a repo either
        self._memory.release(reply.url)
        same = outcome.code is Code.OK and latest_rev(reply.body) == rev
        return Settled(outcome, AtprotoCategory.UNCHANGED, size=len(reply.body)) if same else None

    async def _understand(self, work: RepoRequest, fetched: Fetched, blame: Blame) -> Settled[Understood]:
        outcome, reply = fetched.outcome, fetched.reply
        if reply is None or outcome.code is not Code.OK:
            outcome = _of_host(fetched)
            category = why_not(outcome, reply)
            result = None if reply is None else category
            return Settled(outcome, result, flawed=category is AtprotoCategory.HTTP_ERROR)
        at, size = int(self._clock.wall() * 1e6), len(reply.body)
        packed = await self._cores(pack, reply.body, work.key, work.url, at, self._rules)
        if isinstance(packed, Packed):
            if packed.stats.missing and blame.failures < MOST_PARTIAL:
                return _flawed(AtprotoCategory.INCOMPLETE, outcome, f"lacks {packed.stats.missing} records", size)
        elif not packed.permanent:
            return _flawed(packed, outcome, "is no repo, or not all of it", size)
        return Settled(outcome, packed, size=size)


def _of_host(fetched: Fetched) -> Outcome:
    """The outcome. Where a redirect leads to a host that cannot be reached, the one that was asked is not at fault."""
    elsewhere = fetched.outcome.unsent and fetched.requests > 1
    return replace(fetched.outcome, unsent=False) if elsewhere else fetched.outcome


def _flawed(category: AtprotoCategory, outcome: Outcome, detail: str, size: int) -> Settled[Understood]:
    code = Code.TRUNCATED if category is AtprotoCategory.INCOMPLETE else Code.HTTP_ERROR
    return Settled(Outcome(code, outcome.status, detail), flawed=True, size=size)


def category_of(outcome: Outcome) -> AtprotoCategory:
    """Why there is no repo, where nothing but the outcome is known."""
    if outcome.code is Code.TRUNCATED and outcome.status:  # the answer was whole, and its repo is not
        return AtprotoCategory.INCOMPLETE
    return why_not(outcome, None)


def _read(reply: Reply, outcome: Outcome) -> Outcome:
    """An error that says by its name what is the matter means that, whatever its status is."""
    code = None if outcome.code is Code.OK else CODES.get(why_not(outcome, reply))
    return outcome if code is None else replace(outcome, code=code)
