"""The doctor asks services: real ones, ones that refuse us, ones that are gone, and ones that never answer."""

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from command_line import called
from services.s3 import S3

from sanderling.cli.config.file import Configuration
from sanderling.cli.doctor import services as doctor_services
from sanderling.cli.doctor import stores as doctor_stores
from sanderling.cli.doctor.findings import FAIL, OK, UNSET, WARN, CheckFinding, revision_found
from sanderling.cli.doctor.postgres import version_found as postgres_version
from sanderling.cli.doctor.rabbitmq import version_found as rabbitmq_version
from sanderling.cli.doctor.services import Service, _safe, asked_for, checked, secrets_in, services
from sanderling.cli.doctor.stores import redis_keeping, redis_version, s3_refusal
from sanderling.stores.analytics_open import migrate
from sanderling.stores.analytics_revisions import HEAD

SECRET = "hush-hush"  # noqa: S105 - none


def asked(url: str, what: str = "it", name: str = "", setting: tuple[str, str] = ("", "")) -> dict[str, CheckFinding]:
    """What was found, by what was looked at."""
    found = asyncio.run(checked(Service(what, url, name, setting)))
    return {each.what: each for each in found}


def states(found: dict[str, CheckFinding]) -> dict[str, str]:
    return {what: each.state for what, each in found.items()}


