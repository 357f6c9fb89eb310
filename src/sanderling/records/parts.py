"""A folder of parts, on a disk or in S3: part-00001.parquet and so on, and _export.json with the mark.

A part is there before the mark counts it. An export that was killed in between writes the same number again: so each
record is in one part.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol, TypeVar

import msgspec

from sanderling.extras import load
from sanderling.formats.exact_json import decode_exact
from sanderling.records.columns import Columns, ValueKind
from sanderling.records.target import Mark, TargetError, read_mark, take_lock, target_errors, write_mark
from sanderling.stores.durable import sync_folder, write_new
from sanderling.stores.objects import ObjectError, ObjectFault, WholeObjects

T = TypeVar("T")

# Readers of Parquet pass over what begins with an underscore. It was called otherwise once.
MARK, OLD_MARK = "_export.json", "export.json"
PIECE = 1 << 20
LARGEST_MARK = 16 << 20  # bytes; a thousand columns make a hundred thousand
# What a part has at most. One for S3 is sent from memory.
ROWS, FILE_BYTES, OBJECT_BYTES = 1_000_000, 256 << 20, 32 << 20
LONGEST_NAME = 1000  # bytes of a column's name


class PartsPlace(Protocol):
    """Where parts are put. All methods raise TargetError."""

    place: str
    most_bytes: int  # of a part

    def open(self) -> bytes | None:
        """What stands in the mark; None if there is none."""

    def draft(self) -> IO[bytes]:
        """A file without a name, for what shall be put."""

    def put(self, name: str, file: IO[bytes]) -> None:
        """Keep a file under a name, whole, in the place of whatever had it before."""

    def close(self) -> None:
        """Let go."""


class PartFormat(Protocol):
    """What parts are; it makes one at a time."""

    suffix: str
    notes: list[str]

    def open(self, mark: Mark | None) -> None:
        """Go on with what the mark says."""

    def fits(self, records: Sequence[bytes]) -> bool:
        """Learn from records; whether they may go into the part that was begun."""

    def begin(self, file: IO[bytes]) -> None:
        """Begin a part."""

    def write(self, records: Sequence[bytes]) -> None:
        """Add records that were learned from last."""

    def end(self) -> None:
        """All were added."""

    def noted(self, mark: Mark) -> Mark:
        """The mark with what is to be known about columns."""


class PartsTarget:
    """A target that is made of parts."""

    def __init__(self, place: PartsPlace, made_as: PartFormat) -> None:
        self.place = place.place
        self._place = place
        self._format = made_as
        self._number = 0
        self._rows = 0
        self._file: IO[bytes] | None = None
        self._pending: Mark | None = None

    @property
    def notes(self) -> list[str]:
        return self._format.notes

    def open(self) -> Mark | None:
        found = self._place.open()
        mark = None if found is None else read_mark(found, f"{self.place}/{MARK}")
        self._format.open(mark)
        self._number = mark.parts if mark else 0
        return mark

    def write(self, records: Sequence[bytes], mark: Mark) -> None:
        """Add records to a part, which is put when it is large, or when the next records have other columns."""
        if not records:
            self._pending = self._format.noted(mark)
            return
        with target_errors(Path(self.place)):
            if not self._format.fits(records):
                self._end()
            if self._file is None:
                self._file = self._place.draft()
                self._format.begin(self._file)
            self._format.write(records)
            self._rows += len(records)
            self._pending = self._format.noted(mark)
            if self._rows >= ROWS or self._file.tell() >= self._place.most_bytes:
                self._end()

    def finish(self, mark: Mark) -> None:
        self._pending = self._format.noted(mark)
        with target_errors(Path(self.place)):
            self._end()

    def _end(self) -> None:
        file = self._end_file()
        if file is not None:
            with file:
                file.seek(0)
                self._place.put(f"part-{self._number + 1:05}.{self._format.suffix}", file)
            self._number += 1
        if self._pending is not None:
            self._keep(self._pending)
            self._pending = None

    def _end_file(self) -> IO[bytes] | None:
        """The part that was begun, if one was; nothing more is written to it."""
        file, self._file, self._rows = self._file, None, 0
        if file is not None:
            self._format.end()
        return file

    def _keep(self, mark: Mark) -> None:
        with TemporaryFile() as file:
            file.write(write_mark(msgspec.structs.replace(mark, parts=self._number)) + b"\n")
            file.seek(0)
            self._place.put(MARK, file)

    def close(self) -> None:
        if file := self._end_file():
            file.close()
        self._place.close()


class FolderOfParts:
    """A folder on a disk."""

    most_bytes = FILE_BYTES

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder = folder
        self._lock = -1

    def open(self) -> bytes | None:
        """The mark of the folder, which is made."""
        with target_errors(self._folder):
            if self._folder.exists() and not self._folder.is_dir():
                raise TargetError(f"{self._folder} is a file, expected a folder. Choose another with --to.")
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(self._folder / ".lock", f"to {self._folder}")
            if (self._folder / OLD_MARK).exists() and not (self._folder / MARK).exists():
                (self._folder / OLD_MARK).rename(self._folder / MARK)
            if (self._folder / MARK).exists():
                return (self._folder / MARK).read_bytes()
            others = sorted(each.name for each in self._folder.iterdir() if not each.name.startswith((".", "part-")))
            if others:
                raise TargetError(f"{self._folder} holds {others[0]}, and no export of ours. Choose another with --to.")
        return None

    def draft(self) -> IO[bytes]:
        return TemporaryFile(dir=self._folder)

    def put(self, name: str, file: IO[bytes]) -> None:
        with target_errors(self._folder):
            write_new(self._folder / name, iter(lambda: file.read(PIECE), b""))
            sync_folder(self._folder)

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class ObjectsOfParts:
    """A bucket and a prefix of S3."""

    most_bytes = OBJECT_BYTES

    def __init__(self, objects: Callable[[], WholeObjects], bucket: str, prefix: str, place: str) -> None:
        self.place = place
        self._open = objects
        self._objects: WholeObjects | None = None
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._loop = asyncio.Runner()

    def open(self) -> bytes | None:
        """The mark under the prefix; the bucket is made."""
        with self._plainly():
            self._objects = self._open()
            self._run(self._objects.make(self._bucket))
            return self._read(self._objects, MARK) or self._read(self._objects, OLD_MARK)

    def _read(self, objects: WholeObjects, name: str) -> bytes | None:
        try:
            return self._run(objects.get(self._bucket, self._prefix + name, LARGEST_MARK)).body
        except ObjectError as error:
            if error.fault is not ObjectFault.MISSING:
                raise
        return None

    def draft(self) -> IO[bytes]:
        return TemporaryFile()

    def put(self, name: str, file: IO[bytes]) -> None:
        if self._objects is None:
            raise ValueError(f"{self.place} is not open")
        with self._plainly():
            self._run(self._objects.put(self._bucket, self._prefix + name, file.read(), {}))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except ObjectError as error:
            raise TargetError(str(error)) from None

    def close(self) -> None:
        if self._objects is not None:
            self._run(self._objects.close())
        self._loop.close()


class JsonLinesParts:
    """Parts that are JSON Lines."""

    suffix = "jsonl"

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._file: IO[bytes] | None = None

    def open(self, mark: Mark | None) -> None:
        """Nothing depends on what there is."""

    def fits(self, records: Sequence[bytes]) -> bool:
        del records
        return True

    def begin(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, records: Sequence[bytes]) -> None:
        if self._file is not None:
            self._file.write(b"\n".join(records) + b"\n")

    def end(self) -> None:
        self._file = None

    def noted(self, mark: Mark) -> Mark:
        return mark


class ParquetParts:
    """Parts that are Parquet. A column that comes, or must hold more, begins another part."""

    suffix = "parquet"

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._pa = load("pyarrow", "Parquet")
        self._pq = load("pyarrow.parquet", "Parquet")
        self._columns = Columns(longest=LONGEST_NAME)
        self._rows: list[dict[str, object]] = []
        self._begun = False
        self._writer: Any = None

    def open(self, mark: Mark | None) -> None:
        """Go on with the columns of the last part."""
        self._columns = Columns(mark.columns if mark else (), LONGEST_NAME)
        self._begun = mark is not None and bool(mark.columns)

    def fits(self, records: Sequence[bytes]) -> bool:
        self._rows = [decode_exact(record) for record in records]
        learned = self._columns.learn(self._rows)
        if self._begun and learned.added:
            self.notes.append(f"columns from here on: {', '.join(each.name for each in learned.added)}")
        for name, before, now in learned.widened:
            self.notes.append(f"column {name} is {now} from here on, and was {before}")
        self._begun = True
        return not (learned.added or learned.widened)

    def begin(self, file: IO[bytes]) -> None:
        """A part with the columns that there are now."""
        pa = self._pa
        types = dict.fromkeys(ValueKind, pa.string()) | {
            ValueKind.BOOLEAN: pa.bool_(),
            ValueKind.SMALL: pa.int64(),
            ValueKind.INTEGER: pa.int64(),
            ValueKind.FLOAT: pa.float64(),
        }
        fields = [
            pa.field(each.name, types[each.kind], metadata={"kind": each.kind.value, "field": each.field})
            for each in self._columns.stored
        ]
        self._writer = self._pq.ParquetWriter(file, pa.schema(fields), compression="zstd")

    def write(self, records: Sequence[bytes]) -> None:
        del records  # they were decoded to learn from them
        schema = self._writer.schema
        columns = zip(*self._columns.rows(self._rows), strict=True)
        arrays = [self._pa.array(cells, each.type) for cells, each in zip(columns, schema, strict=True)]
        self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=schema))

    def end(self) -> None:
        self._writer.close()

    def noted(self, mark: Mark) -> Mark:
        return msgspec.structs.replace(mark, columns=self._columns.stored)
