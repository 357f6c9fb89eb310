"""Remove requests from the folder of a job, with the records that came of them, as if they had never been sent.

The ledger knows which bytes of the records came of which request. The records that are left are written to
records.next; then the ledger lets go of the requests and vouches for the new bytes; then these take the name of the
old ones. Killed in between, the checksum in the ledger says which of the two files is meant.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.crawls.archive import FOLDER as WARCS
from sanderling.crawls.archive_forget import CaptureRemoval, cut_archive, sweep
from sanderling.crawls.exchange import INBOX
from sanderling.crawls.folder import FAILED
from sanderling.crawls.kept import FILE as KEPT
from sanderling.crawls.part_forget import add_removed, forget_in_parts
from sanderling.crawls.parts import folders_of
from sanderling.ids import HostError, host_of
from sanderling.jobs.aliases import url_in
from sanderling.jobs.files import FRONTIER, NEXT, RECORDS
from sanderling.jobs.watchdog import FILE as STUCK
from sanderling.pages.forget import ForgottenUrls, MeantUrls, rewrite_failures, wishes
from sanderling.pages.urls import UrlError, normalise
from sanderling.stores.durable import FolderError, Lock, plainly, sync_folder, write_new
from sanderling.stores.forgotten import Forgotten
from sanderling.stores.frontier_requests import RequestFrontier, WrittenBytes
from sanderling.stores.frontier_rows import SCREENSHOTS
from sanderling.stores.host_traces import remove_traces
from sanderling.stores.mailbox import blank_lines
from sanderling.stores.rows_file import reaches, read_rows

PIECE = 1 << 20  # bytes that are read at a time

Say = Callable[[str], object]


class JobRemoved(NamedTuple):
    """How much was removed."""

    records: int = 0
    requests: int = 0
    files: int = 0  # answers as they came, screenshots
    captures: int = 0  # in WARC


class _Kept(msgspec.Struct):
    url: str
    body_path: str | None = None
    warc_file: str | None = None


class _Meant:
    """Which URLs are meant, spelled as they may be."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._listed = MeantUrls(lines)
        self.host = self._listed.host

    def __call__(self, url: str) -> str:
        return self._listed(_normal(url))


def is_forgotten(forgotten: ForgottenUrls, url: str) -> bool:
    """Whether a URL, spelled as it may be, was forgotten."""
    try:
        return forgotten.has(_normal(url), host_of(url))
    except HostError:
        return False


def _normal(url: str) -> str:
    try:
        return normalise(url)
    except UrlError:
        return url


def begin(folder: Path, lines: Sequence[str], exports: Sequence[str]) -> None:
    """Decide to forget what these lines mean. Raises FolderError, UrlError."""
    parts, wanted = folders_of(folder), wishes(lines)
    if parts != [folder]:
        for part in parts:
            with closing(RequestFrontier(part / FRONTIER, ())) as ledger:
                check_whole(part, ledger)
        Forgotten.of(folder).begin(wanted, lines, exports)
        return
    with _held(folder):
        if not Forgotten.of(folder).says.removing:
            with closing(RequestFrontier(folder / FRONTIER, ())) as ledger:
                check_whole(folder, ledger)
        Forgotten.of(folder).begin(wanted, lines, exports)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """The folder for us alone."""
    with plainly(folder):
        lock = Lock(folder / "lock")
        try:
            yield
        finally:
            lock.release()


def check_whole(folder: Path, ledger: RequestFrontier) -> None:
    """Raise FolderError where it is not known of all records which request they came of."""
    if not reaches(folder / RECORDS, ledger.meta.watermark):
        raise FolderError(f"{folder / RECORDS} lacks records. Restore it from a copy.")
    if sum(each.length for each in ledger.written()) != ledger.meta.watermark:
        raise FolderError(
            f"{folder} has records of an earlier release, which did not note which request they came of. "
            "Run the job in a new folder"
        )


def survey(folder: Path, lines: Sequence[str]) -> JobRemoved:
    """How much there is to be removed, with what was cut short. Changes no record. Raises FolderError, UrlError."""
    parts = folders_of(folder)
    if parts != [folder]:
        return add_removed(survey(part, lines) for part in parts)
    meant = _Meant((*Forgotten.of(folder).says.removing, *lines))
    with _held(folder):
        with closing(RequestFrontier(folder / FRONTIER, ())) as ledger:
            check_whole(folder, ledger)
            pieces = [each for each in ledger.written() if meant(each.url)]
            requests = sum(bool(meant(url)) for url in ledger.urls())
        records = sum(piece.count(b"\n") for piece in read_pieces(folder / RECORDS, pieces))
        gone = [row for row in _kept(folder) if meant(row.url)]
        stay = {row.body_path for row in _kept(folder) if not meant(row.url)}
        files = {row.body_path for row in gone} - stay - {None}
    return JobRemoved(records, requests, len(files), sum(row.warc_file is not None for row in gone))


