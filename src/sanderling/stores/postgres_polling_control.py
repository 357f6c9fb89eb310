"""What people and subscribers see and set of a polling store in PostgreSQL: targets, settings, positions."""

from collections.abc import Mapping
from typing import Any

from sanderling.stores.polling import Counts, Field, Query, Target
from sanderling.stores.polling_rows import LARGEST, checked_fields, checked_seconds, is_text
from sanderling.stores.postgres_polling_link import Link
from sanderling.stores.postgres_polling_targets import COLUMNS, targets

COUNT = """SELECT count(*) FILTER (WHERE gone IS NULL), count(*) FILTER (WHERE gone IS NULL AND NOT enabled),
    count(*) FILTER (WHERE wanted AND next_due <= $1), count(*) FILTER (WHERE wanted AND until > $1),
    count(*) FILTER (WHERE gone IS NULL AND failures > 0), count(*) FILTER (WHERE gone IS NOT NULL)
    FROM polling_targets"""
# In the order of ids, as all others who change many: so nobody waits in a ring.
PROMOTE = """WITH meant AS MATERIALIZED (
        SELECT id FROM polling_targets WHERE wanted AND {} ORDER BY id FOR NO KEY UPDATE)
    UPDATE polling_targets SET promote = {} WHERE id IN (SELECT id FROM meant)"""
SET = "INSERT INTO polling_settings VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
UNSET = "DELETE FROM polling_settings WHERE key = $1"
ADVANCE = "INSERT INTO polling_positions VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq"


class PostgresControl:
    """Targets, for people."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def list(self, query: Query) -> list[Target]:
        """A page of them."""
        meant, values = _meant(query)
        if query.after is not None:
            meant += f" AND (next_due, id) > (${len(values) + 1}, ${len(values) + 2})"
            values += query.after
        order = f"ORDER BY next_due, id LIMIT {max(0, min(query.most, LARGEST))}"
        return targets(await self._link.read(f"SELECT {COLUMNS} FROM polling_targets WHERE {meant} {order}", *values))  # noqa: S608 - ours

    async def change(self, kind: str, source_id: str, fields: Mapping[Field, bool | float | int | None]) -> bool:
        """Set what an admin may set; None goes back to what discovery says. Whether there is such a target."""
        checked = checked_fields(fields)
        if not is_text(kind + source_id):
            return False
        # One that sets nothing says all the same whether there is such a target.
        values = ", ".join(f"{name} = ${place}" for place, name in enumerate(checked, 3)) or "enabled = enabled"
        statement = f"UPDATE polling_targets SET {values} WHERE kind = $1 AND source_id = $2"  # noqa: S608 - checked

        async def work(db: Any) -> bool:  # noqa: ANN401 - asyncpg has no types
            status: str = await db.execute(statement, kind, source_id, *checked.values())
            return status != "UPDATE 0"

        return await self._link.edit(work)

    async def promote(self, query: Query, seconds: float) -> int:
        """Ask for these to be run now, and accelerated for so many seconds. Paused ones are passed over. How many."""
        asked = checked_seconds(seconds)
        meant, values = _meant(query)
        statement = PROMOTE.format(meant, f"${len(values) + 1}")

        async def work(db: Any) -> int:  # noqa: ANN401 - no types
            return int((await db.execute(statement, *values, asked)).split()[1])

        return await self._link.edit(work)

    async def count(self, wall: float) -> Counts:
        """How many there are."""
        (numbers,) = await self._link.read(COUNT, wall)
        return Counts(*numbers)


class PostgresSettings:
    """Texts by key, as people wrote them; and how far subscribers are."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def settings(self) -> dict[str, str]:
        """All of them."""
        return dict(await self._link.read("SELECT key, value FROM polling_settings"))

    async def set(self, key: str, value: str | None) -> None:
        """Write one; None removes it."""
        if value is None:
            await self._link.edit(lambda db: db.execute(UNSET, key))
        else:
            await self._link.edit(lambda db: db.execute(SET, key, value))

    async def position(self, name: str) -> int | None:
        """The number of the last change it has; None if it is new."""
        found = await self._link.read("SELECT seq FROM polling_positions WHERE name = $1", name)
        return found[0][0] if found else None

    async def advance(self, name: str, seq: int) -> None:
        """Note that it has all up to there."""
        await self._link.edit(lambda db: db.execute(ADVANCE, name, seq))


def _meant(query: Query) -> tuple[str, list[Any]]:
    """Which targets a query means, whatever the page: a condition, and the values in it."""
    asked = [
        ("kind = {}", query.kind),
        ("source_id = {}", query.source_id),
        ("event = {}", query.event),
        ("enabled = {}", query.enabled),
        ("(gone IS NOT NULL) = {}", query.gone),
        ("next_due <= {}", query.due_before),
        ("until > {}", query.accelerated_at),
    ]
    given = [(condition, value) for condition, value in asked if value is not None]
    if not all(is_text(value) for _, value in given if isinstance(value, str)):
        return "false", []  # no target has such a name
    conditions = [condition.format(f"${place}") for place, (condition, _) in enumerate(given, 1)]
    return " AND ".join(conditions) or "true", [value for _, value in given]
