"""What was fetched, kept as WARC: segments that rows vouch for, and the index of them.

A row says where its capture stands, and the ledger says how far the rows count: what stands behind the capture of the
last row was never vouched for, and is cut off. The index is made of the rows at the end of a run.
"""

import heapq
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from sanderling.formats import warc
from sanderling.formats.cdxj import CdxEntry, cdx_line, find_captures, stamp
from sanderling.redact import is_secret
from sanderling.stores.durable import FolderError, sync_data, sync_folder, write_new, write_pieces
from sanderling.stores.rows_file import read_rows
from sanderling.task import Headers, Reply

FOLDER = "warc"
SUFFIX = ".warc.gz"
SEGMENT = 10**9  # bytes of a file at most, as is usual
TAIL = 32 * 2**20  # bytes of rows that are read when a crawl is gone on with
SEEN = 100_000  # payloads of which it is known that they were kept; some 30 MB
SORTED = 200_000  # lines of the index that are sorted in memory
# What is said of the answer as it came. It is kept unpacked and in one piece, so these get other names.
OF_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class WarcPlace(msgspec.Struct, frozen=True):
    """What a row says of its capture, after its other fields."""

    warc_file: str
    warc_offset: int
    warc_length: int
    warc_type: str  # response or revisit
    warc_digest: str  # of the payload


class ArchivedRow(msgspec.Struct):
    """What of a row an archive and its index need."""

    url: str
    fetched_at: str
    status: int
    content_type: str | None = None
    warc_file: str | None = None
    warc_offset: int = 0
    warc_length: int = 0
    warc_type: str = ""
    warc_digest: str = ""


class ArchiveMark(NamedTuple):
    """How far an archive reaches: its last segment, and the bytes of that."""

    serial: int = 0
    name: str = ""
    size: int = 0


class Archivable(Protocol):
    """A row, and the answer that it is of."""

    @property
    def url(self) -> str:
        """What was asked for."""

    @property
    def row(self) -> bytes | None:
        """Its line, without the line break, if it is kept."""

    @property
    def reply(self) -> Reply | None:
        """What came back, if that is to be archived."""


class EarlierCapture(NamedTuple):
    """What a revisit refers to."""

    url: str
    date: str
    digest: str


decode_row = msgspec.json.Decoder(ArchivedRow).decode


