"""Write an .rca, block after block; mend one whose writer was stopped in the middle."""

import zlib
from typing import BinaryIO

from sanderling.formats.rca import (
    ENTRY,
    HEADER,
    MOST_U32,
    U16,
    U32,
    Block,
    Footer,
    Header,
    RcaError,
    checked_time,
    decode_block,
)
from sanderling.formats.rca_reader import RcaReader


class RcaWriter:
    """Appends repos to a file, which must be seekable and read-write, and is not closed.

    Bytes are handed to the file and flushed; they are durable when the caller has synced it after that. A block counts
    as kept once it is durable, whether or not the file was finalised: `repair` finds it.
    """

    def __init__(self, file: BinaryIO, *, created_at: int) -> None:
        """Begin an empty file at `created_at`, microseconds since 1970; or go on with one that was not finalised.

        The latter is repaired first, and read as a whole. Raises RcaError if it was finalised, or is no .rca.
        """
        self._file = file
        self._end = HEADER.size  # where whole blocks end, and the next begins
        # DID and fields of each entry in one piece: a segment may have a million of them.
        self._entries: list[bytes] = []
        self._index_size = U32.size
        if file.seek(0, 2):
            self._header = self._resume()
        else:
            self._header = Header(checked_time(created_at))
            self._write(0, self._header.encode())

    def _resume(self) -> Header:
        repair(self._file)
        reader = RcaReader(self._file)
        if reader.finalised:
            raise RcaError(24, f"a file finalised with {reader.header.repos} repos, expected one that was not")
        for block in reader:
            self._enter(block, self._entry(block))
        return reader.header

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes of header and blocks so far: the offset of the next block."""
        return self._end

    def append(self, did: str, block: bytes) -> int:
        """Write what `encode_block` made for `did`; its offset. Raises RcaError, and writes nothing, if it is not that.

        If the file refuses, the writer stays usable: the next block overwrites what was written of this one.
        """
        parsed = decode_block(block, self._end)
        if parsed.did != did:
            raise RcaError(self._end, f"a block of {parsed.did[:80]!r}, expected {did[:80]!r}")
        entry = self._entry(parsed)
        if self._index_size + len(entry) + U16.size > MOST_U32:
            raise RcaError(self._end, f"an index of more than {MOST_U32} bytes; begin another file")
        self._write(self._end, block)
        self._enter(parsed, entry)
        return parsed.offset

    def _entry(self, block: Block) -> bytes:
        return block.did.encode() + ENTRY.pack(block.offset, len(block.data), zlib.crc32(block.data))

    def _enter(self, block: Block, entry: bytes) -> None:
        self._entries.append(entry)
        self._index_size += U16.size + len(entry)
        self._end += len(block.data)

    def finalise(self) -> int:
        """Write index and footer, then the header that says so; the size of the file. Nothing is appended after.

        Stopped half-way it is a file that was not finalised, or whose header speaks of an index that is torn; `repair`
        mends both.
        """
        entries = sorted(self._entries, key=lambda entry: entry[: -ENTRY.size])  # stable: of one DID, as written
        parts = [U32.pack(len(entries))]
        for entry in entries:
            parts += U16.pack(len(entry) - ENTRY.size), entry
        index = b"".join(parts)
        footer = Footer(self._end, len(index), len(entries), zlib.crc32(index))
        self._file.truncate(self._end)
        self._write(self._end, index + footer.encode())
        self._header = self._header._replace(repos=len(entries), index_offset=self._end)
        self._write(0, self._header.encode())
        return self._file.seek(0, 2)

    def _write(self, offset: int, data: bytes) -> None:
        """All of `data`; a file without a buffer may take it in pieces."""
        self._file.seek(offset)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._file.flush()


def repair(file: BinaryIO) -> tuple[int, int]:
    """Cut what follows the last whole block of a file that was not finalised; blocks kept and bytes cut.

    A sound finalised file is left as it is. One whose index is torn becomes one that was not finalised. Raises RcaError
    for what is no .rca, and for a finalised file with a bad block: that is damage, and cutting there would lose the
    blocks behind it. The same can happen to a file that was not finalised, and cannot be told from a torn tail: whoever
    knows up to where it was synced should look at `RcaReader.whole_until` first.
    """
    try:
        reader = RcaReader(file)
    except RcaError:
        reader = _without_index(file)
    kept = sum(1 for _ in reader)
    if reader.finalised:
        return kept, 0
    file.truncate(reader.whole_until)
    return kept, reader.size - reader.whole_until


def _without_index(file: BinaryIO) -> RcaReader:
    """A reader of the same file as one that was not finalised, which its header then says. Raises RcaError."""
    file.seek(0)
    header = Header.decode(file.read(HEADER.size))
    file.seek(0)
    file.write(Header(header.created_at).encode())
    file.flush()
    return RcaReader(file)
