"""What a message of crawlers says: where a batch is, or the items themselves.

| mode | how to tell | what it carries |
|---|---|---|
| new | an object `payload` with `minio_path` | the path of a batch |
| legacy | `data_ref` | bucket and path of one post or of a batch |
| inline | an object with an id, or a list `payload` | the item, or what a crawler says of a whole task |

Anything else is not for us, and no later reading will go otherwise. Events exist in three versions (without event_type;
with it; with a brand); `batch_index` is kept as it was sent.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from sanderling.formats import loose
from sanderling.formats.loose import Members, first, members, shown

EXCHANGE, QUEUE, KEY = "smap.events", "analytics.data.collected", "data.collected"
MOST_BYTES = 1 << 20  # of a message
MOST_HANDED = 50  # items in a message of ours
LONGEST_NAME = 256
_BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}", re.ASCII)
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]")
_LONGEST_KEY = 1024

Mode = Literal["new", "legacy", "inline"]


class EnvelopeError(ValueError):
    """A message is not for us. It says what was found and what was expected."""


class Envelope(msgspec.Struct, kw_only=True):
    """What a message says about all of its items. Empty: it does not say."""

    mode: Mode
    event_id: str
    identity: str  # the same whenever the message comes again, and of no other batch
    bucket: str = ""
    key: str = ""
    job_id: str = ""
    project_id: str = ""  # as the message has it
    platform: str = ""
    batch_index: int | None = None
    content_count: int | None = None
    task_type: str = ""
    keyword: str = ""
    brand_name: str = ""
    sent_at: float | None = None
    notes: list[str] = []  # what is odd, and was left out


def read_envelope(body: bytes) -> tuple[Envelope, object]:
    """What a message says; and the item, where it is inline. Raises EnvelopeError."""
    if len(body) > MOST_BYTES:
        raise EnvelopeError(f"the message has {len(body):,} bytes, expected at most {MOST_BYTES:,}")
    try:
        message, strict = loose.read_json(body)
    except ValueError as error:
        raise EnvelopeError(f"the message has {error}") from None
    if not isinstance(message, dict):
        raise EnvelopeError(f"the message is {shown(message)}, expected an object")
    payload, meta = members(message.get("payload")), members(message.get("meta"))
    notes = [] if strict else ["the message is not strict JSON"]
    if "minio_path" in payload:
        bucket, key = read_path(payload["minio_path"], "payload.minio_path")
        kind = message.get("event_type", KEY)
        if kind != KEY:
            notes.append(f"event_type is {shown(kind)}, expected {KEY!r}")
        return _envelope("new", body, (payload, message), notes, bucket, key), None
    if "data_ref" in message:
        reference = message["data_ref"]
        if not isinstance(reference, dict):
            reference = {"path": reference}
        where = reference.get("path")
        if isinstance(where, str) and isinstance(reference.get("bucket"), str) and "://" not in where:
            where = f"{reference['bucket']}/{where.lstrip('/')}"
        bucket, key = read_path(where, "data_ref.path")
        return _envelope("legacy", body, (message, payload, meta), notes, bucket, key), None
    own = first((meta, members(message.get("content"))), "id", "external_id", "video_id")
    result = isinstance(message.get("payload"), list) or (message.get("payload") is None and "success" in message)
    if own is not None or result:
        return _envelope("inline", body, (message, meta), notes), message
    found = ", ".join(repr(name[:40]) for name in list(message)[:8]) or "nothing"
    raise EnvelopeError(f"the message has {found}; expected payload.minio_path, data_ref, or an item with meta.id")


def read_path(value: object, where: str) -> tuple[str, str]:
    """Bucket and key of `minio://bucket/key`, `s3://bucket/key`, `bucket/key` or `/bucket/key`. Raises EnvelopeError.

    Nothing is decoded: `%2F` is three characters of the key.
    """
    if not isinstance(value, str) or not value.strip():
        raise EnvelopeError(f"{where} is {shown(value)}, expected bucket/key")
    rest = value.strip()
    scheme, found, after = rest.partition("://")
    if found:
        if scheme.lower() not in ("minio", "s3"):
            raise EnvelopeError(f"{where} begins with {shown(scheme)}, expected minio:// or s3://")
        rest = after
    bucket, _, key = rest.lstrip("/").partition("/")
    steps = key.split("/")
    if not _BUCKET.fullmatch(bucket) or not key:
        raise EnvelopeError(f"{where} is {_clean(value)}, expected bucket/key")
    # Where objects are files, steps would lead out of the folder.
    if _UNUSABLE.search(key) or not steps[0] or {".", ".."} & set(steps) or len(key.encode()) > _LONGEST_KEY:
        raise EnvelopeError(f"{where} is {_clean(value)}, expected a key of up to {_LONGEST_KEY} plain characters")
    return bucket, key


def _clean(value: str) -> str:
    """A path for a message, without a password that somebody put into it."""
    return shown(value.rpartition("@")[2])


def _envelope(
    mode: Mode, body: bytes, places: Sequence[Members], notes: list[str], bucket: str = "", key: str = ""
) -> Envelope:
    def named(*names: str) -> str:
        value = first(places, *names)
        found = loose.name(value, LONGEST_NAME)
        if value not in (None, "", found):
            notes.append(f"{names[0]} is {shown(value)}, expected up to {LONGEST_NAME} characters")
        return found

    def number(wanted: str) -> int | None:
        value = first(places, wanted)
        found = loose.count(value)
        if value is not None and (found is None or found >= 2**31 or (isinstance(value, int) and value < 0)):
            notes.append(f"{wanted} is {shown(value)}, expected a number from 0 to 2,147,483,647")
            return None
        return found

    job = first(places, "job_id")
    job_id = job.strip() if isinstance(job, str) else loose.text(job)
    # As it is or not at all: cut, it might be the id of another job.
    if len(job_id) > LONGEST_NAME or not job_id.isprintable():
        notes.append(f"job_id is {shown(job)}, expected up to {LONGEST_NAME} printable characters")
        job_id = ""
    given = first(places, "event_id")
    digest = hashlib.blake2b(body if mode == "inline" else f"{bucket}/{key}".encode(), digest_size=12).hexdigest()
    event_id = loose.id_or(given, "")
    if given is not None and not event_id:
        notes.append(f"event_id is {shown(given)}, expected an id of up to {loose.LONGEST_ID} characters")
    return Envelope(
        mode=mode,
        event_id=event_id or f"{mode}-{digest}",
        identity=f"{event_id}~{digest}",  # some make the same id twice, for different batches
        bucket=bucket,
        key=key,
        job_id=job_id,
        project_id=named("project_id"),
        platform=loose.platform(first(places, "platform")),
        batch_index=number("batch_index"),
        content_count=number("content_count"),
        task_type=named("task_type"),
        keyword=named("keyword", "keyword_source"),
        brand_name=named("brand_name"),
        sent_at=loose.moment(first(places, "timestamp")),
        notes=notes,
    )


def in_canary(event_id: str, share: float) -> bool:
    """Whether an event is among this share of all. Who is in 10 % is in 50 %, in every process."""
    digest = hashlib.blake2b(event_id.encode("utf-8", "surrogatepass"), digest_size=8, person=b"canary").digest()
    return int.from_bytes(digest) < int(share * 2**64)
