"""A folder of Parquet files, one per segment, with the columns of `repo_records`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from sanderling.extras import load
from sanderling.repos.replay import ReplayBatch, ReplaySegment
from sanderling.stores.durable import FolderError, draft_of, plainly, sync_folder

# In the metadata of a file, which segment it was made of. One that could not be read to its end has none.
MADE_OF = b"sanderling.segment"


def schema() -> Any:  # noqa: ANN401 - pyarrow has no types
    """The columns of every file."""
    pa = load("pyarrow", "Parquet")  # here: an extra, and slow to load
    texts = [(name, pa.string()) for name in ("repo", "collection", "rkey", "operation", "record_json")]
    return pa.schema([*texts, ("created_at", pa.timestamp("us", "UTC")), ("time_us", pa.int64())])


class ParquetSink:
    """Files are written beside those that are there and then renamed, so that none is ever half of one."""

    def __init__(self, folder: Path) -> None:
        load("pyarrow", "Parquet")  # before anything is begun
        self._folder = folder

    def path_of(self, segment: str) -> Path:
        """The file of a segment."""
        return self._folder / f"{segment.partition('.rca')[0]}.parquet"

    def has(self, segment: ReplaySegment) -> bool:
        """Whether its file is there, and was made of all of it."""
        return self._made_of(segment.name) == segment

    def _made_of(self, name: str) -> ReplaySegment | None:
        """The segment that the file of this name was made of to its end; None if there is no such file."""
        parquet = load("pyarrow.parquet", "Parquet")
        try:
            found = parquet.read_metadata(self.path_of(name)).metadata or {}
            return ReplaySegment(**msgspec.json.decode(found[MADE_OF]))
        except (OSError, ValueError, KeyError):  # pyarrow's own are both of the first: none, or somebody else's
            return None

    def remove_superseded(self) -> int:
        """Nothing: each file is what one segment has, and the newest crawl of a repo is told by `time_us`."""
        return 0

    @contextmanager
    def loading(self, segment: ReplaySegment) -> Iterator["_Written"]:
        """Write its file. Raises FolderError if that has the records of another archive, which would be lost."""
        path, there = self.path_of(segment.name), self._made_of(segment.name)
        if there is not None and (there.size, there.index_crc) != (segment.size, segment.index_crc):
            raise FolderError(
                f"{path} was made of another segment called {there.name}, of {there.size:,} bytes; this one has "
                f"{segment.size:,}. Give each archive a folder of its own."
            )
        temporary = draft_of(path)
        with plainly(path):
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                with temporary.open("wb") as file:
                    yield from _write(file, segment)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            sync_folder(self._folder)


def _write(file: Any, segment: ReplaySegment) -> Iterator["_Written"]:  # noqa: ANN401 - an open file
    parquet = load("pyarrow.parquet", "Parquet")
    with parquet.ParquetWriter(file, schema(), compression="zstd") as writer:
        loading = _Written(writer)
        yield loading
        if loading.complete:
            writer.add_key_value_metadata({MADE_OF: _described(segment)})


def _described(segment: ReplaySegment) -> bytes:
    return msgspec.json.encode(segment._asdict())


class _Written:
    def __init__(self, writer: Any) -> None:  # noqa: ANN401 - pyarrow's
        self._writer = writer
        self.complete = False

    def write(self, batch: ReplayBatch) -> None:
        pa = load("pyarrow", "Parquet")
        create = pa.repeat("create", batch.rows.num_rows)
        columns = schema()
        self._writer.write_table(batch.rows.append_column("operation", create).select(columns.names).cast(columns))
