"""Fetches one repo, and has a reader make its block. Nothing here decides when."""

from dataclasses import dataclass

import msgspec

from sanderling.clock import Clock
from sanderling.engine.ports import Handled
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.formats.car import RepoFault
from sanderling.ids import host_of
from sanderling.limit import Permit
from sanderling.outcome import Code, Outcome
from sanderling.readers.pool import ReaderError, Readers
from sanderling.repos.atproto import (
    GONE,
    RepoCategory,
    account_at,
    commit_request,
    judged,
    latest_rev,
    named_error,
    of_fault,
    repo_request,
    why_not,
)
from sanderling.repos.figures import RepoFigures
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.paces import HostPaces
from sanderling.repos.work import BlockHeading, MadeBlock
from sanderling.stores import QueuedUrl

# How often a repo may lack records before it is archived without them: it may be written to while it is sent.
MOST_PARTIAL = 2
MOST_HELD = 256 << 20  # bytes of responses in memory, above which nothing more is requested
_CAR_TYPES = ("application/vnd.ipld.car", "application/octet-stream", "")
_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class RepoResult:
    """What came of one request: a block, or a category."""

    category: RepoCategory | None = None
    made: MadeBlock | None = None
    detail: str = ""


class RepoHandler:
    """Sends requests for which there is leave."""

    def __init__(
        self, client: Client, readers: Readers, paces: HostPaces, figures: RepoFigures, left_out: RepoLeaveOut,
        clock: Clock, largest: int,
    ) -> None:  # fmt: skip
        self.left_out = left_out
        self._client = client
        self._readers = readers
        self._paces = paces
        self._figures = figures
        self._clock = clock
        self._largest = largest
        self._held = 0  # bytes of bodies that wait for a reader

    @property
    def is_full(self) -> bool:
        """Whether so much waits for readers that nothing more should be requested."""
        return self._held > MOST_HELD

    async def __call__(self, item: QueuedUrl, permit: Permit, /) -> Handled:
        """What came of it."""
        host, did = account_at(item.url)
        started = self._clock.now()
        response: HttpResponse | None = None
        known = item.memory.etag if item.memory is not None else ""
        if known:
            response = await self._send(commit_request(host, did), item, permit)
            if response.status == 200 and latest_rev(response.body) == known:
                return self._ended(item, response.outcome, RepoResult(RepoCategory.UNCHANGED))
            # What is no answer about this account leaves the question to the next request.
            if response.outcome.ok or (response.status >= 400 and named_error(response.body) not in GONE):
                response = None
        if response is None:
            response = await self._send(repo_request(host, did, self._largest), item, permit)
        if response.location is not None:
            result = RepoResult(RepoCategory.LEFT_OUT, detail=f"it leads to {response.location[:200]}")
            return self._ended(item, Outcome(Code.SKIPPED, response.status), result)
        if response.status != 200 or not response.outcome.ok:
            category = RepoCategory.HTTP_ERROR if response.outcome.ok else why_not(response)
            outcome = Outcome(Code.HTTP_ERROR, response.status) if response.outcome.ok else response.outcome
            return self._ended(item, outcome, RepoResult(category, detail=outcome.detail))
        outcome, result = await self._parse(item, response)
        if result.category is None:
            self._figures.repo_seconds.add(self._clock.now() - started)
        return self._ended(item, outcome, result)

    async def _send(self, request: HttpRequest, item: QueuedUrl, permit: Permit) -> HttpResponse:
        response = await self._client.send(
            request,
            permit,
            follow=lambda target: host_of(target) not in self.left_out.hosts,
            read=judged,
            item=item.key,
        )
        self._figures.statuses[str(response.status or "none")] += 1
        self._figures.latency.add(response.latency)
        return response

    async def _parse(self, item: QueuedUrl, response: HttpResponse) -> tuple[Outcome, RepoResult]:
        host, did = account_at(item.url)
        size = len(response.body)
        self._held += size
        try:
            heading = BlockHeading(did, host, round(response.at * _MICRO))
            answer = await self._readers.run(item.host, msgspec.msgpack.encode(heading), response.body)
        except ReaderError as error:
            category = (
                RepoCategory.TOO_LARGE if error.reason in ("memory", "answer too large") else RepoCategory.PARSE_ERROR
            )
            return Outcome(Code.PARSE_ERROR, 200), RepoResult(category, detail=str(error)[:500])
        finally:
            self._held -= size
        made = msgspec.msgpack.decode(answer, type=MadeBlock)
        if made.fault is not None:
            category = of_fault(made.fault)
            if made.fault is RepoFault.CAR_HEADER and response.content_type not in _CAR_TYPES:
                category = RepoCategory.HTTP_ERROR  # a page of somebody who answers everything with it
            code = Code.TRUNCATED if category is RepoCategory.INCOMPLETE else Code.PARSE_ERROR
            return Outcome(code, 200, made.fault), RepoResult(category, detail=made.detail)
        if made.did != did:
            return Outcome(Code.PARSE_ERROR, 200), RepoResult(
                RepoCategory.DID_MISMATCH, detail=f"it is {made.did[:200]}"
            )
        if made.missing and item.failures < MOST_PARTIAL:
            said = f"{made.missing:,} records are missing"
            return Outcome(Code.TRUNCATED, 200, said), RepoResult(RepoCategory.INCOMPLETE, detail=said)
        return Outcome(Code.OK, 200), RepoResult(None, made)

    def _ended(self, item: QueuedUrl, outcome: Outcome, result: RepoResult) -> Handled:
        self._paces.note(item.host, result.category)
        self._figures.results["success" if result.category is None else result.category.value] += 1
        size = len(result.made.block) if result.made is not None else 0
        return Handled(outcome, result, size, repeatable=False)
