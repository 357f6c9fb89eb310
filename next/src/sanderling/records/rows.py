"""Files of rows that only grow: `NAME.jsonl`, and beside it `NAME.keys`, which says where the rows of a key stand.

The ledger says how much of both counts; what stands behind it is cut off by the next writer and never read. A key is
that of the item the rows came of, so that one entry may have several rows, or none.
"""

import mmap
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sanderling.files import AppendFile, FolderError, disk_errors
from sanderling.stores import RowFile

KEY_BYTES = 16
# Key, offset and length of its rows, number of rows, the crawl's run, CRC-32 of the rows.
_ENTRY = struct.Struct(f"<{KEY_BYTES}sQIIII")
_SAME = 1 << 31  # added to the number of rows: the last rows of the key still hold
_PIECE = 1 << 20  # bytes checked at once


@dataclass(frozen=True, slots=True)
class Entry:
    """The rows that came of one item in one run."""

    key: bytes
    run: int
    content: bytes  # whole lines of JSON

    @property
    def lines(self) -> list[bytes]:
        """Each row, without the end of its line."""
        return self.content.splitlines()


def file_names(name: str, process: int) -> tuple[str, str]:
    """How the files of rows and of keys are called that a process writes; a crawl of one process is number 0."""
    stem = f"{name}-{process}" if process else name
    return f"{stem}.jsonl", f"{stem}.keys"


class RowWriter:
    """Appends the rows of one process. What was written counts once the ledger has stored the answer of `write`."""

    def __init__(self, folder: Path, name: str, counted: Collection[RowFile], process: int = 0) -> None:
        self._folder = folder
        self._name = name
        self._process = process
        self._open(counted)
        self._waiting: list[bytes] = []
        self._entries: list[bytes] = []
        self._length = self._lines.length  # with what waits
        self._counts = 0

    def _open(self, counted: Collection[RowFile]) -> None:
        lengths = {each.file: each for each in counted}
        files: list[AppendFile] = []
        self._rows: list[int] = []
        for file in file_names(self._name, self._process):
            known = lengths.get(file, RowFile(self._process, file, 0, 0, 0))
            files.append(AppendFile(self._folder / file, known.length, known.crc))
            self._rows.append(known.rows)
        self._lines, self._keys = files

    def reopen(self, counted: Collection[RowFile]) -> None:
        """Go on in files that were rewritten while nothing waited."""
        self.close()
        self._open(counted)
        self._length = self._lines.length

    def append(self, key: bytes, lines: Sequence[bytes], run: int, *, same: bool = False) -> int:
        """Keep the rows of an item until the next `write`; the number of their entry. A line has no line break.

        `same`: these only say that the item's last rows still hold.
        """
        content = b"".join([line + b"\n" for line in lines])
        number = len(lines) + (_SAME if same else 0)
        self._entries.append(_ENTRY.pack(key, self._length, len(content), number, run, zlib.crc32(content)))
        self._waiting.append(content)
        self._length += len(content)
        self._counts += len(lines)
        return self._rows[1] + len(self._entries) - 1

    def write(self) -> list[RowFile]:
        """Put on disk what waits; how far both files reach now."""
        self._lines.append(b"".join(self._waiting))
        self._keys.append(b"".join(self._entries))
        self._lines.sync()
        self._keys.sync()
        self._rows[0] += self._counts
        self._rows[1] += len(self._entries)
        self._waiting, self._entries, self._counts = [], [], 0
        pairs = zip((self._lines, self._keys), self._rows, strict=True)
        return [RowFile(self._process, file.path.name, file.length, rows, file.crc) for file, rows in pairs]

    def close(self) -> None:
        """Close both files; what was not written is dropped."""
        self._lines.close()
        self._keys.close()


