"""The doctor looks at what the machines of a fleet share: a real PostgreSQL and a real S3, and worse ones."""

import asyncio
import json
import os
from pathlib import Path
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from command_line import called
from services.s3 import S3
from transaction_pooler import pooled

from sanderling.cli.doctor.findings import FAIL, OK, WARN, CheckFinding
from sanderling.cli.doctor.fleet import clock_found, latency_found, room_found, writing_found
from sanderling.cli.doctor.services import checked, of_fleet

LOOKED_AT = ("fleet", *(f"fleet: {each}" for each in ("clock", "writing", "tables", "sessions", "commits")))


def asked(*servers: str, objects: str | None = None, workers: int = 0) -> dict[str, CheckFinding]:
    """What was found, by what was looked at."""

    async def main() -> list[CheckFinding]:
        return [found for each in of_fleet(servers, objects, workers) for found in await checked(each)]

    return {each.what: each for each in asyncio.run(main())}


def s3_url(s3: S3, bucket: str, secret: str = "") -> str:
    login = f"s3+http://{s3.access_key_id}:{secret or s3.secret_access_key}@"
    return f"{s3.endpoint.replace('http://', login)}/{bucket}"


def test_a_postgresql_for_a_fleet_is_asked_for_all_that_workers_need_and_nothing_stays(postgres: str) -> None:
    schema = f"doctor_{uuid4().hex}"

    found = asked(f"{postgres}?schema={schema}")

    assert {what: found[what].state for what in LOOKED_AT} == dict.fromkeys(LOOKED_AT, OK)
    assert found["fleet: tables"].found == f"can be made in schema {schema}, and so can the schema"
    assert " ms (median of 11)" in found["fleet: commits"].found
    assert ", with 3 each" in found["fleet: connections"].found


def test_more_workers_than_a_server_has_connections_for_are_refused(postgres: str) -> None:
    found = asked(postgres, workers=90_000)["fleet: connections"]

    assert (found.state, found.found.endswith(", not 90000")) == (FAIL, True)
    assert "set max_connections to 27" in found.advice


def test_a_pooler_that_hands_out_sessions_by_transaction_is_found_out(postgres: str) -> None:
    async def main() -> list[CheckFinding]:
        async with pooled(postgres) as url:
            (service,) = of_fleet([url], None, 0)
            return await checked(service)

    found = {each.what: each for each in asyncio.run(main())}

    assert found["fleet: sessions"].state == FAIL, found
    assert "a pooler" in found["fleet: sessions"].found
    assert "set the pooler to sessions" in found["fleet: sessions"].advice


def test_a_server_that_takes_no_commits_is_said_before_all_else(postgres: str) -> None:
    name = f"doctor_{uuid4().hex}"

    async def main(*statements: str) -> None:
        db = await asyncpg.connect(postgres)
        for statement in statements:
            await db.execute(statement)
        await db.close()

    asyncio.run(main(f"CREATE ROLE {name} LOGIN", f"ALTER ROLE {name} SET default_transaction_read_only = on"))
    try:
        found = asked(f"postgresql://{name}@{postgres.rpartition('@')[2]}")
    finally:
        asyncio.run(main(f"DROP ROLE {name}"))

    assert list(found) == ["fleet", "fleet: clock", "fleet: writing"]
    assert (found["fleet: writing"].state, "read-only" in found["fleet: writing"].found) == (FAIL, True)


def test_an_s3_for_a_fleet_takes_an_object_and_keeps_none(s3: S3) -> None:
    found = asked(objects=f"{s3_url(s3, s3.bucket)}/below")

    assert {what: each.state for what, each in found.items()} == {"fleet objects": OK, "fleet objects: puts": OK}
    assert found["fleet objects"].found.endswith("an object was put, read, listed and deleted")
    assert s3.store("below").list().collect() == []


def test_an_s3_that_does_not_know_us_is_said_without_the_secret(s3: S3) -> None:
    (found,) = asked(objects=s3_url(s3, s3.bucket, "hush-hush")).values()

    assert (found.state, "hush-hush" in str(found)) == (FAIL, False)


def test_a_bucket_that_is_not_there_yet_is_no_failure_and_is_not_made(s3: S3) -> None:
    for _ in range(2):
        (found,) = asked(objects=s3_url(s3, f"doctor-{os.getpid()}")).values()

        assert (found.state, f"there is no bucket doctor-{os.getpid()} yet" in found.found) == (WARN, True)


@pytest.mark.parametrize("objects", ["s3+http://host", "gopher://x/y", "s3+http://me:hush-hush@h/%zz/"])
def test_what_is_no_place_for_objects_is_said_and_not_quoted(objects: str) -> None:
    (found,) = asked(objects=objects).values()

    assert (found.state, "hush-hush" in str(found)) == (FAIL, False)


def test_as_json_it_is_among_all_else_and_what_fails_is_the_exit_code(postgres: str, tmp_path: Path) -> None:
    done = called("doctor", "--fleet", postgres, "--fleet", "postgresql://127.0.0.1:1/x", "--json")

    found = {each["what"]: each for each in json.loads(done.out)}
    assert found["fleet 1"]["ok"]
    assert found["fleet 2"]["state"] == "fail"
    assert done.code == 1
    assert not list(tmp_path.iterdir())


def test_a_clock_that_is_off_is_said_and_harmless() -> None:
    assert clock_found("it", 0.2, 0.01) == CheckFinding("it", OK, "within 0.2 s of ours")
    ahead, behind = clock_found("it", 3600.0, 0.01), clock_found("it", -3600.0, 0.01)
    assert (ahead.state, ahead.found) == (
        OK,
        "3,600 s ahead of ours, which is harmless: a fleet goes by the server's",
    )
    assert behind.found.startswith("3,600 s behind ours")


def test_what_each_finding_turns_on() -> None:
    assert [writing_found("it", *each).state for each in ((False, False), (True, True), (False, True))] == [
        *(OK, FAIL, FAIL)
    ]
    assert [latency_found("it", "a put", each, 1.0, "go").state for each in (1.0, 1.1)] == [OK, WARN]
    assert [room_found("it", 100, used, 30).state for used in (10, 11)] == [OK, FAIL]
    assert room_found("it", 10, 9, 0).state == FAIL
