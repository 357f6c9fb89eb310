"""What is kept of hosts that were let go, so that a penalty outlives its host's turn in memory, and the process."""

import struct
from collections.abc import Generator, Iterator
from itertools import islice
from math import inf
from typing import Annotated, NamedTuple

import msgspec

from sanderling.limit.hints import LONGEST
from sanderling.limit.shelves import Shelves

# Ceiling, penalty, open until, openings, down since: 29 bytes that stand for a host of a kilobyte.
PACKED = struct.Struct("<dddBf")
SILENCE = struct.Struct("<8xdd")  # of that, when it may be asked again, and when its circuit may be probed
VERSION = 1
DROPPED = 4  # a part of a shelf that is full goes, one in so many
AT_ONCE = 256  # hosts that are encoded in one step, which is about a millisecond

NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class Tombstone(NamedTuple):
    """The lasting part of a host. Times are the limiter's clock; a ceiling of 0 means none was learned."""

    ceiling: float
    not_before: float
    open_until: float
    openings: int
    down_since: float = inf  # when its outage began; inf if there is none, or if it had never answered

    def says_anything(self, now: float) -> bool:
        """Whether it is worth keeping."""
        return bool(self.ceiling or self.openings) or max(self.not_before, self.open_until) > now


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
    """The hosts let go, the oldest first of those on one shelf; at most `most` of them, and penalties go last."""

    def __init__(self, most: int) -> None:
        self._kept: Shelves[bytes] = Shelves(most)
        self._readers: list[list[tuple[str, bytes]]] = []  # what each reader would miss

    def __len__(self) -> int:
        return len(self._kept)

    def bury(self, host: str, stone: Tombstone, now: float) -> None:
        """Keep `stone`, unless it says nothing. What an earlier one of the same host says is not shortened by it."""
        if not stone.says_anything(now):
            return
        shelf = self._kept.of(host)
        if (earlier := shelf.pop(host, None)) is not None:
            stone = _heavier(stone, Tombstone(*PACKED.unpack(earlier)))
        shelf[host] = PACKED.pack(*stone._replace(openings=min(stone.openings, 255)))
        if len(shelf) > self._kept.room:
            _thin(shelf, now)

    def exhume(self, host: str) -> Tombstone | None:
        """What was kept of `host`, which is on its own again."""
        packed = self._kept.of(host).pop(host, None)
        if packed is None:
            return None
        for missed in self._readers:
            missed.append((host, packed))
        return Tombstone(*PACKED.unpack(packed))

    def find(self, host: str) -> Tombstone | None:
        """What is kept of `host`."""
        packed = self._kept.get(host)
        return None if packed is None else Tombstone(*PACKED.unpack(packed))

    def items(self) -> Generator[tuple[str, Tombstone], None, None]:
        """Every host that is kept when the first is read, with its stone; also those that are exhumed meanwhile."""
        missed: list[tuple[str, bytes]] = []
        self._readers.append(missed)
        try:
            for shelf in (*self._kept, missed):
                for host, packed in list(shelf.items() if isinstance(shelf, dict) else shelf):
                    yield host, Tombstone(*PACKED.unpack(packed))
        finally:
            self._readers = [each for each in self._readers if each is not missed]


def _thin(shelf: dict[str, bytes], now: float) -> None:
    """Make room for a while: those go whose silence is over, the oldest first; then those that are owed the least."""
    by_silence = sorted(shelf, key=lambda host: max(now, *SILENCE.unpack_from(shelf[host])))
    for host in by_silence[: len(shelf) // DROPPED or 1]:
        del shelf[host]


def _heavier(stone: Tombstone, earlier: Tombstone) -> Tombstone:
    return Tombstone(
        stone.ceiling or earlier.ceiling,
        max(stone.not_before, earlier.not_before),
        max(stone.open_until, earlier.open_until),
        max(stone.openings, earlier.openings),
        min(stone.down_since, earlier.down_since),
    )


def encode(stones: Iterator[tuple[str, Tombstone]], now: float, wall: float) -> Iterator[bytes]:
    """The stones as JSON, with the seconds that are left of each penalty; in pieces that are made when asked for."""
    piece, comma = msgspec.json.encode(SavedFile(VERSION, wall, [])).removesuffix(b"]}"), b""
    while some := list(islice(stones, AT_ONCE)):
        piece += comma + msgspec.json.encode([_saved(host, stone, now) for host, stone in some])[1:-1]
        comma = b","
        if len(some) == AT_ONCE:
            yield piece
            piece = b""
    yield piece + b"]}"


def _saved(host: str, stone: Tombstone, now: float) -> Saved:
    down = max(0.0, now - stone.down_since) if stone.down_since < inf else None
    return Saved(host, stone.ceiling, max(0.0, stone.not_before - now), _open_for(stone, now), stone.openings, down)


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