class RowReader:
    """Reads what counts of all files of rows in a folder, also beside the crawl that writes them."""

    def __init__(self, folder: Path, name: str, counted: Collection[RowFile]) -> None:
        self.folder = folder
        lengths = {each.file: each for each in counted}
        self._files: dict[str, _Files] = {}
        for process in sorted({each.process for each in counted}):
            names = file_names(name, process)
            if all(each in lengths for each in names):
                self._files[names[0]] = _Files(folder, lengths[names[0]], lengths[names[1]])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._files.values():
            each.close()

    def count(self) -> int:
        """How many rows there are."""
        return sum(each.lines.rows for each in self._files.values())

    def position(self) -> dict[str, int]:
        """How many entries each file has: where `entries` goes on another day."""
        return {name: each.keys.rows for name, each in self._files.items()}

    def entries(self, start: Mapping[str, int] | None = None) -> Iterator[Entry]:
        """All entries behind `start`, in the order in which each file got them."""
        for name, each in self._files.items():
            for number in range((start or {}).get(name, 0), each.keys.rows):
                yield each.entry(number)

    def places(self) -> Iterator[tuple[bytes, int, str, int]]:
        """The key and the run of each entry that says something new, and where `entry` finds it."""
        for name, each in self._files.items():
            for number in range(each.keys.rows):
                key, _, _, rows, run, _ = each.head(number)
                if not rows & _SAME:
                    yield key, run, name, number

    def entry(self, file: str, number: int) -> Entry:
        """The entry at this place."""
        return self._files[file].entry(number)

    def entry_of(self, key: bytes, number: int) -> Entry | None:
        """The entry with this key and number."""
        entries = (each.entry(number) for each in self._files.values() if number < each.keys.rows)
        return next((entry for entry in entries if entry.key == key), None)

    def find(self, key: bytes) -> list[Entry]:
        """The entries of a key, the newest last. Reads the files of keys, not the rows."""
        found = [each.entry(number) for each in self._files.values() for number in each.numbers_of(key)]
        return sorted(found, key=lambda entry: entry.run)

    def keys(self, run: int) -> Iterator[bytes]:
        """The key of each entry of a run; those that have several are said several times."""
        for each in self._files.values():
            heads = map(each.head, range(each.keys.rows))
            yield from (key for key, _, _, _, of_run, _ in heads if of_run == run)

    def damage(self) -> Iterator[str]:
        """What is not as it was written, a sentence each."""
        for each in self._files.values():
            yield from each.damage()


def rewrite_rows(
    folder: Path, name: str, counted: Collection[RowFile], gone: Callable[[bytes], bool], suffix: str
) -> list[RowFile]:
    """Write drafts of the files that have entries whose key is `gone`: those entries are empty there.

    Entries keep their numbers, by which exports and the ledger know them.
    """
    written: list[RowFile] = []
    lengths = {each.file: each for each in counted}
    for process in sorted({each.process for each in counted}):
        names = file_names(name, process)
        if not all(each in lengths and (folder / each).exists() for each in names):
            continue
        known = _Files(folder, *(lengths[each] for each in names))
        try:
            heads = map(known.head, range(known.keys.rows))
            if not any(gone(key) for key, _, _, _, run, _ in heads if run):
                continue
            drafts = [folder / f"{each}{suffix}" for each in names]
            for draft in drafts:
                draft.unlink(missing_ok=True)
            lines, keys = (AppendFile(draft) for draft in drafts)
            rows = 0
            for number in range(known.keys.rows):
                key, _, _, count, run, crc = known.head(number)
                if not run or gone(key):
                    keys.append(_ENTRY.pack(bytes(KEY_BYTES), lines.length, 0, 0, 0, 0))
                    continue
                content = known.entry(number).content
                keys.append(_ENTRY.pack(key, lines.length, len(content), count, run, crc))
                lines.append(content)
                rows += count & ~_SAME
            for file, number in ((lines, rows), (keys, known.keys.rows)):
                file.sync()
                file.close()
                path = file.path.name.removesuffix(suffix)
                written.append(RowFile(process, path, file.length, number, file.crc))
        finally:
            known.close()
    return written


class _Files:
    """A file of rows and its file of keys, as far as they count."""

    def __init__(self, folder: Path, lines: RowFile, keys: RowFile) -> None:
        self.lines, self.keys = lines, keys
        self._content = _open(folder, lines)
        self._entries = _open(folder, keys)

    def close(self) -> None:
        for content in (self._content, self._entries):
            if isinstance(content, mmap.mmap):
                content.close()

    def entry(self, number: int) -> Entry:
        key, offset, length, _, run, crc = self.head(number)
        content = self._content[offset : offset + length]
        if zlib.crc32(content) != crc:
            raise FolderError(f"{self.lines.file} is damaged at byte {offset:,}", "restore it from a copy")
        return Entry(key, run, content)

    def head(self, number: int) -> tuple[bytes, int, int, int, int, int]:
        """Key, offset, length, rows, run and checksum of an entry."""
        return _ENTRY.unpack_from(self._entries, number * _ENTRY.size)

    def numbers_of(self, key: bytes) -> Iterator[int]:
        at = self._entries.find(key)
        while 0 <= at < self.keys.length:
            if at % _ENTRY.size == 0:
                yield at // _ENTRY.size
            at = self._entries.find(key, at + 1)

    def damage(self) -> Iterator[str]:
        for content, known in ((self._content, self.lines), (self._entries, self.keys)):
            crc = 0
            for start in range(0, known.length, _PIECE):
                crc = zlib.crc32(content[start : min(start + _PIECE, known.length)], crc)
            if crc != known.crc:
                yield f"{known.file}: its first {known.length:,} bytes are not those that were written"


def _open(folder: Path, known: RowFile) -> mmap.mmap | bytes:
    path = folder / known.file
    with disk_errors(path), path.open("rb") as file:
        size = file.seek(0, 2)
        if size < known.length:
            found = f"{path} has {size:,} bytes, and the ledger counts {known.length:,}"
            raise FolderError(found, "restore it from a copy")
        return mmap.mmap(file.fileno(), known.length, access=mmap.ACCESS_READ) if known.length else b""
