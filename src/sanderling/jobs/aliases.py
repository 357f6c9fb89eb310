"""Which part of a job keeps a page that a redirect led to, where its address is a host of another part.

A page is kept once, whatever addresses lead there. Within one ledger, the ledger says whether the address is known.
Across parts, whoever read the page by a redirect *claims* the address: the part whose host it is adds it to its ledger,
if it is not known there, and tells its *verdict*. Until then the page is held in memory, and its request waits in the
ledger of its own part; so whoever is killed asks again, and gets the same verdict.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from sanderling.crawls.errands import Brought, Errand
from sanderling.crawls.exchange import PartExchange
from sanderling.executor import Executor
from sanderling.stores.frontier_requests import FoundRequest, RequestFrontier
from sanderling.stores.frontier_rows import UNFETCHED, End

AGAIN = 1.0  # seconds after which a claim is sent once more: the verdict is lost if its sender is killed


class AliasClaim(msgspec.Struct, frozen=True, tag="claim"):
    """The address that a redirect led to, and which request of which part was led there."""

    alias: FoundRequest
    part: int
    request: int

    @property
    def host(self) -> str:
        """The host of the address."""
        return self.alias.host

    @property
    def depth(self) -> int:
        """As that of the request."""
        return self.alias.depth

    @property
    def mark(self) -> bytes:
        """By what the ledger knows the claim again."""
        return msgspec.json.encode({"claimed_by": [self.part, self.request]})


class AliasVerdict(msgspec.Struct, frozen=True, tag="verdict"):
    """Whether the request that claimed an address keeps its page."""

    request: int
    granted: bool


# What parts of a job send each other.
JobMail: Any = FoundRequest | AliasClaim | AliasVerdict | Errand | Brought


_decode = msgspec.json.Decoder(JobMail).decode


def url_in(line: bytes) -> str:
    """The address that parts of a job wrote to each other about; none in a verdict."""
    mail = _decode(line)
    if isinstance(mail, AliasClaim):
        return mail.alias.url
    return "" if isinstance(mail, AliasVerdict) else str(mail.url)


class JudgedClaims(NamedTuple):
    """What becomes of some claims."""

    claimed: list[FoundRequest]  # addresses that are known from now on
    verdicts: list[tuple[int, AliasVerdict]]  # and the part that each is for


def judge_claims(ledger: RequestFrontier, claims: Iterable[AliasClaim]) -> JudgedClaims:
    """Whoever claims an address first keeps its page, unless the address is asked for by itself, or was."""
    claimed, verdicts = dict[tuple[str, bytes], FoundRequest](), list[tuple[int, AliasVerdict]]()
    for claim in claims:
        known_by, end = (claim.host, claim.alias.key), ledger.end_by_key(claim.alias)
        if end is None:
            first = claimed.setdefault(known_by, claim.alias._replace(data=claim.mark))
            granted = first.data == claim.mark
        else:
            granted = end in UNFETCHED or (end is End.MOVED and ledger.data_by_key(claim.alias) == claim.mark)
        verdicts.append((claim.part, AliasVerdict(claim.request, granted)))
    return JudgedClaims(list(claimed.values()), verdicts)


class AliasClaims:
    """The claims of one part that wait for their verdicts. `is_ending` says whether nobody should wait any more."""

    def __init__(self, others: PartExchange, executor: Executor, is_ending: Callable[[], bool]) -> None:
        self._others = others
        self._executor = executor
        self._is_ending = is_ending
        self._asked: dict[int, asyncio.Future[bool]] = {}

    def owns(self, host: str) -> bool:
        """Whether a host is this part's, whose ledger says what is known of it."""
        return self._others.owns(host)

    async def ask(self, alias: FoundRequest, request: int) -> bool | None:
        """Whether a request keeps the page that it was led to; None if that is left to the next run."""
        answer = self._asked[request] = asyncio.get_running_loop().create_future()
        claim = AliasClaim(alias, self._others.own, request)
        try:
            while not (self._is_ending() or answer.done()):
                await self._executor(self._others.keep_own, [claim])
                await asyncio.wait([answer], timeout=AGAIN)
            return answer.result() if answer.done() else None
        finally:
            del self._asked[request]

    def hear(self, verdict: AliasVerdict) -> None:
        """Tell whoever waits; one that nobody waits for any more was told before."""
        answer = self._asked.get(verdict.request)
        if answer is not None and not answer.done():
            answer.set_result(verdict.granted)
