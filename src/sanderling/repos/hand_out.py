"""The directory for a crawl in parts: one process reads it and hands it out, and each part takes what is its own.

What is handed to a part are lines in a file of its folder: a DID and its address; a DID alone, up to which there is
nothing more; and an empty line at the end. They come in the order of DIDs, so a part has what it needs in its cursor:
what is not behind that was seen to. The file is made anew by every run, and is never synced: who is killed reads it
again, and if the machine fails, so does the run.

One process reads, and not each for itself, since the directory may change meanwhile: an account that moves from a host
of one part to one of another would else be taken by both, or by neither. For the same reason all parts of a run begin
with the same DID, the first that any of them has not settled: what one part was handed by an earlier run, and has not
settled, may be at a host of another part by now.
"""

from collections.abc import Mapping, Sequence
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
from sanderling.stores.ports import Due

FILE = "handed.jsonl"
QUIET = 0.1  # seconds between two looks, of either side
READ = 2**18  # bytes that a part takes at once: some four thousand DIDs
THE_END = ("", "")
MOST_ADDRESSES = 100_000  # whose part is remembered: anybody may put an address of their own into the directory

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
            if len(self._known) >= MOST_ADDRESSES:
                self._known.clear()
            self._known[url] = part
        return part


class HandOut:
    """Reads the directory behind a DID. `run` it once, beside the parts."""

    def __init__(
        self, root: Path, directory: Directory, after: str, board: Board, disk: Executor, page_size: int
    ) -> None:
        """Make it before any part begins. All of them have `after` as their cursor."""
        self.paused = False
        self._directory = directory
        self._after = after
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
        last = self._after
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
        part_of = self._part_of
        lines: list[list[tuple[str, str]]] = [[] for _ in self._files]
        for entry in page:
            lines[part_of(entry.host)].append(entry)
        for part, own in enumerate(lines):
            self._append(part, [*own, (page[-1].did, "")])
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


class HandedPages:
    """What part `own` was handed, and is handed while it reads."""

    def __init__(self, folder: Path, own: int, board: Board, clock: Clock, disk: Executor) -> None:
        self._path = folder / FILE
        self._own = own
        self._part_of = PartLookup(board.parts)
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

    def is_own(self, url: str) -> bool:
        """Whether it is a host of this part."""
        return self._part_of(url) == self._own

    async def pass_on(self, moved: Mapping[Due, str]) -> None:
        """They stay scheduled here, and the next run begins with moving them."""

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
