"""Whatever is given as a ledger and is none, or breaks on the way: one sentence, the right exit code, nothing lost."""

import asyncio
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import pytest
from kit.postgres import FaultyWay, PostgresServer, new_name, shared_postgres

from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError
from sanderling.stores import Batch, FoundUrl, Ledger, PlanError, open_ledger, postgres_link, sqlite_file
from sanderling.stores.postgres_ledger import PostgresLedger

FOUND = [FoundUrl(f"https://host.example/{number}", "host.example") for number in range(600)]
real = pytest.mark.real


def at(place: Path | str, name: str = "crawl", plan: Any = None, **more: Any) -> Ledger:
    return open_ledger(place, plan=plan or {"depth": 3}, clock=SystemClock(), name=name, **more)


async def begin(place: Path | str, name: str = "crawl") -> None:
    """A crawl was begun here."""
    async with at(place, name) as ledger:
        await ledger.commit(Batch(found=FOUND))


async def refusal(ledger: Ledger) -> FolderError:
    with pytest.raises(FolderError) as raised:
        async with ledger:
            pass
    assert "\n" not in str(raised.value)
    assert raised.value.advice
    return raised.value


def sql(text: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with sqlite3.connect(path) as db:
            db.executescript(text)
        db.close()

    return change


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("my shopping list\n" * 99), "no ledger"),
    "of something else": (sql("PRAGMA application_id = 7; DELETE FROM crawl"), "something else"),
    "another's tables": (sql("PRAGMA application_id = 0"), "something else"),
    "of another edition": (sql("UPDATE crawl SET format = 2"), "format 2"),
    "torn": (cut, "damaged"),
    "a folder": (replace_by_folder, "is a folder"),
}


@pytest.mark.parametrize("what", SPOILED)
async def test_a_file_that_is_no_ledger_of_ours_is_refused_as_it_is(what: str, tmp_path: Path) -> None:
    path = tmp_path / "crawl.db"
    await begin(path)
    spoil, said = SPOILED[what]
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""

    error = await refusal(at(path))

    assert (error.code, said in str(error)) == (Exit.WRONG, True)
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_another_plan_is_named(tmp_path: Path) -> None:
    await begin(tmp_path / "crawl.db")

    error = await refusal(at(tmp_path / "crawl.db", plan={"depth": 4, "text": "best"}))

    assert isinstance(error, PlanError)
    assert error.differences == {"depth": (3, 4), "text": (None, "best")}


@pytest.mark.parametrize(
    ("mounts", "is_refused"),
    [
        ("disk / ext4 rw 0 0\nserver:/x {} nfs4 rw 0 0\n", True),
        ("disk / ext4 rw 0 0\nserver:/x {}/elsewhere nfs4 rw 0 0\n", False),
        ("server:/ / nfs rw 0 0\ndisk {} ext4 rw 0 0\n", False),
        ("server:/x {}/with\\040space cifs rw 0 0\n", False),
    ],
)
def test_a_network_file_system_is_refused(mounts: str, is_refused: bool, tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(mounts.format(tmp_path))
    with pytest.raises(FolderError) if is_refused else nullcontext():
        sqlite_file.check_mount(tmp_path / "crawl.db", read_only=False, mounts=tmp_path / "mounts")


@pytest.mark.parametrize("number", ["EROFS", "EACCES", "ENOSPC", "EMFILE"])
async def test_what_the_system_refuses_is_explained(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    def refuse(*_: Any) -> int:
        raise OSError(getattr(errno, number), "no")

    monkeypatch.setattr(os, "open", refuse)
    error = await refusal(at(tmp_path / "crawl.db"))

    assert error.code == (Exit.LATER if number in ("ENOSPC", "EMFILE") else Exit.WRONG)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SQLITE_READONLY_DBMOVED", Exit.WRONG),
        ("SQLITE_CORRUPT_INDEX", Exit.WRONG),
        ("SQLITE_BUSY_RECOVERY", Exit.LATER),
        ("SQLITE_IOERR_WRITE", Exit.LATER),
        ("SQLITE_NOMEM", Exit.LATER),
        ("SQLITE_FULL", Exit.LATER),
        ("SQLITE_CANTOPEN", Exit.LATER),
        ("SQLITE_MISUSE", Exit.WRONG),
    ],
)
def test_what_sqlite_says_has_its_exit_code(name: str, code: Exit) -> None:
    error = sqlite3.OperationalError("no")
    error.sqlite_errorname = name

    assert sqlite_file.explained(Path("crawl.db"), error).code == code


