"""Takes the folder of a job apart: its records, the answers that were kept, and its frontier."""

import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sanderling.crawls.archive import FOLDER as WARCS
from sanderling.crawls.archive_forget import cut_archive
from sanderling.crawls.folder import FAILED
from sanderling.crawls.kept import FILE as KEPT
from sanderling.crawls.split import BODIES, CARRIED, IsOwn, SourceRows, host_in_row, link, split_failures, split_rows
from sanderling.jobs import forget
from sanderling.jobs.files import FRONTIER, JOB, RECORDS
from sanderling.jobs.run import START
from sanderling.jobs.watchdog import FILE as STUCK
from sanderling.jobs.watchdog import read_stuck, write_stuck
from sanderling.stores import forgotten
from sanderling.stores.durable import FolderError, write_new
from sanderling.stores.frontier_requests import JobProgress, RequestFrontier
from sanderling.stores.frontier_rows import SCREENSHOTS
from sanderling.stores.frontier_split import split_ledger
from sanderling.stores.rows_file import reaches


class JobSplit:
    """How a job is taken apart."""

    def is_one(self, out: Path) -> bool:
        """Whether a folder holds a job that one process began, or what is left of one."""
        return (out / FRONTIER).exists()

    def prepare(self, out: Path) -> None:
        """Finish what was cut short. Raises FolderError if it is not known which request each record came of."""
        forget.go_on(out)
        with closing(RequestFrontier(out / FRONTIER, ())) as ledger:  # which brings it to this format
            forget.check_whole(out, ledger)
            kept = ledger.meta.kept
        if not reaches(out / KEPT, kept):
            raise FolderError(f"{out / KEPT} lacks answers. Restore it from a copy.")
        if kept and (out / WARCS).exists():
            cut_archive(out, 1, out / KEPT, kept)

    def split_part(self, out: Path, target: Path, is_own: IsOwn, *, first: bool) -> None:
        """Write a part."""
        meta = split_ledger(out / FRONTIER, target / FRONTIER, is_own)
        requests, kept = meta.requests if first else 0, 0  # of which host they were is not noted
        if meta.kept:
            rows = SourceRows(out, out / KEPT, meta.kept, 1, (out / WARCS).exists())
            kept = split_rows(rows, target, target / KEPT, is_own)
        with closing(RequestFrontier(target / FRONTIER, ())) as ledger:
            pieces = list(ledger.written())
            write_new(target / RECORDS, forget.read_pieces(out / RECORDS, pieces))
            records = checksum = 0
            for piece in forget.read_pieces(out / RECORDS, pieces):
                records, checksum = records + piece.count(b"\n"), zlib.crc32(piece, checksum)
            size = sum(each.length for each in pieces)
            ledger.kept = kept
            ledger.move_up(JobProgress(size, records, checksum, requests))
            for number in ledger.known_ids(forget.screenshots(out)):
                name = f"{SCREENSHOTS}/{number}.png"
                link(out / name, target / name)
        split_failures(out, target, is_own)
        _split_stuck(out, target, is_own, first=first)

    def leftovers(self, out: Path) -> Iterator[Path]:
        """What is removed once there are parts."""
        if not (out / FRONTIER).exists():
            return
        folders = (BODIES, WARCS, SCREENSHOTS)
        names = (RECORDS, FAILED, KEPT, STUCK, JOB, *folders, *(each for each in CARRIED if each != forgotten.FILE))
        yield from (out / name for name in names if (out / name).exists())
        yield out / FRONTIER


def _split_stuck(out: Path, target: Path, is_own: IsOwn, *, first: bool) -> None:
    """What held the event loop; the function that a job starts with is called in the first part."""
    stuck = {
        key: each
        for key, each in read_stuck(out).items()
        if (first if key == START else is_own(host_in_row(key.partition(" ")[2])))
    }
    if stuck:
        write_stuck(target, stuck)
