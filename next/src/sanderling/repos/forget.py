"""`forget`: removes all that an archive has of accounts or hosts; with `--gone`, the repos of accounts that are gone.

`forget.json` says in plain words what is being removed, until it is: the next `forget` ends what a killed one began.
"""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from sanderling.clock import SystemClock
from sanderling.files import FolderError, FolderLock, read_small, sync_folder, write_file
from sanderling.formats.rca import Block
from sanderling.formats.segments import remove_repos, segments_in
from sanderling.ids import url_key
from sanderling.options import OptionError
from sanderling.records.rows import rewrite_rows
from sanderling.repos.archive import JOURNAL, Archive, read_tombstones
from sanderling.repos.atproto import account_at, is_did
from sanderling.repos.leave_out import read_thing
from sanderling.repos.notes import LEDGER, ledger_of, own_files, read_notes
from sanderling.repos.opening import open_segments
from sanderling.repos.redis_progress import open_redis
from sanderling.repos.replay import ClickhouseRows
from sanderling.repos.sink import TOMBSTONES
from sanderling.stores import Batch, Ledger, RowFile

GONE = "--gone"  # as a word: the repos of accounts that are gone
SUFFIX = ".forgetting"  # of files that take the place of others
_STATES = ("waiting", "failed", "gone", "left_out", "moved", "unchanged")


class RepoForgetting(msgspec.Struct, frozen=True):
    """What is to be removed."""

    dids: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    gone: bool = False

    @classmethod
    def of(cls, words: Iterable[str]) -> "RepoForgetting":
        """What people typed. Raises OptionError."""
        listed = list(words)
        found = [read_thing(word, "THING") for word in listed if word != GONE]
        hosts = frozenset(each for each in found if not is_did(each))
        return cls(frozenset(found) - hosts, hosts, GONE in listed)

    def merged(self, other: "RepoForgetting") -> "RepoForgetting":
        """Both."""
        return RepoForgetting(self.dids | other.dids, self.hosts | other.hosts, self.gone or other.gone)

    def names(self, host: str, did: str) -> bool:
        """Whether an account is to be forgotten; `host` may be an address."""
        return did in self.dids or host.rpartition("//")[2].rstrip("/") in self.hosts

    def __bool__(self) -> bool:
        return bool(self.dids or self.hosts or self.gone)


async def forget(folder: Path, words: tuple[str, ...]) -> str:
    """Remove accounts and hosts, and never request them again; what was done, in a sentence."""
    wanted = RepoForgetting.of(words)
    with FolderLock(folder):
        path = folder / JOURNAL
        if path.exists():
            wanted = wanted.merged(msgspec.json.decode(read_small(path, 1 << 30), type=RepoForgetting))
        if not wanted:
            raise OptionError("THING is missing; expected a DID, a host, or --gone")
        if not (folder / LEDGER).exists() and not read_notes(folder).ledger:
            raise FolderError(f"nothing was archived in {folder} yet", "run its crawl again")
        write_file(path, msgspec.json.encode(wanted))
        async with ledger_of(folder, read_notes(folder), SystemClock()) as ledger:
            accounts, repos = await _forget(folder, ledger, wanted)
        path.unlink()
        sync_folder(folder)
    if wanted.gone and not (wanted.dids or wanted.hosts):
        return f"{repos:,} repos of accounts that are gone were removed"
    return f"{accounts:,} accounts are forgotten, {repos:,} repos were removed"


async def _forget(folder: Path, ledger: Ledger, wanted: RepoForgetting) -> tuple[int, int]:
    files = await own_files(folder, ledger)
    await asyncio.to_thread(_take_places, folder, files)
    segments, _ = await open_segments(folder, 1 << 62, ledger, SystemClock())
    await asyncio.to_thread(segments.close)
    stones = read_tombstones(folder, files)
    gone = (
        frozenset(stone.did for stone, _ in Archive(folder, files, is_half=True).gone()) if wanted.gone else frozenset()
    )
    addresses: set[str] = set()
    if wanted.dids or wanted.hosts:
        for state in _STATES:
            found = [each.url async for each in ledger.tasks(state)]
            addresses.update(url for url in found if wanted.names(*account_at(url)))
        addresses.update(f"{each.host}/{each.did}" for each in stones.values() if wanted.names(each.host, each.did))
    removed: set[str] = set()

    def is_gone(block: Block) -> bool:
        stone = stones.get(block.did)
        if wanted.names(block.pds, block.did):
            removed.add(f"{block.pds}/{block.did}")
            return True
        return block.did in gone and stone is not None and stone.at >= block.crawled_at

    repos = 0
    for path in segments_in(folder):
        repos += await asyncio.to_thread(remove_repos, path, is_gone)
    addresses |= removed
    pairs = [(url.split("/", 3)[2], url_key(url)) for url in addresses] + [(host, b"") for host in wanted.hosts]
    done = await ledger.forget(dict.fromkeys(pairs)) if pairs else None
    if addresses:
        keys = {key for _, key in pairs}
        drafts = await asyncio.to_thread(rewrite_rows, folder, TOMBSTONES, _stones(files), keys.__contains__, SUFFIX)
        sync_folder(folder)
        await ledger.commit(Batch(files=drafts))
        await asyncio.to_thread(_take_places, folder, await own_files(folder, ledger))
    if (address := read_notes(folder).redis) and addresses:
        async with open_redis(address) as redis:
            await redis.forget([account_at(url)[1] for url in addresses])
    (folder / "status.json").unlink(missing_ok=True)  # the next run writes it anew
    return (done.count if done is not None else 0), repos


def _stones(files: Iterable[RowFile]) -> list[RowFile]:
    return [each for each in files if not each.file.endswith(".rca")]


def _take_places(folder: Path, files: Iterable[RowFile]) -> None:
    """Drafts that the ledger counts on take the place of the old files; others are of no use."""
    for each in _stones(files):
        draft = folder / f"{each.file}{SUFFIX}"
        if not draft.exists():
            continue
        if draft.stat().st_size == each.length:
            os.replace(draft, folder / each.file)  # noqa: PTH105 - as in files.py
            sync_folder(folder)
        else:
            draft.unlink()


async def forget_rows(folder: Path, words: tuple[str, ...], address: str) -> str:
    """Remove the rows of accounts from the table that a replay has filled, before they are forgotten here."""
    wanted = RepoForgetting.of(words)
    async with ledger_of(folder, read_notes(folder), SystemClock(), read_only=True) as ledger:
        archive = Archive(folder, await own_files(folder, ledger), is_half=True)
    dids = set(wanted.dids)
    if wanted.hosts:
        dids.update(
            block.did for path in archive.segments for block in archive.read(path) if wanted.names(block.pds, "")
        )
    if wanted.gone:
        dids.update(stone.did for stone, _ in archive.gone())
    async with ClickhouseRows(address, "", "") as rows:
        removed = await rows.remove(sorted(dids))
    return f"rows of {removed:,} accounts were removed from {rows.place}"