async def test_a_full_disk_costs_the_batch_only(tmp_path: Path) -> None:
    async with at(tmp_path / "crawl.db") as ledger:
        db = ledger._db  # type: ignore[attr-defined]
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(FolderError) as raised:
            await ledger.commit(Batch(found=FOUND))
        assert raised.value.code == Exit.LATER
        assert (await ledger.counts()).known == 0

        db.execute("PRAGMA max_page_count = 100000")
        await ledger.commit(Batch(found=FOUND))
        assert (await ledger.counts()).known == len(FOUND)
        assert await ledger.verify([]) == []


async def test_no_descriptor_is_left(tmp_path: Path) -> None:
    ledger = at(tmp_path / "crawl.db")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        error = await refusal(ledger)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert error.code == Exit.LATER


# PostgreSQL.


@contextmanager
def setting(server: PostgresServer, name: str, value: str) -> Iterator[None]:
    server.execute(f"ALTER SYSTEM SET {name} = {value}")
    server.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        server.execute(f"ALTER SYSTEM RESET {name}")
        server.execute("SELECT pg_reload_conf()")


async def with_setting(name: str, value: str) -> FolderError:
    server = shared_postgres()
    with setting(server, name, value):
        async with asyncio.timeout(30):
            while server.run(lambda db: db.fetchval(f"SHOW {name}")) != value:
                await asyncio.sleep(0.02)
        return await refusal(at(server.url, new_name()))


async def of_role(rights: str) -> FolderError:
    server, role = shared_postgres(), new_name("role").replace(" ", "_")
    server.execute(f"CREATE ROLE {role} LOGIN {rights}")
    return await refusal(at(server.url.replace("//postgres@", f"//{role}@"), new_name()))


async def spoiled(text: str, **more: Any) -> FolderError:
    """A ledger that was changed by somebody."""
    server, name = shared_postgres(), new_name()
    await begin(server.url, name)
    server.execute(f'SET search_path = "{name}"; {text}')
    return await refusal(at(server.url, name, **more))


async def foreign() -> FolderError:
    server, name = shared_postgres(), new_name()
    server.execute(f'CREATE SCHEMA "{name}"; CREATE TABLE "{name}".crawl (format int)')
    error = await refusal(at(server.url, name))
    server.execute(f'DROP TABLE "{name}".crawl; DROP SCHEMA "{name}"')  # there was nothing else in it
    return error


def at_url(change: Callable[[str], str], **more: Any) -> Callable[[], Any]:
    return lambda: refusal(at(change(shared_postgres().url), new_name(), **more))


REFUSED: dict[str, tuple[Callable[[], Any], Exit, str]] = {
    "away": (at_url(lambda _: "postgres://postgres@127.0.0.1:1/postgres"), Exit.LATER, "127.0.0.1:1"),
    "no address": (at_url(lambda _: "postgres://u:secret@h:port/x"), Exit.WRONG, "no address"),
    "no database": (at_url(lambda url: f"{url}x"), Exit.WRONG, "no database"),
    "no user": (at_url(lambda url: url.replace("//postgres@", "//nobody@")), Exit.WRONG, "let us in"),
    "read-only": (at_url(lambda url: f"{url}?default_transaction_read_only=on"), Exit.WRONG, "read-only"),
    "nothing to read": (at_url(lambda url: url, read_only=True), Exit.WRONG, "there is no"),
    "foreign": (foreign, Exit.WRONG, "something else"),
    "another plan": (lambda: spoiled("", plan={"depth": 4}), Exit.WRONG, "depth=3, not 4"),
    "another edition": (lambda: spoiled("UPDATE crawl SET format = 2"), Exit.WRONG, "format 2"),
    "without its tables": (lambda: spoiled("DROP TABLE crawl"), Exit.WRONG, "lacks tables"),
    "autovacuum off": (lambda: with_setting("autovacuum", "off"), Exit.WRONG, "autovacuum"),
    "fsync off": (lambda: with_setting("fsync", "off"), Exit.WRONG, "fsync"),
    "no rights": (lambda: of_role(""), Exit.WRONG, "does not allow"),
    "no connection left": (lambda: of_role("CONNECTION LIMIT 0"), Exit.LATER, "no connection left"),
}


