"""Makes a plain folder of one part of a fleet's crawl of repos: its progress, and segments of the usual size.

Each commit of a fleet has a segment of its own. Their repos are appended here to larger ones, some commits at a time;
then `pulled` says up to which commit that is. Whoever is killed in between has repos in the .part of which nobody has
taken note: they are known by their DIDs, and not appended again. For that a .part becomes a segment only when all of it
was taken note of.
"""

import io
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sanderling.clock import SystemClock
from sanderling.crawls.fleet_pull import PulledPart
from sanderling.formats.rca import RcaError
from sanderling.formats.rca_reader import RcaReader
from sanderling.repos.parts import PROGRESS
from sanderling.repos.segments import Segments, segments_in
from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new
from sanderling.stores.fleet import Segment
from sanderling.stores.sqlite_progress import SqliteProgress

PULLED = "pulled"  # the file that says how far it is
SEGMENT_SIZE = 2 * 10**9  # bytes that a segment grows to, as those of a crawl do
AT_ONCE = 32 * 2**20  # bytes of repos that are appended together


async def bring_segments(part: PulledPart) -> int:
    """Have the repos that the progress speaks of; how many bytes are new. Raises FolderError, ObjectError."""
    found, at = await part.segments(PROGRESS), _read_pulled(part.folder)
    with closing(SqliteProgress(part.folder / PROGRESS)) as progress:
        expected = progress.view().segment
        if expected != len(found):
            where = f"{part.folder} has {len(found)} segments, its progress speaks of {expected}"
            raise FolderError(f"{where}: somebody has crawled there; pull into another folder")
        new, size = [each for each in found if each.number > at], 0
        while True:
            with Segments(part.folder, size=sys.maxsize, created_at=lambda: int(SystemClock.wall() * 1e6)) as kept:
                filled, more = await _fill(part, new, kept, progress)
            new, size = new[filled:], size + more
            if not new:
                return size


async def _fill(part: PulledPart, new: Sequence[Segment], kept: Segments, progress: SqliteProgress) -> tuple[int, int]:
    """Append the repos of these commits until the segment is full; how many commits, and how many bytes.

    Without those that are there, and those that were forgotten here.
    """
    there, waiting, size = {each.did for each in kept.found}, list[tuple[str, bytes]](), 0
    for filled, each in enumerate(new, 1):
        blocks = _blocks(await part.fetch(each), each)
        # What a commit has is complete; what is not any more was forgotten here.
        left_out = there.union(progress.pending([did for did, _ in blocks]))
        waiting += [block for block in blocks if block[0] not in left_out]
        new_bytes = sum(len(block) for _, block in waiting)
        if new_bytes >= AT_ONCE or each is new[-1]:
            if waiting:
                kept.append(waiting)
            _write_pulled(part.folder, each.number)
            waiting, size = [], size + new_bytes
            if kept.bytes >= SEGMENT_SIZE:
                return filled, size
    return len(new), size


def _blocks(data: bytes, segment: Segment) -> list[tuple[str, bytes]]:
    try:
        return [(block.did, block.data) for block in RcaReader(io.BytesIO(data))]
    except RcaError as error:
        raise FolderError(f"the segment {segment.key} is damaged: {error}") from None


def _read_pulled(folder: Path) -> int:
    """The last commit whose repos are in the folder."""
    path = folder / PULLED
    with plainly(folder):
        if not path.exists():
            if any(each.suffix == ".rca" for each in segments_in(folder)):
                raise FolderError(
                    f"{folder} has segments, and {path.name} does not say of what; pull into another folder"
                )
            return 0
        said = path.read_text(encoding="ascii").strip()
    if not said.isdigit():
        raise FolderError(f"{path} has {said[:20]!r}, expected the number of a commit; pull into another folder")
    return int(said)


def _write_pulled(folder: Path, number: int) -> None:
    with plainly(folder):
        write_new(folder / PULLED, [f"{number}\n".encode()])
        sync_folder(folder)


def finish_pulled(folder: Path, wall: float, complete: bool) -> None:  # noqa: FBT001 - by a table
    """Leave a part that was pulled as the folder of a crawl whose run has come to its end."""
    del wall
    if complete:
        with closing(SqliteProgress(folder / PROGRESS)) as progress:
            progress.record([], [], cursor="", segment=progress.view().segment)
