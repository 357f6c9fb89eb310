"""The folders of a crawl of repos in parts, and its progress as one.

What one process had archived before stays in the folder itself: its complete DIDs are known to all parts, and what it
had scheduled goes to the parts before they begin.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from pathlib import Path

from sanderling.crawls.parts import FILE, FOLDER, folders_of
from sanderling.repos.directory import Directory
from sanderling.repos.hand_out import PartLookup
from sanderling.repos.segments import segments_in
from sanderling.stores.ports import FIRST, Due, HostAside, ProgressView, RepoProgress, Unfinished

PROGRESS = "progress.db"
AT_ONCE = 5_000  # DIDs that are moved


def archive_folders(root: Path) -> list[Path]:
    """The folders that hold segments: the parts, and the folder itself if there are none or it has some.

    Raises FolderError.
    """
    parts = folders_of(root)
    return parts if parts == [root] or not is_archive(root) else [*parts, root]


def is_archive(folder: Path) -> bool:
    """Whether somebody has crawled repos into the folder itself."""
    return (folder / PROGRESS).is_file() or bool(segments_in(folder))


def all_segments(root: Path) -> list[Path]:
    """The segments of all parts. Raises FolderError."""
    return [path for folder in archive_folders(root) for path in segments_in(folder)]


def segment_name(path: Path) -> str:
    """What a segment is called among all segments of its crawl: those of parts have the number of their part."""
    folder = path.absolute().parent
    in_parts = folder.parent.name == FOLDER and (folder.parent.parent / FILE).is_file()
    return f"{folder.name}-{path.name}" if in_parts else path.name


def settle_moves(stores: Sequence[RepoProgress], parts: int, directory: Directory) -> int:
    """Schedule each DID where its host is now asked, and only there; how many were moved.

    The stores of the parts are the first, in their order. Nobody asks meanwhile, so that a DID which is in two of them
    for a moment is asked once; killed in between, the next call ends it. What the directory does not have stays.
    """
    lookup, moved = PartLookup(parts), 0
    for number, store in enumerate(stores):
        after, until = FIRST, store.last_due()
        while found := store.due(after, until, AT_ONCE):
            after = found[-1]
            urls = directory.hosts_of([each.did for each in found])
            homes = {each.did: lookup(urls[each.did]) for each in found if each.did in urls}
            gone = [each for each in found if homes.get(each.did, number) != number]
            _move(store, stores, gone, homes)
            moved += len(gone)
    return moved


def _move(store: RepoProgress, stores: Sequence[RepoProgress], gone: Sequence[Due], homes: dict[str, int]) -> None:
    if not gone:
        return
    reasons = store.reasons([each.did for each in gone])
    for home in sorted({homes[each.did] for each in gone}):
        failed = [
            Unfinished(each.did, reasons[each.did], permanent=False, failures=each.failures, due=each.due)
            for each in gone
            if homes[each.did] == home
        ]
        stores[home].record([], failed, cursor=None, segment=stores[home].view().segment)
    store.release([each.did for each in gone])


def share_slots(inflight: Sequence[int], most: int) -> list[int]:
    """How many requests each of some crawls may have in flight, of so many: its share, and what the others leave."""
    return [max(1, most // len(inflight), most - sum(inflight) + own) for own in inflight]


class JoinedProgress:
    """The progress of several parts as one, for whoever looks at it, or removes something from it."""

    def __init__(self, stores: Sequence[RepoProgress], parts: int) -> None:
        """The stores of so many parts are the first."""
        self.stores = stores
        self.parts = parts

    def view(self) -> ProgressView:
        """The sums; the cursor is that of the part which is least far."""
        views = [each.view() for each in self.stores]
        failed: Counter[str] = Counter()
        for each in views:
            failed.update(each.failed)
        return ProgressView(
            cursor=min(each.cursor for each in views[: self.parts]),
            completed=sum(each.completed for each in views),
            failed=dict(sorted(failed.items())),
            segment=max(each.segment for each in views),
            total_crawled=sum(each.total_crawled for each in views),
            bytes_written=sum(each.bytes_written for each in views),
            scheduled=sum(each.scheduled for each in views),
            due=min((each.due for each in views if each.due is not None), default=None),
            hosts_aside=sum(each.hosts_aside for each in views),
        )

    def aside(self, limit: int) -> list[HostAside]:
        """Hosts that did not answer, those that are due first."""
        found = (aside for each in self.stores for aside in each.aside(limit))
        return nsmallest(limit, found, key=lambda each: (each.due, each.host))

    def aside_of(self, host: str) -> HostAside | None:
        """What is noted of a host; None if it is not set aside."""
        return next((found for each in self.stores if (found := each.aside_of(host)) is not None), None)

    def clear_aside(self) -> None:
        """Every host may be asked again."""
        for each in self.stores:
            each.clear_aside()

    def begin_together(self) -> str:
        """Set all parts back to the one that is least far, and say how far that is.

        A DID that an earlier run had handed to that part may be at a host of any other by now. Hosts that one process
        had set aside, before there were parts, are asked by these, which say anew how they are.
        """
        for each in self.stores[self.parts :]:
            each.clear_aside()
        first = min(each.cursor() for each in self.stores[: self.parts])
        self._set_cursors(first)
        return first

    def begin_anew(self) -> None:
        """All parts are complete: the next run begins with the first DID."""
        self._set_cursors("")

    def _set_cursors(self, cursor: str) -> None:
        for each in self.stores[: self.parts]:
            if each.cursor() != cursor:
                each.record([], [], cursor=cursor, segment=each.view().segment)

    def forget(self, dids: Sequence[str]) -> None:
        """Know nothing of these any more."""
        for each in self.stores:
            each.forget(dids)

    def reset(self) -> None:
        """Forget everything."""
        for each in self.stores:
            each.reset()
