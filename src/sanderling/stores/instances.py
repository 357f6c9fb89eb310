"""Where kept records go: rows of instances, of who took part in them, and of what that made of each player.

| table | key | what |
|---|---|---|
| `instance` | instance | one record |
| `player` | member | who it is; of two reports about a player, the one that saw them last counts |
| `instance_player` | instance, member | who took part |
| `instance_character` | instance, member, character | with which characters |
| `instance_character_weapon` | instance, member, character, weapon | and what these did with their weapons |
| `player_stats` | member, activity | all of it, added up (`instance_stats`) |
| `raw_instance` | instance | what the API said, byte for byte, if no other store has it |
| `record` | id | one record of an API without players: what the API said, as JSON, and none of the above |

Tricky bits:

- An instance is kept once. Whoever says it again changes nothing, the statistics included. If the second differs from
  the first, because the API had changed its mind in between, the first counts.
- Apart from that the order of arrival decides nothing: any order, in any batches, ends in the same rows.
- An id belongs to one API. A store that has it from another refuses it, where it would otherwise pass for a copy.
"""

import importlib
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from sanderling.extras import load

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdError, decompress
else:
    from backports.zstd import ZstdCompressor, ZstdError, decompress

VERSION = 2  # of the tables; 1 had no `record`, and its rows among the instances
# Of a report of 70 KB it leaves 7, in 70 microseconds; 3 leaves 6.8, in 90.
LEVEL = 1

EXPECTED = "expected sqlite:PATH or postgresql://user@host:5432/database"


class InstancesFault(Enum):
    """Whose fault it is that something was not stored, and so what to do about it."""

    REFUSED = "refused"  # the data's: it will never be stored as it is
    BUSY = "busy"  # nobody's: others were at the same rows, try again
    DOWN = "down"  # the store's: it takes nothing from anybody now


class InstancesError(Exception):
    """Nothing of it was stored. The message says what was found, where, and what to do."""

    def __init__(self, message: str, fault: InstancesFault) -> None:
        super().__init__(message)
        self.fault = fault

    @property
    def transient(self) -> bool:
        """Whether the same rows may be taken later."""
        return self.fault is not InstancesFault.REFUSED


class InstanceRow(NamedTuple):
    """One record. Times are Unix seconds; what is unknown is None."""

    instance_id: int
    api: str
    activity_hash: int | None
    completed: bool | None
    fresh: bool | None
    flawless: bool | None
    player_count: int | None
    date_started: float | None
    date_completed: float | None
    duration_seconds: int | None
    membership_type: int | None
    score: int | None
    skull_hashes: tuple[int, ...]
    crawled: float


class PlayerRow(NamedTuple):
    """Who a player is, as of `last_seen`, which comes first of what decides between two of them."""

    membership_id: int
    last_seen: float
    membership_type: int
    icon_path: str
    display_name: str
    global_display_name: str
    global_display_name_code: str


class InstancePlayerRow(NamedTuple):
    """That a player took part."""

    instance_id: int
    membership_id: int
    finished: bool
    time_played_seconds: int


class CharacterRow(NamedTuple):
    """What one character of a player did."""

    instance_id: int
    membership_id: int
    character_id: int
    class_hash: int
    emblem_hash: int
    completed: bool
    score: int
    kills: int
    deaths: int
    assists: int
    precision_kills: int
    super_kills: int
    grenade_kills: int
    melee_kills: int
    start_seconds: int
    time_played_seconds: int


class WeaponRow(NamedTuple):
    """What a character did with one weapon."""

    instance_id: int
    membership_id: int
    character_id: int
    weapon_hash: int
    kills: int
    precision_kills: int


class RawRow(NamedTuple):
    """What the API said."""

    instance_id: int
    data: bytes | memoryview  # a view of the letter, which is not copied for it
    crawled: float


class InstanceRows(NamedTuple):
    """All rows of one instance. Its `players` and `taken_part` are in the same order."""

    instance: InstanceRow
    players: tuple[PlayerRow, ...]
    taken_part: tuple[InstancePlayerRow, ...]
    characters: tuple[CharacterRow, ...]
    weapons: tuple[WeaponRow, ...]
    raw: RawRow | None  # None if another store has it

    @property
    def plain(self) -> bool:
        """Whether it is a record of an API without players, which has a table of its own."""
        return self.instance.player_count is None and self.instance.activity_hash is None and not self.players


