"""The directory for a crawl in parts: one process reads it and hands it out, and each part takes what is its own.

What is handed to a part are lines in a file of its folder: a DID and its address; a DID alone, up to which there is
nothing more; and an empty line at the end. They come in the order of DIDs, so a part has what it needs in its cursor:
what is not behind that was seen to. The file is made anew by every run, from the first cursor of all parts on, and is
never synced: who is killed reads it again, and if the machine fails, so does the run.

One process reads, and not each for itself, since the directory may change meanwhile: an account that moves from a host
of one part to one of another would else be taken by both, or by neither.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.parts import folders_of, part_of
from sanderling.executor import Executor
from sanderling.ids import HostError, host_of
from sanderling.repos.directory import Directory, DirectoryEntry
from sanderling.repos.feeding import WalkedPage
from sanderling.stores.board import Board, BoardField
from sanderling.stores.durable import plainly

FILE = "handed.jsonl"
QUIET = 0.1  # seconds between two looks, of either side
READ = 2**18  # bytes that a part takes at once: some four thousand DIDs
THE_END = ("", "")

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[str, str])


class PartLookup:
    """Which of so many parts an address belongs to. What is no address is the first part's, which says so."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._known: dict[str, int] = {}

    def __call__(self, url: str) -> int:
        """The part of an address."""
        part = self._known.get(url)
        if part is None:
            try:
                part = part_of(host_of(url), self._parts)
            except HostError:
                part = 0
            self._known[url] = part
        return part


class HandOut:
    """Reads the directory from the first of the parts' `cursors` on. `run` it once, beside the parts."""

    def __init__(
        self, root: Path, directory: Directory, cursors: Sequence[str], board: Board, disk: Executor, page_size: int
    ) -> None:
        """Make it before any part begins."""
        self.paused = False
        self._directory = directory
        self._cursors = cursors
        self._board = board
        self._disk = disk
        self._page_size = page_size
        self._part_of = PartLookup(board.parts)
        self._sent = [0] * board.parts
        self._root = root
        self._files = [folder / FILE for folder in folders_of(root)]
        with plainly(root):
            for path in self._files:
                path.write_bytes(b"")

    async def run(self, clock: Clock) -> None:
        """Hand out all of it, never much more than some part can take. Raises DirectoryError and FolderError."""
        last = min(self._cursors)
        while page := await self._disk(self._directory.page, last, self._page_size):
            last = page[-1].did
            await self._disk(self._put, page)
            while self.paused or not self._is_wanted():
                await clock.sleep(QUIET)
        await self._disk(self._end)

    def _is_wanted(self) -> bool:
        """Whether some part has taken nearly all it has. It must not wait for others, whose hosts have far more."""
        few = max(1, self._page_size // self._board.parts)
        return any(sent - self._board.get(part, BoardField.TAKEN) < few for part, sent in enumerate(self._sent))

    def _put(self, page: Sequence[DirectoryEntry]) -> None:
        last, cursors, part_of = page[-1].did, self._cursors, self._part_of
        lines: list[list[tuple[str, str]]] = [[] for _ in cursors]
        for entry in page:
            if entry.did > cursors[part := part_of(entry.host)]:
                lines[part].append(entry)
        for part, own in enumerate(lines):
            if last > cursors[part]:
                self._append(part, [*own, (last, "")])
                self._sent[part] += len(own)

    def _end(self) -> None:
        for part in range(len(self._files)):
            self._append(part, [THE_END])

    def _append(self, part: int, lines: Sequence[tuple[str, str]]) -> None:
        with plainly(self._root), self._files[part].open("ab") as file:
            file.write(_encoder.encode_lines(lines))


def remove_handed(root: Path) -> None:
    """Remove what was handed out: every run makes it anew."""
    with plainly(root):
        for folder in folders_of(root):
            (folder / FILE).unlink(missing_ok=True)


class HandedOut:
    """What part `own` was handed, and is handed while it reads."""

    def __init__(self, folder: Path, own: int, board: Board, clock: Clock, disk: Executor) -> None:
        self._path = folder / FILE
        self._own = own
        self._board = board
        self._clock = clock
        self._disk = disk
        self._position = 0
        self._taken = 0
        self._looked = 0
        self._ended = False
        board.put(own, BoardField.TAKEN, 0)

    async def page(self, after: str, *, idle: bool) -> WalkedPage | None:
        """What follows `after`; nothing if nothing does yet, and None once all parts are done."""
        if self._board.over:
            return None
        found = await self._disk(self._read)
        idle = idle and self._ended and not found
        self._looked += idle
        self._say(BoardField.LOOKED, self._looked)
        self._say(BoardField.IDLE, idle)
        if not found:
            await self._clock.sleep(QUIET)
            return WalkedPage((), after)
        if found[-1] == THE_END:
            self._ended = True
            found.pop()
        entries = [DirectoryEntry(did, url) for did, url in found if url]
        self._taken += len(entries)
        self._say(BoardField.TAKEN, self._taken)
        last = max(after, found[-1][0]) if found else after
        return WalkedPage([entry for entry in entries if entry.did > after], last)

    def _say(self, field: BoardField, number: int) -> None:
        self._board.put(self._own, field, number)

    def _read(self) -> list[tuple[str, str]]:
        """The next whole lines."""
        with plainly(self._path), self._path.open("rb") as file:
            file.seek(self._position)
            data = file.read(READ)
        whole = data[: data.rfind(b"\n") + 1]
        self._position += len(whole)
        return _decoder.decode_lines(whole) if whole else []


class OwnHosts:
    """A directory as one part knows it: where DIDs are that it may ask for."""

    def __init__(self, directory: Directory, is_own: Callable[[str], bool]) -> None:
        self._directory = directory
        self._is_own = is_own

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        """The first DIDs at hosts of the part; a page of which nothing is left is no end."""
        while page := self._directory.page(after, limit):
            if own := [each for each in page if self._is_own(each.host)]:
                return own
            after = page[-1].did
        return []

    def hosts_of(self, dids: Sequence[str]) -> dict[str, str]:
        """As of the directory; none that has moved to a host of another part."""
        return {did: url for did, url in self._directory.hosts_of(dids).items() if self._is_own(url)}

    def count(self) -> int:
        """All that the directory has: to know better would be to read it."""
        return self._directory.count()
