"""Makes what ended durable: rows first, then the ledger; and at the end of a run the list of what failed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from math import inf, isinf
from pathlib import Path
from typing import Any

import msgspec

from sanderling.clock import Clock
from sanderling.crawl.handler import PLACE, CrawlHandler, Result
from sanderling.crawl.keep import Keeper
from sanderling.crawl.repeats import Repeats
from sanderling.crawl.request import Stored
from sanderling.crawl.robots import RobotsRules
from sanderling.crawl.source import DOMAIN, HostShares, Progress
from sanderling.engine.blame import Verdict
from sanderling.engine.ports import Done, Parked
from sanderling.fetch.client import Client
from sanderling.files import AppendFile, sync_folder
from sanderling.formats.handed import failed_item, item_of
from sanderling.outcome import Code, Outcome
from sanderling.records.handover import EventHandover
from sanderling.records.rows import RowWriter
from sanderling.stores import (
    Batch,
    EndedUrl,
    FoundUrl,
    HostNote,
    Ledger,
    PageMemory,
    QueuedUrl,
    RetryUrl,
    RowFile,
    StoredUrl,
)

PACE_EVERY = 30.0  # seconds after which a host's pace is stored again; at once, if it asked us to wait
WIDEST = 16  # times as often as --every says, or as seldom
FAILED_ENDS = ("failed", "refused", "left_out")


class HostState(msgspec.Struct, omit_defaults=True):
    """What is noted of a host that is set aside, and why."""

    code: str = ""
    status: int = 0
    detail: str = ""


class CrawlState(msgspec.Struct, omit_defaults=True):
    """What the ledger keeps of the crawl itself."""

    hosts: tuple[str, ...] = ()  # that came to belong to it
    repeats: bytes = b""
    begun: int = 0  # the run whose first addresses are all known


class CrawlSink:
    """Stores batches of what the engine has done."""

    def __init__(
        self, ledger: Ledger, rows: RowWriter, handler: CrawlHandler, client: Client, robots: RobotsRules | None,
        repeats: Repeats, progress: Progress, shares: HostShares, clock: Clock, keeper: Keeper,
        every: float | None = None, handover: EventHandover | None = None,
    ) -> None:  # fmt: skip
        self.handover = handover
        self._handed: list[dict[str, Any]] = []
        self._every = every
        self._keeper = keeper
        self._ledger = ledger
        self._rows = rows
        self._handler = handler
        self._client = client
        self._robots = robots
        self._repeats = repeats
        self._progress = progress
        self._shares = shares
        self._clock = clock
        self._pace_at: dict[str, float] = {}
        self._good: set[str] = set()
        self._begun = 0
        self._hosts_stored: tuple[str, ...] = handler.more_hosts
        self._prepared: tuple[Sequence[Done], Batch] | None = None
        self.quiet = asyncio.Lock()  # who has it is the only one who writes
        self.bad_starts = 0  # first addresses that were not fetched

    async def write(self, batch: Sequence[Done], parked: Sequence[Parked]) -> Sequence[str]:
        """Store what came of these items, and which hosts are parked or answer again."""
        async with self.quiet:
            return await self._write(batch, parked)

    async def _write(self, batch: Sequence[Done], parked: Sequence[Parked]) -> Sequence[str]:
        # If the store was away it comes again, and its rows are written already.
        if self._prepared is None or self._prepared[0] is not batch:
            self._prepared = batch, await self._prepare(batch, parked)
        if self.handover is not None:
            await self.handover.publish(self._handed)
        woken = await self._ledger.commit(self._prepared[1])
        self._prepared = None
        changed = {url: at for done in batch for url, at in done.handled.result.changed.items()}
        return [*woken, *await self._ledger.visit_now(changed)] if changed else woken

    def reopen(self, files: Sequence[RowFile], names_kind: Callable[[str], bool], hosts: Collection[str]) -> None:
        """Go on in rewritten files, from which some kinds of pages and some hosts are gone."""
        self._rows.reopen(files)
        self._keeper.reopen(files)
        self._repeats.forget(names_kind)
        self._handler.more_hosts = tuple(host for host in self._handler.more_hosts if host not in hosts)

    @property
    def is_away(self) -> bool:
        """Whether rows are written that the ledger could not take note of yet."""
        return self._prepared is not None

    async def _prepare(self, batch: Sequence[Done], parked: Sequence[Parked]) -> Batch:
        wall = self._clock.wall()
        self._handed = []
        stored: list[StoredUrl] = []
        ended: list[EndedUrl] = []
        again: list[RetryUrl] = []
        found: list[FoundUrl] = []
        memory: list[PageMemory] = []
        hosts: dict[str, Outcome] = {}
        tally = Counter[tuple[str, str]]()
        requests = 0
        for done in batch:
            item: QueuedUrl = done.item
            outcome = done.handled.outcome
            result: Result = done.handled.result
            hosts[item.host] = outcome
            verdict = done.judgement.verdict
            is_kept = verdict is Verdict.END and outcome.ok
            is_page = is_kept and result.counts and item.kind != "visit"
            self._shares.end(item, stored=is_page)
            if is_page and (domain := self._shares.domain(item.host)):
                tally[DOMAIN, domain] += 1
            if verdict is Verdict.END:
                for each in result.kept:
                    self._keeper.append(each)
            if verdict in (Verdict.RETRY, Verdict.WAIT):
                due = inf if isinf(done.judgement.wait) else wall + done.judgement.wait
                again.append(RetryUrl(item, due, done.judgement.failures, outcome.code))
            elif is_kept:
                number = self._rows.append(item.key, result.lines, self._ledger.run, same=result.same)
                if self.handover is not None and not result.same and result.end not in ("moved", "unchanged"):
                    lines = enumerate(result.lines)
                    self._handed += [item_of(line, item.key, self._ledger.run, place) for place, line in lines]
                found += self._in_order(item, result)
                known = result.memory
                if known is not None and not result.same:  # with the place of the row that holds until it changes
                    known = msgspec.structs.replace(known, digest=number.to_bytes(PLACE) + known.digest)
                visit_at = None
                if self._every is not None and (known or item.memory) is not None:
                    interval = next_interval(self._every, item.memory, same=result.same)
                    visit_at = wall + interval
                    known = item.memory if known is None or result.same else known
                    known = msgspec.structs.replace(known, interval=interval, seen=wall)  # type: ignore[type-var] # one is there
                if known is not None:
                    memory.append(known)
                stored.append(StoredUrl(item, end=result.end, visit_at=visit_at))
                self._progress.fetched += is_page and not self._progress.of_requests
                self._progress.records += len(result.lines)
            else:
                end = result.end or ("refused" if outcome.code is Code.REFUSED else "failed")
                tries = item.failures + result.requests
                detail = (result.detail or outcome.detail)[:2000]
                ended.append(EndedUrl(item, end, outcome.code, outcome.status, detail, tries))
                self.bad_starts += not item.depth
                if self.handover is not None and end == "failed":
                    self._handed.append(failed_item(item.url, item.key, self._ledger.run, outcome.code, detail))
            requests += result.requests
        for host in hosts:
            found += self._handler.sitemaps(host)
        if self._progress.of_requests:
            self._progress.fetched += requests
            tally["requests", ""] = requests
        files = await asyncio.to_thread(self._keeper.write)
        files += await asyncio.to_thread(self._rows.write) if stored else []
        notes = self._notes(hosts, [done for done in batch if done.handled.outcome.ok], parked)
        return Batch(stored, ended, again, found, notes, memory, files, tally, self._state())

    def _in_order(self, item: QueuedUrl, result: Result) -> list[FoundUrl]:
        """What a page leads to, those links first that are likely to give new texts."""
        if result.text:
            self._repeats.see(item.url, result.text, Stored.unpack(item.data).by)
        ranks = ((each, self._repeats.priority(each.url)) for each in result.found)
        return [msgspec.structs.replace(each, priority=each.priority + rank) if rank else each for each, rank in ranks]

    def _state(self) -> bytes | None:
        if not (self._repeats.changed or self._handler.more_hosts != self._hosts_stored):
            return None
        return self.state()

    def state(self, begun: int = 0) -> bytes:
        """What the next run has to know; `begun` is the run whose first addresses are all stored by now."""
        self._begun = begun or self._begun
        self._hosts_stored = self._handler.more_hosts
        return msgspec.msgpack.encode(CrawlState(self._hosts_stored, self._repeats.saved(), self._begun))

    def _notes(self, hosts: dict[str, Outcome], good: list[Done], parked: Sequence[Parked]) -> list[HostNote]:
        """What was learned about hosts, as far as it has changed."""
        now, wall = self._clock.now(), self._clock.wall()
        fields: dict[str, dict[str, object]] = {}
        for host, outcome in hosts.items():
            own = fields.setdefault(host, {})
            if self._robots is not None and (robots := self._robots.saved(host)) is not None:
                own["robots"] = robots
            if outcome.retry_after or now - self._pace_at.get(host, now - PACE_EVERY) >= PACE_EVERY:
                self._pace_at[host] = now
                own["pace"] = self._client.limiter.saved(host)
        for host in self._client.cookies.changed():
            fields.setdefault(host, {})["cookies"] = self._client.cookies.saved(host, wall) or b""
        for done in good:
            host = done.item.host
            if host not in self._good and done.handled.repeatable:
                self._good.add(host)
                fields.setdefault(host, {})["good"] = done.item.url
        for each in parked:
            own = fields.setdefault(each.host, {})
            own["parked"] = 0.0 if each.wait is None else wall + each.wait
            why = each.why
            own["note"] = b"" if why is None else msgspec.msgpack.encode(HostState(why.code, why.status, why.detail))
            own["pace"] = self._client.limiter.saved(each.host)
        return [HostNote(host, **own) for host, own in fields.items() if own]  # type: ignore[arg-type]


def next_interval(every: float, memory: PageMemory | None, *, same: bool) -> float:
    """Seconds until a page is visited again: half as long if it has changed, twice as long if not."""
    if memory is None or not memory.interval:
        return every
    wanted = memory.interval * 2 if same else memory.interval / 2
    return min(max(wanted, every / WIDEST), every * WIDEST)


class FailedRow(msgspec.Struct, omit_defaults=True):
    """A line of `failed.jsonl`: an address that ended without a record, and whose fault that was."""

    url: str
    host: str
    depth: int
    end: str
    status: int
    detail: str
    requests: int
    fault: str
    outcome: str
    read: str = ""


async def write_failed(folder: Path, ledger: Ledger) -> int:
    """Write `failed.jsonl` anew; how many lines it has."""
    draft = folder / ".failed.jsonl.draft"
    file = AppendFile(draft)
    number = 0
    try:
        for end in FAILED_ENDS:
            lines: list[bytes] = []
            async for state in ledger.tasks(end):
                fault = "us" if end != "failed" else "item"
                row = FailedRow(
                    state.url, state.host, state.depth, end, state.status, state.detail, state.requests, fault,
                    state.code, state.function,
                )  # fmt: skip
                lines.append(msgspec.json.encode(row) + b"\n")
                number += 1
                if len(lines) >= 2000:
                    file.append(b"".join(lines))
                    lines = []
            file.append(b"".join(lines))
        file.sync()
    finally:
        file.close()
    draft.replace(folder / "failed.jsonl")
    sync_folder(folder)
    return number
