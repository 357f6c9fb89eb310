"""Segments that several real processes replay: the same rows as with one, each once, whoever is killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from command_line import Done, called, run, start
from services.clickhouse import fresh_database
from small_archives import CRAWLED_AT, LIKE, POST, Small, flip, offset_of, write

from sanderling.cli.repos.replay_processes import OWN
from sanderling.extras import load
from sanderling.stores.clickhouse import open_clickhouse

SEGMENTS, REPOS, RECORDS = 5, 400, 60
Row = tuple[str, str, str, str, int]
QUERY = "SELECT repo, collection, rkey, record_json, time_us FROM repo_records FINAL ORDER BY ALL"


def repo(segment: int, number: int) -> Small:
    records = {f"3k{key:04}": f'{{"n":{key},"text":"{segment} {number}"}}'.encode() for key in range(RECORDS)}
    return Small(f"did:plc:{segment:02}{number:06}", {POST: records, LIKE: {"self": b"{}"}}, CRAWLED_AT + number)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    for segment in range(SEGMENTS):
        write(folder / f"segment_{segment + 1:04}.rca", [repo(segment, number) for number in range(REPOS)])
    return folder


@pytest.fixture(scope="module")
def expected() -> list[Row]:
    made = (repo(segment, number) for segment in range(SEGMENTS) for number in range(REPOS))
    return sorted(
        (each.did, collection, rkey, json.decode(), each.crawled_at)
        for each in made
        for collection, records in each.records.items()
        for rkey, json in records.items()
    )


def of_parquet(folder: Path) -> list[Row]:
    columns = ["repo", "collection", "rkey", "record_json", "time_us"]
    parquet = load("pyarrow.parquet", "Parquet")
    tables = [parquet.read_table(path, columns=columns) for path in folder.glob("*.parquet")]
    return sorted(tuple(row.values()) for table in tables for row in table.to_pylist())


def of_chdb(path: Path) -> list[Row]:
    """In a process of its own: the engine stays in one that has opened it."""
    script = (
        "import json, sys; from sanderling.stores.clickhouse import open_clickhouse;"
        f"print(json.dumps(open_clickhouse(sys.argv[1]).rows({QUERY!r})))"
    )
    said = subprocess.run([sys.executable, "-c", script, f"chdb:{path}"], check=True, capture_output=True)  # noqa: S603
    return sorted(tuple(row) for row in json.loads(said.stdout))


def of_server(url: str) -> list[Row]:
    with closing(open_clickhouse(url)) as store:
        return sorted(store.rows(QUERY))


@pytest.fixture(params=["parquet", "chdb", "server"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Callable[[], list[Row]]]]:
    """Where to, and how to read it."""
    if request.param == "parquet":
        yield f"parquet:{tmp_path / 'rows'}", lambda: of_parquet(tmp_path / "rows")
    elif request.param == "chdb":
        yield f"chdb:{tmp_path / 'rows'}", lambda: of_chdb(tmp_path / "rows")
    else:
        with fresh_database(request.getfixturevalue("clickhouse")) as url:
            yield url, lambda: of_server(url)


def command(archive: Path, to: str, processes: int) -> list[str]:
    return ["repos", "replay", str(archive), "--to", to, "--processes", str(processes), "--json"]


def children(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").parent.parent.glob("*/children"):
        with suppress(OSError):
            found += [int(each) for each in child.read_text().split() if is_loader(int(each))]
    return found


def is_loader(pid: int) -> bool:
    with suppress(OSError):
        return OWN.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def loads(pid: int) -> bool:
    """Whether a process has a segment open."""
    with suppress(OSError):
        return any(path.readlink().suffix == ".rca" for path in Path(f"/proc/{pid}/fd").iterdir())
    return False


async def loading(process_id: int, but: frozenset[int] = frozenset()) -> int:
    """A process that loads a segment, and is none of these."""
    async with asyncio.timeout(60):
        while True:
            for child in children(process_id):
                if child not in but and loads(child):
                    return child
            await asyncio.sleep(0.002)


async def ended(pid: int) -> None:
    """Return when a process has ended."""
    async with asyncio.timeout(60):
        while is_loader(pid):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.01)


@pytest.mark.timeout(180)
def test_whoever_is_killed_each_row_is_there_once(
    archive: Path, expected: list[Row], target: tuple[str, Callable[[], list[Row]]]
) -> None:
    to, rows = target

    async def main() -> Done:
        first = await start(*command(archive, to, 2))
        killed = await loading(first.pid)
        os.kill(killed, signal.SIGKILL)
        again = await loading(first.pid, frozenset({killed}))
        first.kill()
        await first.communicate()
        await ended(again)  # it hears that it is alone
        second = await start(*command(archive, to, 2))
        os.kill(await loading(second.pid), signal.SIGKILL)
        out, err = await second.communicate()
        return Done(second.returncode or 0, out.decode(), err.decode())

    done = run(main)

    assert done.code == 0, done.err
    assert "was killed (Killed), and is started again; nothing is lost" in done.err
    said = json.loads(done.out)
    assert said["segments"] + said["before"] == SEGMENTS
    assert rows() == expected
    third = json.loads(called(*command(archive, to, 3)).out)
    assert (third["segments"], third["before"]) == (0, SEGMENTS)


def test_what_is_damaged_is_told_once_and_the_totals_are_those_of_one_process(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    for path in archive.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    damaged = folder / "segment_0002.rca"
    flip(damaged, offset_of(damaged, repo(1, 7)) + 200)

    said = [json.loads(called(*command(folder, f"parquet:{tmp_path / str(number)}", number)).out) for number in (1, 2)]

    for each in said:
        del each["seconds"], each["to"]
    assert said[0] == said[1]
    assert said[0]["wrong"] == 1
    assert of_parquet(tmp_path / "1") == of_parquet(tmp_path / "2")


def test_a_target_that_cannot_be_written_ends_all_of_it(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("a file")

    done = called(*command(archive, f"parquet:{tmp_path / 'rows'}", 2))

    assert done.code == 1
    assert "cannot use" in done.err


def test_ctrl_c_ends_all_of_it_and_the_rest_is_loaded_later(archive: Path, expected: list[Row], tmp_path: Path) -> None:
    to = f"parquet:{tmp_path / 'rows'}"

    async def main() -> int:
        process = await start(*command(archive, to, 2))
        loader = await loading(process.pid)
        process.send_signal(signal.SIGINT)
        await process.communicate()
        await ended(loader)
        return process.returncode or 0

    assert run(main) == 130
    assert called(*command(archive, to, 2)).code == 0
    assert of_parquet(tmp_path / "rows") == expected
    assert not list((tmp_path / "rows").glob(".*"))


def test_threads_and_processes_are_not_wanted_together(archive: Path, tmp_path: Path) -> None:
    done = called(*command(archive, f"parquet:{tmp_path}", 2), "--threads", "4")

    assert done.code == 2
    assert "--threads and --processes: expected one of them" in done.err
