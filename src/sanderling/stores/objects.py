"""Where batches are kept: objects in buckets, each with a little metadata.

| URL | what it is |
|---|---|
| `file:FOLDER` | a folder; its buckets are the folders in it |
| `s3+http://key:secret@host:9000`, `s3+https://…`, or without `s3+` | an S3 server: MinIO, SeaweedFS, and others |
| `s3:` | S3 of Amazon, in the region that AWS_REGION names |

Tricky bits:

- Buckets and keys come from messages, and so from strangers. A name that could lead anywhere else is `UNUSABLE`.
- Faults are told apart by whom they concern. `DOWN` concerns everybody, and waiting is all there is to do; `FAILED` may
  concern everybody or this object; the others concern this object. Keys that the server does not know are `DOWN`: with
  them, nobody gets anything.
- Threads do the work, since neither disks nor the S3 client of ours can be waited for otherwise. Nobody waits for a
  thread longer than PATIENCE.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import NamedTuple, ParamSpec, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from sanderling.extras import load

T = TypeVar("T")
P = ParamSpec("P")

LONGEST_KEY = 1024  # bytes, as everywhere with S3
# Of all metadata of an object, names and values, as everywhere with S3.
MOST_METADATA = 2048
# Seconds that a call may take. What is larger than a disk or a network can give in this time is too large for us.
PATIENCE = 28.0
# At once; each may hold a whole object.
THREADS = 8
# Objects that are listed at once, as everywhere with S3.
PAGE = 1000
FOLDER_BUCKET = "objects"  # of an address that is a folder

EXPECTED = "expected file:FOLDER, s3+http://key:secret@host:9000 or s3+https://host"

EXPECTED_PLACE = (
    "expected s3://bucket/prefix, s3+http://key:secret@host:9000/bucket/prefix, s3+https://… or file:FOLDER,"
    " special characters as %2F"
)

_BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}", re.ASCII)
# Control characters, halves of surrogates, which no store can spell, and what SeaweedFS takes for a slash.
_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]")
_META_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*", re.ASCII)
_META_VALUE = re.compile(r"[\x20-\x7e]*")
# They are properties of an object of their own, and S3 would take them for those.
_HEADERS = frozenset(
    {"cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "storage-class"}
)


class ObjectFault(Enum):
    """Why an object was not to be had, and so what to do about it."""

    MISSING = "missing"  # it may come: whoever told of it may have been quicker than the store
    TOO_LARGE = "too large"
    UNUSABLE = "unusable"  # its name or its metadata: nothing of the kind will ever be had
    REFUSED = "refused"  # we may not have this one
    FAILED = "failed"  # an error of the store's own, or silence: whether others fare better is not known
    DOWN = "down"  # the store gives nothing to anybody now


class ObjectError(Exception):
    """An object was not read or not written. The message says where, what was found, and holds no secrets."""

    def __init__(self, message: str, *, fault: ObjectFault, full: bool = False) -> None:
        super().__init__(message)
        self.fault = fault
        self.full = full  # whether there is no room, which somebody has to make

    def given_up(self, tries: int) -> "ObjectError":
        """The same for whoever does not try again."""
        return ObjectError(f"{self}; after {tries} tries", fault=self.fault, full=self.full)

    @property
    def stays(self) -> bool:
        """Whether it may fail for ever: the store has answered, or has no room."""
        return self.full or self.fault in (ObjectFault.FAILED, ObjectFault.MISSING)

    @property
    def transient(self) -> bool:
        """Whether the same may go well later, without anybody changing anything about the object."""
        return self.fault is ObjectFault.MISSING or self.unavailable

    @property
    def unavailable(self) -> bool:
        """Whether the store has not answered for the object: nothing is known of it."""
        return self.fault in (ObjectFault.FAILED, ObjectFault.DOWN)


class StoredObject(NamedTuple):
    """An object. The names of its metadata are in lower case, without `x-amz-meta-`."""

    body: bytes
    metadata: Mapping[str, str]
    etag: str  # another one for another body


class ListedObject(NamedTuple):
    """An object that is there, without its body."""

    key: str
    size: int


class Objects(Protocol):
    """Objects by bucket and key. All methods raise ObjectError; all end within seconds, whatever others do."""

    async def get(self, bucket: str, key: str, most: int) -> StoredObject:
        """The object, if it has at most so many bytes; of one that has more, none is read."""

    async def put(self, bucket: str, key: str, body: bytes, metadata: Mapping[str, str]) -> None:
        """Return when it is durable. There is this body or the earlier one, and never half of either.

        Raises ValueError for metadata that no store keeps: `check_metadata`.
        """

    async def delete(self, bucket: str, key: str) -> None:
        """Return when it is gone for good. One that is not there is gone, and so is one whose bucket is not there."""

    def list(self, bucket: str, prefix: str) -> AsyncIterator[ListedObject]:
        """Each object below the prefix once, in no particular order: `a/b` is for `a/b/c`, and not for `a/bc`.

        The empty prefix is for all. At most PAGE are held at once, and each page comes within seconds. What is put or
        deleted meanwhile may be listed or not. A bucket that is not there is MISSING; a prefix that is not there is
        for none.
        """

    async def ping(self) -> None:
        """Return if the store answers and knows us."""

    async def close(self) -> None:
        """Let go."""


class Buckets(Protocol):
    """Where objects are put."""

    async def make(self, bucket: str) -> None:
        """Return when there is one of that name, which is made if need be. Raises ObjectError."""


class WholeObjects(Objects, Buckets, Protocol):
    """Objects, and the buckets that they are in."""


def open_objects(url: str, environment: Mapping[str, str] = os.environ) -> WholeObjects:
    """The store at `url`. A folder is made where there is none; a server is reached with the first call: `ping` it.

    The keys of a server are those in the URL, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the secret is in the
    file that AWS_SECRET_ACCESS_KEY_FILE names. Raises ObjectError, or MissingExtraError.
    """
    kind, _, rest = url.partition(":")
    if kind == "file" and rest.removeprefix("//"):
        from sanderling.stores.objects_local import LocalObjects  # noqa: PLC0415 - it knows this file

        return LocalObjects(Path(rest.removeprefix("//")))
    if kind not in ("s3", "s3+http", "s3+https", "http", "https"):
        # The URL may hold a secret, in the wrong place too: no message quotes more than its beginning.
        shown = kind if kind in ("file", "minio", "sqlite", "amqp") else "that"
        raise ObjectError(f"{shown!r} is no object store with a place; {EXPECTED}", fault=ObjectFault.UNUSABLE)
    objects: WholeObjects = load("sanderling.stores.objects_s3", "S3").S3Objects(url, environment)
    return objects


def read_place(url: str) -> tuple[str, str, str]:
    """Take apart an address with a bucket in it: the URL for `open_objects`, the bucket, and the prefix or nothing.

    | address | URL | bucket | prefix |
    |---|---|---|---|
    | `s3://bucket/prefix` | `s3:` | `bucket` | `prefix` |
    | `s3+http://key:secret@host:9000/bucket/prefix`, `s3+https://…` | what is before the bucket | `bucket` | `prefix` |
    | `file:/folder` | the same | `objects` | |

    Raises ObjectError. No message quotes anything of the address, which may hold a secret in the wrong place.
    """
    kind, _, rest = url.partition(":")
    if kind == "file" and rest.removeprefix("//"):
        return url, FOLDER_BUCKET, ""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _no_place("is no URL") from None
    path = parts.path.strip("/")
    if kind == "s3" and parts.netloc:
        opened, place = "s3:", f"{parts.netloc}/{path}"
    elif kind in ("s3+http", "s3+https") and parts.netloc:
        opened, place = f"{kind}://{parts.netloc}", path
    else:
        raise _no_place("names no bucket")
    bucket, _, prefix = place.strip("/").partition("/")
    # A slash or a question mark of a secret would end its host, and an @ is behind the secret.
    if parts.query or parts.fragment or "@" in place:
        raise _no_place("has ?, # or @ behind its host")
    try:
        steps_below(bucket, unquote(prefix))
    except ObjectError:
        raise _no_place("has a bucket or a prefix that cannot exist") from None
    return opened, bucket, unquote(prefix)


def _no_place(what: str) -> ObjectError:
    return ObjectError(f"the address of the objects {what}; {EXPECTED_PLACE}", fault=ObjectFault.UNUSABLE)


def steps_of(bucket: str, key: str) -> tuple[str, ...]:
    """The bucket and the parts of a key between its slashes. Raises ObjectError if no object can have that name."""
    steps = (bucket, *key.split("/"))
    wrong = ""
    if not _BUCKET.fullmatch(bucket):
        wrong = "has no bucket that could exist"
    elif _UNSPEAKABLE.search(key):
        wrong = "has a control character or a backslash in it"
    elif not {"", ".", ".."}.isdisjoint(steps):
        wrong = "has a step in it that is no name"
    elif (size := len(key.encode())) > LONGEST_KEY:
        wrong = f"has {size:,} bytes, at most {LONGEST_KEY:,} are possible"
    if wrong:
        raise ObjectError(f"{shown(bucket, key)} {wrong}; expected bucket/key", fault=ObjectFault.UNUSABLE)
    return steps


def steps_below(bucket: str, prefix: str) -> tuple[str, ...]:
    """The same of a prefix, which may be empty. Raises ObjectError if no object can be below it."""
    return steps_of(bucket, prefix) if prefix else steps_of(bucket, "key")[:1]


def shown(bucket: str, key: str) -> str:
    """An object for a message: whatever is in its name, one line and not a long one."""
    return repr(f"{bucket[:63]}/{key}"[:200])


def too_large(where: str, size: int, most: int) -> ObjectError:
    """What to say of an object that is not read."""
    return ObjectError(f"{where} has {size:,} bytes, expected at most {most:,}", fault=ObjectFault.TOO_LARGE)


def check_metadata(metadata: Mapping[str, str]) -> None:
    """Raise ValueError for what not every store gives back as it was: names in small ASCII, and values in ASCII."""
    size = 0
    for name, value in metadata.items():
        if not _META_NAME.fullmatch(name) or name in _HEADERS:
            raise ValueError(f"metadata {name[:50]!r}: expected small letters, digits and '-', and no header's name")
        if not _META_VALUE.fullmatch(value) or value != value.strip():
            raise ValueError(f"metadata {name}: {value[:50]!r}, expected printable ASCII without space around it")
        size += len(name) + len(value)
    if size > MOST_METADATA:
        raise ValueError(f"metadata of {size:,} bytes, expected at most {MOST_METADATA:,}")


class ObjectThreads:
    """Threads that work for a store."""

    def __init__(self, place: str, threads: int = THREADS, seconds: float = PATIENCE) -> None:
        self._place = place
        self._threads = ThreadPoolExecutor(threads, "objects")
        self._seconds = seconds

    async def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns. After so many seconds it is left alone, and has FAILED."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(self._threads.submit(work, *args, **kwargs))
        except TimeoutError:
            message = f"{self._place} does not answer within {self._seconds:g} s"
            raise ObjectError(message, fault=ObjectFault.FAILED) from None

    def let_go(self) -> None:
        """Take no more work. What was begun or waits comes to its end by itself."""
        self._threads.shutdown(wait=False)
