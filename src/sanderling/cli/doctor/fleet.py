"""A fleet: whether its PostgreSQL and its object store can be shared by machines, and how fast both are."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from statistics import median
from typing import Any, NamedTuple
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.cli.doctor.findings import FAIL, OK, WARN, CheckError, CheckFinding
from sanderling.cli.doctor.postgres import EXPECTED, permitted, raised, version_found
from sanderling.cli.doctor.services import Say, Service
from sanderling.clock import SystemClock
from sanderling.extras import MissingExtraError
from sanderling.stores.objects import ObjectError, ObjectFault, WholeObjects, open_objects, read_place
from sanderling.stores.postgres_leases import CONNECTIONS
from sanderling.stores.postgres_server import plainly, read_url
from sanderling.words import count

TRIES = 11  # of each latency
MOST_COMMIT = 0.1  # seconds: a page of a crawl whose parts wait longer for each commit waits as well
MOST_PUT = 1.0
PER_WORKER = CONNECTIONS + 1  # connections to each server
BODY = b"sanderling doctor\n"

READ_ONLY = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
# It leaves nothing behind but a record in the log of the server, which a commit waits for.
COMMIT = "SELECT pg_logical_emit_message(true, 'sanderling', 'doctor')"
ROOM = """SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())"""
SEEN = """SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND (classid::bigint << 32 | objid::bigint) = $1"""
PROCESS = "SELECT pg_backend_pid()"


async def check_fleet_server(service: Service, say: Say) -> None:
    """Ask a PostgreSQL whether it can be that of a fleet. Raises CheckError."""
    at, what = read_url(service.url, EXPECTED, raised), service.what
    with plainly(at.place, raised):
        async with AsyncExitStack() as stack:
            # Without settings and without statements that are kept: a pooler in between is to be found out, too.
            one, other = [await asyncpg.connect(at.dsn, statement_cache_size=0) for _ in range(2)]
            for each in (one, other):
                stack.callback(each.terminate)  # not `close`, which would wait for a server that has gone silent
            say(version_found(what, int(await one.fetchval("SHOW server_version_num")), at.place))
            say(clock_found(f"{what}: clock", *await _clock(one)))
            read_only = writing_found(f"{what}: writing", *await one.fetchrow(READ_ONLY))
            say(read_only)
            if not read_only.ok:
                return
            say(await permitted(one, service, at))
            say(session_found(f"{what}: sessions", await _sessions(one, other)))
            say(await _commit_latency(one, f"{what}: commits"))
            most, used = await one.fetchrow(ROOM)
            say(room_found(f"{what}: connections", most, used, service.workers))


async def _clock(db: Any) -> tuple[float, float]:  # noqa: ANN401 - asyncpg has no types
    clock = SystemClock()
    before = clock.wall()
    theirs = float(await db.fetchval(NOW))
    after = clock.wall()
    return theirs - (before + after) / 2, (after - before) / 2


def clock_found(what: str, off: float, unsure: float) -> CheckFinding:
    """What to say of a server's clock that is so far ahead of ours."""
    if abs(off) <= max(1.0, unsure):
        return CheckFinding(what, OK, f"within {max(abs(off), unsure):.1f} s of ours")
    side = "ahead of" if off > 0 else "behind"
    return CheckFinding(what, OK, f"{abs(off):,.0f} s {side} ours, which is harmless: a fleet goes by the server's")


def writing_found(what: str, replica: bool, read_only: bool) -> CheckFinding:  # noqa: FBT001 - columns of a row
    """What to say of a server that is a replica, or takes nothing."""
    if replica:
        return CheckFinding(what, FAIL, "a replica, which takes no commits", "name the primary, or an address that is")
    if read_only:
        advice = "ALTER DATABASE or ALTER ROLE … SET default_transaction_read_only = off; or its disk was full"
        return CheckFinding(what, FAIL, "transactions are read-only here", advice)
    return CheckFinding(what, OK, "a primary, which takes commits")


class FleetSessions(NamedTuple):
    """Processes of the server that two connections of ours met: one, the other in a transaction, the first again."""

    first: int
    other: int
    again: int
    seen: int  # locks of the first that the other sees


async def _sessions(one: Any, other: Any) -> FleetSessions:  # noqa: ANN401 - asyncpg has no types
    lock = uuid4().int >> 65
    first = await one.fetchval(PROCESS)
    await one.execute("SELECT pg_advisory_lock($1)", lock)
    async with other.transaction():
        beside, seen = await other.fetchval(PROCESS), await other.fetchval(SEEN, lock)
        again = await one.fetchval(PROCESS)
    await one.execute("SELECT pg_advisory_unlock($1)", lock)
    return FleetSessions(first, beside, again, seen)


