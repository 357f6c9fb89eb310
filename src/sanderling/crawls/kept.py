"""Answers as they came, kept beside what was read in them: in files, or in a WARC. `stored_replies.py` reads them.

A line of kept.jsonl vouches for each, and the ledger says how far that file counts. So an answer is kept with the next
batch, whatever becomes of its item: of one that is asked for again after a crash there may be two, and the last counts.
"""

import mimetypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urljoin

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.archive import ArchiveMark, PageArchive
from sanderling.fetch.attempts import Sends, location_of, moves
from sanderling.stores.durable import FolderError, sync_folder, write_new
from sanderling.stores.frontier_rows import BodyFile
from sanderling.stores.rows_file import RowsFile, reaches
from sanderling.task import SECRET_BODY, Reply, Task

FILE = "kept.jsonl"
Keep = Literal["html", "warc"]


class KeptRow(msgspec.Struct, omit_defaults=True):
    """A line of kept.jsonl; behind it, with a WARC, the place of its capture."""

    url: str
    fetched_at: str
    status: int
    content_type: str | None = None
    moved_to: str | None = None
    body_path: str | None = None
    sha256: str | None = None


class KeptReply(NamedTuple):
    """An answer that is to be kept, and its line."""

    url: str
    row: bytes
    reply: Reply | None = None  # for the archive
    raw: BodyFile | None = None  # or as a file

    @property
    def size(self) -> int:
        """Bytes that it takes up until it is written."""
        return len(self.row) + len(self.reply.body if self.reply else self.raw.data if self.raw else b"")


def keep_reply(reply: Reply, keep: Keep, wall: float) -> KeptReply:
    """The answer as it is to be kept."""
    row = KeptRow(reply.url, when(wall), reply.status, reply.header("Content-Type"))
    if moves(reply):
        row.moved_to = urljoin(reply.url, location_of(reply))
    if keep == "warc" or row.moved_to is not None:
        return KeptReply(reply.url, msgspec.json.encode(row), reply if keep == "warc" else None)
    raw = BodyFile.of(reply.body, suffix_of(row.content_type))
    row.body_path, row.sha256 = raw.path, raw.sha256
    return KeptReply(reply.url, msgspec.json.encode(row), raw=raw)


def suffix_of(content_type: str | None) -> str:
    """How the name of a file of this type ends."""
    media = (content_type or "").partition(";")[0].strip().lower()
    return mimetypes.guess_extension(media) or ".bin"


def when(wall: float) -> str:
    """A time as rows have it."""
    return _second(int(wall))


@lru_cache(maxsize=4)  # hundreds of rows have the same
def _second(wall: int) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class KeepingSender:
    """A client that has each answer to a GET kept, robots.txt and redirects too; of what logs in, nothing.

    `clean` takes secrets out of an address.
    """

    def __init__(
        self,
        http: Sends,
        keep: Keep,
        take: Callable[[KeptReply, int], object],
        clock: Clock,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._http = http
        self._keep = keep
        self._take = take
        self._clock = clock
        self._clean = clean

    async def send(self, task: Task) -> Reply:
        """The reply. Raises what the client raises."""
        reply = await self._http.send(task)
        if task.method == "GET" and SECRET_BODY not in task.secrets:
            public = replace(reply, url=self._clean(reply.url))
            kept = keep_reply(public, self._keep, self._clock.wall())
            self._take(kept, kept.size)
        return reply


class KeptReplies(RowsFile):
    """The answers that a folder keeps. One caller at a time."""

    def __init__(self, folder: Path, watermark: int, *, archive: bool, crawl: int = 1) -> None:
        """Open what is vouched for. Raises FolderError if some of it is not there."""
        path = folder / FILE
        if not reaches(path, watermark):
            size = path.stat().st_size if path.exists() else 0
            raise FolderError(
                f"{path} has {size} bytes, expected {watermark} that end with a line: it was cut short or changed."
                " Restore it from a copy, or begin anew in another folder."
            )
        self._folder = folder
        self._before = -1, ArchiveMark()  # how long the rows and the archive were before the last batch
        self.archive: PageArchive | None = None
        super().__init__(path, watermark)
        if archive:
            try:
                self.archive = PageArchive(folder, crawl, path, watermark)
            except BaseException:
                super().close()
                raise

    def write(self, kept: Sequence[KeptReply]) -> int:
        """Keep answers; when this returns they are on disk, and their lines end at the byte it returns."""
        write_bodies(self._folder, [each.raw for each in kept if each.raw is not None])
        if self.archive is None:
            return self.append(each.row for each in kept)
        self._before = self.length, self.archive.mark
        return self.append(self.archive.append(kept))

    def cut(self, length: int) -> None:
        """Drop what stands behind `length`, and the captures of that."""
        super().cut(length)
        if self.archive is not None and length == self._before[0]:
            self.archive.cut(self._before[1])

    def close(self) -> None:
        """Let go of the files."""
        super().close()
        if self.archive is not None:
            self.archive.close()


def write_bodies(folder: Path, bodies: Iterable[BodyFile]) -> None:
    """Keep documents as files; when this returns they are on disk.

    A body that is there under the name of its content is there whole: it got that when all of it was on disk.
    """
    folders: set[Path] = set()
    for body in bodies:
        path, source = folder / body.path, Path(body.source)
        size = source.stat().st_size if body.source else len(body.data)
        if body.name or not (path.exists() and path.stat().st_size == size):
            if not path.parent.exists():
                path.parent.mkdir(parents=True)
                folders |= {folder, path.parent.parent}
            if body.source:
                source.replace(path)  # all of it is on disk
            else:
                write_new(path, [body.data])
            folders.add(path.parent)
        elif body.source:
            source.unlink()
    for each in folders:
        sync_folder(each)
