"""What is kept of hosts that were let go, so that a penalty outlives its host's turn in memory, and the process."""

import struct
from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import Annotated, NamedTuple

import msgspec

from sanderling.limit.hints import LONGEST

# Ceiling, penalty, open until, openings, down since: 29 bytes that stand for a host of a kilobyte.
PACKED = struct.Struct("<dddBf")
VERSION = 1
# How many to choose from when one must go; to look at all would take a second when there are a million.
OLDEST = 64

NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class Tombstone(NamedTuple):
    """The lasting part of a host. Times are the limiter's clock; a ceiling of 0 means none was learned."""

    ceiling: float
    not_before: float
    open_until: float
    openings: int
    down_since: float = inf  # when its outage began; inf if there is none, or if it had never answered


class Saved(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A tombstone as it is written: seconds left instead of instants, as the clock starts anew."""

    host: str
    ceiling: NotNegative
    wait: NotNegative
    open: NotNegative
    openings: Annotated[int, msgspec.Meta(ge=0)]
    down: NotNegative | None = None  # seconds of its outage so far


class SavedFile(msgspec.Struct, forbid_unknown_fields=True):
    """Everything that is written, and the wall clock's time it was."""

    version: int
    saved_at: float
    hosts: list[Saved]


class Tombstones:
    """The hosts let go, oldest first; at most `most` of them, and penalties go last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def bury(self, host: str, stone: Tombstone, now: float) -> None:
        """Keep `stone`, unless it says nothing. What an earlier one of the same host says is not shortened by it."""
        if stone.ceiling or stone.openings or max(stone.not_before, stone.open_until) > now:
            if (earlier := self.exhume(host)) is not None:
                stone = _heavier(stone, earlier)
            self._kept[host] = PACKED.pack(*stone._replace(openings=min(stone.openings, 255)))
            if len(self._kept) > self._most:
                self._drop_one()

    def exhume(self, host: str) -> Tombstone | None:
        """What was kept of `host`, which is on its own again."""
        packed = self._kept.pop(host, None)
        return None if packed is None else Tombstone(*PACKED.unpack(packed))

    def items(self) -> Iterator[tuple[str, Tombstone]]:
        """Every host with its stone."""
        return ((host, Tombstone(*PACKED.unpack(packed))) for host, packed in self._kept.items())

    def _drop_one(self) -> None:
        """Of the oldest few, the one whose silence is over first: the longest penalties stay longest."""
        few = islice(self.items(), OLDEST)
        host, _ = min(few, key=lambda item: max(item[1].not_before, item[1].open_until))
        del self._kept[host]


def _heavier(stone: Tombstone, earlier: Tombstone) -> Tombstone:
    return Tombstone(
        stone.ceiling or earlier.ceiling,
        max(stone.not_before, earlier.not_before),
        max(stone.open_until, earlier.open_until),
        max(stone.openings, earlier.openings),
        min(stone.down_since, earlier.down_since),
    )


def encode(stones: Iterator[tuple[str, Tombstone]], now: float, wall: float) -> bytes:
    """The stones as JSON, with the seconds that are left of each penalty."""
    hosts = [
        Saved(
            host,
            stone.ceiling,
            max(0.0, stone.not_before - now),
            _open_for(stone, now),
            stone.openings,
            max(0.0, now - stone.down_since) if stone.down_since < inf else None,
        )
        for host, stone in stones
    ]
    return msgspec.json.encode(SavedFile(VERSION, wall, hosts))


def _open_for(stone: Tombstone, now: float) -> float:
    """Seconds a circuit stays open: 0 for a closed one, a moment for one that only waits for its probe."""
    return 0.0 if stone.open_until == -inf else max(0.001, stone.open_until - now)


def decode(data: bytes, now: float, wall: float) -> Iterator[tuple[str, Tombstone]]:
    """The stones of `encode`, on this clock. Raises ValueError for anything else."""
    try:
        saved = msgspec.json.decode(data, type=SavedFile)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a saved limiter: {error}") from None
    if saved.version != VERSION:
        raise ValueError(f"saved by version {saved.version} of the format; this program reads version {VERSION}")
    # A wall clock that was set back must not lengthen a penalty, nor may it count as time served.
    elapsed = max(0.0, wall - saved.saved_at)
    for each in saved.hosts:
        wait = max(0.0, min(each.wait, LONGEST) - elapsed)
        rest = now + max(0.0, min(each.open, LONGEST) - elapsed) if each.open > 0 else -inf
        since = inf if each.down is None else now - each.down - elapsed
        yield each.host, Tombstone(each.ceiling, now + wait, rest, each.openings, since)
