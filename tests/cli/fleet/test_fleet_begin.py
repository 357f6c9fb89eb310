"""What is looked at before a worker of a fleet begins: its flags, its servers, their order; and how it ends."""

import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_line import Done, finish, here, page, run, start
from part_processes import asked, until
from part_processes import site as parts_site
from scripted_server import ScriptedServer, Step, answer
from services.postgres import fresh_database
from services.s3 import S3

from sanderling.cli.fleet.flags import place_of
from sanderling.cli.fleet.worker import AWAY

NOWHERE = "http://127.0.0.1:9/"
SITE: dict[str, list[bytes | list[Step]]] = {
    "/": [page("/1")] * 9,
    "/1": [page("/")] * 9,
    "/robots.txt": [answer(404)] * 9,
}


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    with fresh_database(postgres) as url:
        yield url


@pytest.fixture
def name() -> str:
    return f"begin-{secrets.token_hex(4)}"


def crawl(out: Path, *fleet: str, objects: str, url: str = NOWHERE, more: tuple[str, ...] = ()) -> list[str]:
    servers = [word for each in fleet for word in ("--fleet", each)]
    flags = ["--private", "--no-parquet", "--json", "--rps", "20", "--objects", objects]
    return ["pages", "crawl", url, "--out", str(out), *servers, *flags, *more]


def said(done: Done) -> str:
    return " ".join(done.err.split())


def crawled(*commands: list[str]) -> list[Done]:
    """What comes of crawls, one after the other, of a site of two pages: URL stands for its address."""

    async def main() -> list[Done]:
        async with ScriptedServer(SITE) as server:
            return [await here(*(word.replace(NOWHERE, server.url("/")) for word in words)) for words in commands]

    return run(main)


@pytest.mark.parametrize("wrong", ["nonsense", "file:/proc/nowhere", "s3+http://key:secret@127.0.0.1:9/bucket"])
def test_a_place_for_rows_that_is_none_does_not_take_the_name(
    database: str, tmp_path: Path, name: str, wrong: str
) -> None:
    good = f"file:{tmp_path / 'objects'}"
    first, status, second = crawled(
        crawl(tmp_path / name, database, objects=wrong),
        ["fleet", "status", name, "--fleet", database],
        crawl(tmp_path / name, database, objects=good),
    )

    assert first.code in {1, 2, 75}, first
    assert "--objects" in said(first)
    assert "has no crawl" in said(status)
    assert second.code == 0, second
    assert not [path for path in (tmp_path / "objects").rglob("*") if "check" in path.name]


def test_a_name_that_is_taken_is_refused_with_what_frees_it(database: str, tmp_path: Path, name: str) -> None:
    taken = f"file:{tmp_path / 'objects'}"
    first, second = crawled(
        crawl(tmp_path / name, database, objects=taken),
        crawl(tmp_path / "two" / name, database, objects=f"file:{tmp_path / 'others'}"),
    )

    assert (first.code, second.code) == (0, 2), (first, second)
    assert f"sanderling fleet forget {name} --fleet" in said(second)
    assert f"--objects {taken} --yes" in said(second)


def test_the_same_store_in_another_spelling_is_the_same(
    database: str, tmp_path: Path, name: str, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = s3.endpoint.removeprefix("http://")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_access_key)
    with_keys = f"s3+http://{s3.access_key_id}:{s3.secret_access_key}@{host}/{s3.bucket}"

    done = crawled(
        crawl(tmp_path / "one" / name, database, objects=with_keys),
        crawl(tmp_path / "two" / name, database, objects=f"s3+http://{host}/{s3.bucket}"),
    )

    assert [each.code for each in done] == [0, 0], done


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("s3+http://key:sec@ret@host:9000/b/p", "s3+http://host:9000/b/p"),
        ("s3+https://host/b", "s3+https://host/b"),
        ("file:/folder@home", "file:/folder@home"),
    ],
)
def test_a_place_is_known_by_all_but_who_comes(url: str, place: str) -> None:
    assert place_of(url) == place