class RecordRow(NamedTuple):
    """One record of an API without players. Times are Unix seconds."""

    id: int
    api: str
    time: float | None  # when it came to be, as far as the API says
    crawled: float
    record: str | None  # its JSON; None if another store has it

    @classmethod
    def of(cls, rows: InstanceRows) -> Self:
        """The row that these rows are."""
        instance = rows.instance
        record = None if rows.raw is None else bytes(rows.raw.data).decode()
        return cls(instance.instance_id, instance.api, instance.date_completed, instance.crawled, record)


class InsertResult(NamedTuple):
    """What came of a batch."""

    new: int
    duplicates: int


class InstanceCounts(NamedTuple):
    """How many rows there are. They are counted one by one: with many millions that takes seconds."""

    instances: int
    players: int
    instance_players: int
    characters: int
    weapons: int
    raw: int
    records: int = 0


class Instances(Protocol):
    """The tables above. All methods raise InstancesError; an InstanceStore is one, and has the words for it."""

    async def keep(self, batch: Sequence[InstanceRows]) -> InsertResult: ...
    async def latest(self) -> int | None: ...
    async def counts(self) -> InstanceCounts: ...
    async def raw(self, instance_id: int) -> bytes | None: ...
    async def close(self) -> None: ...


class RawInstances(Protocol):
    """A store of its own for what the API said. All methods raise InstancesError."""

    async def keep(self, batch: Sequence[RawRow]) -> None:
        """Store all of it, durably; it may be said again."""

    async def raw(self, instance_id: int) -> bytes | None:
        """What the API said about it; None if that is not here."""

    async def close(self) -> None:
        """Let go of it."""


def first_of_each(batch: Sequence[InstanceRows]) -> list[InstanceRows]:
    """The batch in the order of ids, each id once: whoever takes locks in that order never waits in a ring."""
    once: dict[int, InstanceRows] = {}
    for rows in batch:
        once.setdefault(rows.instance.instance_id, rows)
    return [once[number] for number in sorted(once)]


def newest_of_each(batch: Sequence[InstanceRows]) -> list[PlayerRow]:
    """Every player of the batch as last seen, in the order of members."""
    newest: dict[int, PlayerRow] = {}
    for player in (player for rows in batch for player in rows.players):
        newest[player.membership_id] = max(player, newest.get(player.membership_id, player))
    return [newest[member] for member in sorted(newest)]


def another_api(instance_id: int, api: str, known: str, place: object) -> InstancesError:
    """What to say of an id that is taken."""
    return InstancesError(
        f"instance {instance_id} of the API {api!r} was not stored: {place} has that id from {known!r}. "
        "Give each API a store of its own.",
        InstancesFault.REFUSED,
    )


def packed(batch: Sequence[InstanceRows]) -> dict[int, RawRow]:
    """What the API said, as it lies in a table, by instance."""
    packer = ZstdCompressor(LEVEL)
    raw = (rows.raw for rows in batch if rows.raw)
    return {
        number: RawRow(number, packer.compress(data, ZstdCompressor.FLUSH_FRAME), crawled)
        for number, data, crawled in raw
    }


def unpacked(raw: RawRow, place: object) -> bytes:
    """What was packed. Raises InstancesError."""
    try:
        return decompress(raw.data)
    except ZstdError as error:
        message = f"what {place} has of instance {raw.instance_id} is damaged: {error}"
        raise InstancesError(message, InstancesFault.DOWN) from error


async def open_instances(url: str) -> Instances:
    """The store at `url`, which was reached; its tables are made where there are none.

    Raises InstancesError, or MissingExtraError.
    """
    # By name and only now: a command that needs neither should load neither, and asyncpg is an extra.
    kind, _, path = url.partition(":")
    store: Instances
    if kind == "sqlite" and path:
        store = importlib.import_module("sanderling.stores.instances_store").open_sqlite_instances(Path(path))
        return store
    if kind not in ("postgresql", "postgres"):
        raise InstancesError(f"{kind[:20]!r} is no kind of store; {EXPECTED}", InstancesFault.DOWN)
    store = await load("sanderling.stores.postgres_instances", "PostgreSQL").open_postgres(url)
    return store
