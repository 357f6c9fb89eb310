"""A PostgreSQL: which version, whether tables can be made there, its clock, and at which revision events are."""

from typing import Any
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.cli.doctor.findings import FAIL, OK, CheckError, CheckFinding, revision_found, skew
from sanderling.cli.doctor.services import Say, Service
from sanderling.clock import SystemClock
from sanderling.stores.analytics_revisions import VERSION_TABLE
from sanderling.stores.database import DatabaseTrouble
from sanderling.stores.postgres_server import SETTINGS, PostgresAddress, plainly, read_url, relations

OLDEST = 13
EXPECTED = "expected postgresql://user:password@host:5432/database"


def raised(message: str, trouble: DatabaseTrouble) -> Exception:
    """What to raise, with advice."""
    advice = {
        DatabaseTrouble.AMISS: "look at user, password, database and schema in the URL, and at what that user may do",
        DatabaseTrouble.AWAY: "is it up, and is that its address?",
        DatabaseTrouble.BUSY: "try again",
        DatabaseTrouble.FAILED: "look at its log",
    }
    return CheckError(message, advice.get(trouble, ""))


async def check_postgres(service: Service, say: Say) -> None:
    """Ask it. Raises CheckError."""
    at = read_url(service.url, EXPECTED, raised)
    with plainly(at.place, raised):
        db = await asyncpg.connect(at.dsn, server_settings=SETTINGS)
        try:
            number = int(await db.fetchval("SHOW server_version_num"))
            say(version_found(service.what, number, at.place))
            await _clock(db, service, say)
            say(await permitted(db, service, at))
            if service.setting[0] in ("", "events"):
                await _revised(db, service, at, say)
        finally:
            db.terminate()  # not `close`, which would wait for a server that has gone silent


def version_found(what: str, number: int, place: str) -> CheckFinding:
    """What to say of a version, as the server counts them: 160003 is 16.3."""
    found = f"PostgreSQL {number // 10_000}.{number % 100} at {place}"
    if number // 10_000 >= OLDEST:
        return CheckFinding(what, OK, found)
    return CheckFinding(what, FAIL, found, f"expected {OLDEST} or later")


async def _clock(db: Any, service: Service, say: Say) -> None:  # noqa: ANN401 - asyncpg has no types
    clock = SystemClock()
    before = clock.wall()
    theirs = await db.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
    say(skew(f"{service.what}: clock", float(theirs), before, clock.wall()))


async def permitted(db: Any, service: Service, at: PostgresAddress) -> CheckFinding:  # noqa: ANN401 - no types
    """Whether tables can be made: by making one, in a transaction that is rolled back."""
    what, table = f"{service.what}: tables", f"{at.schema}.sanderling_doctor_{uuid4().hex}"
    attempt = db.transaction()
    await attempt.start()
    try:
        made = not await db.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", at.schema)
        if made:
            await db.execute(f"CREATE SCHEMA {at.schema}")
        await db.execute(f"CREATE TABLE {table} (probe integer)")
    except asyncpg.PostgresError as error:
        advice = f"GRANT CREATE, USAGE ON SCHEMA {at.schema} TO that user, or name a schema of its own with ?schema="
        return CheckFinding(what, FAIL, f"none can be made in schema {at.schema}: {error}", advice)
    finally:
        await attempt.rollback()
    also = ", and so can the schema" if made else ""
    return CheckFinding(what, OK, f"can be made in schema {at.schema}{also}")


async def _revised(db: Any, service: Service, at: PostgresAddress, say: Say) -> None:  # noqa: ANN401 - no types
    """At which revision the tables of events are; one that somebody asked about may have none."""
    there = VERSION_TABLE in await relations(db, at.schema)
    found = None
    if there:
        found = await db.fetchval(f"SELECT version_num FROM {at.schema}.{VERSION_TABLE}")  # noqa: S608 - both checked
    if there or service.setting[0]:
        say(revision_found(f"{service.what}: revision", found))