@real
@pytest.mark.parametrize("what", REFUSED)
async def test_a_database_that_is_no_place_for_a_ledger_is_refused(what: str) -> None:
    refuse, code, said = REFUSED[what]

    error = await refuse()

    assert (error.code, said in str(error)) == (code, True), error
    assert "secret" not in str(error)


@real
@pytest.mark.parametrize("name", ["", "x" * 64, "pg_catalog"])
async def test_a_name_that_no_schema_can_have_is_refused(name: str) -> None:
    with pytest.raises(FolderError):
        at(shared_postgres().url, name)


@real
async def test_what_was_answered_is_on_disk_whatever_the_server_is_set_to() -> None:
    server = shared_postgres()
    ledger = at(f"{server.url}?synchronous_commit=off", new_name())
    assert isinstance(ledger, PostgresLedger)
    async with ledger:
        db = await ledger._link.ready()
        assert await db.fetchval("SHOW synchronous_commit") == "on"


@asynccontextmanager
async def pooler(mode: str) -> AsyncIterator[str]:
    """PgBouncer before the server."""
    program, server = shutil.which("pgbouncer"), shared_postgres()
    if program is None:
        pytest.skip("PgBouncer is not installed here")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = server.folder / f"pgbouncer-{mode}.ini"
    settings.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={server.port} user=postgres dbname=postgres\n"
        f"[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port={port}\nauth_type=any\npool_mode={mode}\nunix_socket_dir=\n"
    )
    settings.chmod(0o644)
    user = "postgres" if os.geteuid() == 0 else None
    process = subprocess.Popen([program, str(settings)], user=user, stderr=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(30):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.05)
        yield f"postgres://postgres@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait()


@real
async def test_a_pool_that_gives_each_transaction_another_session_is_refused() -> None:
    async with pooler("transaction") as url:
        error = await refusal(at(url, new_name()))

    assert (error.code, "pooler" in str(error)) == (Exit.WRONG, True), error


@real
async def test_a_pool_of_sessions_is_as_good_as_the_server() -> None:
    async with pooler("session") as url:
        await begin(url, new_name())


@real
@pytest.mark.parametrize("code", ["53100", "53200"])
async def test_a_full_server_costs_the_batch_only(code: str) -> None:
    server, name = shared_postgres(), new_name()
    async with at(server.url, name) as ledger:
        server.execute(
            f"""SET search_path = "{name}"; CREATE FUNCTION full_up() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{code}'; END $$;
            CREATE TRIGGER full_up BEFORE INSERT ON frontier EXECUTE FUNCTION full_up()"""
        )
        with pytest.raises(FolderError) as raised:
            await ledger.commit(Batch(found=FOUND))
        assert raised.value.code == Exit.LATER
        assert (await ledger.counts()).known == 0

        server.execute(f'DROP TRIGGER full_up ON "{name}".frontier')
        await ledger.commit(Batch(found=FOUND))
        assert (await ledger.counts()).known == len(FOUND)
        assert await ledger.verify([]) == []


@real
async def test_a_server_that_is_away_is_waited_for() -> None:
    server, name = shared_postgres(), new_name()
    async with FaultyWay(server.port, Random(1)) as way, at(way.url, name) as ledger:
        way.is_down = True
        way.cut()
        commit = asyncio.create_task(ledger.commit(Batch(found=FOUND)))
        while not ledger._link.losses:  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)
        assert "is away" in ledger.away
        way.is_down = False
        await commit
        assert not ledger.away
        assert (await ledger.counts()).known == len(FOUND)

        ledger._link.patience = 0.0  # type: ignore[attr-defined]
        way.is_down = True
        way.cut()
        with pytest.raises(FolderError) as raised:
            await ledger.commit(Batch(found=FOUND))
        assert raised.value.code == Exit.LATER


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (asyncpg.DataCorruptedError("x"), Exit.WRONG),
        (asyncpg.DiskFullError("x"), Exit.LATER),
        (asyncpg.DeadlockDetectedError("x"), Exit.LATER),
        (asyncpg.CannotConnectNowError("x"), Exit.LATER),
        (asyncpg.ReadOnlySQLTransactionError("x"), Exit.WRONG),
        (asyncpg.SyntaxOrAccessError("x"), Exit.WRONG),
    ],
)
def test_what_postgres_says_has_its_exit_code(error: Exception, code: Exit) -> None:
    link = postgres_link.PostgresLink("postgres://user:secret@host/x", "crawl", SystemClock(), 30.0)

    explained = link.explained(error)

    assert explained.code == code
    assert "secret" not in str(explained)
