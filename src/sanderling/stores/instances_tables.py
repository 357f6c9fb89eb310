"""The tables of instances, in either database. No foreign keys: all rows of an instance come in one transaction."""

from sanderling.stores.database import ColumnType, TableDefinition, encoded

MAYBE_ID = ColumnType("INTEGER", "bigint")
MAYBE_COUNT = ColumnType("INTEGER", "integer")
MAYBE_YES = ColumnType("INTEGER", "boolean")
MAYBE_TIME = ColumnType("REAL", "timestamptz", travels="float8", made="to_timestamp({0})")
ID, COUNT, YES, TIME = (
    kind._replace(sqlite=f"{kind.sqlite} NOT NULL", postgres=f"{kind.postgres} NOT NULL")
    for kind in (MAYBE_ID, MAYBE_COUNT, MAYBE_YES, MAYBE_TIME)
)
TEXT = ColumnType("TEXT NOT NULL", 'text COLLATE "C" NOT NULL')
BYTES = ColumnType("BLOB NOT NULL", "bytea NOT NULL")
# As text, "[1,2]": an array of arrays would be taken for a single array of two dimensions.
NUMBERS = ColumnType(
    "TEXT NOT NULL",
    "bigint[] NOT NULL",
    travels="text",
    made="translate({0}, '[]', '{{}}')::bigint[]",
    packed=encoded,
)

INSTANCE = TableDefinition(
    "instance",
    {
        "instance_id": ID,
        "api": TEXT,
        "activity_hash": MAYBE_ID,
        **dict.fromkeys(("completed", "fresh", "flawless"), MAYBE_YES),
        "player_count": MAYBE_COUNT,
        **dict.fromkeys(("date_started", "date_completed"), MAYBE_TIME),
        **dict.fromkeys(("duration_seconds", "membership_type", "score"), MAYBE_COUNT),
        "skull_hashes": NUMBERS,
        "crawled": TIME,
    },
    ("instance_id",),
)
PLAYER = TableDefinition(
    "player",
    {
        "membership_id": ID,
        "last_seen": TIME,
        "membership_type": COUNT,
        **dict.fromkeys(("icon_path", "display_name", "global_display_name", "global_display_name_code"), TEXT),
    },
    ("membership_id",),
)
INSTANCE_PLAYER = TableDefinition(
    "instance_player",
    {"instance_id": ID, "membership_id": ID, "finished": YES, "time_played_seconds": COUNT},
    ("instance_id", "membership_id"),
)
_CHARACTER = ("instance_id", "membership_id", "character_id")
CHARACTER = TableDefinition(
    "instance_character",
    {
        **dict.fromkeys((*_CHARACTER, "class_hash", "emblem_hash"), ID),
        "completed": YES,
        **dict.fromkeys(("score", "kills", "deaths", "assists", "precision_kills", "super_kills"), COUNT),
        **dict.fromkeys(("grenade_kills", "melee_kills", "start_seconds", "time_played_seconds"), COUNT),
    },
    _CHARACTER,
)
WEAPON = TableDefinition(
    "instance_character_weapon",
    {**dict.fromkeys((*_CHARACTER, "weapon_hash"), ID), "kills": COUNT, "precision_kills": COUNT},
    (*_CHARACTER, "weapon_hash"),
)
STATS = TableDefinition(
    "player_stats",
    {
        "membership_id": ID,
        "activity_hash": ID,
        **dict.fromkeys(("clears", "fresh_clears", "sherpas"), COUNT),
        "seconds_played": ID,
        "fastest_seconds": MAYBE_COUNT,
        "fastest_instance": MAYBE_ID,
        "first_clear": MAYBE_TIME,
        "first_instance": MAYBE_ID,
    },
    ("membership_id", "activity_hash"),
)
RAW = TableDefinition("raw_instance", {"instance_id": ID, "data": BYTES, "crawled": TIME}, ("instance_id",))
JSON = ColumnType("TEXT", "json", travels="text", made="{0}::json")
# Since format 2.
RECORD = TableDefinition(
    "record", {"id": ID, "api": TEXT, "time": MAYBE_TIME, "crawled": TIME, "record": JSON}, ("id",)
)
TABLES = (INSTANCE, PLAYER, INSTANCE_PLAYER, CHARACTER, WEAPON, STATS, RAW, RECORD)

# The same in SQLite: there the order in which records and instances came is known, for whoever reads what is new.
NUMBER = "number INTEGER PRIMARY KEY AUTOINCREMENT"
ARRIVALS = (
    RECORD.sqlite.replace("(id INTEGER PRIMARY KEY", f"({NUMBER}, id INTEGER NOT NULL UNIQUE"),
    f"CREATE TABLE arrival ({NUMBER}, instance_id INTEGER NOT NULL)",
    """CREATE TRIGGER arrived AFTER INSERT ON instance
        BEGIN INSERT INTO arrival (instance_id) VALUES (new.instance_id); END""",
)
