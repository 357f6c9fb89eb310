"""Answers from what was kept: a client that reads WARC files, or the folder of a crawl, and sends nothing.

What is kept is looked through once; where the last answer of each URL stands is held in memory, some 150 bytes each.
A file that was cut is read as far as it is whole, and `problems` says where that was.
"""

import hashlib
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import unquote_plus, urlsplit, urlunsplit

import msgspec

from sanderling.crawls.kept import FILE as KEPT
from sanderling.fetch.decode import Body
from sanderling.fetch.guard import Refused
from sanderling.fetch.http import Http
from sanderling.formats.warc import (
    NOT_MODIFIED,
    SUFFIXES,
    WarcError,
    WarcRecord,
    read_message,
    read_record,
    read_records,
)
from sanderling.stores.durable import FolderError, plainly
from sanderling.task import Headers, Reply, Task

ROWS, WARCS = "pages.jsonl", "warc"
# What says nothing of a page: an answer that is kept beside one of these counts.
FAILURES = frozenset({401, 407, 408, 425, 429, *range(500, 600)})
_FAILED = re.compile(rb"HTTP/\S+ (?:401|407|408|425|429|5\d\d)\b")
MOST = 256 * 2**20  # bytes of a body, packed and unpacked
OFFSET = 48  # bits of a position that say the byte; those above say the file


class StoredRow(msgspec.Struct):
    """What of a row leads to the page as it came."""

    url: str
    status: int
    content_type: str | None = None
    moved_to: str | None = None
    body_path: str | None = None
    warc_file: str | None = None
    warc_offset: int = 0
    warc_type: str = ""
    warc_digest: str = ""


class _KeptFile(NamedTuple):
    path: Path
    root: Path | None = None  # of a file of rows: the folder that their paths begin at


