"""Documents and media: which of them are kept as files, and how a download that broke off is gone on with.

A large file goes to disk as it comes, to partial/, and gets its name in bodies/ with its row. Every few megabytes it is
made durable, with what the host calls this version of it beside it: the next request asks for the rest, if that version
is still the one (If-Range), and a host that knows no parts sends it from the start.
"""

import hashlib
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from sanderling.crawls.kept import suffix_of
from sanderling.fetch.decode import Body, Receiver
from sanderling.pages.kinds import SNIFFED, ContentKind, kind_of, says_nothing
from sanderling.pages.sitemaps import MOST_BYTES
from sanderling.stores.durable import plainly, sync_data, write_new
from sanderling.stores.frontier_rows import BodyFile
from sanderling.task import Headers, Reply, first_header

MOST_RAW, MOST_DECODED = 16 * 2**20, 32 * 2**20  # bytes of a document
UNSAID = "application/octet-stream"  # what has no type is taken for
FOLDER = "partial"
LARGE = 4 * 2**20  # bytes from which on a file goes to disk as it comes, and after which it is made durable again
SAME_BYTES = ("", "identity")  # packings of which parts can be asked for


@dataclass(frozen=True, slots=True)
class FileRules:
    """What is kept of that which is neither HTML, JSON nor text."""

    types: tuple[str, ...] = ("*/*",)  # media types, with * for any part
    most: int = 16 * 2**20  # bytes of a file

    def why_not(self, media: str, size: int) -> str:
        """Why a file of this type and size is not kept; nothing if it is."""
        if not any(fnmatchcase(media or UNSAID, each) for each in self.types):
            return f"not kept: {media or 'no type'} is not among {', '.join(self.types)}"[:200]
        return f"not kept: more than {self.most:,} bytes" if size > self.most else ""


class StoredFile(NamedTuple):
    """A file that came: the bytes, its place if it is kept, or why it is not."""

    size: int
    body: BodyFile | None
    why: str = ""


class PartialFile(msgspec.Struct, frozen=True):
    """What is known of a file of which a part is on disk."""

    url: str
    version: str  # as the host calls it: an ETag, or a date
    size: int


class FileDownloads:
    """The downloads of one folder. Without `on_disk` all of them stay in memory until they are written."""

    def __init__(self, folder: Path, rules: FileRules, *, on_disk: bool = True) -> None:
        self.folder = folder / FOLDER
        self.rules = rules
        self.on_disk = on_disk
        self._begun: dict[str, int] = {}  # bytes on disk of those that are under way
        self.known = {path.stem for path in self.folder.glob("*.json")} if on_disk else set[str]()

    def begin(self, url: str, *, sitemap: bool = False) -> "FileDownload":
        """A download, or the rest of one; a `sitemap` may be as large as the protocol has it."""
        return FileDownload(self, url, sitemap=sitemap)

    def note(self, url: str, size: int | None) -> None:
        """So many bytes are there; None if nothing is under way any more."""
        if size is None:
            self._begun.pop(url, None)
        else:
            self._begun[url] = size

    def received(self, url: str) -> int:
        """Bytes of a file that is under way."""
        return self._begun.get(url, 0)


