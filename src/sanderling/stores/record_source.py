"""What a system says of its folder to whoever reads the records out again.

A record is a JSON object. Records come in an order that never changes, each with the position behind it: whoever was
given a position goes on there, today or in a year, and misses nothing. Only the system knows what is in a position.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple, Protocol, TypeVar

import msgspec

P = TypeVar("P", bound=msgspec.Struct)

NEAREST = 5  # keys that are suggested for one that is not there
MOST_HISTORY = 1000  # earlier versions that are shown


class RecordsError(Exception):
    """The records of a folder cannot be read. The message says what was found, and what to do."""


class Record(NamedTuple):
    """A record: its JSON, on one line, and where reading goes on behind it. Without JSON it is only a position."""

    json: bytes
    position: str


@dataclass(frozen=True, slots=True)
class RecordLookup:
    """One record, and what it was before; or why there is none."""

    record: bytes | None = None
    history: Sequence[bytes] = ()  # the oldest first
    why: str = ""  # of one that is not there
    nearest: Sequence[str] = ()  # keys that are
    about: str = ""  # what else there is to say, such as how often it was looked at
    at: int = 0  # microseconds since 1970; when it was fetched, where several parts of a crawl may have one


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """What is known of a folder before any record is read."""

    system: str  # "pages", "jobs" and so on
    origin: str  # what tells this crawl from another one in a folder of the same name
    columns: tuple[str, ...] = ()  # fields that every record may have, in their order
    notes: list[str] = field(default_factory=list)  # what is left out, for people


class RecordSource(Protocol):
    """The records of one folder. Reading changes nothing, and works beside a crawl. All methods raise RecordsError."""

    about: SourceDescription

    def read(self, after: str | None = None) -> Iterator[Record]:
        """The records behind a position, or all of them."""

    def show(self, key: str) -> RecordLookup:
        """The record of a key."""

    def close(self) -> None:
        """Let go of the files."""


def read_position(text: str, kind: type[P], folder: object) -> P:
    """The position that a text is. Raises RecordsError."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise RecordsError(
            f"the position {text[:80]!r} is none of {folder}: {error}. Export to another target, from the beginning."
        ) from None


def write_position(position: msgspec.Struct) -> str:
    """A position as the text that is given back later."""
    return msgspec.json.encode(position).decode()


def nearest(key: str, known: Iterable[str]) -> list[str]:
    """The keys that are most like this one: those that begin like it the longest, then the shortest."""
    return nsmallest(NEAREST, known, key=lambda each: (-_alike(key, each), len(each), each))


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
