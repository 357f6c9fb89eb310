"""Remove repos from the segments of a folder, and know their DIDs again without their names.

Each segment that has some is written anew beside itself and takes its own name; then the progress lets go of them.
Done again after it was killed, it does nothing where it was done before.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from sanderling.formats.rca import RcaError
from sanderling.formats.rca_writer import RcaWriter
from sanderling.ids import HostError, host_of
from sanderling.repos.archives import Archive, ArchiveProblem, BlockHead
from sanderling.repos.directory import Directory, DirectoryEntry
from sanderling.repos.hand_out import remove_handed
from sanderling.repos.leave_out import RepoLeaveOut, read_thing
from sanderling.repos.parts import JoinedProgress, all_segments, archive_folders
from sanderling.repos.segments import PART
from sanderling.stores.durable import FolderError, Lock, draft_of, plainly, sync_folder
from sanderling.stores.forgotten import Forgotten, Wish
from sanderling.stores.host_traces import remove_traces
from sanderling.stores.ports import RepoProgress

ProgressToForget = RepoProgress | JoinedProgress


class ReposRemoved(NamedTuple):
    """How much was removed."""

    repos: int = 0
    segments: int = 0  # that were written anew


class ForgettingDirectory:
    """A directory without what a folder has forgotten."""

    def __init__(self, directory: Directory, forgotten: Forgotten) -> None:
        self._directory = directory
        self._forgotten = forgotten

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        """As of the directory; a page of which nothing is left is no end."""
        while page := self._directory.page(after, limit):
            if kept := [each for each in page if not self._is_forgotten(each.did, each.host)]:
                return kept
            after = page[-1].did
        return []

    def hosts_of(self, dids: Sequence[str]) -> dict[str, str]:
        """As of the directory."""
        found = self._directory.hosts_of(dids)
        return {did: url for did, url in found.items() if not self._is_forgotten(did, url)}

    def count(self) -> int:
        """All that the directory has: to know better would be to read it."""
        return self._directory.count()

    def _is_forgotten(self, did: str, url: str) -> bool:
        try:
            return self._forgotten.has("did", did) or self._forgotten.has("host", host_of(url))
        except HostError:
            return False


def wishes(lines: Sequence[str]) -> list[Wish]:
    """What lines mean, as they are compared. Raises ValueError."""
    return [("host" if is_host else "did", thing) for thing, is_host in map(read_thing, lines)]


def begin(folder: Path, lines: Sequence[str], exports: Sequence[str]) -> None:
    """Decide to forget what these lines mean. Raises FolderError, ValueError."""
    wanted = wishes(lines)
    with plainly(folder), _held(folder):
        Forgotten.of(folder).begin(wanted, lines, exports)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """While nobody crawls there, or in a part of it."""
    with ExitStack() as held:
        for each in sorted({folder, *archive_folders(folder)}):
            held.callback(Lock(each / "lock").release)
        yield


def survey(folder: Path, lines: Sequence[str]) -> ReposRemoved:
    """How much there is to be removed, with what was cut short. Changes nothing. Raises FolderError, ValueError."""
    listed = RepoLeaveOut.of(map(read_thing, (*Forgotten.of(folder).says.removing, *lines)))
    with plainly(folder):
        found = [len(_meant_in(path, listed)) for path in all_segments(folder)]
    return ReposRemoved(sum(found), sum(map(bool, found)))


def finish(folder: Path, progress: ProgressToForget, say: Callable[[str], object] = lambda _: None) -> ReposRemoved:
    """Remove what is to be removed; what of it was left. Raises FolderError, and ProgressError."""
    forgotten = Forgotten.of(folder)
    if not forgotten.says.removing:
        return ReposRemoved()
    listed = RepoLeaveOut.of(map(read_thing, forgotten.says.removing))
    with plainly(folder), _held(folder):
        removed = []
        for path in all_segments(folder):
            say(str(path.relative_to(folder)))
            removed.append(_forget_in(path, listed, progress))
        progress.forget(sorted(listed.dids))
        if listed.hosts:
            progress.clear_aside()
        remove_handed(folder)
        for each in {folder, *archive_folders(folder)}:
            remove_traces(each, lambda host: listed.has("", f"https://{host}"))
        forgotten.removed()
    return ReposRemoved(sum(removed), sum(map(bool, removed)))


def _forget_in(path: Path, listed: RepoLeaveOut, progress: ProgressToForget) -> int:
    """Have the progress let go of what is meant, and write a segment anew without it; how many there were.

    In this order: only the segment says which DIDs of a host are meant.
    """
    meant = _meant_in(path, listed)
    if not meant:
        return 0
    progress.forget([head.did for head in meant])
    problems: list[ArchiveProblem] = []
    with Archive(path, problems.append) as archive:
        _rewrite(path, archive, {head.offset for head in meant}, problems)
    return len(meant)


def _meant_in(path: Path, listed: RepoLeaveOut) -> list[BlockHead]:
    try:
        with Archive(path, lambda _: None) as archive:
            return [head for head in archive.heads(check=False) if listed.has(head.did, head.pds)]
    except RcaError as error:
        raise FolderError(f"{path} is no segment ({error}). Move it away, and run this again.") from None


def _rewrite(path: Path, archive: Archive, without: set[int], problems: Sequence[ArchiveProblem]) -> None:
    draft = draft_of(path)
    try:
        _write_without(draft, archive, without)
        _check(problems)
        if path.suffix == PART:
            # It says how long the .part was; to say nothing is always right.
            (path.parent / "synced").unlink(missing_ok=True)
        draft.replace(path)
        sync_folder(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _write_without(draft: Path, archive: Archive, without: set[int]) -> None:
    with cast("BinaryIO", draft.open("x+b", buffering=0)) as file:
        writer = RcaWriter(file, created_at=archive.header.created_at)
        for block in archive.blocks():
            if block.offset not in without:
                writer.append(block.did, block.data)
        if archive.finalised:
            writer.finalise()
        os.fsync(file.fileno())


def _check(problems: Sequence[ArchiveProblem]) -> None:
    if problems:
        raise FolderError(f"{problems[0]}. Restore it from a copy: what is damaged would be lost with it.")
