"""Responses that were kept instead of requests: `--from KEPT`.

KEPT is a WARC file of any writer, a folder of such files, or the folder of a crawl with --keep. Of an address that was
kept several times the last response counts that says something of it.
"""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sanderling.crawl.keep import WARC
from sanderling.crawl.request import request_key
from sanderling.crawl.warc import read_block, read_index_line, read_records, seconds_of
from sanderling.fetch.classify import EXPECTED, REDIRECTS, of_error, of_response
from sanderling.fetch.decode import Body
from sanderling.fetch.messages import Headers, HttpRequest, HttpResponse
from sanderling.files import FolderError, disk_errors, read_small
from sanderling.ids import UrlError, normalise_url
from sanderling.observe.log import log
from sanderling.outcome import Code, Outcome

_SAYS_NOTHING = frozenset({304, 401, 407, 408, 425, 429})  # of the page, and 5xx
_ORIGINAL = "x-archive-orig-"


class KeptArchive:
    """All that was kept, by address. Its index lies on disk."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._files: list[Path] = []
        self._thread = ThreadPoolExecutor(1)
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("CREATE TABLE kept (key BLOB PRIMARY KEY, file INT, place INT, time REAL) WITHOUT ROWID")
        self._index.execute("CREATE TABLE payload (digest TEXT PRIMARY KEY, file INT, place INT) WITHOUT ROWID")
        bodies = place / "kept.cdxj"
        if place.is_dir() and bodies.exists() and not (place / WARC).is_dir():
            self._files.append(bodies)
            self._read_lines(bodies)
            return
        folder = place / WARC if (place / WARC).is_dir() else place
        with disk_errors(place):
            found = sorted(folder.iterdir()) if folder.is_dir() else [place]
        self._files = [each for each in found if not folder.is_dir() or each.name.endswith((".warc", ".warc.gz"))]
        if not self._files:
            raise FolderError(f"{place} has no WARC files, and nothing that --keep has kept", "choose another place")
        for number, path in enumerate(self._files):
            self._read_warc(number, path)

    def _read_warc(self, number: int, path: Path) -> None:
        end = 0
        for record in read_records(path):
            end = record.offset
            try:
                key = request_key(normalise_url(record.url))
                if record.is_revisit:
                    query = "SELECT file, place FROM payload WHERE digest = ?"
                    for file, place in self._index.execute(query, (record.payload,)).fetchall():
                        self._note(key, file, place, record.time)
                    continue
                status, _, _ = read_block(record.block)
            except (UrlError, ValueError):
                continue
            if record.payload:
                values = (record.payload, number, record.offset)
                self._index.execute("INSERT OR IGNORE INTO payload VALUES (?, ?, ?)", values)
            if _says(status):
                self._note(key, number, record.offset, record.time)
        if end == 0:
            log.warning("kept_nothing", say=f"{path} holds no response that is whole.")

    def _read_lines(self, path: Path) -> None:
        with path.open("rb") as file:
            while line := file.readline():
                if not line.endswith(b"\n"):
                    return
                kept = read_index_line(line)
                if _says(int(kept.status)):
                    self._note(request_key(kept.url), 0, file.tell() - len(line), seconds_of(kept.time))

    def _note(self, key: bytes, file: int, place: int, time: float) -> None:
        sql = "INSERT INTO kept VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET (file, place, time) = "
        sql += "(excluded.file, excluded.place, excluded.time) WHERE excluded.time >= time"
        self._index.execute(sql, (key, file, place, time))

    async def send(self, request: HttpRequest) -> HttpResponse:
        """What was kept for a request."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._respond, request)

    def _respond(self, request: HttpRequest) -> HttpResponse:
        plain = request.method == "GET" and request.body is None
        query = "SELECT file, place, time FROM kept WHERE key = ?"
        row = self._index.execute(query, (request_key(request.url),)).fetchone() if plain else None
        if row is None:
            missing = Outcome(Code.CONTENT_NOT_FOUND, detail=f"not kept in {self._place}", sent=False)
            return HttpResponse(missing, request.url)
        file, place, time = row
        if self._files[file].suffix == ".cdxj":
            status, headers, packed = self._read_body(self._files[file], place)
        else:
            status, headers, packed = read_block(next(read_records(self._files[file], place)).block)
        coding = ", ".join(value for name, value in headers if name.lower() == "content-encoding")
        own = _as_sent(headers)
        try:
            body = Body(coding, request.largest, cut=request.cut)
            body.add(packed)
            content = body.finish()
        except EXPECTED as error:
            return HttpResponse(of_error(error, status), request.url, 0, status, own, at=time)
        return HttpResponse(
            of_response(status, headers, time), request.url, 0, status, own, content,
            location=_location(request.url, status, headers), at=time,
        )  # fmt: skip

    def _read_body(self, path: Path, place: int) -> tuple[int, Headers, bytes]:
        with disk_errors(path), path.open("rb") as file:
            file.seek(place)
            kept = read_index_line(file.readline())
        return int(kept.status), kept.headers, read_small(path.parent / kept.filename, 1 << 31)

    def close(self) -> None:
        """Forget the index."""
        self._thread.shutdown()
        self._index.close()


_RENAMED = frozenset(f"{_ORIGINAL}{name}" for name in ("content-encoding", "transfer-encoding", "content-length"))


def _as_sent(headers: Headers) -> Headers:
    """The headers as the host sent them, where they were kept by us."""
    restored = {name.lower().removeprefix(_ORIGINAL) for name, _ in headers if name.lower() in _RENAMED}
    return tuple(
        (name[len(_ORIGINAL) :] if name.lower() in _RENAMED else name, value)
        for name, value in headers
        if name.lower() not in restored
    )


def _says(status: int) -> bool:
    return status not in _SAYS_NOTHING and status < 500


def _location(url: str, status: int, headers: Headers) -> str | None:
    target = next((value for name, value in headers if name.lower() == "location"), "")
    try:
        return normalise_url(target, url) if status in REDIRECTS and target else None
    except UrlError:
        return None
