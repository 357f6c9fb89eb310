"""Makes what ended durable: blocks and tombstones first, then Redis if there is one, then the ledger.

A DID counts as archived only when its block is on disk. What a kill leaves between the two is cut off, and fetched
again; Redis counts a DID once, however often it is told.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, isinf

import msgspec

from sanderling.clock import Clock
from sanderling.engine.blame import Verdict
from sanderling.engine.ports import Done, Parked
from sanderling.fetch.client import Client
from sanderling.formats.rca import Block
from sanderling.formats.segments import Segments
from sanderling.ids import url_key
from sanderling.outcome import Outcome
from sanderling.records.rows import RowWriter
from sanderling.repos.atproto import GONE, RepoCategory, account_at, address_of, category_of
from sanderling.repos.away import Servers
from sanderling.repos.directory import Directory
from sanderling.repos.figures import RepoFigures
from sanderling.repos.handler import RepoResult
from sanderling.repos.redis_progress import ArchivedRepo, FailedRepo, RedisProgress
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

ARCHIVED, GONE_END, MOVED, FAILED, UNCHANGED, LEFT_OUT = "archived", "gone", "moved", "failed", "unchanged", "left_out"
TOMBSTONES = "gone"  # how the files of tombstones are called
PACE_EVERY = 30.0  # seconds after which a host's pace is stored again; at once, if it asked us to wait
_ENDS = {RepoCategory.UNCHANGED: UNCHANGED, RepoCategory.LEFT_OUT: LEFT_OUT} | dict.fromkeys(GONE, GONE_END)


class Tombstone(msgspec.Struct, frozen=True):
    """What stays of an account that is gone: archived repos that are older do not count any more."""

    did: str
    host: str
    why: str  # a category
    at: int  # microseconds since 1970


class ParkedNote(msgspec.Struct, omit_defaults=True):
    """What is noted of a host that is set aside, and why."""

    code: str = ""
    status: int = 0
    detail: str = ""
    category: str = ""


@dataclass(slots=True)
class _Write:
    """One batch on its way to disk."""

    stored: list[StoredUrl]
    ended: list[EndedUrl]
    again: list[RetryUrl]
    memory: list[PageMemory]
    found: list[FoundUrl]
    blocks: list[tuple[str, bytes]]
    tombstones: list[tuple[QueuedUrl, Tombstone]]
    failed: list[FailedRepo]


class RepoSink:
    """Stores batches of what the engine has done."""

    def __init__(
        self, ledger: Ledger, segments: Segments, tombstones: RowWriter, directory: Directory,
        redis: RedisProgress | None, client: Client, figures: RepoFigures, servers: Servers, clock: Clock, rows: int,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._segments = segments
        self._tombstones = tombstones
        self._directory = directory
        self._redis = redis
        self._client = client
        self._figures = figures
        self._clock = clock
        self._servers = servers
        self._rows = rows  # repos in the present segment
        self._pace_at: dict[str, float] = {}
        self._writing = asyncio.Lock()

    async def write(self, batch: Sequence[Done], parked: Sequence[Parked]) -> Sequence[str]:
        """All of it or nothing."""
        async with self._writing:
            commit, done, failed = await self._prepare(batch, parked)
            redis = self._redis
            if redis is not None and (done or failed):
                number = self._segments.number or None
                await self._servers.call(lambda: redis.record(done, failed, segment=number))
            return await self._ledger.commit(commit)

    async def bury(self, gone: Sequence[tuple[Block, int]], state: bytes) -> None:
        """Note that the directory has deleted accounts whose repos are here, archived in these runs."""
        async with self._writing:
            at = round(self._clock.wall() * 1e6)
            for block, run in gone:
                stone = Tombstone(block.did, block.pds, RepoCategory.DELETED, at)
                key = url_key(address_of(block.pds, block.did))
                self._tombstones.append(key, [msgspec.json.encode(stone)], run)
            files = await asyncio.to_thread(self._tombstones.write)
            await self._ledger.commit(Batch(files=files, state=state))

    async def _prepare(
        self, batch: Sequence[Done], parked: Sequence[Parked]
    ) -> tuple[Batch, list[ArchivedRepo], list[FailedRepo]]:
        wall = self._clock.wall()
        write = _Write([], [], [], [], [], [], [], [])
        gone = [done for done in batch if done.handled.result.category in GONE]
        dids = [account_at(done.item.url)[1] for done in gone]
        now_at = await self._servers.call(lambda: self._directory.find(dids)) if gone else {}
        for done in batch:
            item: QueuedUrl = done.item
            result: RepoResult = done.handled.result
            host, did = account_at(item.url)
            outcome, category = done.handled.outcome, result.category
            if done.judgement.verdict in (Verdict.RETRY, Verdict.WAIT):
                due = inf if isinf(done.judgement.wait) else wall + done.judgement.wait
                code = category or RepoCategory.UNKNOWN
                write.again.append(RetryUrl(item, due, done.judgement.failures, code))
                write.failed.append(FailedRepo(did, code))
                continue
            self._figures.dids += 1
            if category is None and result.made is not None:
                made = result.made
                write.stored.append(StoredUrl(item, "OK", ARCHIVED))
                write.memory.append(PageMemory(item.key, made.rev, seen=wall))
                write.blocks.append((did, made.block))
                self._count(made.records, made.collections, len(made.block), made.dropped)
                continue
            category = category or RepoCategory.UNKNOWN
            elsewhere = now_at.get(did, host)
            if category in GONE and elsewhere not in (host, ""):
                category = RepoCategory.MOVED
                write.found.append(FoundUrl(address_of(elsewhere, did), elsewhere.partition("//")[2]))
            elif category in GONE:
                write.tombstones.append((item, Tombstone(did, host, category, round(wall * 1e6))))
                if item.memory is not None:  # when it is active again, it is fetched, be it as it was
                    write.memory.append(PageMemory(item.key))
            end = MOVED if category is RepoCategory.MOVED else _ENDS.get(category, FAILED)
            detail = elsewhere if category is RepoCategory.MOVED else (result.detail or outcome.detail)[:500]
            write.ended.append(EndedUrl(item, end, category, outcome.status, detail, item.failures + 1))
            write.failed.append(FailedRepo(did, category))
        files = await asyncio.to_thread(self._append, write)
        notes = self._notes(batch, parked)
        commit = Batch(write.stored, write.ended, write.again, write.found, notes, write.memory, files)
        return commit, [ArchivedRepo(did, len(block)) for did, block in write.blocks], write.failed

    def _append(self, write: _Write) -> list[RowFile]:
        files: list[RowFile] = []
        if write.blocks:
            before = self._segments.finished
            for did, block in write.blocks:
                self._segments.append(did, block)
            end = self._segments.sync()
            # A segment begins with a batch, if one does.
            self._rows = len(write.blocks) + (self._rows if self._segments.finished == before else 0)
            self._figures.segments = self._segments.finished
            files.append(RowFile(self._ledger.process, segment_name(end.number), end.length, self._rows, end.crc))
        if write.tombstones:
            for item, tombstone in write.tombstones:
                self._tombstones.append(item.key, [msgspec.json.encode(tombstone)], self._ledger.run)
            files += self._tombstones.write()
        return files

    def _count(self, records: int, collections: int, size: int, dropped: int) -> None:
        figures = self._figures
        figures.records.add(records)
        figures.collections.add(collections)
        figures.compressed.add(size)
        figures.bytes += size
        figures.stored_records += records
        figures.dropped += dropped

    def _notes(self, batch: Sequence[Done], parked: Sequence[Parked]) -> list[HostNote]:
        """What was learned about hosts, as far as it has changed."""
        now, wall = self._clock.now(), self._clock.wall()
        last: dict[str, tuple[Outcome, RepoResult]] = {
            done.item.host: (done.handled.outcome, done.handled.result) for done in batch
        }
        fields: dict[str, dict[str, object]] = {}
        for host, (outcome, _) in last.items():
            if outcome.retry_after or now - self._pace_at.get(host, now - PACE_EVERY) >= PACE_EVERY:
                self._pace_at[host] = now
                fields.setdefault(host, {})["pace"] = self._client.limiter.saved(host)
        for each in parked:
            own = fields.setdefault(each.host, {})
            own["parked"] = 0.0 if each.wait is None else wall + each.wait
            own["note"] = b"" if each.why is None else msgspec.msgpack.encode(parked_note(each.why))
            own["pace"] = self._client.limiter.saved(each.host)
        return [HostNote(host, **own) for host, own in fields.items() if own]  # type: ignore[arg-type]


def parked_note(why: Outcome) -> ParkedNote:
    """What is noted of a host whose last response was that."""
    return ParkedNote(why.code, why.status, why.detail, category_of(why))


def segment_name(number: int) -> str:
    """How a segment is called when it is finished."""
    return f"segment_{number:04}.rca"


def iso(at: int) -> str:
    """Microseconds since 1970 as people read them."""
    return f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ}"
