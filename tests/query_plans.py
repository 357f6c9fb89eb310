"""Every SQL statement that our code executes in any test is explained, and one that reads a whole table fails the test.

SQLite explains each statement where it is first executed, PostgreSQL after the test that first executed it, in the same
schema and as if its tables were large. Statements of tests and of migrations are left alone. `tests/query_rules.py`
names the small tables, and the statements that may read all they mean.
"""
# ruff: noqa: ANN401 - asyncpg has no types, and plans are whatever a server says

import asyncio
import re
import sqlite3
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import msgspec
import pytest
from query_rules import MAY_READ_ALL, SMALL

import sanderling

OURS = str(Path(sanderling.__file__).parent)
EXPLAINED = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\b", re.IGNORECASE)
# Whatever the index, these read all the rows that are meant.
ALL_ROWS = re.compile(r"\b(count|sum|avg|total|group_concat)\s*\(", re.IGNORECASE)
SCANNED = re.compile(r"SCAN (?!CONSTANT|\(|\d+ CONSTANT)(\S+)(?!.* VIRTUAL TABLE)")
# All rows from some value on are read; in vain, if there are more conditions.
RANGE = re.compile(r"SEARCH .* \([^=]*\)( LEFT-JOIN)?$")
UNKNOWN = object()


@dataclass
class Seen:
    """What was executed."""

    wrong: set[str] = field(default_factory=set)  # in the test that runs
    verdicts: dict[str, str | None] = field(default_factory=dict)  # what is wrong with a statement of SQLite
    waiting: dict[str, str] = field(default_factory=dict)  # statements for PostgreSQL to be explained, and their schema
    settled: set[str] = field(default_factory=set)  # those that are fine


seen = Seen()


@contextmanager
def apart() -> Iterator[Seen]:
    """What is executed meanwhile, which is no fault of the test."""
    global seen  # noqa: PLW0603 - each connection looks there
    before, seen = seen, Seen()
    try:
        yield seen
    finally:
        seen = before


def words(statement: str) -> str:
    """The statement on one line."""
    return " ".join(statement.split())


@cache
def may_read_all(statement: str) -> bool:
    """Whether a rule says that the statement may read all rows that it means."""
    return any(re.search(part, words(statement)) for part in MAY_READ_ALL)


def judged(statement: str, troubles: list[str]) -> str | None:
    """What is wrong with the statement, for people; None if it is fine."""
    if ALL_ROWS.search(statement):
        troubles = [*troubles, "counts or sums up rows one by one"]
    if not troubles or may_read_all(statement):
        return None
    return f"{words(statement)}\n    {'; '.join(troubles)}"


# --- SQLite ---


class Connection(sqlite3.Connection):
    """Explains each statement of ours before it executes it for the first time."""

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        self._watch(sql)
        return super().execute(sql, *args)

    def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
        self._watch(sql)
        return super().executemany(sql, *args)

    def _watch(self, sql: str) -> None:
        verdict = seen.verdicts.get(sql, UNKNOWN)
        if verdict is UNKNOWN and EXPLAINED.match(sql) and sys._getframe(2).f_code.co_filename.startswith(OURS):
            with suppress(sqlite3.Error):  # whoever executes it hears of it
                seen.verdicts[sql] = verdict = judged(sql, list(self._troubles(sql)))
        if isinstance(verdict, str):
            seen.wrong.add(verdict)

    def _troubles(self, sql: str) -> Iterator[str]:
        details = [row[3] for row in super().execute(f"EXPLAIN QUERY PLAN {sql}", self._nothing(sql))]
        names = _aliases(sql)
        for detail in details:
            scanned = SCANNED.match(detail)
            if (
                (scanned and names.get(scanned[1], scanned[1]) not in SMALL)
                or "AUTOMATIC" in detail
                or ("TEMP B-TREE FOR ORDER BY" in detail and "LIMIT" in sql)
                or (RANGE.search(detail) and " AND " in words(sql))
            ):
                yield detail

    def _nothing(self, sql: str) -> Any:
        """NULL for each parameter of a statement."""
        try:
            super().execute(f"EXPLAIN {sql}", ()).close()
        except sqlite3.ProgrammingError as error:
            if number := re.search(r"statement uses (\d+)", str(error)):
                return (None,) * int(number[1]) if not re.search(r"[:@$][a-z]", sql) else Nothing()
            raise
        return ()


class Nothing(dict[str, None]):
    """NULL for each named parameter."""

    def __missing__(self, name: str) -> None:
        return None


def _aliases(sql: str) -> Mapping[str, str]:
    """Tables of a statement by the names that it gives them."""
    return {alias: table for table, alias in re.findall(r'"?(\w+)"? AS "?(\w+)', sql)}


