"""What is kept of responses as they came: `--keep html`, `--keep warc`, `--files`.

Whatever is written counts once the ledger has taken note of its file's length, as rows do: after a kill the rest is cut
off. Bodies are files named by their SHA-256, each once.
"""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

import msgspec

from sanderling.crawl.pages import when
from sanderling.crawl.request import request_key
from sanderling.crawl.warc import (
    Capture,
    IndexEntry,
    index_line,
    info_record,
    kept_headers,
    read_index_line,
    record_entry,
    response_record,
)
from sanderling.fetch.messages import LARGEST, HttpRequest, HttpResponse
from sanderling.files import AppendFile, make_folder, write_file
from sanderling.stores import RowFile

BODIES = "bodies"
WARC = "warc"
INDEX = "index.cdxj"  # in the folder of WARC, sorted, for pywb
SEGMENT = 1_000_000_000  # bytes of a WARC file
_PIECE = 1 << 20


def body_path(body: bytes) -> str:
    """Where a body is kept, below the folder."""
    digest = sha256(body).hexdigest()
    return f"{BODIES}/{digest[:2]}/{digest}"


class Keeper:
    """Keeps what is wanted of responses. `how` is that of --keep, `files` the types that are kept in any case."""

    def __init__(
        self, folder: Path, how: str | None, files: Iterable[str], max_file: int, counted: Collection[RowFile],
        name: str, process: int = 0,
    ) -> None:  # fmt: skip
        self.how = how
        self._folder = folder
        self._files = tuple(each.lower() for each in files)
        self._max_file = max_file
        self.largest = max(LARGEST, max_file) if self._files else LARGEST
        self._process = process
        self._stem = f"{name}-{process}" if process else name
        self._waiting: list[Capture | bytes] = []
        self._open: dict[str, AppendFile] = {}
        self.reopen(counted)

    def reopen(self, counted: Collection[RowFile]) -> None:
        """Go on where the ledger counts to, in files that may have been rewritten."""
        self.close()
        self._known = {each.file: each for each in counted if each.process == self._process}
        self._rows = {name: each.rows for name, each in self._known.items()}
        segments = [each for each in self._known if each.startswith(f"{WARC}/")]
        self._segment = max((int(each.rpartition("-")[2].partition(".")[0]) for each in segments), default=1)
        # What no row speaks of is cut off before anybody reads it, whatever is kept now.
        for file in self._known:
            if file.startswith(f"{WARC}/") or file.endswith(".cdxj"):
                self._file(file)

    def take(self, request: HttpRequest, response: HttpResponse) -> Capture | None:
        """What is to be kept of a response, as it is kept or not at all."""
        plain = request.method == "GET" and request.body is None
        if self.how is None or not plain or not response.status or response.status == 304:
            return None
        return Capture(request.url, response.status, response.headers, response.body, when(response.at))

    def body_of(self, response: HttpResponse) -> tuple[str, str]:
        """Where the body of a page is kept, and if it is not although its type is wanted, why."""
        wanted = any(fnmatchcase(response.content_type, each) for each in self._files)
        if self.how == "html" and response.body:
            return body_path(response.body), ""
        if not wanted or not response.body:
            return "", ""
        if len(response.body) > self._max_file:
            return "", f"not kept: it has {len(response.body):,} bytes, and --max-file is {self._max_file:,}"
        return body_path(response.body), ""

    def append(self, kept: Capture | bytes) -> None:
        """Keep a response, or a body alone, with the next `write`."""
        self._waiting.append(kept)

    def write(self) -> list[RowFile]:
        """Put on disk what waits; how far the files reach now."""
        waiting, self._waiting = self._waiting, []
        changed: dict[str, AppendFile] = {}
        for each in waiting:
            if isinstance(each, bytes):
                self._write_body(each)
            else:
                changed |= self._write(each)
        for file in changed.values():
            file.sync()
        return [RowFile(self._process, name, file.length, self._rows[name], file.crc) for name, file in changed.items()]

    def _write(self, capture: Capture) -> dict[str, AppendFile]:
        index = self._file(f"{'kept' if not self._process else f'kept-{self._process}'}.cdxj")
        if self.how == "html":
            self._write_body(capture.body)
            headers = kept_headers(capture.headers)
            entry = IndexEntry(
                capture.url, status=str(capture.status), filename=body_path(capture.body), headers=headers,
                time=capture.time,
            )  # fmt: skip
            changed = {}
        else:
            name = f"{WARC}/{self._stem}-{self._segment:05}.warc.gz"
            if (file := self._file(name)).length > SEGMENT:
                self._segment += 1
                name = f"{WARC}/{self._stem}-{self._segment:05}.warc.gz"
                file = self._file(name)
            if not file.length:
                file.append(info_record(name.partition("/")[2]))
            record = response_record(capture)
            entry = record_entry(capture, name.partition("/")[2], file.length, len(record))
            file.append(record)
            changed = {name: file}
            self._rows[name] += 1
        index.append(index_line(capture, entry))
        self._rows[index.path.name] += 1
        return changed | {index.path.name: index}

    def _write_body(self, body: bytes) -> None:
        path = self._folder / body_path(body)
        if not path.exists():
            make_folder(path.parent)
            write_file(path, body)

    def _file(self, name: str) -> AppendFile:
        if name not in self._open:
            known = self._known.get(name, RowFile(self._process, name, 0, 0, 0))
            make_folder((self._folder / name).parent)
            self._open[name] = AppendFile(self._folder / name, known.length, known.crc)
            self._rows.setdefault(name, 0)
        return self._open[name]

    def finish(self, files: Iterable[RowFile]) -> None:
        """Write the index of the WARC files, sorted."""
        write_index(self._folder, files)

    def close(self) -> None:
        """Close the files; what was not written is dropped."""
        for file in self._open.values():
            file.close()
        self._open = {}