class StoredReplies(Http):
    """Answers each URL with what was last kept of it."""

    def __init__(self, path: Path) -> None:
        """Look through a WARC file, a folder of them, or that of a crawl. Raises FolderError if nothing is there."""
        super().__init__()
        self.problems: list[str] = []
        self._path = path
        self._files: list[_KeptFile] = []
        self._places: dict[int, int] = {}
        with plainly(path):
            for each in _files_of(path):
                self._files.append(each)
                self._look_through(each)
        if not self._places:
            why = f": {self.problems[0]}" if self.problems else ""
            raise FolderError(f"no page is kept in {path}{why}", "Crawl with --keep warc or --keep html first.")

    @property
    def pages(self) -> int:
        """How many URLs and payloads are known."""
        return len(self._places)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held open."""

    async def send(self, task: Task) -> Reply:
        """What was kept. Raises Refused for what was not."""
        url = task.url.partition("#")[0]
        if task.secrets:  # what was kept is without them
            url = _without(url, task.secrets)
        if url.endswith("/robots.txt"):
            return Reply(404, (), b"", task.url, 0.0)  # who sends nothing needs no leave
        found = self._find(url) if task.method == "GET" else None
        if found is None:
            what = "" if task.method == "GET" else f" (a {task.method}; pages are kept that were asked for by GET)"
            raise Refused(f"not kept in {self._path}{what}")
        status, headers, body = found
        return Reply(status, headers, body[: task.most], task.url, 0.0)

    def _look_through(self, file: _KeptFile) -> None:
        number = (len(self._files) - 1) << OFFSET
        if file.root is not None:
            self._look_through_rows(file.path, number)
            return
        try:
            for record in read_records(file.path):
                if record.kind == "response" and _FAILED.match(record.block):
                    continue
                key, names = _key(record.url), record.headers.get("warc-refers-to-target-uri", record.url)
                # What has not changed since an earlier capture of the same URL is that capture.
                if record.kind in ("response", "resource") or (
                    record.kind == "revisit" and not (names == record.url and key in self._places)
                ):
                    self._places[key] = number | record.offset
                if record.kind == "response" and (digest := record.headers.get("warc-payload-digest")):
                    self._places[_key(digest)] = number | record.offset
        except WarcError as error:
            self.problems.append(str(error))

    def _look_through_rows(self, path: Path, number: int) -> None:
        for offset, row in _rows(path):
            if row.status in FAILURES:
                continue
            if row.warc_file is not None or row.body_path is not None or row.moved_to is not None:
                self._places[_key(row.url)] = number | offset
            if row.warc_type == "response":
                self._places[_key(row.warc_digest)] = number | offset

    def _find(self, key: str, hops: int = 3) -> tuple[int, Headers, bytes] | None:
        """Status, headers and body of what is kept under a URL or a digest."""
        place = self._places.get(_key(key))
        if place is None or not hops:
            return None
        file, offset = self._files[place >> OFFSET], place & ((1 << OFFSET) - 1)
        try:
            with plainly(file.path):
                if file.root is None:
                    return self._answer(read_record(file.path, offset), hops)
                return self._answer_of_row(file.root, _row_at(file.path, offset), hops)
        except (WarcError, FolderError) as error:
            raise Refused(f"not kept whole: {error}") from None

    def _answer_of_row(self, root: Path, row: StoredRow, hops: int) -> tuple[int, Headers, bytes] | None:
        if row.warc_file is not None:
            return self._answer(read_record(root / WARCS / row.warc_file, row.warc_offset), hops)
        typed = () if row.content_type is None else (("Content-Type", row.content_type),)
        if row.body_path is not None and row.moved_to is None:
            return row.status, typed, (root / row.body_path).read_bytes()
        return row.status, (*typed, ("Location", row.moved_to or "")), b""

    def _answer(self, record: WarcRecord, hops: int) -> tuple[int, Headers, bytes] | None:
        if record.kind == "resource":
            return 200, (("Content-Type", record.headers.get("content-type", "")),), record.block
        message = read_message(record.block)
        if record.kind == "revisit":
            digest = record.headers.get("warc-payload-digest", "")
            refers = record.headers.get("warc-refers-to-target-uri", record.url)
            found = self._find(digest, hops - 1) or self._find(refers, hops - 1)
            if found is None or record.headers.get("warc-profile") == NOT_MODIFIED:
                return found
            return message.status, message.headers, found[2]
        packing = next((value for name, value in message.headers if name.lower() == "content-encoding"), None)
        body = Body(packing, most_raw=MOST, most_decoded=MOST)
        body.add(message.body)
        return message.status, message.headers, body.finish()


def _files_of(path: Path) -> Iterator[_KeptFile]:
    """The files to look through, what is later after what is earlier."""
    if not path.exists():
        raise FolderError(f"there is no file or folder {path}")
    if path.is_file():
        yield _KeptFile(path)
    elif any((path / name).exists() for name in (ROWS, KEPT)):
        root = path.parent.parent if path.parent.name == "earlier" else path
        folders = (*sorted(path.glob("earlier/*")), path)
        # Those of a URL that failed come before the row of what it said at last.
        kept = (each / name for each in folders for name in (KEPT, ROWS))
        yield from (_KeptFile(each, root) for each in kept if each.exists())
    else:
        yield from (_KeptFile(each) for each in sorted(path.rglob("*")) if each.name.endswith(SUFFIXES))


def _rows(path: Path) -> Iterator[tuple[int, StoredRow]]:
    """The rows of a crawl and where each begins, up to one that is half written."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield offset, msgspec.json.decode(line, type=StoredRow)
            offset += len(line)


def _row_at(path: Path, offset: int) -> StoredRow:
    with path.open("rb") as file:
        file.seek(offset)
        return msgspec.json.decode(file.readline(), type=StoredRow)


def _without(url: str, names: Collection[str]) -> str:
    """The address without parameters of these names, which are in lower case."""
    parts = urlsplit(url)
    rest = [pair for pair in parts.query.split("&") if unquote_plus(pair.partition("=")[0]).lower() not in names]
    return urlunsplit(parts._replace(query="&".join(rest)))


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest())
