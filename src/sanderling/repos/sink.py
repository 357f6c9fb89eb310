"""Makes what came of repos durable: blocks into the segment first, then the progress takes note of them.

A DID counts as archived only when its block is durable. What a crash leaves between the two is found again at the next
start, in the segment itself.

What a host says of a repo is final only if the account is still there: one that has moved, by the directory, is not
gone, and is asked for at its new host.
"""

from collections.abc import Sequence
from typing import NamedTuple, Never, Protocol

import msgspec

from sanderling.apis.atproto import AtprotoCategory
from sanderling.engine.writer import Writer, WriterRules
from sanderling.executor import Executor
from sanderling.ids import HostError, host_of
from sanderling.repos.directory import Directory
from sanderling.stores.ports import Finished, HostAside, RepoProgress, Unfinished

# Blocks are larger than rows: more of them may wait for the disk.
RULES = WriterRules(items=5_000, bytes=16 * 2**20, most_bytes=128 * 2**20, most_items=20_000)
AT_ONCE = 5_000  # DIDs that the progress is told of: of a host that goes away a million may wait
MOVED_DUE = 1  # Unix seconds; the due time of an account that has moved: it need not wait for anything


class Appends(Protocol):
    """The segments, as far as they are written to."""

    def append(self, blocks: list[tuple[str, bytes]]) -> int:
        """Make the blocks durable; the number of the segment."""

    @property
    def number(self) -> int:
        """The segment that is written to."""


class Archived(msgspec.Struct, gc=False):
    """A repo that was read: its block."""

    did: str
    block: bytes


class Note(NamedTuple):
    """Why a repo was not archived, and when it is due."""

    failed: Unfinished
    leaves: bool  # whether it is in memory no more
    url: str = ""  # of the host that said so, if the account may be elsewhere by now


class WrittenRepos(NamedTuple):
    """What is on disk now."""

    dids: list[str]  # which are as they were meant to be, and in memory no more
    moved: list[Unfinished]  # what a host said of accounts that are at another one by now: they are scheduled


Ended = Archived | Note | HostAside
RepoWriter = Writer[Ended, Never, str | None, WrittenRepos]


class RepoSink:
    """Writes into segments and progress, through one thread."""

    def __init__(self, segments: Appends, progress: RepoProgress, directory: Directory, disk: Executor) -> None:
        self.bytes = 0  # of repos that are durable, in this run
        self._segments = segments
        self._progress = progress
        self._directory = directory
        self._disk = disk

    async def write(self, ended: Sequence[Ended], found: Sequence[Never], checkpoint: str | None) -> WrittenRepos:
        """Commit it."""
        del found
        archived = [each for each in ended if isinstance(each, Archived)]
        notes = [each for each in ended if isinstance(each, Note)]
        hosts = [each for each in ended if isinstance(each, HostAside)]
        failed = [each.failed for each in notes]
        if any(each.url for each in notes):
            failed = await self._disk(find_moved, self._directory, notes)
        await self._disk(_record, self._segments, self._progress, archived, failed, hosts, checkpoint)
        self.bytes += sum(len(each.block) for each in archived)
        settled = [*(each.did for each in archived), *(each.failed.did for each in notes if each.leaves)]
        moved = [note.failed for note, noted in zip(notes, failed, strict=True) if noted is not note.failed]
        return WrittenRepos(settled, moved)

    def stop(self) -> None:
        """A store that is away ends the crawl at once, so nothing waits for it."""


def find_moved(directory: Directory, notes: Sequence[Note]) -> list[Unfinished]:
    """What is to be noted: an account that the directory has elsewhere by now is due, and not gone."""
    asked = {each.failed.did: each.url for each in notes if each.url}
    urls = directory.hosts_of(list(asked))
    moved = {did for did, url in asked.items() if _host(urls.get(did, url)) != _host(url)}
    return [_moved(each.failed.did) if each.failed.did in moved else each.failed for each in notes]


def _host(url: str) -> str:
    """The host of an address, however it is spelled; what is no address is itself."""
    try:
        return host_of(url)
    except HostError:
        return url


def _moved(did: str) -> Unfinished:
    return Unfinished(did, AtprotoCategory.MOVED.value, permanent=False, due=MOVED_DUE)


def _record(
    segments: Appends,
    progress: RepoProgress,
    archived: Sequence[Archived],
    failed: Sequence[Unfinished],
    hosts: Sequence[HostAside],
    cursor: str | None,
) -> None:
    """The cursor stands for what this very write settles, so it moves with the last of it.

    Blocks come right before the record that has them: where both are kept elsewhere, they are one.
    """
    whole = len(failed) - len(failed) % AT_ONCE
    for start in range(0, whole, AT_ONCE):
        progress.record([], failed[start : start + AT_ONCE], cursor=None, segment=segments.number)
    number = segments.append([(each.did, each.block) for each in archived]) if archived else segments.number
    done = [Finished(each.did, len(each.block)) for each in archived]
    progress.record(done, failed[whole:], cursor=cursor, segment=number, hosts=hosts)
