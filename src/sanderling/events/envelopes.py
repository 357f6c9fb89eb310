"""What a message says: where a batch is, or the item itself.

| mode | how to tell | what it carries |
|---|---|---|
| new | an object `payload` with a `minio_path` | the path of a batch |
| legacy | `data_ref` | bucket and path of one post or a batch |
| inline | an object `meta`, or a list `payload` | the item, or a crawler's whole result |

Anything else is not for us, and is refused with EnvelopeError: no later reading will go otherwise.

New ones exist in three versions. 1.0 has no `event_type`, and counts batches from 1. 1.1 has one. 2.0 also has a brand
name, requires a project, and counts from 0; `batch_index` is kept as it was sent.

Whose it is. Two places may say so: the id of the job, as `jobs.py` reads it, and `project_id` in the payload.

1. A UUID is a statement, a name is a guess: if only one of the two places has a UUID, it counts.
2. If both have one, or both have a name, and they differ, then one is wrong and nobody can tell which. The project is
   None: a row that is nobody's can be given to somebody later, one that was shown to strangers cannot be taken back.
3. A name that only the payload has does not count: it is nothing that could be looked up.

Whether two messages speak of the same batch. Strangers make event ids, and some make the same one twice. Two messages
speak of one batch if they name the same object, or carry the same items, and do not name different projects. Any other
batch gets an id of its own: that of its event, a tilde, and a digest of where it is and whose. So the id is the same
whenever the message comes again.

All but agreement is noted. Whatever else a message says wrongly is left out and noted too; only a message without
anything to read is refused.
"""

import hashlib
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import msgspec

from sanderling.events.batches import BatchError, ObjectLocation, read_path, read_reference
from sanderling.events.fields import LONGEST_NAME, count, id_or, members, platform, shown, text
from sanderling.events.job_ids import as_uuid, parse_job
from sanderling.events.posts import Context
from sanderling.events.salvage import JsonError, read_json
from sanderling.moments import moment

MOST_BYTES = 1024 * 1024
MOST_INDEX = 2**31 - 1
EVENT_TYPE = "data.collected"

OF_THE_SENDING = frozenset({"event_id", "timestamp"})  # what may differ between two messages with the same items
# What cannot be written again: a number of more than 64 bits, half a character, what is nested deep.
UNWRITABLE = (OverflowError, UnicodeEncodeError, RecursionError, ValueError)

Mode = Literal["new", "legacy", "inline"]
Version = Literal["1.0", "1.1", "2.0"]


class EnvelopeError(ValueError):
    """A message is not for us, and never will be. It says what was found and what was expected."""


class EventEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """A batch is at this path."""

    mode: ClassVar[Mode] = "new"
    default_status: ClassVar[str] = ""

    context: Context
    path: str  # for `batches.read_path`
    version: Version
    notes: tuple[str, ...] = ()


class LegacyEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """A post or a batch is in this bucket, under this path."""

    mode: ClassVar[Mode] = "legacy"
    # Such items are older than the field, and were only sent if they had been fetched.
    default_status: ClassVar[str] = "success"

    context: Context
    bucket: str  # empty if it is not said; for `batches.read_reference`
    path: str
    notes: tuple[str, ...] = ()


class InlineEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """The item itself, for `items.read_result`, which also knows single items."""

    mode: ClassVar[Mode] = "inline"
    default_status: ClassVar[str] = "success"

    context: Context
    item: object
    notes: tuple[str, ...] = ()


Envelope = EventEnvelope | LegacyEnvelope | InlineEnvelope
Object = dict[str, object]


def read_envelope(body: bytes) -> Envelope:
    """What a message says. Raises EnvelopeError."""
    if len(body) > MOST_BYTES:
        raise EnvelopeError(f"message of {len(body):,} bytes, expected at most {MOST_BYTES:,}")
    try:
        message, notes = read_json(body)
    except JsonError as error:
        raise EnvelopeError(f"message: {error}") from None
    if not isinstance(message, dict):
        raise EnvelopeError(f"message is {shown(message)}, expected an object")
    payload = members(message.get("payload"))
    reader = _Reader(body, notes)
    if "minio_path" in payload:
        return _event(message, payload, reader)
    if "data_ref" in message:
        return _legacy(message, payload, reader)
    if isinstance(message.get("meta"), dict) or _is_result(message):
        places = (message, members(message.get("meta")))
        return InlineEnvelope(context=reader.context(places), item=message, notes=tuple(reader.notes))
    found = ", ".join(repr(name[:40]) for name in list(message)[:8]) or "nothing"
    raise EnvelopeError(f"message has {found}; expected payload.minio_path, data_ref or meta")


