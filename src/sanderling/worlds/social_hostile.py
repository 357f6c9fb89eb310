"""What may be odd about an item or a batch of a simulated crawler, and what must become of it all the same.

A *twist* is about one item: the others of its batch are as good as ever. A *spoil* is about a whole batch, its object
or its message.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType
from typing import cast

import msgspec

from sanderling.outcome import Code
from sanderling.worlds.social_day import NOTHING_MEANT
from sanderling.worlds.social_texts import Words
from sanderling.worlds.social_truth import NO_COUNTERS, BatchFate, Counters, ItemTruth

LONG, HUGE = 100_000, 1_000_000  # characters
DEEP = 10_000  # levels
VIRAL = 3_000_000_000  # views, which 32 bits do not hold
LEFTWARD = "\u202e\u05e9\u05dc\u05d5\u05dd\u202c \u0645\u0631\u062d\u0628\u0627 \u200f"  # two greetings
HEAP = "\u0301\u0489" * 40  # marks upon one letter
HALF = "\ue000"  # stands for half a character until the item is written; nothing else uses it

Json = dict[str, object]


class Twist(StrEnum):
    """What is odd about an item."""

    # Posts all the same.
    NUMBER_ID = "number_id"  # an id of 19 digits as a number, which not everybody can hold
    VIRAL = "viral"  # a counter beyond 32 bits
    EMPTY = "empty"  # no text at all
    EMOJI = "emoji"  # no text but emoji
    LONG = "long"  # a caption of 100,000 characters
    HUGE = "huge"  # one of a million
    LEFTWARD = "leftward"  # some of it from right to left, with the signs that turn the direction
    COMBINING = "combining"  # letters and their marks apart, and a heap of marks
    ZERO = "zero"  # a zero character
    HALF = "half"  # half a character, as an escape
    NULL_CONTENT = "null_content"  # fetched, and nothing there
    ODD_COUNTERS = "odd_counters"  # below 0, fractions, texts, and words
    GIANT_COUNTER = "giant_counter"  # of 400 digits
    NO_NUMBER = "no_number"  # NaN, which is not even JSON
    # Errors.
    NO_ID = "no_id"
    LONG_ID = "long_id"
    NO_STATUS = "no_status"
    STRANGE_STATUS = "strange_status"
    NO_OBJECT = "no_object"  # a text where an item should be
    DEEP = "deep"  # brackets within brackets
    MALFORMED = "malformed"


# What may also happen to an item that comes alone: there it is the message or the object that would be odd.
TEXTUAL = frozenset(
    {Twist.EMPTY, Twist.EMOJI, Twist.LONG, Twist.LEFTWARD, Twist.COMBINING, Twist.ZERO, Twist.HALF, Twist.VIRAL}
)
# What cannot be the first item of a batch, so that there is always one that can be read.
STRUCTURAL = frozenset({Twist.NO_OBJECT, Twist.DEEP, Twist.MALFORMED})

_INVALID, _UNPARSED = Code.INVALID_RESPONSE.value, Code.PARSE_ERROR.value


def _as_error(code: str, *, known: bool) -> Callable[[ItemTruth], ItemTruth]:
    return lambda truth: ItemTruth(truth.id if known else None, code)


def _silent(truth: ItemTruth) -> ItemTruth:
    return replace(truth, mood=NOTHING_MEANT)


# What a twist makes of the truth about an item that would have been a post. Those that are not here change nothing.
TRUTH: Mapping[Twist, Callable[[ItemTruth], ItemTruth]] = MappingProxyType(
    {
        Twist.VIRAL: lambda truth: replace(truth, counters=truth.counters._replace(views=VIRAL)),
        Twist.EMPTY: _silent,
        Twist.EMOJI: _silent,
        Twist.NULL_CONTENT: lambda truth: replace(_silent(truth), counters=NO_COUNTERS, followers=0),
        Twist.ODD_COUNTERS: lambda truth: replace(truth, counters=Counters(1234, 0, 12, 0, 7)),
        Twist.GIANT_COUNTER: lambda truth: replace(truth, counters=truth.counters._replace(views=0)),
        Twist.NO_NUMBER: lambda truth: replace(truth, counters=truth.counters._replace(views=0)),
        Twist.NO_ID: _as_error(_INVALID, known=False),
        Twist.LONG_ID: _as_error(_INVALID, known=False),
        Twist.NO_STATUS: _as_error(_INVALID, known=True),
        Twist.STRANGE_STATUS: _as_error(_INVALID, known=True),
        Twist.NO_OBJECT: _as_error(_INVALID, known=False),
        Twist.DEEP: _as_error(_UNPARSED, known=False),
        Twist.MALFORMED: _as_error(_UNPARSED, known=False),
    }
)


def _caption(change: Callable[[str], str]) -> Callable[[Words], Words]:
    return lambda words: words._replace(caption=change(words.caption))


def _repeated(most: int) -> Callable[[Words], Words]:
    return _caption(lambda caption: (f"{caption} " * (most // (len(caption) + 1) + 1))[:most])


# What a twist makes of the text.
REWORD: Mapping[Twist, Callable[[Words], Words]] = MappingProxyType(
    {
        Twist.EMPTY: lambda words: words._replace(caption="", transcription="", tags=(), remarks=[]),
        Twist.EMOJI: lambda words: words._replace(caption="🔥🔥😍❤️👀", transcription="", tags=(), remarks=[]),
        Twist.LONG: _repeated(LONG),
        Twist.HUGE: _repeated(HUGE),
        Twist.LEFTWARD: _caption(lambda caption: f"{caption} {LEFTWARD}"),
        Twist.COMBINING: _caption(lambda caption: unicodedata.normalize("NFD", caption) + " z" + HEAP),
        Twist.ZERO: _caption(lambda caption: f"{caption}\0"),
        Twist.HALF: _caption(lambda caption: f"{caption} {HALF}"),
        Twist.NULL_CONTENT: lambda words: words._replace(remarks=[]),
    }
)


def retell(truth: ItemTruth, twist: Twist) -> ItemTruth:
    """The truth about the item with its twist."""
    return TRUTH[twist](truth) if twist in TRUTH else truth


def reword(words: Words, twist: Twist) -> Words:
    """The text of the item with its twist."""
    return REWORD[twist](words) if twist in REWORD else words


def bend(item: Json, twist: Twist) -> object:
    """The item with its twist, as JSON or as something that has been written already."""
    return BEND[twist](item) if twist in BEND else item


def _meta(item: Json) -> Json:
    return cast("Json", item["meta"])


def _counters(item: Json) -> tuple[Json, tuple[str, ...]]:
    """Where its counters are, and their names."""
    for name in ("interaction", "interactions"):
        if isinstance(place := item.get(name), dict):
            return place, ("views", "likes", "comments_count", "shares", "saves")
    return cast("Json", item["content"]), ("view_count", "like_count", "comment_count", "share_count", "save_count")


def _counting(*values: object) -> Callable[[Json], Json]:
    def change(item: Json) -> Json:
        place, names = _counters(item)
        place.update(zip(names, values, strict=False))
        return item

    return change


def _number_id(item: Json) -> Json:
    meta = _meta(item)
    if str(meta["id"]).isdigit():
        meta["id"] = int(str(meta["id"]))
    return item


def _saying(**fields: object) -> Callable[[Json], Json]:
    def change(item: Json) -> Json:
        _meta(item).update(fields)
        return item

    return change


def _without_id(item: Json) -> Json:
    _meta(item)["id"] = None
    # Which some take for the id, if there is no other.
    for name in ("external_id", "video_id"):
        cast("Json", item["content"]).pop(name, None)
    return item


def _without_status(item: Json) -> Json:
    del _meta(item)["fetch_status"]
    return item


def _without_content(item: Json) -> Json:
    gone = ("content", "author", "comments", "interaction", "interactions")
    return {name: None if name in gone else value for name, value in item.items()}


def _halved(item: Json) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(item).replace(HALF.encode(), rb"\ud83d"))


BEND: Mapping[Twist, Callable[[Json], object]] = MappingProxyType(
    {
        Twist.NUMBER_ID: _number_id,
        Twist.VIRAL: _counting(VIRAL),
        Twist.HALF: _halved,
        Twist.NULL_CONTENT: _without_content,
        Twist.ODD_COUNTERS: _counting("1234", -5, 12.0, "1,2K", 7.9),
        Twist.GIANT_COUNTER: _counting(msgspec.Raw(b"9" * 400)),
        Twist.NO_NUMBER: _counting(msgspec.Raw(b"NaN")),
        Twist.NO_ID: _without_id,
        Twist.LONG_ID: _saying(id="7" * 500),
        Twist.NO_STATUS: _without_status,
        Twist.STRANGE_STATUS: _saying(fetch_status="partial"),
        Twist.NO_OBJECT: lambda _item: "item not available",
        Twist.DEEP: lambda item: item | {"extra": msgspec.Raw(b"[" * DEEP + b"]" * DEEP)},
        Twist.MALFORMED: lambda _item: msgspec.Raw(b'{"meta": {"id": undefined}}'),
    }
)


class Spoil(StrEnum):
    """What is odd about a batch."""

    # It can be read all the same.
    WRONG_COUNT = "wrong_count"  # the object says another number of items
    WRONG_SIZE = "wrong_size"  # the message does
    WRONG_METADATA = "wrong_metadata"  # packed where it says plain, or plain where it says packed
    MARKED = "marked"  # a byte order mark before the JSON
    TWO_FRAMES = "two_frames"  # packed in two pieces
    # It cannot.
    CUT = "cut"  # JSON that ends early
    CUT_FRAME = "cut_frame"  # zstd that ends early
    BOMB = "bomb"  # small, until it is unpacked
    DEEP = "deep"  # brackets within brackets
    NOT_JSON = "not_json"
    SCALAR = "scalar"  # JSON, and no list of anything
    EMPTY = "empty"  # no bytes
    GZIPPED = "gzipped"
    GONE = "gone"  # there is no object
    # The message is not for us.
    NOT_A_MESSAGE = "not_a_message"
    NO_PATH = "no_path"
    OTHER_EVENT = "other_event"


READABLE = frozenset({Spoil.WRONG_COUNT, Spoil.WRONG_SIZE, Spoil.WRONG_METADATA, Spoil.MARKED, Spoil.TWO_FRAMES})
REFUSED = frozenset({Spoil.NOT_A_MESSAGE, Spoil.NO_PATH, Spoil.OTHER_EVENT})


def fate_of(spoil: Spoil | None) -> BatchFate:
    """What must become of a batch."""
    if spoil is None or spoil in READABLE:
        return BatchFate.READ
    if spoil is Spoil.GONE:
        return BatchFate.MISSING
    return BatchFate.REFUSED if spoil in REFUSED else BatchFate.UNREADABLE