class FileDownload:
    """One answer, which may be a file. `receive` is what the client asks when the head of the answer is there."""

    def __init__(self, downloads: FileDownloads, url: str, *, sitemap: bool = False) -> None:
        self._downloads = downloads
        self._url = url
        self._sitemap = sitemap
        self._start_of_it: bytes | None = None  # by which it is found out whether it is a file
        self._page: Body | None = None  # what takes it if it is none
        self._handle: int | None = None
        self._size = self._sure = 0
        self._version = self._media = ""
        self._stored: StoredFile | None = None
        self._earlier = self._partial() if downloads.known and self._name in downloads.known else None

    @cached_property
    def _name(self) -> str:
        return hashlib.sha256(self._url.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def _part(self) -> Path:
        return self._downloads.folder / f"{self._name}.part"

    @property
    def _known(self) -> Path:
        return self._downloads.folder / f"{self._name}.json"

    def _partial(self) -> PartialFile | None:
        try:
            with plainly(self._known):
                found = msgspec.json.decode(self._known.read_bytes(), type=PartialFile)
                whole = found.url == self._url and self._part.stat().st_size >= found.size
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        return found if whole else None

    @property
    def headers(self) -> Headers:
        """What asks for the rest, if a part is there."""
        if self._earlier is None:
            return ()
        rest = f"bytes={self._earlier.size}-"
        return ("Range", rest), ("If-Range", self._earlier.version), ("Accept-Encoding", "identity")

    def receive(self, status: int, headers: Headers) -> Receiver | None:
        """What takes the body of this answer, where that is not memory. Raises EOFError for another part."""
        self._page = self._start_of_it = None
        if status not in (200, 206):
            if status == 416:  # there is no such rest
                self._discard()
            return None
        said = first_header(headers, "content-type")
        unsaid = says_nothing(said)
        if self._sitemap and status == 200:
            packing = first_header(headers, "content-encoding")
            return Body(packing, most_raw=MOST_BYTES, most_decoded=MOST_BYTES)
        if kind_of(said, b"") is not ContentKind.OTHER and not unsaid:
            return None
        fields = {name.lower(): value for name, value in reversed(headers)}
        self._media = fields.get("content-type", "").partition(";")[0].strip().lower()
        length = fields.get("content-length", "")
        start = 0 if status == 200 else self._start(fields.get("content-range", ""), fields.get("etag", ""))
        size = start + int(length) if length.isascii() and length.isdigit() else None
        unsaid = unsaid and status == 200  # of what goes on it is known
        if not unsaid and (why := self._downloads.rules.why_not(self._media, size or 0)):
            self._refuse(why, size or 0)
            return self
        plain = fields.get("content-encoding", "").strip().lower() in SAME_BYTES
        if not (self._downloads.on_disk and plain) or (size is not None and size < LARGE):
            return None
        if unsaid:
            self._start_of_it = b""
        else:
            self._open(start)
        etag = fields.get("etag", "")
        self._version = etag if etag.startswith('"') else fields.get("last-modified", "")
        return self

    def _start(self, part: str, etag: str) -> int:
        """The byte that a part begins at. Raises EOFError if it is not the one that was asked for."""
        earlier = self._earlier
        another = earlier is not None and earlier.version.startswith('"') and etag not in ("", earlier.version)
        if earlier is None or another or not part.startswith(f"bytes {earlier.size}-"):
            self._discard()
            raise EOFError(f"answers with the part {part[:60]!r} of {etag[:60] or 'a file'}, which was not asked for")
        return earlier.size

    def _open(self, start: int) -> None:
        self._downloads.folder.mkdir(exist_ok=True)
        self._handle = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._handle, start)
        self._hash = hashlib.sha256()
        with self._part.open("rb") as file:
            while piece := file.read(1 << 20):
                self._hash.update(piece)
        os.lseek(self._handle, start, os.SEEK_SET)
        self._size = self._sure = start
        self._downloads.note(self._url, start)

    # What the client asks of whatever takes a body.

    @property
    def full(self) -> bool:
        """Whether no more of it is wanted."""
        return self._stored is not None or (self._page is not None and self._page.full)

    def add(self, data: bytes) -> None:
        """Take in what has arrived."""
        for _ in self.steps(data):
            pass

    def steps(self, data: bytes) -> Iterator[int]:
        """Write what has arrived; it takes up no memory, unless it turns out to be no file."""
        if self._start_of_it is not None:
            self._start_of_it += data
            if len(self._start_of_it) >= SNIFFED:
                yield from self._find_out(self._start_of_it)
            return
        if self._page is not None:
            yield from self._page.steps(data)
        if self._handle is None:
            return
        left = memoryview(data)
        while left:
            left = left[os.write(self._handle, left) :]
        self._hash.update(data)
        self._size += len(data)
        self._downloads.note(self._url, self._size)
        if why := self._downloads.rules.why_not(self._media, self._size):
            self._refuse(why, self._size)
        elif self._size - self._sure >= LARGE and self._version:
            self._make_sure()
        yield 0

    def finish(self) -> bytes:
        """All of it has come."""
        if self._start_of_it is not None:
            deque(self._find_out(self._start_of_it), 0)
        if self._page is not None:
            return self._page.finish()
        if self._handle is not None:
            sync_data(self._handle)
            body = BodyFile(self._hash.hexdigest(), suffix_of(self._media), b"", source=str(self._part))
            self._stored = StoredFile(self._size, body)
            self._forget()
        return b""

    def _find_out(self, data: bytes) -> Iterator[int]:
        """The host does not say what it is: take it as what it begins like."""
        self._start_of_it = None
        if kind_of(None, data) is not ContentKind.OTHER:
            self._page = Body(None, most_raw=MOST_RAW, most_decoded=MOST_DECODED)
        elif why := self._downloads.rules.why_not(self._media, len(data)):
            self._refuse(why, len(data))
        else:
            self._open(0)
        yield from self.steps(data)

    def _make_sure(self) -> None:
        """Have what is there on disk, and what it is a part of."""
        if self._handle is not None:
            sync_data(self._handle)
        said = PartialFile(self._url, self._version, self._size)
        write_new(self._known, [msgspec.json.encode(said)])
        self._downloads.known.add(self._name)
        self._sure = self._size

    def _refuse(self, why: str, size: int) -> None:
        self._stored = StoredFile(size, None, why)
        self._discard()

    def _forget(self) -> None:
        self._known.unlink(missing_ok=True)
        self._downloads.known.discard(self._name)

    def _discard(self) -> None:
        if self._earlier is not None or self._handle is not None:
            self._close()
            self._forget()
            self._part.unlink(missing_ok=True)
            self._earlier = None

    def settle(self, reply: Reply) -> StoredFile | None:
        """What came of it if it is a file, by what the host says and by its bytes; None if it is to be read."""
        content_type = reply.header("Content-Type")
        if self._stored is None and kind_of(content_type, reply.body) is ContentKind.OTHER:
            media = (content_type or "").partition(";")[0].strip().lower()
            if why := self._downloads.rules.why_not(media, len(reply.body)):
                return StoredFile(len(reply.body), None, why)
        return self._stored

    def _close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            self._downloads.note(self._url, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None and self._stored is None and self._version and self._size > self._sure:
            self._make_sure()  # it broke off
        self._close()