@pytest.fixture
def nobody() -> str:
    """Where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where somebody listens who never says anything."""
    monkeypatch.setattr(doctor_services, "PATIENCE", 0.6)
    monkeypatch.setattr(doctor_stores, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def s3_url(s3: S3, secret: str = "") -> str:
    return s3.endpoint.replace("http://", f"s3+http://{s3.access_key_id}:{secret or s3.secret_access_key}@")


def test_a_postgresql_is_asked_for_its_version_its_clock_and_whether_tables_can_be_made(postgres: str) -> None:
    schema = f"doctor_{uuid4().hex}"

    found = asked(f"{postgres}?schema={schema}", "events database", setting=("events", "database"))

    assert states(found) == dict.fromkeys(
        ("events database", *(f"events database: {each}" for each in ("clock", "tables", "revision"))), OK
    )
    assert found["events database"].found.startswith("PostgreSQL 1")
    assert found["events database: tables"].found == f"can be made in schema {schema}, and so can the schema"
    assert "no tables yet" in found["events database: revision"].found

    async def left() -> int:
        db = await asyncpg.connect(postgres)
        try:
            return int(await db.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", schema))
        finally:
            await db.close()

    assert asyncio.run(left()) == 0


def test_a_schema_in_which_nothing_can_be_made_is_found_out(postgres: str) -> None:
    found = asked(f"{postgres}?schema=pg_catalog")["it: tables"]

    assert (found.state, "permission denied" in found.found) == (FAIL, True)
    assert "GRANT CREATE" in found.advice


def test_a_postgresql_that_does_not_know_us_is_said_without_the_password(postgres: str) -> None:
    host = postgres.rpartition("@")[2]

    (found,) = asked(f"postgresql://nobody_{uuid4().hex}:{SECRET}@{host}").values()

    assert found.state == FAIL
    assert SECRET not in str(found)
    assert "look at user, password" in found.advice


def test_an_earlier_revision_of_events_comes_with_the_command_that_changes_it(postgres: str) -> None:
    schema = f"doctor_{uuid4().hex}"

    async def main() -> list[CheckFinding]:
        db = await asyncpg.connect(postgres)
        try:
            await db.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.analytics_version (version_num text)")
            await db.execute(f"INSERT INTO {schema}.analytics_version VALUES ('0002')")  # noqa: S608 - our own
            return await checked(Service("it", f"{postgres}?schema={schema}"))
        finally:
            await db.execute(f"DROP SCHEMA {schema} CASCADE")
            await db.close()

    found = {each.what: each for each in asyncio.run(main())}["it: revision"]

    assert (found.state, found.advice) == (WARN, "sanderling events migrate head")


def test_a_rabbitmq_is_asked_for_its_version_and_whether_queues_can_be_made(rabbitmq: str) -> None:
    name = f"doctor-{uuid4().hex}"

    found = asked(rabbitmq, "events queue", name)

    assert states(found) == dict.fromkeys(("events queue", "events queue: queues", f"events queue: {name}"), OK)
    assert found["events queue"].found.startswith("RabbitMQ ")
    assert "is not there yet" in found[f"events queue: {name}"].found


def test_a_rabbitmq_that_does_not_know_us_is_said(rabbitmq: str) -> None:
    host = rabbitmq.rpartition("@")[2]

    (found,) = asked(f"amqp://guest:{SECRET}@{host}").values()

    assert (found.state, "user or password are wrong" in found.found) == (FAIL, True)
    assert SECRET not in str(found)


def test_a_redis_is_asked_for_its_version_its_clock_and_a_key(redis: str) -> None:
    found = asked(redis)

    assert states(found) == dict.fromkeys(("it", "it: clock", "it: keys", "it: keeping"), OK)


def test_a_redis_that_does_not_know_us_is_said(redis: str) -> None:
    (found,) = asked(redis.replace("redis://", f"redis://nobody:{SECRET}@")).values()

    assert (found.state, "does not know us" in found.found) == (FAIL, True)
    assert SECRET not in str(found)


def test_an_s3_gets_an_object_and_keeps_none(s3: S3) -> None:
    found = asked(s3_url(s3), name=s3.bucket)

    assert states(found) == {"it": OK, "it: clock": OK}
    assert "put, read and deleted" in found["it"].found
    assert s3.store("sanderling-doctor").list().collect() == []


def test_a_bucket_that_is_not_there_is_said_and_not_made(s3: S3) -> None:
    found = [asked(s3_url(s3), name=f"doctor-{os.getpid()}")["it"] for _ in range(2)]

    assert [(each.state, each.found.startswith("there is no bucket doctor-")) for each in found] == [(FAIL, True)] * 2


def test_an_s3_that_does_not_know_us_is_said(s3: S3) -> None:
    found = asked(s3_url(s3, SECRET), name=s3.bucket)["it"]

    assert (found.state, "SignatureDoesNotMatch" in found.found) == (FAIL, True)
    assert SECRET not in str(found)


def test_a_clickhouse_is_asked_for_its_version_its_clock_and_whether_tables_can_be_made(clickhouse: str) -> None:
    found = asked(clickhouse.replace("http://", "clickhouse://"))

    assert states(found) == dict.fromkeys(("it", "it: clock", "it: tables"), OK)


URLS = (
    "postgresql://me:{secret}@{host}/x",
    "amqp://me:{secret}@{host}/",
    "redis://:{secret}@{host}/0",
    "s3+http://me:{secret}@{host}",
    "clickhouse://me:{secret}@{host}/x",
    "http://me:{secret}@{host}",
)


@pytest.mark.parametrize("url", URLS)
def test_where_nobody_listens_that_is_said_with_advice_and_without_the_password(url: str, nobody: str) -> None:
    found = list(asked(url.format(secret=SECRET, host=nobody)).values())[-1]

    assert (found.state, bool(found.advice)) == (FAIL, True)
    assert nobody in found.found
    assert SECRET not in str(found)


def test_those_that_never_answer_are_given_up_all_at_once(silent: str) -> None:
    async def main() -> list[list[CheckFinding]]:
        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            every = [Service("it", url.format(secret=SECRET, host=silent)) for url in URLS]
            tasks = [group.create_task(checked(each)) for each in every]
        return [task.result() for task in tasks]

    for findings in asyncio.run(main()):
        assert findings[-1].state == FAIL
        assert SECRET not in str(findings)
        assert "***" not in str(findings)  # nobody quotes it in the first place


@pytest.mark.parametrize(
    "url", ["", SECRET, "gopher://x", f"gopher:{SECRET}", "sqlite:", "postgresql://[", "redis://x:y"]
)
def test_what_is_no_url_of_a_service_is_said_and_not_quoted(url: str) -> None:
    (found,) = asked(url).values()

    assert found.state == FAIL
    assert SECRET not in str(found)


def test_a_password_is_known_in_every_spelling() -> None:
    assert secrets_in("amqp://me:a%2Fbc@host/") == ["a%2Fbc", "a/bc"]
    assert secrets_in("amqp://host/") == []


def test_a_password_that_somebody_quotes_is_taken_out_and_what_would_move_the_cursor_too() -> None:
    said = CheckFinding("it", FAIL, f"{SECRET} is wrong\x1b[2J", f"change {SECRET}")

    found = _safe(said, f"amqp://me:{SECRET}@host/")

    assert (found.found, found.advice) == ("*** is wrong\N{REPLACEMENT CHARACTER}[2J", "change ***")


def test_an_s3_that_somebody_asks_about_may_name_its_bucket() -> None:
    named, bare = asked_for(["s3+http://key:se/cret@host:9000/my-bucket", "s3+https://host"])

    assert (named.url, named.name) == ("s3+http://key:se/cret@host:9000", "my-bucket")
    assert (bare.url, bare.name) == ("s3+https://host", "")


def found_in(**environment: str) -> dict[str, Service | CheckFinding]:
    return {each.what: each for each in services(Configuration(environment=environment))}


def test_every_service_that_is_configured_is_found_wherever_it_was_and_under_its_name() -> None:
    found = found_in(
        SANDERLING_EVENTS_DATABASE="postgresql://db/x",
        SANDERLING_POLLING_DATABASE="postgresql://db/x",
        SANDERLING_EVENTS_CONSUME_QUEUE="amqp://broker/",
        SANDERLING_EVENTS_CONSUME_QUEUE_NAME="mine",
        SANDERLING_EVENTS_OBJECTS="http://key:secret@minio:9000",
        SANDERLING_SEQUENCE_RAW="clickhouse://ch/x",
        REDIS_ADDRESS="cache:6379",
    )

    assert {what: (each.url, each.name) for what, each in found.items() if isinstance(each, Service)} == {
        "polling database, events database": ("postgresql://db/x", ""),
        "events queue": ("amqp://broker/", "mine"),
        "events objects": ("s3+http://key:secret@minio:9000", "crawl-results"),
        "sequence raw": ("clickhouse://ch/x", ""),
        "repos redis-address": ("redis://cache:6379/0", ""),
    }
    both = found["polling database, events database"]
    assert isinstance(both, Service)
    assert both.setting == ("events", "database")  # so that its revision is looked at
    assert {each.state for each in found.values() if isinstance(each, CheckFinding)} == {UNSET}
    assert "sequence rows" in found


def test_files_that_stand_in_for_a_service_are_looked_at_too(tmp_path: Path) -> None:
    asyncio.run(migrate(f"sqlite:{tmp_path / 'events.db'}", "0003"))
    (tmp_path / "text.db").write_text("no database, but longer than a few bytes")

    database = asked(f"sqlite:{tmp_path / 'events.db'}", "events database", setting=("events", "database"))
    text = asked(f"sqlite:{tmp_path / 'text.db'}")["it"]
    queue = asked(f"sqlite:{tmp_path}", name="mine")["it"]
    folder = asked(f"file:{tmp_path}")["it"]
    wrong = asked(f"file:{tmp_path / 'text.db'}")["it"]

    assert database["events database: revision"].state == WARN
    assert (text.state, queue.state, folder.state, wrong.state) == (FAIL, OK, OK, FAIL)
    assert "mine.db is not there yet, and can be made" in queue.found
    assert sorted(each.name for each in tmp_path.iterdir()) == ["events.db", "text.db"]


def test_the_command_checks_what_is_configured_and_what_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobody: str
) -> None:
    (tmp_path / "sanderling.toml").write_text(f'[polling]\ndatabase = "postgresql://me:{SECRET}@{nobody}/x"\n')
    monkeypatch.chdir(tmp_path)

    done = called("doctor", "--json", "--check", f"amqp://me:{SECRET}@{nobody}/", "--database", f"sqlite:{tmp_path}/x")

    found = {each["what"]: each for each in json.loads(done.out)}
    assert (done.code, done.err) == (1, "")
    assert (found["polling database"]["state"], found["--check 1"]["state"], found["--check 2"]["state"]) == (
        *("fail", "fail"),
        "ok",
    )
    assert found["configuration"]["found"] == "sanderling.toml"
    assert found["events database"]["state"] == "not configured"
    assert SECRET not in done.out


def test_the_words_say_what_to_do(tmp_path: Path, nobody: str) -> None:
    done = called("doctor", "--home", str(tmp_path), "--check", f"redis://{nobody}/0")

    assert done.code == 1
    assert "XX  --check 1" in done.out
    assert "is it up, and is that its address?" in done.out
    assert "    events database " in done.out
    assert "not configured: events.db in its folder is used" in done.out
    assert done.out.splitlines()[-1].endswith("to look at, 1 of which does not work.")


def test_a_variable_that_makes_no_sense_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDERLING_EVENTS_CONSUME_BATCHES", "many")

    done = called("doctor", "--home", str(tmp_path))

    assert "SANDERLING_EVENTS_CONSUME_BATCHES" in done.out
    assert done.code == 1


@pytest.mark.parametrize(("number", "state"), [(130000, OK), (180003, OK), (120022, FAIL), (90624, FAIL)])
def test_postgresql_13_and_later_will_do(number: int, state: str) -> None:
    assert postgres_version("it", number, "there").state == state


@pytest.mark.parametrize(
    ("product", "version", "state"),
    [("RabbitMQ", "3.10.0", OK), ("RabbitMQ", "4.1.2", OK), ("RabbitMQ", "3.9.29", FAIL), ("Qpid", "9.0", WARN)],
)
def test_rabbitmq_3_10_and_later_will_do(product: str, version: str, state: str) -> None:
    properties = {"product": product.encode(), "version": version}

    assert rabbitmq_version("it", properties, "there").state == state


@pytest.mark.parametrize(
    ("info", "state"),
    [
        ({"redis_version": "6.2.0"}, OK),
        ({"redis_version": "7.2.4", "valkey_version": "9.0.1"}, OK),
        ({"redis_version": "6.0.16"}, FAIL),
        ({}, FAIL),
    ],
)
def test_redis_6_2_and_later_will_do(info: dict[str, str], state: str) -> None:
    assert redis_version("it", info, "there").state == state


@pytest.mark.parametrize(
    ("policy", "most", "state"),
    [("noeviction", 100, OK), ("allkeys-lru", 100, WARN), ("allkeys-lru", 0, OK), ("volatile-lru", 100, OK)],
)
def test_a_redis_that_forgets_is_worth_a_word(policy: str, most: int, state: str) -> None:
    assert redis_keeping("it", {"maxmemory_policy": policy, "maxmemory": most}).state == state


@pytest.mark.parametrize(("revision", "state"), [(None, OK), (HEAD, OK), ("0001", WARN), ("9999", FAIL)])
def test_revisions_are_told_apart(revision: str | None, state: str) -> None:
    assert revision_found("it", revision).state == state


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("NoSuchBucket", "there is no bucket"),
        ("InvalidAccessKeyId", "our keys are not known"),
        ("RequestTimeTooSkewed", "our clocks differ too much"),
        ("AccessDenied", "no object may be put"),
        ("SlowDown", "no object could be put (SlowDown)"),
    ],
)
def test_what_an_s3_says_is_put_into_words(code: str, said: str) -> None:
    found = s3_refusal("it", "b at there", "put", f"pages <Code>{code}</Code> of it")

    assert (found.state, said in found.found, bool(found.advice)) == (FAIL, True, True)