def connect(*args: Any, connect: Any = sqlite3.connect, factory: Any = Connection, **kwargs: Any) -> sqlite3.Connection:
    """`sqlite3.connect` with connections that explain."""
    db: sqlite3.Connection = connect(*args, factory=factory, **kwargs)
    return db


# --- PostgreSQL ---


def watch_server(db: Any, query: str) -> None:
    """Remember a statement of ours that was not explained yet."""
    settings = db._params.server_settings or {}
    if settings.get("application_name") == "sanderling" and query not in seen.settled and EXPLAINED.match(query):
        seen.waiting[query] = settings.get("search_path", "public")


async def get_statement(self: Any, query: str, *args: Any, **kwargs: Any) -> Any:
    """What asyncpg has for each statement with parameters, also for those of a cursor."""
    watch_server(self, query)
    return await original_get_statement(self, query, *args, **kwargs)


async def execute(self: Any, query: str, *args: Any, **kwargs: Any) -> Any:
    """The same for one without parameters."""
    watch_server(self, query)
    return await original_execute(self, query, *args, **kwargs)


# Whatever reads a whole table all the same has no index to go by.
SETTINGS = {
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "lock_timeout": "1s",
}
# A million rows on each page there is; undone with the transaction.
LARGE = """UPDATE pg_class SET reltuples = 1e6, relpages = 1
    WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'i')"""
PARAMETERS = "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'explained'"
original_get_statement, original_execute = asyncpg.Connection._get_statement, asyncpg.Connection.execute


async def explain(url: str) -> None:
    """Explain what waits. What has no tables any more waits for the next test that executes it."""
    db = await asyncpg.connect(url, server_settings=SETTINGS, statement_cache_size=0)
    try:
        for query, schema in list(seen.waiting.items()):
            del seen.waiting[query]
            with suppress(asyncpg.PostgresError):
                plan = await _plan(db, query, schema)
                if trouble := judged(query, list(_troubles(plan))):
                    seen.wrong.add(trouble)
                else:
                    seen.settled.add(query)
    finally:
        await db.close()


async def _plan(db: Any, query: str, schema: str) -> Any:
    """How the server would go about it, whatever the parameters, if the tables were large."""
    transaction = db.transaction()
    await transaction.start()
    try:
        await original_execute(db, f"SET LOCAL search_path = {schema}")
        with suppress(asyncpg.InsufficientPrivilegeError):
            async with db.transaction():
                await db.execute(LARGE, schema)
        await original_execute(db, f"PREPARE explained AS {query}")
        number = await db.fetchval(PARAMETERS)
        nothing = f"({', '.join(['NULL'] * number)})" if number else ""
        ((plan,),) = await db.fetch(f"EXPLAIN (FORMAT JSON) EXECUTE explained{nothing}")
    finally:
        await transaction.rollback()
        await original_execute(db, "DEALLOCATE ALL")  # or whatever of it was made
    return msgspec.json.decode(plan)[0]["Plan"]


def _troubles(node: Any, above: Sequence[str] = ()) -> Iterator[str]:
    kind, table = node["Node Type"], node.get("Relation Name", "")
    few = "Limit" in above[-2:] and not {"Filter", "Sort"}.intersection((*node, *above[-1:]))
    unbound = kind == "Seq Scan" or (kind.startswith("Index") and "Index Cond" not in node)
    if unbound and table not in SMALL and not table.startswith("pg_") and not few:
        yield f"{kind} of {table} {node.get('Index Name', '')}"
    if kind == "Sort" and "Limit" in above[-2:] and any(_tables(node)):
        yield f"Sort by {', '.join(node['Sort Key'])}"
    for each in node.get("Plans", ()):
        yield from _troubles(each, (*above, kind))


def _tables(node: Any) -> Iterator[str]:
    """The large tables below a node, as far as they are not cut short there."""
    if node.get("Relation Name", "") not in ("", *SMALL):
        yield node["Relation Name"]
    for each in node.get("Plans", ()):
        if each["Node Type"] != "Limit":
            yield from _tables(each)


# --- in each test ---


def pytest_configure() -> None:
    sqlite3.connect = connect  # type: ignore[assignment]
    asyncpg.Connection._get_statement, asyncpg.Connection.execute = get_statement, execute


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Generator[None, object, object]:
    """Fail the test if it executed a statement that reads more than it should."""
    seen.wrong.clear()
    result = yield
    if seen.waiting and "postgres" in item.fixturenames:
        asyncio.run(explain(item._request.getfixturevalue("postgres")))
    if seen.wrong:
        pytest.fail(
            "reads more the more there is (see tests/query_rules.py):\n" + "\n".join(sorted(seen.wrong)), pytrace=False
        )
    return result