def session_found(what: str, met: FleetSessions) -> CheckFinding:
    """What to say of connections: whether each is a session of the server, whose locks others see."""
    if met.first == met.other or met.first != met.again:
        advice = "connect to the server itself, or set the pooler to sessions: a worker needs one of its own"
        return CheckFinding(what, FAIL, "a pooler hands out another session for each transaction", advice)
    if met.seen != 1:
        advice = "let this user read pg_locks: workers that die are noticed later"
        return CheckFinding(what, WARN, "locks of other sessions cannot be seen", advice)
    return CheckFinding(what, OK, "a connection is a session, and its locks are seen by others")


async def _commit_latency(db: Any, what: str) -> CheckFinding:  # noqa: ANN401 - asyncpg has no types
    try:
        seconds = await _median(lambda: db.execute(COMMIT))
    except (asyncpg.UndefinedFunctionError, asyncpg.InsufficientPrivilegeError) as error:
        return CheckFinding(what, WARN, f"how long one takes is not known: {error}")
    return latency_found(what, "a commit", seconds, MOST_COMMIT, "is the server near, and its disk quick?")


def latency_found(what: str, one: str, seconds: float, most: float, advice: str) -> CheckFinding:
    """What to say of something that takes so long, in the median."""
    found = f"{one} takes {seconds * 1000:.1f} ms (median of {TRIES})"
    return CheckFinding(what, OK, found) if seconds <= most else CheckFinding(what, WARN, found, advice)


def room_found(what: str, most: int, used: int, workers: int) -> CheckFinding:
    """What to say of a server that takes so many connections, of which so many are used."""
    room = max(0, most - used) // PER_WORKER
    found = f"{used} of {most} are used; room for {count(room, 'worker')}, with {PER_WORKER} each"
    if room >= max(1, workers):
        return CheckFinding(what, OK, found)
    wanted = f", not {workers}" if workers else ""
    advice = f"set max_connections to {used + PER_WORKER * max(1, workers)} or more, and restart the server"
    return CheckFinding(what, FAIL, f"{found}{wanted}", advice)


async def check_fleet_objects(service: Service, say: Say) -> None:
    """Ask an object store whether it can be that of a fleet. Raises CheckError."""
    try:
        opened, bucket, prefix = read_place(service.url)
        objects = open_objects(opened)
    except (ObjectError, MissingExtraError) as error:
        raise CheckError(str(error), "see: sanderling fleet --help") from None
    try:
        await _try_objects(objects, bucket, f"{prefix}/sanderling-doctor".lstrip("/"), service, say)
    finally:
        await objects.close()


async def _try_objects(objects: WholeObjects, bucket: str, folder: str, service: Service, say: Say) -> None:
    what, key, doing = service.what, f"{folder}/{uuid4().hex}", "listed"
    try:
        async for _ in objects.list(bucket, folder):
            break
        doing = "put"
        seconds = await _median(lambda: objects.put(bucket, key, BODY, {}))
        doing = "read"
        if (await objects.get(bucket, key, len(BODY))).body != BODY:
            raise CheckError(f"bucket {bucket}: what was read is not what was put")
        doing = "listed"
        if [each.key async for each in objects.list(bucket, folder) if each.key == key] != [key]:
            raise CheckError(f"bucket {bucket}: what was put is not listed")
        doing = "deleted"
        await objects.delete(bucket, key)
    except ObjectError as error:
        if error.fault is ObjectFault.MISSING and doing == "listed":
            advice = "make it; or the first worker does, if its keys may"
            say(CheckFinding(what, WARN, f"there is no bucket {bucket} yet", advice))
            return
        advice = f"let these keys list, put, read and delete objects in {bucket}"
        raise CheckError(f"bucket {bucket}: nothing could be {doing}: {error}", advice) from None
    say(CheckFinding(what, OK, f"bucket {bucket}: an object was put, read, listed and deleted"))
    say(latency_found(f"{what}: puts", "a put", seconds, MOST_PUT, "is the store near, and not busy?"))


async def _median(call: Callable[[], Awaitable[object]]) -> float:
    """Seconds that a call takes."""
    clock, took = SystemClock(), list[float]()
    for _ in range(TRIES):
        before = clock.now()
        await call()
        took.append(clock.now() - before)
    return median(took)
