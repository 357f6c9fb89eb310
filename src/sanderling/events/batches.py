"""Where a batch is, and what is in it: a path becomes a place, a body becomes items.

A body is a JSON list of items, or `{"items": […], "count": n}`, or one item alone; packed with zstd or not. Its first
bytes decide whether it is packed. The metadata (`x-amz-meta-compressed: true` or `x-amz-meta-compression-algorithm:
zstd`, with or without the prefix) and the name may say so too; if they do and it is not, that is worth a note.

What is odd and does not stand in the way is a note. What does is a BatchError; it is `transient` where the object may
just not be complete yet, so that it is worth reading again. Of what is cut off or damaged for good, the items before
that are read, and the rest is one that is `Unreadable`.

Memory: unpacking stops as soon as there is a piece more than allowed; the window of the unpacker, at most the larger of
8 MiB and twice what is allowed, comes on top. What the values may take is bounded by `salvage.py`. A few hundred bytes
unpack to half a million comments, and each of these becomes a row. So what a batch would become is counted before it is
made: an item with too many comments is an error row in its place, and the others stay posts.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sanderling.events.fields import members, shown
from sanderling.events.items import Oversized, read_item
from sanderling.events.posts import Context, CrawlError, Post
from sanderling.events.salvage import MARKS, MOST_MEMBERS, DamagedError, JsonError, JsonReading, read_list

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

MOST_BYTES = 32 * 1024 * 1024  # unpacked; twenty items of 100 KB are 2 MB
PIECE = 65536  # bytes packed or unpacked at a time
MOST_FRAMES = 1000  # an empty one is nine bytes, so that there could be a great many
SMALLEST_WINDOW, LARGEST_WINDOW = 23, 30  # as powers of two; level 19 needs the former

LONGEST_KEY = 1024  # bytes, as everywhere with S3
LONGEST_PATH = 2 * LONGEST_KEY
SCHEMES = frozenset({"minio", "s3"})
SIZES = {"tiktok": 50, "youtube": 20}  # items of a full batch

# Measured on batches of the smallest comments: 210 bytes as values, 700 with their rows and what a database is sent.
ROW_BYTES = 1_000
# A value has a mark of JSON or more, and an object with one member, which takes the most, has three.
MARK_BYTES = 64
# A text is held as a value, which a single emoji makes four times as large, and as what a database is sent.
TEXT_BYTES = 6
# To count marks takes a hundredth of the time of a batch, so small bodies are not counted: they have a mark to 8 bytes,
# and 16 MB at the worst.
SMALL, SMALL_BYTES = 256 * 1024, 16

_FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPED_FRAME = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_GZIP = b"\x1f\x8b"
_BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}", re.ASCII)
# Also halves of surrogates, which no store can spell, and backslashes, which not every store leaves as they are.
_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.ASCII | re.IGNORECASE)


class BatchError(ValueError):
    """A batch cannot be read. If `transient` it may be readable later."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class ObjectLocation(NamedTuple):
    """Where an object is."""

    bucket: str
    key: str


class BatchItems(NamedTuple):
    """The items of a batch as they came, and what is odd about it."""

    items: list[object]
    notes: tuple[str, ...] = ()


def read_path(text: str, default_bucket: str = "") -> ObjectLocation:
    """The place that `minio://bucket/key`, `s3://bucket/key`, `bucket/key` or `/bucket/key` is. Raises BatchError.

    A path without any slash is a key in the default bucket, if there is one. Nothing is decoded: `%2F` is three
    characters of the key.
    """
    if len(text) > LONGEST_PATH:
        raise BatchError(f"path of {len(text):,} characters, expected at most {LONGEST_PATH:,}")
    rest = text.strip()
    if scheme := _SCHEME.match(rest):
        if scheme[1].lower() not in SCHEMES:
            raise BatchError(f"path {_without_password(text)} begins with {scheme[0]}, expected minio:// or s3://")
        bucket, _, key = rest[scheme.end() :].partition("/")
    else:
        bucket, slash, key = rest.lstrip("/").partition("/")
        if not slash and default_bucket:
            bucket, key = default_bucket, bucket
    return _location(bucket, key, text)


def read_reference(bucket: str, path: str, default_bucket: str = "") -> ObjectLocation:
    """The place of a path for which a bucket may be named apart. Raises BatchError."""
    if not bucket or _SCHEME.match(path.strip()):
        return read_path(path, default_bucket)
    return _location(bucket.strip(), path.strip().lstrip("/"), path)


