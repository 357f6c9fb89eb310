"""Archives of repos as a system: what other commands ask about a folder."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from sanderling.clock import SystemClock
from sanderling.files import FolderError, FolderLock
from sanderling.formats.rca import RcaError, RcaReader
from sanderling.formats.segments import PART, segment_number
from sanderling.options import OptionError
from sanderling.records.answers import Shown, Task, Verified
from sanderling.records.rows import RowReader
from sanderling.repos.archive import Archive, ArchiveRows, key_of, lines_of
from sanderling.repos.atproto import account_at, is_did
from sanderling.repos.feed import RepoState
from sanderling.repos.forget import forget, forget_rows
from sanderling.repos.notes import LEDGER, ledger_of, own_files, read_notes
from sanderling.repos.opening import open_run
from sanderling.repos.sink import TOMBSTONES, iso
from sanderling.stores import Ledger, RowFile, UrlState

TASK_STATES = ("waiting", "failed", "gone", "left_out")
_STATES = (*TASK_STATES, "moved", "unchanged")


def _open_to_read(folder: Path) -> Ledger:
    notes = read_notes(folder)
    if not (notes.ledger or (folder / LEDGER).exists()):
        raise FolderError(f"nothing was archived in {folder} yet", "run its crawl again")
    return ledger_of(folder, notes, SystemClock(), read_only=True)


async def open_archive(folder: Path) -> Archive:
    """The archive of a folder, as far as its ledger counts."""
    async with _open_to_read(folder) as ledger:
        return Archive(folder, await own_files(folder, ledger))


def records(folder: Path) -> RowReader:
    """The records of an archive: of each account the newest, and none of those that are gone."""
    with ThreadPoolExecutor(1) as thread:  # the caller's may have an event loop
        return ArchiveRows(thread.submit(asyncio.run, open_archive(folder)).result())


async def show(folder: Path, key: str) -> Shown:
    """The records of an account, or what became of it."""
    did = key.rpartition("/")[2]
    if not is_did(did):
        raise OptionError(f"KEY: found {key[:60]!r}, expected a DID like did:plc:…")
    archive = await open_archive(folder)
    block = archive.find(did)
    stone = archive.tombstones.get(did)
    if stone is not None and (block is None or stone.at >= block.crawled_at):
        return Shown([], f"gone: {stone.why}, as {stone.host} said on {iso(stone.at)}")
    if block is not None:
        lines = list(lines_of(block))
        return Shown(lines, "" if lines else f"archived on {iso(block.crawled_at)}, and it has no records")
    async with _open_to_read(folder) as ledger:
        state = await _state_of(ledger, did)
    if state is None:
        return Shown()
    return Shown([], " ".join(filter(None, (state.state, state.code, state.detail))))


async def _state_of(ledger: Ledger, did: str) -> UrlState | None:
    """What the ledger knows of an account; at which host it is, is not known here, so all are looked at."""
    found = None
    for state in _STATES:
        async for each in ledger.tasks(state):
            if account_at(each.url)[1] == did and (found is None or found.state == "moved"):
                found = each
    return found


async def verify(folder: Path) -> Verified:
    """Compare each checksum, and the segments with the ledger."""
    async with _open_to_read(folder) as ledger:
        files = await own_files(folder, ledger)
        archive = Archive(folder, files)
        faults = await asyncio.to_thread(lambda: list(_damage(archive, files)))
        state = msgspec.msgpack.decode(ledger.state, type=RepoState) if ledger.state else RepoState()
        present = [path for path in archive.segments if segment_number(path) >= state.first_segment]
        keys: list[bytes] = []
        records = 0
        if not faults:
            for path in present:
                for block in archive.read(path):
                    keys.append(key_of(block))
                    records += sum(each.records for each in block.collections)
            # An account that the directory has deleted is known, and `forget --gone` has removed its repo.
            known = set(keys)
            with RowReader(folder, TOMBSTONES, _stones(folder, files)) as rows:
                stones = [
                    each.key for each in rows.entries() if each.run == ledger.run and b'"deleted"' in each.content
                ]
            others = len(await ledger.row_files()) > len(files)
            if others:
                raise FolderError(
                    f"{folder} is whole, and other processes archive with its ledger into other folders",
                    "nothing compares those together",
                )
            found = await ledger.verify([*keys, *(key for key in dict.fromkeys(stones) if key not in known)])
            faults += [f"{fault.what}: {fault.count:,}, such as {fault.example}" for fault in found]
        counts = await ledger.counts()
    compared = {"accounts known": counts.known, "accounts that wait": counts.waiting, "repos": len(keys)}
    return Verified(faults, compared | {"records": records, "segments": len(archive.segments)})


def _stones(folder: Path, files: list[RowFile]) -> list[RowFile]:
    return [each for each in files if not each.file.endswith(".rca") and (folder / each.file).exists()]


def _damage(archive: Archive, files: list[RowFile]) -> Iterator[str]:
    """What is not as it was written, a sentence each."""
    names = {path.name for path in archive.segments}
    for each in files:
        part = f"{each.file}{PART}"
        if each.file.endswith(".rca") and not names & {each.file, part}:
            yield f"{each.file} is not there, and {each.rows:,} repos were in it"
        if part in names:
            with (archive.folder / part).open("rb") as content:
                crc, left = 0, each.length
                while left and (piece := content.read(min(left, 1 << 20))):
                    crc, left = zlib.crc32(piece, crc), left - len(piece)
            if left or crc != each.crc:
                yield f"{part} is damaged: its first {each.length:,} bytes are not as they were written"
    for path in archive.segments:
        if path.suffix != PART:
            try:
                with RcaReader(path) as reader:
                    reader.verify()
            except RcaError as error:
                yield str(error)
    with RowReader(archive.folder, TOMBSTONES, _stones(archive.folder, files)) as rows:
        yield from rows.damage()


async def tasks(folder: Path, state: str, host: str | None, code: str | None) -> AsyncIterator[Task]:
    """The accounts in a state; those that are gone by their tombstones, of all runs."""
    if state == "gone":
        for stone, _ in (await open_archive(folder)).gone():
            name = stone.host.partition("//")[2]
            if host in (None, name) and code in (None, stone.why):
                yield Task(stone.did, state, name, stone.why, iso(stone.at))
        return
    async with _open_to_read(folder) as ledger:
        async for each in ledger.tasks(state, host=host, code=code):
            due = each.due or None
            yield Task(account_at(each.url)[1], each.state, each.host, each.code, each.detail, due, each.requests)


async def count_tasks(folder: Path) -> dict[tuple[str, str], int]:
    """How many there are in each state, by code."""
    async with _open_to_read(folder) as ledger:
        counts = await ledger.counts()
    found = {(end, code): number for (end, code), number in counts.ends.items() if end in TASK_STATES}
    if counts.waiting:
        found["waiting", ""] = counts.waiting
    return found


async def retry(folder: Path, state: str, host: str | None, code: str | None) -> int:
    """Let what is in a state be tried again."""
    with FolderLock(folder):
        async with ledger_of(folder, read_notes(folder), SystemClock()) as ledger:
            return await ledger.retry(state, host=host, code=code)


__all__ = [
    "TASK_STATES",
    "count_tasks",
    "forget",
    "forget_rows",
    "open_run",
    "records",
    "retry",
    "show",
    "tasks",
    "verify",
]
