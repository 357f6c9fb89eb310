"""The folder of segments: repos go into segment_0001.rca.part, which loses its .part when it is full or the crawl ends.

Two small files beside them are no part of the archive: `lock`, and `synced`, which says how far the .part was durable.
The latter is written after every sync and never synced itself, so it may say too little, and never too much. What it
is for: a torn end is cut off, and bad bytes before it are not a torn end but damage, behind which lie repos that the
progress calls complete.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from sanderling.formats.rca import HEADER, Header, RcaError
from sanderling.formats.rca_reader import RcaReader
from sanderling.formats.rca_writer import RcaWriter
from sanderling.stores.durable import FolderError, Lock, plainly, sync_data, sync_folder
from sanderling.stores.ports import Finished

PART = ".part"
Blocks = Sequence[tuple[str, bytes]]  # DIDs, and what `encode_block` made of their repos
_NAME = re.compile(r"segment_(?P<number>[0-9]{4,})\.rca(?:\.part)?")


class Segments:
    """The segments of one crawl, which no other process may write to. All methods raise FolderError."""

    def __init__(self, folder: Path, *, size: int, created_at: Callable[[], int]) -> None:
        """`size` is how large a segment grows, in bytes; `created_at` gives the time, in microseconds since 1970.

        A .part that an earlier run has left is mended and gone on with.
        """
        if size < 1:
            raise ValueError(f"size is {size}, expected at least one byte")
        self.folder = folder
        self.found: tuple[Finished, ...] = ()  # repos in the .part: the progress may not know them
        self.cut = 0  # bytes of a torn end
        self.number = 0  # of the segment that is written, or was written last
        self.finalised = 0  # by us
        self._size = size
        self._created_at = created_at
        self._part: _Part | None = None
        with plainly(folder), ExitStack() as undo:
            folder.mkdir(parents=True, exist_ok=True)
            undo.callback(Lock(folder / "lock").release)
            self._synced = os.open(folder / "synced", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            undo.callback(os.close, self._synced)
            undo.callback(self._let_go)
            self._take_up()
            self._held: ExitStack | None = undo.pop_all()

    @property
    def bytes(self) -> int:
        """Of the segment that is written now; 0 if none is."""
        return self._part.writer.size if self._part else 0

    def append(self, blocks: Blocks) -> int:
        """Keep repos; the number of the segment they are in.

        When it returns they are on disk. When it raises, none of them is kept, and it may be tried again.
        """
        if self._held is None:
            raise ValueError("these segments were closed")
        with plainly(self.folder):
            if self._part is not None and self.bytes >= self._size:
                self._finalise(self._part)
            if self._part is None:
                self._part = self._begin()
            self._part.append(blocks)
            self._note_synced()
        return self.number

    def close(self) -> None:
        """Finalise the segment that is written, and let others in."""
        held, self._held = self._held, None
        if held is not None:
            with held, plainly(self.folder):
                if self._part is not None:
                    self._finalise(self._part)

    def abandon(self) -> None:
        """Let others in after an error, and leave the .part as it is.

        Finalised, it would never be looked through again for what the progress was not told of.
        """
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def _begin(self) -> "_Part":
        number = max((number_of(path) for path in segments_in(self.folder)), default=0) + 1
        path = self.folder / f"segment_{number:04}.rca{PART}"
        file = cast("BinaryIO", path.open("x+b", buffering=0))
        try:
            part = _Part(path, file, self._created_at)
            sync_folder(self.folder)
        except BaseException:
            file.close()
            path.unlink()
            raise
        self.number = number
        return part

    def _finalise(self, part: "_Part") -> None:
        """End the segment that is written; one without repos is removed."""
        if len(part.writer):
            part.finalise()
            self._name(part.path)
        else:
            part.path.unlink()
        self._let_go()

    def _name(self, path: Path) -> None:
        """Call a .part what it is when it is finalised."""
        path.rename(path.with_suffix(""))
        sync_folder(self.folder)
        self.finalised += 1

    def _let_go(self) -> None:
        if self._part is not None:
            self._part.file.close()
        self._part = None

    def _take_up(self) -> None:
        """Go on where an earlier run stopped."""
        paths = segments_in(self.folder)
        parts = [path for path in paths if path.suffix == PART]
        if len(parts) > 1:
            raise FolderError(f"{self.folder} holds {len(parts)} files {PART}, expected one at most; move one away")
        self.number = max(map(number_of, [*paths, *parts]), default=0)
        for path in parts:
            if path.with_suffix("").exists():
                raise FolderError(f"{self.folder} holds {path.stem} with and without {PART}; move one of them away")
            self.number = number_of(path)
            self._mend(path)

    def _mend(self, path: Path) -> None:
        """Make of a .part what can be gone on with; or name it, if that is all that is missing."""
        with ExitStack() as undo:
            file = cast("BinaryIO", undo.enter_context(path.open("r+b", buffering=0)))
            try:
                finalised = self._examine(path, file)
            except RcaError as error:
                raise FolderError(
                    f"{path} is damaged, or no segment ({error}). Restore it from a copy, or move it away."
                ) from error
            if finalised:
                self._name(path)
            else:
                self._part = _Part(path, file, self._created_at)
                self._note_synced()
                undo.pop_all()

    def _examine(self, path: Path, file: BinaryIO) -> bool:
        """Find the repos of a .part, and see that none is lost by going on; whether it was finalised."""
        # The header is on disk before any block is: a file no longer than a header has none to lose.
        if file.seek(0, os.SEEK_END) <= HEADER.size and not _has_header(file):
            file.truncate(0)
            return False
        reader = _reader(file)
        self.found = tuple(Finished(block.did, len(block.data)) for block in reader)
        if reader.finalised:
            return True
        synced = self._synced_until()
        if reader.whole_until < synced:
            raise FolderError(
                f"{path} is damaged at byte {reader.whole_until}, though it was whole up to {synced}. Nothing was cut "
                "off. Restore it from a copy; or move it away, and the repos in it are lost."
            )
        self.cut = reader.size - reader.whole_until
        return False

    def _note_synced(self) -> None:
        os.pwrite(self._synced, f"{self.number:20} {self.bytes:20}\n".encode(), 0)

    def _synced_until(self) -> int:
        """How much of this segment is known to have been durable; 0 if nothing is."""
        words = os.pread(self._synced, 42, 0).split()
        known = [int(word) for word in words if word.isdigit()]
        return known[1] if len(known) == len(words) == 2 and known[0] == self.number else 0

    def __repr__(self) -> str:
        return f"<Segments {self.folder}: {self.number}, {self.bytes} bytes>"


class _Part:
    """A segment that is written. What goes wrong leaves it as it was before."""

    def __init__(self, path: Path, file: BinaryIO, created_at: Callable[[], int]) -> None:
        self.path = path
        self.file = file
        self._created_at = created_at
        self._writer: RcaWriter | None = None
        self.writer  # noqa: B018 - writes the header, or cuts a torn end
        os.fsync(file.fileno())

    @property
    def writer(self) -> RcaWriter:
        """The one that is there; or after a failure a new one, which reads the file as if it had just been found."""
        if self._writer is None:
            self._writer = RcaWriter(self.file, created_at=self._created_at())
        return self._writer

    def append(self, blocks: Blocks) -> None:
        """Keep all of them."""
        with self._durably() as writer:
            for did, block in blocks:
                writer.append(did, block)

    def finalise(self) -> None:
        """Write the index. Nothing is appended after."""
        with self._durably() as writer:
            writer.finalise()

    @contextmanager
    def _durably(self) -> Iterator[RcaWriter]:
        writer = self.writer
        before = writer.size
        try:
            yield writer
            sync_data(self.file.fileno())
        except BaseException:
            self._writer = None
            self.file.truncate(before)
            raise


def segments_in(folder: Path) -> list[Path]:
    """The segments of a folder by number, and a .part if there is one. Files with other names are somebody else's."""
    return sorted((path for path in folder.iterdir() if number_of(path)), key=number_of)


def number_of(path: Path) -> int:
    """The number of a segment; 0 for what is none."""
    found = _NAME.fullmatch(path.name)
    number = int(found["number"]) if found else 0
    # 00001 is not how we write it.
    return number if path.name.startswith(f"segment_{number:04}.") else 0


def _has_header(file: BinaryIO) -> bool:
    file.seek(0)
    try:
        Header.decode(file.read(HEADER.size))
    except RcaError:
        return False
    return True


def _reader(file: BinaryIO) -> RcaReader:
    """A reader; of a file whose finalising was stopped half-way, as of one that was not finalised. Raises RcaError."""
    try:
        return RcaReader(file)
    except RcaError:
        file.seek(0)
        header = Header.decode(file.read(HEADER.size))
        if not header.index_offset:
            raise
    file.seek(0)
    file.write(Header(header.created_at).encode())
    return RcaReader(file)