def test_servers_in_another_order_are_refused_with_the_right_one(postgres: str, tmp_path: Path, name: str) -> None:
    objects = f"file:{tmp_path / 'objects'}"
    with ExitStack() as stack:
        one, two = [stack.enter_context(fresh_database(postgres)) for _ in range(2)]
        first, swapped, status = crawled(
            crawl(tmp_path / name, one, two, objects=objects),
            crawl(tmp_path / name, two, one, objects=objects),
            ["fleet", "status", name, "--fleet", two, "--fleet", one],
        )

    assert first.code == 0, first
    for done in (swapped, status):
        assert done.code == 2, done
        assert f"--fleet {one} --fleet {two}" in said(done)


def test_who_joins_with_other_numbers_is_told_that_they_are_not_heeded(
    database: str, tmp_path: Path, name: str
) -> None:
    objects = f"file:{tmp_path / 'objects'}"
    numbers = ("--lease", "60", "--fleet-parts", "16")
    _, other, same, default = crawled(
        crawl(tmp_path / name, database, objects=objects, more=("--lease", "4", "--fleet-parts", "8")),
        [word for word in crawl(tmp_path / name, database, objects=objects, more=numbers) if word != "--json"],
        [
            word
            for word in crawl(tmp_path / name, database, objects=objects, more=("--lease", "4", "--fleet-parts", "8"))
            if word != "--json"
        ],
        [word for word in crawl(tmp_path / name, database, objects=objects) if word != "--json"],
    )

    assert "--lease 60 is not heeded: the crawl was begun with 4" in other.out + other.err
    assert "--fleet-parts 16 is not heeded: the crawl was begun with 8" in other.out + other.err
    assert "heeded" not in same.out + same.err + default.out + default.err


@pytest.mark.parametrize("flags", [("--lease", "60"), ("--fleet-parts", "8")])
def test_what_is_for_a_fleet_is_refused_without_one(tmp_path: Path, flags: tuple[str, str]) -> None:
    async def main() -> Done:
        return await here("pages", "crawl", NOWHERE, "--out", str(tmp_path / "out"), *flags)

    done = run(main)

    assert done.code == 2, done
    assert f"{flags[0]} is for machines that share a crawl" in said(done)


def test_a_server_that_is_away_at_the_start_is_a_reason_to_run_it_again(
    database: str, tmp_path: Path, name: str
) -> None:
    gone = "postgresql://nobody@127.0.0.1:9/nothing"
    no_server, no_store, status = crawled(
        crawl(tmp_path / name, gone, objects=f"file:{tmp_path / 'objects'}"),
        crawl(tmp_path / name, database, objects="s3+http://key:secret@127.0.0.1:9/bucket"),
        ["fleet", "status", name, "--fleet", gone],
    )

    assert (no_server.code, no_store.code, status.code) == (AWAY, AWAY, 1), (no_server, no_store, status)


def test_who_is_stopped_says_whether_others_go_on_and_how_to(database: str, tmp_path: Path, name: str) -> None:
    objects = f"file:{tmp_path / 'objects'}"

    async def main() -> list[Done]:
        async with parts_site() as server:
            urls, workers = [server.url(host.name) for host in server.world.hosts], []
            more = (*urls[1:], "--lease", "3", "--fleet-parts", "8")
            for machine in ("one", "two"):
                words = crawl(tmp_path / machine / name, database, objects=objects, url=urls[0], more=more)
                slowly = ["1" if word == "20" else word for word in words if word != "--json"]
                workers.append(await start(*slowly))
                await until(lambda machine=machine: list((tmp_path / machine / name / "copies").glob("*")))  # type: ignore[misc]
            await until(lambda: asked(server) > 5)
            done = []
            for worker in workers:
                worker.send_signal(signal.SIGINT)
                done.append(await finish(worker))
            return done

    first, last = run(main)

    assert (first.code, last.code) == (130, 130)
    assert f"The crawl {name} goes on without this worker, by 1 other" in first.out
    assert f"Nobody else works on the crawl {name} now" in last.out
    assert "Go on with it: sanderling pages crawl" in " ".join(last.out.split())
    assert "without this worker" not in last.out