def finish(folder: Path, say: Say = lambda _: None) -> JobRemoved:
    """Remove what is to be removed; what of it was left. Raises FolderError."""
    parts = folders_of(folder)
    if parts != [folder]:
        removed = forget_in_parts(
            folder, parts, lambda part, lines: begin(part, lines, ()), lambda part: finish(part, say)
        )
        return removed or JobRemoved()
    with _held(folder):
        return go_on(folder, say)


def go_on(folder: Path, say: Say = lambda _: None) -> JobRemoved:
    """The same for whoever holds the folder."""
    forgotten = Forgotten.of(folder)
    if not forgotten.says.removing or not (folder / FRONTIER).exists():
        return JobRemoved()
    meant = _Meant(forgotten.says.removing)
    with closing(RequestFrontier(folder / FRONTIER, ())) as ledger:
        _settle(folder, ledger)
        say("answers that are kept")
        captures = _forget_kept(folder, ledger, meant)
        say("records")
        records, requests = _forget_records(folder, ledger, meant)
        known = set(ledger.known_ids(screenshots(folder)))
    say("files that no row speaks of")
    files = _remove_files(folder, known)
    rewrite_failures(folder / FAILED, meant)
    (folder / STUCK).unlink(missing_ok=True)
    blank_lines(folder / INBOX, lambda line: meant(url_in(line)))
    remove_traces(folder, meant.host)
    forgotten.removed()
    return JobRemoved(records, requests, files, captures)


def _settle(folder: Path, ledger: RequestFrontier) -> None:
    """If the records are there twice, let those be there that the ledger vouches for."""
    path, meta = folder / NEXT, ledger.meta
    if not path.exists():
        return
    if path.stat().st_size == meta.watermark and _checksum(path) == meta.checksum:
        path.replace(folder / RECORDS)
    else:
        path.unlink()
    sync_folder(folder)


def _forget_records(folder: Path, ledger: RequestFrontier, meant: _Meant) -> tuple[int, int]:
    """How many records and requests were removed."""
    before = ledger.meta.records
    kept = (each for each in ledger.written() if not meant(each.url))
    write_new(folder / NEXT, read_pieces(folder / RECORDS, kept))
    sync_folder(folder)
    path = folder / NEXT
    records, size = _count(path), path.stat().st_size
    checksum = _checksum(path)
    requests = ledger.forget(
        lambda url, _: meant(url), lambda _: True, watermark=size, records=records, checksum=checksum
    )
    _settle(folder, ledger)
    return before - records, requests


def _forget_kept(folder: Path, ledger: RequestFrontier, meant: _Meant) -> int:
    """Remove answers that were kept; how many captures."""
    path = folder / KEPT
    if not path.exists():
        return 0
    length, archived = min(ledger.meta.kept, path.stat().st_size), (folder / WARCS).exists()
    if archived:
        cut_archive(folder, 1, path, length)
    gone = [row for row in _kept(folder, length) if meant(row.url)]
    write_new(path, CaptureRemoval(folder, path, length, meant).rows())
    sync_folder(folder)
    if archived:
        sweep(folder, 1, path, path.stat().st_size)
    ledger.kept = path.stat().st_size
    return sum(row.warc_file is not None for row in gone)


def _remove_files(folder: Path, known: set[int]) -> int:
    """Remove the answers that no row speaks of, and the screenshots of requests that are not known; how many."""
    spoken = {folder / row.body_path for row in _kept(folder) if row.body_path is not None}
    gone = set((folder / "bodies").glob("[0-9a-f][0-9a-f]/[0-9a-f]*")) - spoken
    gone |= {path for number, path in screenshots(folder).items() if number not in known}
    for path in gone:
        path.unlink()
    return len(gone)


def screenshots(folder: Path) -> dict[int, Path]:
    """The screenshots, by the ids of their requests."""
    return {int(path.stem): path for path in (folder / SCREENSHOTS).glob("*.png") if path.stem.isdigit()}


def _kept(folder: Path, length: int | None = None) -> Iterator[_Kept]:
    path = folder / KEPT
    size = path.stat().st_size if path.exists() else 0
    for line, _ in read_rows(path, 0, size if length is None else length):
        yield msgspec.json.decode(line, type=_Kept)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _checksum(path: Path) -> int:
    found = 0
    for piece in _pieces(path):
        found = zlib.crc32(piece, found)
    return found


def _count(path: Path) -> int:
    return sum(piece.count(b"\n") for piece in _pieces(path))


def read_pieces(path: Path, pieces: Iterable[WrittenBytes]) -> Iterator[bytes]:
    """These bytes of the records."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for each in pieces:
            file.seek(each.start)
            yield file.read(each.length)
