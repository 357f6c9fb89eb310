"""Records in a database beside the folder: `instance` and what belongs to it for the game, `record` for any API.

Each is written before the folder's commit, and again after a kill: what is there stays as it is. A later state of a
record replaces it; one that was deleted is taken out and noted in `tombstone`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec

from sanderling.files import Exit, FolderError, ServiceAway
from sanderling.observe.log import log
from sanderling.sequence.instances import COLUMNS, rows_of
from sanderling.sequence.store import KeptRecord
from sanderling.stores.sqlite_file import SqliteFile

_APPLICATION = 0x53516E32
_BOOLEAN = frozenset({"completed", "finished", "flawless", "fresh"})
_KEYS = {"instance": 1, "instance_player": 2, "instance_character": 3, "instance_character_weapon": 4}
_GAME_TABLES = {**{name: columns.split() for name, columns in COLUMNS.items()}, "raw_instance": ["instance_id", "data"]}
_VIEWS = {
    "player": "SELECT membership_id, max(date_completed) AS last_seen FROM instance_player GROUP BY membership_id",
    "player_stats": (
        "SELECT membership_id, count(*) AS instances, count(*) FILTER (WHERE finished) AS clears,"
        " count(*) FILTER (WHERE finished AND fresh) AS fresh_clears,"
        " min(duration_seconds) FILTER (WHERE finished AND fresh) AS fastest,"
        " sum(time_played_seconds) AS time_played_seconds"
        " FROM instance_player JOIN instance USING (instance_id) GROUP BY membership_id"
    ),
}
Statement = tuple[str, list[tuple[Any, ...]]]


class RecordsDatabase(Protocol):
    """A database for records."""

    async def write(self, records: Sequence[KeptRecord]) -> None:
        """Write records. Raises ServiceAway."""

    async def latest(self) -> int | None:
        """The largest id there is."""

    async def __aenter__(self) -> Self:
        """Connect, and make what is missing."""

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""


def open_database(url: str, *, game: bool, raw: bool) -> RecordsDatabase:
    """The database that is named, for reports of the game or for any records; `raw`: with the game's JSON too."""
    if url.startswith(("postgres://", "postgresql://")):
        return PostgresRecords(url, game=game, raw=raw)
    return SqliteRecords(Path(url.removeprefix("sqlite:")), game=game, raw=raw)


def tables(*, game: bool, views: str) -> list[str]:
    """The statements that make what is missing; `views` is how a database begins to make a view."""
    made = ["CREATE TABLE IF NOT EXISTS tombstone (id BIGINT PRIMARY KEY, visit INTEGER NOT NULL)"]
    if not game:
        return [*made, "CREATE TABLE IF NOT EXISTS record (id BIGINT PRIMARY KEY, record TEXT NOT NULL)"]
    for name, columns in _GAME_TABLES.items():
        types = [
            f"{each} {'BOOLEAN' if each in _BOOLEAN else 'TEXT' if each == 'data' else 'BIGINT'}" for each in columns
        ]
        key = ", ".join(columns[: _KEYS.get(name, 1)])
        made.append(f"CREATE TABLE IF NOT EXISTS {name} ({', '.join(types)}, PRIMARY KEY ({key}))")
    return made + [f"{views} {name} AS {query}" for name, query in _VIEWS.items()]


def statements(records: Sequence[KeptRecord], *, game: bool, raw: bool) -> list[Statement]:
    """What a transaction does to have these records."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for each in records:
        if not each.line:
            rows.setdefault("tombstone", []).append((each.number, each.visit))
        elif not game:
            rows.setdefault("record", []).append((each.number, each.line.decode()))
        else:
            try:
                found: dict[str, list[tuple[Any, ...]]] = rows_of(msgspec.json.decode(each.line))
            except ValueError as error:
                log.warning("no_report", id=each.number, why=str(error))
                found = {}
            if raw:
                found["raw_instance"] = [(each.number, each.line.decode())]
            for name, new in found.items():
                rows.setdefault(name, []).extend(new)
    done: list[Statement] = []
    if replaced := [(each.number,) for each in records if each.visit]:
        names = {"record": "id"} if not game else dict.fromkeys(_GAME_TABLES, "instance_id")
        done += [(f"DELETE FROM {name} WHERE {key} = ?", replaced) for name, key in names.items()]
    for name, new in rows.items():
        marks = ", ".join("?" * len(new[0]))
        done.append((f"INSERT INTO {name} VALUES ({marks}) ON CONFLICT DO NOTHING", new))
    return done


class SqliteRecords:
    """A file of SQLite."""

    def __init__(self, path: Path, *, game: bool, raw: bool) -> None:
        self._file = SqliteFile(path, _APPLICATION)
        self._game, self._raw = game, raw

    async def __aenter__(self) -> Self:
        await self._file.open()

        def make() -> None:
            with self._file.transaction() as db:
                for each in tables(game=self._game, views="CREATE VIEW IF NOT EXISTS"):
                    db.execute(each)
                db.execute(f"PRAGMA application_id = {_APPLICATION}")

        await self._file.call(make)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._file.close()

    async def write(self, records: Sequence[KeptRecord]) -> None:
        """Write records."""

        def insert() -> None:
            with self._file.transaction() as db:
                for each, rows in statements(records, game=self._game, raw=self._raw):
                    db.executemany(each, rows)

        await self._file.call(insert)

    async def latest(self) -> int | None:
        """The largest id there is."""
        ((found,),) = await self._file.call(lambda: self._file.db.execute(_latest(game=self._game)).fetchall())
        return found if found is None else int(found)


class PostgresRecords:
    """A database of PostgreSQL, in the schema that its search path names."""

    def __init__(self, url: str, *, game: bool, raw: bool) -> None:
        self._url = url
        self._game, self._raw = game, raw
        self._pool: Any = None

    async def __aenter__(self) -> Self:
        try:
            import asyncpg  # noqa: PLC0415 - an extra
        except ImportError:
            raise FolderError("PostgreSQL needs asyncpg", 'pip install "sanderling[postgres]"') from None
        self._away = (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)
        try:
            self._pool = await asyncpg.create_pool(self._url, min_size=1, max_size=2, timeout=10)
            async with self._pool.acquire() as connection, connection.transaction():
                for each in tables(game=self._game, views="CREATE OR REPLACE VIEW"):
                    await connection.execute(each)
        except (*self._away, asyncpg.PostgresError, ValueError) as error:
            said = f"PostgreSQL cannot be used: {type(error).__name__}: {error}"
            code = Exit.LATER if isinstance(error, self._away) else Exit.WRONG
            raise FolderError(said, "check that it runs and --database names it", code) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.terminate()

    async def write(self, records: Sequence[KeptRecord]) -> None:
        """Write records. Raises ServiceAway."""
        try:
            async with self._pool.acquire(timeout=10) as connection, connection.transaction():
                for each, rows in statements(records, game=self._game, raw=self._raw):
                    first, *rest = each.split("?")
                    numbered = first + "".join(f"${place}{text}" for place, text in enumerate(rest, 1))
                    await connection.executemany(numbered, rows)
        except self._away as error:
            raise ServiceAway(f"PostgreSQL: {type(error).__name__}: {error}") from None

    async def latest(self) -> int | None:
        """The largest id there is."""
        async with self._pool.acquire(timeout=10) as connection:
            found = await connection.fetchval(_latest(game=self._game))
        return None if found is None else int(found)


def _latest(*, game: bool) -> str:
    return "SELECT max(instance_id) FROM instance" if game else "SELECT max(id) FROM record"
