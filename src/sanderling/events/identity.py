"""Whether a message speaks of a batch that is in the rows, or of another one under the same event id.

Strangers make event ids, and some make the same one twice. Two messages speak of one batch if they name the same
object, or carry the same items, and do not name different projects. Any other batch gets an id of its own: that of its
event, a tilde, and a digest of where it is and whose. So the id is the same whenever the message comes again.
"""

import hashlib
from typing import NamedTuple

import msgspec

from sanderling.events.batches import BatchError, Place, read_path, read_reference
from sanderling.events.envelopes import Envelope, EnvelopeError, InlineEnvelope, LegacyEnvelope, read_envelope
from sanderling.events.fields import members

OF_THE_SENDING = frozenset({"event_id", "timestamp"})  # what may differ between two messages with the same items
# What cannot be written again: a number of more than 64 bits, half a character, what is nested deep.
UNWRITABLE = (OverflowError, UnicodeEncodeError, RecursionError, ValueError)


class Identity(NamedTuple):
    """What batch it is, and whose."""

    batch: str
    project: str | None

    def is_same(self, other: "Identity") -> bool:
        """Whether both are one batch. Where only one names a project, that is no difference."""
        return self.batch == other.batch and (None in (self.project, other.project) or self.project == other.project)


def place_of(envelope: Envelope, bucket: str) -> Place:
    """Where the batch is; `bucket` is that of a path that names none. Raises BatchError."""
    if isinstance(envelope, LegacyEnvelope):
        return read_reference(envelope.bucket, envelope.path, bucket)
    if isinstance(envelope, InlineEnvelope):
        raise BatchError("the item is in the message")
    return read_path(envelope.path, bucket)


def identity_of(envelope: Envelope, body: bytes, bucket: str) -> Identity:
    """What batch a message speaks of; `body` is the message."""
    if isinstance(envelope, InlineEnvelope):
        return Identity(_content(envelope.item, body), envelope.context.project_id)
    try:
        place = "/".join(place_of(envelope, bucket))
    except BatchError:
        place = envelope.path
    return Identity(place, envelope.context.project_id)


def is_known(message: bytes | None, identity: Identity, bucket: str) -> bool:
    """Whether that batch is the one that `message` brought; also if that was not kept, so that nobody can tell."""
    try:
        known = read_envelope(message or b"")
    except EnvelopeError:
        return True
    return identity_of(known, message or b"", bucket).is_same(identity)


def renamed(envelope: Envelope, identity: Identity) -> Envelope:
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