def rewrite_kept(folder: Path, counted: Iterable[RowFile], gone: Callable[[bytes], bool], suffix: str) -> list[RowFile]:
    """Write drafts of indexes and WARC files without the responses whose key is `gone`."""
    written: list[RowFile] = []
    known = {each.file: each for each in counted}
    for index in [each for each in known.values() if each.file.endswith(".cdxj")]:
        if not (folder / index.file).exists():
            continue
        entries = map(read_index_line, index_lines(folder, [index]))
        dirty = {kept.filename for kept in entries if gone(request_key(kept.url))}
        if not dirty:
            continue
        drafts: dict[str, AppendFile] = {}
        rows = Counter[str]()

        def draft_of(name: str, drafts: dict[str, AppendFile] = drafts) -> AppendFile:
            if name not in drafts:
                path = folder / f"{name}{suffix}"
                path.unlink(missing_ok=True)
                drafts[name] = AppendFile(path)
            return drafts[name]

        lines = draft_of(index.file)
        for line in index_lines(folder, [index]):
            kept = read_index_line(line)
            name = f"{WARC}/{kept.filename}"
            if kept.offset and kept.filename in dirty:
                with (folder / name).open("rb") as file:
                    if not (draft := draft_of(name)).length:
                        draft.append(file.read(int(kept.offset)))  # what the file says of itself
                    file.seek(int(kept.offset))
                    record = file.read(int(kept.length))
                if not gone(request_key(kept.url)):
                    kept.offset = str(draft.length)
                    start = b" ".join(line.split(b" ", 2)[:2])
                    line = start + b" " + msgspec.json.encode(kept) + b"\n"  # noqa: PLW2901 - the same one elsewhere
                    draft.append(record)
                    rows[name] += 1
            if not gone(request_key(kept.url)):
                lines.append(line)
                rows[index.file] += 1
        for name, draft in drafts.items():
            draft.sync()
            draft.close()
            written.append(RowFile(index.process, name, draft.length, rows[name], draft.crc))
    return written


def remove_bodies(folder: Path, named: Container[str]) -> None:
    """Remove the bodies that nothing names."""
    for path in (folder / BODIES).glob("??/*"):
        if f"{BODIES}/{path.parent.name}/{path.name}" not in named:
            path.unlink()


def index_lines(folder: Path, files: Iterable[RowFile]) -> Iterator[bytes]:
    """All lines that say where a response is kept, in the order in which they came."""
    for each in files:
        if each.file.endswith(".cdxj") and (folder / each.file).exists():  # another process has its own folder
            with (folder / each.file).open("rb") as file:
                left = each.length
                while left > 0 and (line := file.readline()):
                    left -= len(line)
                    yield line


def write_index(folder: Path, files: Iterable[RowFile]) -> None:
    """Write `warc/index.cdxj`, sorted on disk, since there may be more lines than memory holds."""
    if not (folder / WARC).is_dir():
        return
    with closing(sqlite3.connect("", isolation_level=None)) as lines:
        lines.execute("CREATE TABLE line (line BLOB PRIMARY KEY) WITHOUT ROWID")
        lines.execute("BEGIN")
        of_records = ((line,) for line in index_lines(folder, files) if b'"offset":' in line)
        lines.executemany("INSERT OR IGNORE INTO line VALUES (?)", of_records)
        found = lines.execute("SELECT line FROM line ORDER BY line")
        write_file(folder / WARC / INDEX, (line for (line,) in found))


def kept_damage(folder: Path, files: Iterable[RowFile]) -> Iterator[str]:
    """What of the kept files is not as it was written."""
    for each in files:
        if not (each.file.startswith(f"{WARC}/") or each.file.endswith(".cdxj")):
            continue
        path, crc, left = folder / each.file, 0, each.length
        if not path.exists():
            yield f"{each.file} is not there"
            continue
        with path.open("rb") as file:
            while left > 0 and (piece := file.read(min(left, _PIECE))):
                crc, left = zlib.crc32(piece, crc), left - len(piece)
        if left or crc != each.crc:
            yield f"{each.file}: its first {each.length:,} bytes are not those that were written"