class PageArchive:
    """The segments of one crawl of a folder. One caller at a time."""

    _most_seen = SEEN

    def __init__(self, folder: Path, crawl: int, rows: Path, length: int, *, segment: int = SEGMENT) -> None:
        """Open what the first `length` bytes of the rows vouch for. Raises FolderError if some of it is not there."""
        self._folder = folder / FOLDER
        self._prefix = f"pages-{crawl:04}"
        indexes = (index_path(folder, each) for each in range(crawl - 1, 0, -1))
        self._indexes = [path for path in indexes if path.exists()]
        self._segment = segment
        self._seen: dict[str, EarlierCapture] = {}
        self._handle: int | None = None
        self._waiting: list[bytes] = []
        self.mark = ArchiveMark()
        self._folder.mkdir(exist_ok=True)
        sync_folder(folder)
        self._cut(self._recall(rows, length))

    def _recall(self, rows: Path, length: int) -> ArchiveMark:
        """Where the capture of the last row ends; the last payloads are remembered on the way."""
        mark, read = ArchiveMark(), 0
        for line in _lines_backwards(rows, length):
            row = decode_row(line)
            if row.warc_file is not None and not mark.serial:
                mark = ArchiveMark(_serial_of(row.warc_file), row.warc_file, row.warc_offset + row.warc_length)
            if row.warc_type == "response":
                self._seen.setdefault(row.warc_digest, EarlierCapture(row.url, row.fetched_at, row.warc_digest))
            read += len(line)
            if mark.serial and (read > TAIL or len(self._seen) >= SEEN):
                break
        return mark

    def append(self, ended: Sequence[Archivable]) -> list[bytes]:
        """Keep what was fetched; when this returns it is on disk. The rows, each with the place of its capture."""
        before = self.mark
        try:
            rows = [self._row(each) for each in ended if each.row is not None]
            self._flush()
        except BaseException:
            self.cut(before)
            raise
        return rows

    def _row(self, ended: Archivable) -> bytes:
        row = ended.row or b""
        if ended.reply is None:
            return row
        date = decode_row(row).fetched_at
        request, response, kind, digest = self._records(ended, ended.reply, date)
        if self.mark.serial == 0 or not self._has_room(len(request) + len(response)):
            self._begin_segment(date)
        offset = self.mark.size + len(request)
        self._add(request + response)
        return with_fields(row, WarcPlace(self.mark.name, offset, len(response), kind, digest))

    def _records(self, ended: Archivable, reply: Reply, date: str) -> tuple[bytes, bytes, str, str]:
        """Request and response, packed; the type of the latter and the digest of its payload."""
        name, about = warc.new_id(), [("WARC-Target-URI", reply.url)]
        if reply.address:
            about.append(("WARC-IP-Address", reply.address))
        typed = [*about, ("Content-Type", f"{warc.HTTP}request")]
        request = warc.make_record("request", date, _request_block(reply), typed, name)
        about += [("WARC-Concurrent-To", name), ("Content-Type", f"{warc.HTTP}response")]
        if reply.status == HTTPStatus.NOT_MODIFIED:
            earlier, profile, digest = self.earlier(ended.url), warc.NOT_MODIFIED, ""
        else:
            digest, profile = warc.digest_of(reply.body), warc.SAME
            earlier = self._seen.get(digest) if reply.body else None
        head = _response_head(reply)
        if earlier is not None:
            about += [
                ("WARC-Profile", profile),
                ("WARC-Refers-To-Target-URI", earlier.url),
                ("WARC-Refers-To-Date", earlier.date),
                ("WARC-Payload-Digest", earlier.digest),
            ]
            return request, warc.make_record("revisit", date, head, about), "revisit", earlier.digest
        digest = digest or warc.digest_of(b"")
        about.append(("WARC-Payload-Digest", digest))
        if reply.body:
            self._remember(EarlierCapture(reply.url, date, digest))
        return request, warc.make_record("response", date, head + reply.body, about), "response", digest

    def _remember(self, capture: EarlierCapture) -> None:
        self._seen[capture.digest] = capture
        self.hold(self._most_seen)

    def hold(self, payloads: int) -> None:
        """Know of so many payloads at most that they were kept."""
        self._most_seen = payloads
        while len(self._seen) > payloads:
            del self._seen[next(iter(self._seen))]

    def earlier(self, url: str) -> EarlierCapture | None:
        """The last capture of a URL in earlier crawls of the folder, one with a payload if there is any."""
        known = None
        for path in self._indexes:
            for date, entry in reversed(list(find_captures(path, url))):
                known = known or EarlierCapture(url, date, entry.digest)
                if entry.mime != "warc/revisit":
                    return EarlierCapture(url, date, entry.digest)
        return known

    def _has_room(self, more: int) -> bool:
        """Whether so many bytes more still belong into the segment."""
        return self.mark.size + more <= self._segment

    def _next_serial(self) -> int:
        """The number of the next segment: higher than all before."""
        return self.mark.serial + 1

    def _create(self, name: str) -> None:
        """Make the file of the next segment."""
        self._flush()
        self._close()
        self._handle = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        sync_folder(self._folder)

    def _begin_segment(self, date: str) -> None:
        serial = self._next_serial()
        name = f"{self._prefix}-{stamp(date)}-{serial:05}{SUFFIX}"
        self._create(name)
        self.mark = ArchiveMark(serial, name, 0)
        fields = (
            ("software", f"sanderling/{version('sanderling')}"),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
            ("isPartOf", self._prefix),
            ("robots", "obey"),
        )
        about = (("WARC-Filename", name), ("Content-Type", "application/warc-fields"))
        self._add(warc.make_record("warcinfo", date, warc.header_lines(fields), about))

    def _add(self, record: bytes) -> None:
        self._waiting.append(record)
        self.mark = self.mark._replace(size=self.mark.size + len(record))

    def _flush(self) -> None:
        """Have all that was added on disk."""
        if not self._waiting:
            return
        handle = self._open()
        write_pieces(handle, self._waiting)
        sync_data(handle)
        self._waiting.clear()

    def _open(self) -> int:
        if self._handle is None:  # the last segment of an earlier run, which is as long as its rows say
            self._handle = os.open(self._folder / self.mark.name, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        return self._handle

    def cut(self, mark: ArchiveMark) -> None:
        """Drop what stands behind `mark`. Raises FolderError if the archive does not reach it."""
        self._seen.clear()  # some of it may be dropped
        self._cut(mark)

    def _cut(self, mark: ArchiveMark) -> None:
        self._close()
        self._waiting.clear()
        path = self._folder / mark.name
        if mark.serial and (not path.exists() or path.stat().st_size < mark.size):
            size = path.stat().st_size if path.exists() else 0
            raise FolderError(
                f"{path} has {size} bytes, and the rows speak of {mark.size}: it was cut short or removed",
                "Restore it from a copy, or begin anew in another folder.",
            )
        for other in segments(self._folder.parent, self._prefix):
            if other.name != mark.name and _serial_of(other.name) >= mark.serial:
                other.unlink()
        if mark.serial:
            os.truncate(path, mark.size)
        self.mark = mark

    def _close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def close(self) -> None:
        """Let go of the segment."""
        self._close()


def segments(folder: Path, prefix: str) -> list[Path]:
    """The segments of a crawl, in their order."""
    found = ((path.name.rpartition("-")[2], path) for path in (folder / FOLDER).glob(f"{prefix}-*{SUFFIX}"))
    return [path for serial, path in sorted(found, key=lambda pair: (len(pair[0]), pair))]


def _serial_of(name: str) -> int:
    return int(name.removesuffix(SUFFIX).rpartition("-")[2])


def index_path(folder: Path, crawl: int) -> Path:
    """Where the index of a crawl is."""
    return folder / FOLDER / f"pages-{crawl:04}.cdxj"


def write_index(folder: Path, crawl: int, rows: Path, length: int) -> None:
    """Write the index of a crawl from its rows, in bounded memory; killed at it, the next run does it again."""
    with ExitStack() as files:
        lines, runs = _index_lines(rows, length), []
        while batch := sorted(islice(lines, SORTED)):
            run = files.enter_context(TemporaryFile(dir=folder))
            run.writelines(batch)
            run.seek(0)
            runs.append(run)
        write_new(index_path(folder, crawl), heapq.merge(*runs))
    sync_folder(folder / FOLDER)


def _index_lines(rows: Path, length: int) -> Iterator[bytes]:
    for line, _ in read_rows(rows, 0, length):
        row = decode_row(line)
        if row.warc_file is not None:
            media = (row.content_type or "").partition(";")[0].strip().lower() or "unk"
            entry = CdxEntry(
                url=row.url,
                mime="warc/revisit" if row.warc_type == "revisit" else media,
                status=str(row.status),
                digest=row.warc_digest,
                length=str(row.warc_length),
                offset=str(row.warc_offset),
                filename=row.warc_file,
            )
            yield cdx_line(row.fetched_at, entry)


def with_fields(row: bytes, fields: msgspec.Struct) -> bytes:
    """A row with these fields behind its own."""
    return row[:-1] + b"," + msgspec.json.encode(fields)[1:]


def _lines_backwards(path: Path, length: int) -> Iterator[bytes]:
    """The lines of the first `length` bytes, the last one first."""
    if not length:
        return
    with path.open("rb") as file:
        rest, end = b"", length
        while end:
            start = max(0, end - TAIL)
            file.seek(start)
            lines = (file.read(end - start) + rest).split(b"\n")
            rest = lines.pop(0) if start else b""
            yield from (line for line in reversed(lines) if line)
            end = start


def _request_block(reply: Reply) -> bytes:
    """The request, without what lets somebody in."""
    parts = urlsplit(reply.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = reply.sent or (("Host", parts.netloc.rpartition("@")[2]),)
    lines = warc.header_lines((name, value) for name, value in sent if not is_secret(name))
    return f"GET {target} HTTP/1.1\r\n".encode() + lines + b"\r\n"


def _response_head(reply: Reply) -> bytes:
    """Status line and headers: of the answer as it is kept, and without what lets somebody in."""
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = ""
    headers = warc.header_lines(_kept_headers(reply))
    return f"HTTP/1.1 {reply.status} {phrase}\r\n".encode() + headers + b"\r\n"


def _kept_headers(reply: Reply) -> Headers:
    length = str(len(reply.body))
    kept = [
        (f"X-Archive-Orig-{name}" if name.lower() in OF_WIRE and value != length else name, value)
        for name, value in reply.headers
        if not is_secret(name)
    ]
    if reply.body and reply.header("Content-Length") != length:
        kept.append(("Content-Length", length))
    return tuple(kept)
