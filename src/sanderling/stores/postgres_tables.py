"""The tables of instances as PostgreSQL has them, and the statement that fills each from one array per column."""

from collections.abc import Iterable
from dataclasses import dataclass

ID, HASH, COUNT, YES, TEXT, TIME = (
    f"{kind} NOT NULL" for kind in ("bigint", "bigint", "integer", "boolean", 'text COLLATE "C"', "timestamptz")
)

# How a value travels, by the type of its column, and what is made of it there; others travel as they are.
TRAVEL = {
    "timestamptz": ("float8", "to_timestamp({})"),
    "bigint[]": ("text", "{}::bigint[]"),
    "json": ("text", "{}::json"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table, whose columns are in the order of its rows."""

    name: str
    columns: dict[str, str]
    key: str  # no foreign keys: all rows of an instance come in one transaction, and are never removed

    @property
    def create(self) -> str:
        """What makes it."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY ({self.key}))"

    @property
    def insert(self) -> str:
        """What inserts rows, in their order, from as many arrays as there are columns."""
        kinds = [kind.split()[0] for kind in self.columns.values()]
        ways = [TRAVEL.get(kind, (kind, "{}")) for kind in kinds]
        values = ", ".join(way.format(name) for name, (_, way) in zip(self.columns, ways, strict=True))
        arrays = ", ".join(f"${place}::{kind}[]" for place, (kind, _) in enumerate(ways, 1))
        names = ", ".join(self.columns)
        return f"INSERT INTO {self.name} ({names}) SELECT {values} FROM unnest({arrays}) AS given ({names})"  # noqa: S608 - ours

    def replace(self, *, newer: bool = False) -> str:
        """What inserts rows, or changes those that are there: all of them, or where the new one is greater."""
        rest = [name for name in self.columns if name not in self.key.split(", ")]
        changes = ", ".join(f"{name} = excluded.{name}" for name in rest)
        old, new = (", ".join(f"{of}.{name}" for name in rest) for of in (self.name, "excluded"))
        condition = f" WHERE ({new}) > ({old})" if newer else ""
        return f"{self.insert} ON CONFLICT ({self.key}) DO UPDATE SET {changes}{condition}"


INSTANCE = Table(
    "instance",
    {
        "instance_id": ID,
        "api": TEXT,
        "activity_hash": "bigint",
        "completed": "boolean",
        "fresh": "boolean",
        "flawless": "boolean",
        "player_count": "integer",
        "date_started": "timestamptz",
        "date_completed": "timestamptz",
        "duration_seconds": "integer",
        "membership_type": "integer",
        "score": "integer",
        "skull_hashes": "bigint[] NOT NULL",
        "crawled": TIME,
    },
    "instance_id",
)
PLAYER = Table(
    "player",
    {
        "membership_id": ID,
        "last_seen": TIME,
        "membership_type": COUNT,
        "icon_path": TEXT,
        "display_name": TEXT,
        "global_display_name": TEXT,
        "global_display_name_code": TEXT,
    },
    "membership_id",
)
INSTANCE_PLAYER = Table(
    "instance_player",
    {"instance_id": ID, "membership_id": ID, "finished": YES, "time_played_seconds": COUNT},
    "instance_id, membership_id",
)
CHARACTER = Table(
    "instance_character",
    {
        "instance_id": ID,
        "membership_id": ID,
        "character_id": ID,
        "class_hash": HASH,
        "emblem_hash": HASH,
        "completed": YES,
        "score": COUNT,
        "kills": COUNT,
        "deaths": COUNT,
        "assists": COUNT,
        "precision_kills": COUNT,
        "super_kills": COUNT,
        "grenade_kills": COUNT,
        "melee_kills": COUNT,
        "start_seconds": COUNT,
        "time_played_seconds": COUNT,
    },
    "instance_id, membership_id, character_id",
)
WEAPON = Table(
    "instance_character_weapon",
    {
        "instance_id": ID,
        "membership_id": ID,
        "character_id": ID,
        "weapon_hash": HASH,
        "kills": COUNT,
        "precision_kills": COUNT,
    },
    "instance_id, membership_id, character_id, weapon_hash",
)
STATS = Table(
    "player_stats",
    {
        "membership_id": ID,
        "activity_hash": HASH,
        "clears": COUNT,
        "fresh_clears": COUNT,
        "sherpas": COUNT,
        "seconds_played": "bigint NOT NULL",
        "fastest_seconds": "integer",
        "fastest_instance": "bigint",
        "first_clear": "timestamptz",
        "first_instance": "bigint",
    },
    "membership_id, activity_hash",
)
RAW = Table("raw_instance", {"instance_id": ID, "data": "bytea NOT NULL", "crawled": TIME}, "instance_id")
RECORD = Table("record", {"id": ID, "api": TEXT, "time": "timestamptz", "crawled": TIME, "record": "json"}, "id")
TABLES = (INSTANCE, PLAYER, INSTANCE_PLAYER, CHARACTER, WEAPON, STATS, RAW, RECORD)

CREATE = (
    *(table.create for table in TABLES),
    # It is packed already.
    "ALTER TABLE raw_instance ALTER COLUMN data SET STORAGE EXTERNAL",
    "CREATE TABLE instance_store (version integer NOT NULL)",
)


def array(numbers: Iterable[int]) -> str:
    """An array as text: one of arrays would be taken for a single array of two dimensions."""
    return f"{{{','.join(map(str, numbers))}}}"
