"""What is in an object: unpacked, and its items. This runs in readers.

A body is a JSON list of items, `{"items": […], "count": n}`, or one item alone; packed with zstd or gzip, or not. Its
first bytes decide, whatever its name and metadata say.
"""

from typing import Any

from sanderling.fetch.decode import BadEncoding, Body, TooLarge, TooShort
from sanderling.formats.envelope import Envelope
from sanderling.formats.loose import read_json, shown

MOST_PACKED, MOST_UNPACKED = 32 << 20, 64 << 20  # bytes; twenty items of 100 KB are 2 MB
MOST_ITEMS = 10_000  # of a batch; 50 are usual
MOST_COMMENTS = 10_000  # of an item; crawlers send some hundreds
MOST_ROWS = 50_000  # of a batch, comments among them
SIZES = {"tiktok": 50, "youtube": 20}  # items of a full batch
_CODINGS = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip"}


class BatchError(ValueError):
    """A batch cannot be read. With `early` it ends too early, and may only not be complete yet."""

    def __init__(self, message: str, *, early: bool = False) -> None:
        super().__init__(message)
        self.early = early


def unpack(body: bytes) -> bytes:
    """The document in an object. Raises BatchError."""
    if not body:
        raise BatchError("the object has 0 bytes, expected a batch", early=True)
    coding = next((name for mark, name in _CODINGS.items() if body.startswith(mark)), "")
    unpacked = Body(coding, MOST_UNPACKED)
    try:
        unpacked.add(body)
        return unpacked.finish()
    except TooShort as error:
        raise BatchError(f"{coding}: {error}", early=True) from None
    except (BadEncoding, TooLarge) as error:
        raise BatchError(f"{coding or 'the object'}: {error}") from None


def items_of(document: bytes) -> tuple[list[Any], list[str]]:
    """The items of a document, and what is odd about it. Raises BatchError."""
    try:
        value, strict = read_json(document)
    except ValueError as error:
        raise BatchError(f"the object has {error}", early=True) from None
    notes = [] if strict else ["the object is not strict JSON"]
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        items = value["items"]
        if value.get("count", len(items)) != len(items):
            notes.append(f"the object says count {shown(value['count'])}, found {len(items)} items")
    elif isinstance(value, list | dict):
        items = value if isinstance(value, list) else [value]
    else:
        raise BatchError(f"the object is {shown(value)}, expected a list of items or an item")
    if len(items) > MOST_ITEMS:
        raise BatchError(f"the object has {len(items):,} items, expected at most {MOST_ITEMS:,}")
    return items, notes


def items_in(message: Any) -> tuple[list[Any], list[str]]:  # noqa: ANN401 - what JSON can hold
    """The items of an inline message: one, or those of a crawler's result. And what is odd about it."""
    items = message.get("payload")
    if isinstance(message.get("meta"), dict) or not (isinstance(items, list) or "success" in message):
        return [message], []
    items = items if isinstance(items, list) else []
    if len(items) > MOST_ITEMS:
        raise BatchError(f"the message has {len(items):,} items, expected at most {MOST_ITEMS:,}")
    notes = []
    failure, stats = message.get("error"), message.get("stats")
    if isinstance(failure, dict):
        notes.append(f"the task failed: {shown(failure.get('code'))}, {shown(failure.get('message'))}")
    if isinstance(stats, dict) and stats.get("successful", len(items)) != len(items):
        notes.append(f"stats.successful is {shown(stats['successful'])}, found {len(items)} items")
    return items, notes


def bounded(items: list[Any]) -> list[tuple[Any, str]]:
    """Each item, and why it is too large to be a post; those are without their comments."""
    counts = [
        len(item["comments"]) if isinstance(item, dict) and isinstance(item.get("comments"), list) else 0
        for item in items
    ]
    room, found = MOST_ROWS - len(items), [(item, "") for item in items]
    for place in sorted(range(len(items)), key=counts.__getitem__):
        room -= counts[place]
        if counts[place] > MOST_COMMENTS or (counts[place] and room < 0):
            fault = f"comments of item {place}: found {counts[place]:,}, expected at most {MOST_COMMENTS:,}"
            fault += f" of an item and {MOST_ROWS:,} of a batch"
            found[place] = ({**items[place], "comments": []}, fault)
    return found


def size_notes(found: int, envelope: Envelope) -> list[str]:
    """What is odd about the number of items: the seed warns, and goes on."""
    notes = []
    usual = SIZES.get(envelope.platform)
    if envelope.mode == "new" and usual is not None and found != usual:
        notes.append(f"unexpected batch size: expected={usual}, actual={found}, platform={envelope.platform}")
    if envelope.content_count not in (None, found):
        notes.append(f"content_count is {envelope.content_count}, found {found} items")
    return notes