def _location(bucket: str, key: str, text: str) -> ObjectLocation:
    if not _BUCKET.fullmatch(bucket):
        raise BatchError(f"path {_without_password(text)} has no bucket that could exist, expected bucket/key")
    if not key:
        raise BatchError(f"path {_without_password(text)} has no key, expected bucket/key")
    if _UNSPEAKABLE.search(key):
        raise BatchError(f"path {_without_password(text)} has a control character or a backslash in it")
    if len(key.encode()) > LONGEST_KEY:
        raise BatchError(
            f"key of {len(key.encode()):,} bytes in {_without_password(text)}, expected at most {LONGEST_KEY:,}"
        )
    steps = key.split("/")
    # Where objects are files they would lead out of the folder.
    if not steps[0] or ".." in steps or "." in steps:
        raise BatchError(f"path {_without_password(text)} has a step through folders in it, expected only names")
    return ObjectLocation(bucket, key)


def _without_password(text: str) -> str:
    """A path for a message: without a password that somebody put into it."""
    _, at, rest = text.rpartition("@")
    return repr(f"…@{rest}"[:120] if at else text[:120])


class UnpackedObject(NamedTuple):
    """The body of an object, unpacked, and what is known of how it came."""

    key: str
    data: bytes | bytearray
    packed: bool
    gzip: bool
    notes: tuple[str, ...]


def decode(body: bytes, *, metadata: Mapping[str, str], key: str, most: int = MOST_BYTES) -> BatchItems:
    """The items of an object of that key; `most` bounds its bytes once unpacked. Raises BatchError."""
    return parse(unpack(body, metadata, key, most))


def unpack(
    body: bytes, metadata: Mapping[str, str], key: str, most: int = MOST_BYTES, *, last: bool = False
) -> UnpackedObject:
    """The document that an object of that key holds, of `most` bytes at the most. Raises BatchError.

    If it is read for the last time, a frame that ends early is taken as far as it goes.
    """
    if not body:
        raise BatchError(f"{key}: found 0 bytes, expected a batch", transient=True)
    said = _is_said_packed(metadata, key)
    packed = _is_packed(body, said=said)
    data = _unpack_frames(body, key, most, last=last) if packed else body
    if len(data) > most:
        raise BatchError(f"{key}: found {len(data):,} bytes, expected at most {most:,}")
    notes = (f"{key}: said to be packed with zstd, found plain",) if said and not packed else ()
    return UnpackedObject(key, data, packed, body.startswith(_GZIP), notes)


def parse(found: UnpackedObject, *, last: bool = False) -> BatchItems:
    """The items of a document; of half a one, only if that will not change or it is read for the `last` time.

    Raises BatchError.
    """
    key = found.key
    read = _read(found, last=last)
    batch = _items_of(read.value, key)
    return BatchItems(batch.items, (*found.notes, *(f"{key}: {note}" for note in read.notes), *batch.notes))


def _read(found: UnpackedObject, *, last: bool) -> JsonReading:
    try:
        return read_list(found.data)
    except JsonError as error:
        why = "found gzip, expected JSON or zstd" if found.gzip else str(error)
        # A packed body is complete once its frame is. That it holds half a document will not change.
        refusal = BatchError(f"{found.key}: {why}", transient=error.truncated and not found.packed)
        if (refusal.transient and not last) or not isinstance(error, DamagedError):
            raise refusal from None
    try:
        return read_list(found.data, salvage=True)
    except JsonError:
        raise refusal from None


def _is_said_packed(metadata: Mapping[str, str], key: str) -> bool:
    names = {name.lower().removeprefix("x-amz-meta-"): value.strip().lower() for name, value in metadata.items()}
    return (
        names.get("compressed") == "true"
        or names.get("compression-algorithm") == "zstd"
        or key.lower().endswith((".zst", ".zstd"))
    )


def _is_packed(body: bytes, *, said: bool) -> bool:
    if body.startswith(_FRAME) or _SKIPPED_FRAME.match(body):
        return True
    # The first byte or two of a frame are all that has arrived.
    return said and len(body) < len(_FRAME) and _FRAME.startswith(body)


class _Frames:
    """Unpacks a body, frame after frame."""

    def __init__(self, most: int) -> None:
        window = min(max(SMALLEST_WINDOW, (most - 1).bit_length()), LARGEST_WINDOW)
        self._options: dict[int, int] = {DecompressionParameter.window_log_max: window}
        self._frame = ZstdDecompressor(options=self._options)
        self.number = 1

    def unpack(self, body: bytes) -> Iterator[bytes]:
        """The pieces that a body unpacks to, each of PIECE bytes at most."""
        for start in range(0, len(body), PIECE):
            data = body[start : start + PIECE]
            while data or not (self._frame.needs_input or self._frame.eof):
                if self._frame.eof:
                    self._frame, self.number = ZstdDecompressor(options=self._options), self.number + 1
                yield self._frame.decompress(data, max_length=PIECE)
                data = self._frame.unused_data if self._frame.eof else b""

    @property
    def complete(self) -> bool:
        """Whether the last frame has come to its end."""
        return self._frame.eof


