"""Records of many repos as columns: what `repo_records` and the Parquet files hold.

A record costs one slice for its rkey and one for its JSON; the rest is done for whole columns. The JSON is that of the
archive, byte for byte; it is only read for `createdAt`.
"""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Annotated, Any, NamedTuple

import msgspec

from sanderling.extras import load
from sanderling.formats.rca import U16, U32, RcaError

# What a DateTime64(6) can be: from 1900 to the end of 2299, in microseconds since 1970.
EARLIEST, LATEST = -2_208_988_800_000_000, 10_413_791_999_999_999
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class _Record(msgspec.Struct, gc=False):
    created_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = msgspec.field(default=None, name="createdAt")


_decode = msgspec.json.Decoder(_Record).decode


class PatternError(ValueError):
    """A pattern of collections is none."""


def chooser(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a collection is meant by one of `patterns`: a name, or its beginning and `*`; by none, all are meant."""
    for pattern in patterns:
        if not pattern or "*" in pattern[:-1]:
            raise PatternError(f"{pattern!r}, expected the name of a collection, or its beginning and *")
    names = {pattern for pattern in patterns if not pattern.endswith("*")}
    beginnings = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    return lambda name: not patterns or name in names or name.startswith(beginnings)


class RecordRun(NamedTuple):
    """Records that follow each other: those of one collection of one repo."""

    repo: str
    collection: str
    crawled_at: int  # microseconds since 1970
    offset: int  # of the file


class RecordColumns:
    """Records that wait to be written together."""

    def __init__(self) -> None:
        self._rkeys: list[bytes] = []
        self._jsons: list[bytes] = []
        self._runs: list[RecordRun] = []
        self._ends = array("i")  # of the runs, in records
        self.bytes = 0  # unpacked

    def __len__(self) -> int:
        return len(self._jsons)

    def add(self, run: RecordRun, content: bytes, count: int) -> None:
        """Take an unpacked collection. Raises RcaError, and takes nothing, if that is not what it is."""
        rkeys, jsons = split(content, count, run.offset)
        self._rkeys += rkeys
        self._jsons += jsons
        self._runs.append(run)
        self._ends.append(len(self._jsons))
        self.bytes += len(content)

    def table(self) -> tuple[Any, list[RcaError]]:
        """A pyarrow.Table of all, and which had to be left out since they are no text."""
        pa, pc = load("pyarrow", "Parquet"), load("pyarrow.compute", "Parquet")
        repos, collections, times, _ = zip(*self._runs, strict=True) if self._runs else ((), (), (), ())
        crawled_at = self._spread(pa.array(times, pa.int64()))
        written = pa.array([_created_at(json) for json in self._jsons], pa.int64())
        created_at = pc.coalesce(written, pc.max_element_wise(pc.min_element_wise(crawled_at, LATEST), EARLIEST))
        table = pa.table(
            {
                "repo": self._spread(pa.array(repos, pa.string())),
                "collection": self._spread(pa.array(collections, pa.string())),
                "rkey": _texts(self._rkeys),
                "record_json": _texts(self._jsons),
                "created_at": created_at.cast(pa.timestamp("us", "UTC")),
                "time_us": crawled_at,
            }
        )
        try:
            table.validate(full=True)
        except pa.ArrowInvalid:
            good = [_is_text(rkey) and _is_text(json) for rkey, json in zip(self._rkeys, self._jsons, strict=True)]
            return table.filter(pa.array(good)), [self._left_out(at) for at, kept in enumerate(good) if not kept]
        return table, []

    def _left_out(self, at: int) -> RcaError:
        run = self._runs[bisect_right(self._ends, at)]
        rkey = f"{run.repo}/{run.collection}/{self._rkeys[at].decode(errors='replace')}"
        return RcaError(run.offset, f"record {rkey[:200]!r} is not UTF-8 and was left out")

    def _spread(self, values: Any) -> Any:  # noqa: ANN401 - both a pyarrow.Array
        """Each value as often as there are records of its run."""
        pa, pc = load("pyarrow", "Parquet"), load("pyarrow.compute", "Parquet")
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(pa.array(self._ends, pa.int32()), values))


def split(content: bytes, count: int, offset: int) -> tuple[list[bytes], list[bytes]]:
    """Rkeys and JSON of an unpacked collection, which stands at `offset`. Raises RcaError if it is not that."""
    rkeys: list[bytes] = []
    jsons: list[bytes] = []
    u16, u32 = U16.unpack_from, U32.unpack_from
    at = 0
    try:
        for _ in range(count):
            start = at + 2
            end = start + u16(content, at)[0]
            at = end + 4 + u32(content, end)[0]
            rkeys.append(content[start:end])
            jsons.append(content[end + 4 : at])
    except struct.error:
        at = -1
    if at != len(content):
        raise RcaError(offset, f"{len(content)} bytes, unpacked, that are not {count} records")
    return rkeys, jsons


def _created_at(json: bytes) -> int | None:
    """When the record says it was made, in microseconds since 1970, if it says so in a way that can be kept."""
    try:
        said = _decode(json).created_at
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # of an archive that others have written
        return None
    if said is None:
        return None
    at = (said - _EPOCH) // _MICROSECOND
    return at if EARLIEST <= at <= LATEST else None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts(values: Sequence[bytes]) -> Any:  # noqa: ANN401 - a pyarrow.Array
    """A column of texts, from two buffers: an object for each would take twice as long."""
    pa = load("pyarrow", "Parquet")
    ends = array("i", accumulate(map(len, values), initial=0))
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])
