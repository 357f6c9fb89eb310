"""A PostgreSQL server: how it is named, how it is spoken to, and what its errors mean.

A URL is like postgresql://user@host:5432/database?schema=name; without `schema` it is `public`. The password may also
come from PGPASSWORD or a password file, as for other programs; it is never shown.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.stores.database import DatabaseTrouble, Raised

# A statement of ours takes some 50 ms; a server that is busy with something else may take seconds.
CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0
# One of us that was stopped in the middle must not hold up the others for ever.
SETTINGS = {"application_name": "sanderling", "idle_in_transaction_session_timeout": "60s"}
# SQLSTATE of data that is malformed, breaks a constraint, or is too large; of those who got in each other's way; and of
# what somebody must see to: who we are, which database, which tables.
DATA = ("22", "23", "54")
CROSSED = ("40001", "40P01", "55P03", "57014")
AMISS = ("28", "3D", "3F", "42")
# Of connections, read-only servers, resources and shutdowns; but a connection that is lost during a statement may be
# lost by that statement.
AWAY, LOST = ("08", "25", "53", "57"), "08003"
SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
RELATIONS = "SELECT relname FROM pg_class JOIN pg_namespace AS its ON relnamespace = its.oid WHERE nspname = $1"
NONE = "the address of the PostgreSQL is no URL"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where to connect to, the schema there, and both in words, without user and password."""

    dsn: str = field(repr=False)
    schema: str
    place: str


def read_url(url: str, expected: str, raised: Raised) -> PostgresAddress:
    """The address that a URL names."""
    # The URL may hold a password, in the wrong place too: no message quotes it, or what is said of it.
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise raised(f"{NONE}; {expected}", DatabaseTrouble.AMISS) from None
    if parts.scheme not in ("postgresql", "postgres") or "@" in parts.path or parts.fragment:
        raise raised(f"{NONE}; {expected}, special characters as %2F", DatabaseTrouble.AMISS)
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", "public")
    if not SCHEMA.fullmatch(schema):
        raise raised(f"{schema[:70]!r} is no schema; expected a name of a-z, 0-9 and _", DatabaseTrouble.AMISS)
    dsn = parts._replace(query=urlencode([option for option in options if option[0] != "schema"])).geturl()
    name = parts.hostname or ""
    host = f"[{name}]" if ":" in name else name
    place = f"postgresql://{host}{f':{port}' if port else ''}{parts.path}, schema {schema}"
    return PostgresAddress(dsn, schema, place)


async def relations(db: Any, schema: str) -> set[str]:  # noqa: ANN401 - asyncpg has no types
    """The names of the tables and indexes there."""
    # Not `to_regclass`: what it did not find once, it does not look for again within a transaction.
    return {name for (name,) in await db.fetch(RELATIONS, schema)}


@asynccontextmanager
async def acquired(pool: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - asyncpg has no types
    """A connection of the pool.

    Who is cancelled ends it: else the pool waits until the server has heard of that, and one that hangs never does.
    """
    async with pool.acquire(timeout=ANSWER_SECONDS) as db:
        try:
            yield db
        except asyncio.CancelledError:
            db.terminate()
            raise


async def make_schema(db: Any, schema: str) -> None:  # noqa: ANN401 - no types
    """Make it, unless it is there."""
    # Not "if not exists": that asks for the right to make one, also where there is one.
    if not await db.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", schema):
        await db.execute(f"CREATE SCHEMA {schema}")


@contextmanager
def plainly(place: str, raised: Raised) -> Iterator[None]:
    """Turn whatever asyncpg raises into the error of the port."""
    try:
        yield
    except asyncpg.PostgresError as error:
        state = error.sqlstate or ""
        if state.startswith(DATA):
            raise raised(f"{place} refuses it: {error}", DatabaseTrouble.REFUSED) from error
        if state in CROSSED:
            raise raised(f"{place} is busy: {error}", DatabaseTrouble.BUSY) from error
        trouble, found = DatabaseTrouble.FAILED, "fails at it"
        if state.startswith(AMISS):
            trouble, found = DatabaseTrouble.AMISS, "cannot be used"
        elif state.startswith(AWAY) and state != LOST:
            trouble, found = DatabaseTrouble.AWAY, "cannot be used now"
        raise raised(f"{place} {found}: {error}", trouble) from error
    except asyncpg.exceptions.ClientConfigurationError as error:
        raise raised(f"{place} cannot be reached: {error}", DatabaseTrouble.AMISS) from error
    # The first also when there was no answer in time, the last when the server ended a connection at the wrong moment.
    except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # A transaction whose connection broke says that it cannot be ended; why it broke was said before.
        first = error.__context__ if isinstance(error.__context__, asyncpg.PostgresError) else error
        raise raised(f"{place} cannot be reached: {str(first) or 'no answer in time'}", DatabaseTrouble.AWAY) from error
