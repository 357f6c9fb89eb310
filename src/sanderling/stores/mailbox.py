"""What one part of a crawl finds for another: lines in files of the other's folder, which are read there in order.

Terms. *Outbox*: the files that one part appends to, one for each part it writes to. *Inbox*: all files in the folder of
one part. *Positions*: how far each file of an inbox was read; they are part of the reader's ledger, so that what was
read and how far are on disk with one commit.

After a crash a line may be read twice, and none is left unread: it is on disk before the ledger of its writer says that
what led to it has ended. A file whose writer is gone is *closed*, by its name, and removed once all of it was read.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from sanderling.stores.durable import sync_data, sync_folder, write_new, write_pieces

OPEN, CLOSED = ".open", ".closed"
LARGE = 16 * 2**20  # bytes after which a file is closed and another one is begun
READ = 2**18  # bytes that are read at once


class PartOutbox:
    """The lines that part `own` of the crawl of this number writes to others; `inbox_of` says where each reads."""

    def __init__(self, crawl: int, own: int, inbox_of: Callable[[int], Path]) -> None:
        self._name = f"{crawl}-{own}"
        self._inbox_of = inbox_of
        self._files: dict[int, _OpenFile] = {}
        self._met: set[Path] = set()

    def put(self, to: int, lines: bytes) -> None:
        """Append lines for another part. They are on disk after `sync`."""
        file = self._files.get(to)
        if file is None:
            file = self._files[to] = _OpenFile(self._place(to), self._name)
        file.append(lines)

    def sync(self) -> None:
        """Bring all of it to disk, and begin a new file in the place of each that has grown large."""
        for to, file in list(self._files.items()):
            file.sync()
            if file.size >= LARGE:
                file.close()
                del self._files[to]

    def close(self) -> None:
        """Nothing more is written."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _place(self, to: int) -> Path:
        """The folder to write in, with what an earlier process of this part left open closed."""
        folder = self._inbox_of(to)
        if folder not in self._met:
            self._met.add(folder)
            folder.mkdir(parents=True, exist_ok=True)
            sync_folder(folder.parent)
            for left in folder.glob(f"{self._name}-*{OPEN}"):
                left.replace(left.with_suffix(CLOSED))
        return folder


class _OpenFile:
    def __init__(self, folder: Path, name: str) -> None:
        # A name that was never there before: the positions of a reader may still have those that were.
        self._path = folder / f"{name}-{secrets.token_hex(8)}{OPEN}"
        self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        sync_folder(folder)
        self.size = 0
        self._synced = 0

    def append(self, lines: bytes) -> None:
        self.size += write_pieces(self._handle, [lines])

    def sync(self) -> None:
        if self._synced < self.size:
            sync_data(self._handle)
            self._synced = self.size

    def close(self) -> None:
        self.sync()
        os.close(self._handle)
        self._path.replace(self._path.with_suffix(CLOSED))


class PartInbox:
    """The lines of one crawl that others have written into `folder`. `positions` are those that the ledger has."""

    def __init__(self, folder: Path, crawl: int, positions: Mapping[str, int]) -> None:
        self._folder = folder
        for each in self._files():
            if not each.name.startswith(f"{crawl}-"):
                each.unlink()  # of an earlier crawl, which has come to its end
        there = {each.stem for each in self._files()}
        self.durable: Mapping[str, int] = {name: position for name, position in positions.items() if name in there}

    def read(self, positions: Mapping[str, int]) -> tuple[bytes, dict[str, int]]:
        """Whole lines from `positions` on, and the positions behind them; no lines if nothing is left.

        A closed file that is in the ledger to its end is removed.
        """
        after = dict(positions)
        for path in self._files():
            name, start = path.stem, positions.get(path.stem, 0)
            with suppress(FileNotFoundError):  # it has just been closed, and is there under its other name
                if lines := _whole_lines(path, start):
                    after[name] = start + len(lines)
                    return lines, after
                if path.suffix == CLOSED and self.durable.get(name, 0) >= start:
                    path.unlink()
                    after.pop(name, None)
        return b"", after

    def _files(self) -> list[Path]:
        with suppress(FileNotFoundError):
            return sorted(each for each in self._folder.iterdir() if each.suffix in (OPEN, CLOSED))
        return []


def _whole_lines(path: Path, start: int) -> bytes:
    """The next lines; what has no end yet is being written, or was when its writer was killed."""
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(READ)
        while b"\n" not in data and (more := file.read(READ)):
            data += more
    return data[: data.rfind(b"\n") + 1]


def blank_lines(folder: Path, is_meant: Callable[[bytes], object]) -> None:
    """Overwrite the lines of an inbox that are meant with blanks, so that positions stay what they are.

    Nobody writes there meanwhile: what has no end of line was torn, and goes.
    """
    for path in folder.glob("*"):
        lines = path.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        kept = [b" " * (len(line) - 1) + b"\n" if line.strip() and is_meant(line) else line for line in whole]
        if kept != lines:
            write_new(path, kept)
            sync_folder(folder)
