"""Makes what came of repos durable: blocks into the segment first, then the progress takes note of them.

A DID counts as archived only when its block is durable. What a crash leaves between the two is found again at the next
start, in the segment itself.
"""

from collections.abc import Sequence
from typing import NamedTuple, Never, Protocol

import msgspec

from sanderling.engine.writer import Writer, WriterRules
from sanderling.executor import Executor
from sanderling.stores.ports import Finished, HostAside, RepoProgress, Unfinished

# Blocks are larger than rows: more of them may wait for the disk.
RULES = WriterRules(items=5_000, bytes=16 * 2**20, most_bytes=128 * 2**20, most_items=20_000)
AT_ONCE = 5_000  # DIDs that the progress is told of: of a host that goes away a million may wait


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


Ended = Archived | Note | HostAside
RepoWriter = Writer[Ended, Never, str | None, list[str]]


class RepoSink:
    """Writes into segments and progress, through one thread."""

    def __init__(self, segments: Appends, progress: RepoProgress, desk: Executor) -> None:
        self.bytes = 0  # of repos that are durable, in this run
        self._segments = segments
        self._progress = progress
        self._desk = desk

    async def write(self, ended: Sequence[Ended], found: Sequence[Never], checkpoint: str | None) -> list[str]:
        """Commit it; the DIDs that are on disk now as they were meant to be, and in memory no more."""
        del found
        archived = [each for each in ended if isinstance(each, Archived)]
        notes = [each for each in ended if isinstance(each, Note)]
        hosts = [each for each in ended if isinstance(each, HostAside)]
        failed = [each.failed for each in notes]
        await self._desk(_record, self._segments, self._progress, archived, failed, hosts, checkpoint)
        self.bytes += sum(len(each.block) for each in archived)
        return [*(each.did for each in archived), *(each.failed.did for each in notes if each.leaves)]

    def stop(self) -> None:
        """A store that is away ends the crawl at once, so nothing waits for it."""


def _record(
    segments: Appends,
    progress: RepoProgress,
    archived: Sequence[Archived],
    failed: Sequence[Unfinished],
    hosts: Sequence[HostAside],
    cursor: str | None,
) -> None:
    """At the desk. The cursor stands for what this very write settles, so it moves with the last of it.

    Blocks come right before the record that has them: where both are kept elsewhere, they are one.
    """
    whole = len(failed) - len(failed) % AT_ONCE
    for start in range(0, whole, AT_ONCE):
        progress.record([], failed[start : start + AT_ONCE], cursor=None, segment=segments.number)
    number = segments.append([(each.did, each.block) for each in archived]) if archived else segments.number
    done = [Finished(each.did, len(each.block)) for each in archived]
    progress.record(done, failed[whole:], cursor=cursor, segment=number, hosts=hosts)