def _is_result(message: Object) -> bool:
    """Whether a crawler says how a whole task went; of a task that failed there may be nothing else."""
    payload = message.get("payload")
    return isinstance(payload, list) or (payload is None and "success" in message)


def canary(event_id: str, share: float) -> bool:
    """Whether an event is among this share of all, from 0 to 1.

    The same id always gets the same answer, in every process, and who is among a tenth is also among a half: the id
    is hashed (BLAKE2b of 8 bytes, with a name of its own) to a number that is as likely in any part of its range.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}, expected 0 to 1")
    digest = hashlib.blake2b(event_id.encode("utf-8", "surrogatepass"), digest_size=8, person=b"canary").digest()
    # Compared as whole numbers: as a fraction the largest would round to 1.
    return int.from_bytes(digest) < int(share * 2**64)


def _event(message: Object, payload: Object, reader: "_Reader") -> EventEnvelope:
    path = payload["minio_path"]
    if not isinstance(path, str) or not path.strip():
        raise EnvelopeError(f"payload.minio_path is {shown(path)}, expected a path")
    kind = message.get("event_type")
    if kind is not None and kind != EVENT_TYPE:
        reader.notes.append(f"event_type is {shown(kind)}, expected {EVENT_TYPE!r}; read all the same")
    if _first_value((payload, message), "event_id") is None:
        reader.notes.append("event_id is missing, took one made from the message")
    version: Version = "1.0" if kind is None else "2.0" if payload.get("brand_name") is not None else "1.1"
    context = reader.context((payload, message))
    if version == "2.0" and payload.get("project_id") is None:
        reader.notes.append("payload.project_id is missing, expected in version 2.0")
    return EventEnvelope(context=context, path=path, version=version, notes=tuple(reader.notes))


def _legacy(message: Object, payload: Object, reader: "_Reader") -> LegacyEnvelope:
    reference = message["data_ref"]
    named = isinstance(reference, dict)
    bucket = members(reference).get("bucket")
    path = members(reference).get("path") if named else reference
    if not isinstance(path, str) or not path.strip():
        raise EnvelopeError(f"data_ref{'.path' if named else ''} is {shown(path)}, expected a path")
    if bucket is not None and not isinstance(bucket, str):
        raise EnvelopeError(f"data_ref.bucket is {shown(bucket)}, expected a name")
    context = reader.context((message, payload, members(message.get("meta"))))
    return LegacyEnvelope(context=context, bucket=bucket or "", path=path, notes=tuple(reader.notes))


class _Reader:
    """Reads the fields of one message, and notes what is odd about them."""

    def __init__(self, body: bytes, notes: Sequence[str]) -> None:
        self._body = body
        self.notes = [f"message: {note}" for note in notes]

    def context(self, places: Sequence[Object]) -> Context:
        """What the message says about all items: each field is that of the first place that has it."""
        job_id = self._job_id(_first_value(places, "job_id"))
        return Context(
            event_id=self._event_id(_first_value(places, "event_id")),
            job_id=job_id,
            project_id=self._project(job_id, _first_value(places, "project_id")),
            platform=self._platform(_first_value(places, "platform")),
            batch_index=self._count("batch_index", places),
            content_count=self._count("content_count", places),
            total_batches=self._count("total_batches", places),
            task_type=self._name("task_type", places),
            keyword=self._name("keyword", places) or self._name("keyword_source", places),
            brand_name=self._name("brand_name", places),
            sent_at=self._moment("timestamp", places),
        )

    def _event_id(self, value: object) -> str:
        own = id_or(value, "")
        if value is not None and not own:
            self.notes.append(f"event_id is {shown(value)}, expected an id; took one made from the message")
        return own or f"body-{hashlib.sha256(self._body).hexdigest()[:32]}"

    def _job_id(self, value: object) -> str:
        # As it is: without the zero byte in it, it might be the id of another job.
        name = value.strip() if isinstance(value, str) else text(value)
        if value is not None and (not name or len(name) > LONGEST_NAME or not name.isprintable()):
            self.notes.append(f"job_id is {shown(value)}, expected up to {LONGEST_NAME} printable characters")
            return ""
        return name

    def _project(self, job_id: str, value: object) -> str | None:
        job, told, name = parse_job(job_id), as_uuid(value), text(value).strip()
        if value is not None and name and told is None and name != job.project:
            self.notes.append(f"project_id is {shown(value)}, expected a UUID")
        if told is None:
            agreed = job.project_uuid or name in ("", job.project)
            return job.project if agreed else None
        if job.project not in (None, told):
            self.notes.append(f"project_id is {told}, but the job {job_id[:80]!r} is of {job.project}")
        return told if job.project_uuid in (None, told) else None

    def _platform(self, value: object) -> str:
        name = platform(value)
        if value is not None and not name:
            self.notes.append(f"platform is {shown(value)}, expected a short word")
        return name

    def _count(self, name: str, places: Sequence[Object]) -> int | None:
        value = _first_value(places, name)
        number = count(value)
        # Below 0 would be read as 0, which is a place of its own.
        if number is None or number > MOST_INDEX or (isinstance(value, int | float) and value < 0):
            if value is not None:
                self.notes.append(f"{name} is {shown(value)}, expected a number from 0 to {MOST_INDEX:,}")
            return None
        return number

    def _name(self, name: str, places: Sequence[Object]) -> str:
        value = _first_value(places, name)
        found = text(value).strip()
        if len(found) > LONGEST_NAME or (value is not None and not found and value != ""):
            self.notes.append(f"{name} is {shown(value)}, expected up to {LONGEST_NAME} characters")
        return found[:LONGEST_NAME]

    def _moment(self, name: str, places: Sequence[Object]) -> float | None:
        value = _first_value(places, name)
        found = moment(value)
        if value is not None and found is None:
            self.notes.append(f"{name} is {shown(value)}, expected a time such as 2025-12-06T10:15:30Z")
        return found


def _first_value(places: Sequence[Object], name: str) -> object:
    for place in places:
        value = place.get(name)
        if value is not None:
            return value
    return None


class BatchIdentity(NamedTuple):
    """What batch it is, and whose."""

    batch: str
    project: str | None

    def is_same(self, other: "BatchIdentity") -> bool:
        """Whether both are one batch. Where only one names a project, that is no difference."""
        return self.batch == other.batch and (None in (self.project, other.project) or self.project == other.project)


def location_of(envelope: Envelope, bucket: str) -> ObjectLocation:
    """Where the batch is; `bucket` is that of a path that names none. Raises BatchError."""
    if isinstance(envelope, LegacyEnvelope):
        return read_reference(envelope.bucket, envelope.path, bucket)
    if isinstance(envelope, InlineEnvelope):
        raise BatchError("the item is in the message")
    return read_path(envelope.path, bucket)


def identity_of(envelope: Envelope, body: bytes, bucket: str) -> BatchIdentity:
    """What batch a message speaks of; `body` is the message."""
    if isinstance(envelope, InlineEnvelope):
        return BatchIdentity(_content(envelope.item, body), envelope.context.project_id)
    try:
        place = "/".join(location_of(envelope, bucket))
    except BatchError:
        place = envelope.path
    return BatchIdentity(place, envelope.context.project_id)


def is_known(message: bytes | None, identity: BatchIdentity, bucket: str) -> bool:
    """Whether that batch is the one that `message` brought; also if that was not kept, so that nobody can tell."""
    try:
        known = read_envelope(message or b"")
    except EnvelopeError:
        return True
    return identity_of(known, message or b"", bucket).is_same(identity)


def with_own_id(envelope: Envelope, identity: BatchIdentity) -> Envelope:
    """The message with an id of its own, since another batch has that of its event."""
    event = envelope.context.event_id
    told = f"{identity.batch}\0{identity.project or ''}".encode("utf-8", "surrogatepass")
    own = f"{event}~{hashlib.blake2b(told, digest_size=8).hexdigest()}"
    note = f"event_id {event!r} is that of another batch; kept as {own!r}"
    context = msgspec.structs.replace(envelope.context, event_id=own)
    return msgspec.structs.replace(envelope, context=context, notes=(*envelope.notes, note))


def _content(item: object, body: bytes) -> str:
    kept = {name: value for name, value in members(item).items() if name not in OF_THE_SENDING}
    try:
        written = msgspec.json.encode(kept, order="sorted")
    except UNWRITABLE:
        written = body
    return hashlib.sha256(written).hexdigest()