def _unpack_frames(body: bytes, key: str, most: int, *, last: bool) -> bytearray:
    """The body unpacked, for the last time as far as it goes. Raises BatchError."""
    unpacked, frames = bytearray(), _Frames(most)
    try:
        for piece in frames.unpack(body):
            unpacked += piece
            if len(unpacked) > most:
                raise BatchError(f"{key}: more than {most:,} bytes once unpacked, expected at most that many")
            if frames.number > MOST_FRAMES:
                raise BatchError(f"{key}: more than {MOST_FRAMES:,} zstd frames, expected one or a few")
    except ZstdError as error:
        where = f"zstd frame {frames.number} of {len(body):,} bytes"
        raise BatchError(f"{key}: {where} does not unpack: {error}") from None
    if not frames.complete and not (last and unpacked):
        raise BatchError(f"{key}: zstd frame {frames.number} ends early, after {len(body):,} bytes", transient=True)
    return unpacked


def _items_of(value: object, key: str) -> BatchItems:
    """The items of a document. Raises BatchError."""
    match value:
        case list():
            batch = BatchItems(value)
        case {"items": list(items), **rest}:
            told = rest.get("count")
            agree = told is None or told == len(items)
            batch = BatchItems(items, () if agree else (f"{key}: says count {shown(told)}, found {len(items)} items",))
        case dict():
            batch = BatchItems([value])
        case _:
            raise BatchError(f"{key}: found {shown(value)}, expected a list of items or an object")
    if len(batch.items) > MOST_MEMBERS:
        raise BatchError(f"{key}: found {len(batch.items):,} items, expected at most {MOST_MEMBERS:,}")
    return batch


def size_notes(found: int, platform: str, content_count: int | None) -> tuple[str, ...]:
    """What is odd about the number of items. That they are few is not: the last batch of a job is smaller."""
    usual = SIZES.get(platform)
    notes = []
    if usual is not None and found > usual:
        notes.append(f"found {found} items, a full batch of {platform} has {usual}")
    if content_count is not None and found != content_count:
        notes.append(f"found {found} items, the message says {content_count}")
    return tuple(notes)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What a batch may have."""

    items: int = MOST_MEMBERS
    comments: int = 10_000  # of an item; crawlers send some hundreds
    rows: int = 50_000  # of all items: posts, comments and errors


USUAL_LIMITS = BatchLimits()


def weight(data: bytes | bytearray) -> int:
    """About how many bytes a JSON document takes as values."""
    if len(data) <= SMALL:
        return SMALL_BYTES * len(data)
    return TEXT_BYTES * len(data) + MARK_BYTES * sum(map(data.count, MARKS))


def row_count(items: Sequence[object]) -> int:
    """How many rows the items become at most."""
    return sum(map(_rows_of, items))


def bound_items(items: list[object], limits: BatchLimits) -> list[object]:
    """The items; those that are too large are Oversized, without what is too much.

    Where all of them together are too large, the largest are.
    """
    rows = [_rows_of(item) for item in items]
    total = sum(rows)
    if total <= limits.rows and max(rows, default=0) <= limits.comments + 1:
        return items
    bounded = list(items)
    for place in sorted(range(len(items)), key=rows.__getitem__, reverse=True):
        comments, over = rows[place] - 1, total > limits.rows
        if not comments or (comments <= limits.comments and not over):
            break
        if comments > limits.comments:
            why = f"found {comments:,}, expected at most {limits.comments:,} (max-comments)"
        else:
            why = f"found {comments:,} in a batch of {total:,} rows, expected at most {limits.rows:,} (max-rows)"
        bounded[place] = Oversized(_without_comments(items[place]), f"comments of item {place}: {why}")
        total -= comments
    return bounded


def _rows_of(item: object) -> int:
    comments = item.get("comments") if isinstance(item, dict) else None
    return 1 + len(comments) if isinstance(comments, list) else 1


def _without_comments(item: object) -> dict[str, object]:
    return {name: value for name, value in members(item).items() if name != "comments"}


class ReadBatch(NamedTuple):
    """The items of a batch, each in one of these."""

    posts: list[Post]
    errors: list[CrawlError]  # items that were not fetched, or cannot be read


def read_batch(body: bytes, *, platform: str = "", name: str = "batch.json") -> ReadBatch:
    """What an object of a batch says: JSON, or JSON packed with zstd, of any generation of crawlers.

    `platform` is that of items which do not say; `name` stands in messages. Raises ValueError for what is no batch.
    """
    context, found = Context(event_id=name, platform=platform), ReadBatch([], [])
    for place, raw in enumerate(decode(body, metadata={}, key=name).items):
        item = read_item(raw, context, place)
        if isinstance(item, Post):
            found.posts.append(item)
        else:
            found.errors.append(item)
    return found
