"""A crawl of repos that several real processes share: whoever is killed, every DID ends once, and it is read as one."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command_line import Done, here, run, start
from fleet_commands import archived, flags, served
from services.process import Missing, private_folder
from services.redis import REDIS

from sanderling.apis.atproto import AtprotoCategory
from sanderling.cli.processes import OWN
from sanderling.crawls.parts import folders_of
from sanderling.repos.parts import archive_folders
from sanderling.stores.redis_progress import RedisProgress
from sanderling.worlds.pds import Fleet, FleetServer

HOSTS, REPOS = 24, 44  # small hosts get two requests a second


@pytest.fixture(params=["sqlite", "redis"])
def progress(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The settings that choose the store of the progress."""
    if request.param == "sqlite":
        yield []
        return
    with private_folder() as folder:
        try:
            with REDIS.start(Path(folder)) as server:
                yield ["@redis-address", server.url.removeprefix("redis://").removesuffix("/0")]
        except Missing as why:
            pytest.skip(f"redis: {why}")


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - of another process
        await asyncio.sleep(0.02)


def children(pid: int) -> list[int]:
    """The processes that a crawl has started for its parts."""
    started = [
        int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()
    ]
    return [child for child in started if is_of_parts(child)]


def is_of_parts(pid: int) -> bool:
    try:
        return OWN.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return False


def asked(server: FleetServer) -> int:
    return sum(tally.asked for tally in server.tallies.values())


def command(folder: Path, server: FleetServer, processes: int, *more: str) -> list[str]:
    return [
        "repos", "crawl", *flags(folder, server), "--processes", str(processes), "--patience", "5",
        "@page-size", "20", *more,
    ]  # fmt: skip


def kept(out: Path) -> Counter[str]:
    return Counter(did for folder in archive_folders(out) for did in archived(folder))


def live(fleet: Fleet) -> dict[str, int]:
    return {did: 1 for did, end in fleet.expected().items() if end.archived}


def records(path: Path) -> list[tuple[str, str]]:
    """What an export has, once or more."""
    return sorted((each["uri"], each["rev"]) for each in map(json.loads, path.read_text().splitlines()))


def gone(fleet: Fleet) -> dict[str, int]:
    return dict(Counter(end.category.value for end in fleet.expected().values() if end.category is not None))


def summary(done: Done) -> dict[str, object]:
    said: dict[str, object] = json.loads(done.out)
    return said


@pytest.mark.timeout(180)
def test_whoever_is_killed_every_did_ends_once_with_whatever_number_of_processes(
    tmp_path: Path, progress: list[str]
) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[Done, Fleet]:
        async with served("gone", "leading", hosts=HOSTS, repos=REPOS) as server:
            process = await start(*command(tmp_path, server, 2, *progress))
            await until(lambda: asked(server) > 8)
            killed = children(process.pid)[0]
            os.kill(killed, signal.SIGKILL)
            before = asked(server)
            await until(lambda: asked(server) > before + 8 and len(children(process.pid)) == 2)
            assert killed not in children(process.pid)
            process.kill()  # the one that people see; the others hear of it, and end
            await process.communicate()
            # At once: it waits for those that are still ending.
            second = await start(*command(tmp_path, server, 3, *progress))
            before = asked(server)
            await until(lambda: asked(server) > before + 8)
            second.kill()
            await second.communicate()
            return await here(*command(tmp_path, server, 1, *progress), "--json"), server.fleet

    done, fleet = run(main)

    assert done.code == 0, done.err
    assert kept(out) == live(fleet)
    assert len(list(out.glob("parts/*/segment_*.rca"))) > 4
    said = {name: summary(done)[name] for name in ("complete", "archived", "gone", "failed")}
    assert said == {"complete": True, "archived": len(live(fleet)), "gone": gone(fleet), "failed": {}}
    assert not [*out.glob("parts/*/handed.jsonl"), *out.glob("parts/dids.db*")]


@pytest.mark.timeout(120)
def test_what_one_process_began_several_end_and_all_of_it_is_read_as_one(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[Fleet, dict[str, Done]]:
        async with served("gone", hosts=HOSTS, repos=REPOS) as server:
            first = await start("repos", "crawl", *flags(tmp_path, server), "@page-size", "20")
            await until(lambda: any(path.stat().st_size > 10_000 for path in out.glob("*.part")))
            first.kill()
            await first.communicate()
            begun = ("export", str(out), "--to", str(tmp_path / "begun.jsonl"))
            said = {"begun": await here(*begun), "crawl": await here(*command(tmp_path, server, 2), "--json")}
            did, *_ = sorted(live(server.fleet))
            dead = next(
                did for did, end in server.fleet.expected().items() if end.category == AtprotoCategory.NOT_FOUND
            )
            for name, words in {
                "status": ("status", str(out), "--json"),
                "verify": ("verify", str(out), "--json"),
                "export": ("export", str(out), "--to", str(tmp_path / "all.jsonl")),
                "export what is new": (*begun, "--new"),
                "show": ("show", str(out), did),
                "why not": ("show", str(out), dead),
                "get": ("repos", "get", did, str(out)),
                "inspect": ("repos", "inspect", str(out), "--json"),
                "replay": ("repos", "replay", str(out), "--to", f"parquet:{tmp_path / 'parquet'}", "--json"),
                "again": ("repos", "crawl", *flags(tmp_path, server), "--json"),
            }.items():
                said[name] = await here(*words)
            return server.fleet, said

    fleet, said = run(main)

    number = len(live(fleet))
    assert {name: done.code for name, done in said.items()} == dict.fromkeys(said, 0) | {
        "why not": said["why not"].code
    }
    assert len(archived(out)) > 0, "nothing was archived by one process"
    assert kept(out) == live(fleet)
    assert json.loads(said["status"].out)["kept"]["total_crawled"] == number
    assert json.loads(said["verify"].out)["repos"] == number
    assert json.loads(said["inspect"].out)["repos"] == number
    exported = {json.loads(line)["did"] for line in (tmp_path / "all.jsonl").read_text().splitlines()}
    assert number // 2 < len(exported) == len(exported & set(live(fleet)))  # some have no records
    assert records(tmp_path / "begun.jsonl") == records(tmp_path / "all.jsonl")
    assert "not_found, for good" in said["why not"].out + said["why not"].err
    assert json.loads(said["replay"].out)["repos"] == number
    assert json.loads(said["again"].out)["run"]["archived"] == 0


def test_what_is_forgotten_is_in_no_part_any_more(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[str, Done, Done]:
        async with served(hosts=HOSTS, repos=REPOS) as server:
            await here(*command(tmp_path, server, 2))
            did = sorted(live(server.fleet))[3]
            forgotten = await here("forget", str(out), did)
            return did, forgotten, await here(*command(tmp_path, server, 2), "--json")

    did, forgotten, again = run(main)

    assert (forgotten.code, again.code) == (0, 0), forgotten.err + again.err
    assert did not in kept(out)
    others = [path for path in out.rglob("*") if path.is_file()]
    assert not [path for path in others if did.encode() in path.read_bytes()]


def test_all_of_it_can_be_reset(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[Done, Done]:
        async with served(hosts=HOSTS, repos=REPOS) as server:
            await here(*command(tmp_path, server, 2))
            return await here("repos", "reset", "--out", str(out), "--yes"), await here("status", str(out), "--json")

    done, status = run(main)

    assert f"{REPOS} complete DIDs and " in done.out
    assert kept(out) == {}
    assert json.loads(status.out)["kept"]["completed"] == 0


def test_a_database_of_one_process_is_no_directory_for_several(tmp_path: Path) -> None:
    async def main() -> Done:
        return await here(
            "repos", "crawl", "--out", str(tmp_path / "out"), "--directory", "chdb:dids", "--processes", "2"
        )

    done = run(main)

    assert done.code == 2
    assert "--directory chdb: one process may open it" in done.err


@pytest.mark.parametrize("progress", ["redis"], indirect=True)
def test_keys_in_redis_are_named_by_part(progress: list[str], tmp_path: Path) -> None:
    async def main() -> None:
        async with served(hosts=HOSTS, repos=REPOS) as server:
            assert (await here(*command(tmp_path, server, 2, *progress))).code == 0

    run(main)

    counts = []
    for part in range(len(folders_of(tmp_path / "out"))):
        url = f"redis://{progress[1]}/0"
        categories = [each.value for each in AtprotoCategory]
        with closing(RedisProgress(url, categories=categories, prefix=f"crawler:part:{part:04}:")) as own:
            counts.append(own.view().total_crawled)
    assert sum(counts) == len(kept(tmp_path / "out"))
    assert min(counts) < max(counts) < sum(counts)


@pytest.mark.timeout(120)
def test_ctrl_c_stops_all_and_an_archive_in_parts_is_an_earlier_one_for_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[int, Done, Done, Fleet]:
        async with served(hosts=HOSTS, repos=REPOS) as server:
            process = await start(*command(tmp_path, server, 2))
            await until(lambda: asked(server) > 8)
            process.send_signal(signal.SIGINT)
            await process.communicate()
            rest = await here(*command(tmp_path, server, 4), "--json")
            words = command(tmp_path, server, 2, "--since-archive", str(out), "--json")
            words[words.index("--out") + 1] = str(tmp_path / "later")
            return process.returncode or 0, rest, await here(*words), server.fleet

    code, rest, later, fleet = run(main)

    assert (code, rest.code, later.code) == (130, 0, 0), rest.err + later.err
    assert kept(out) == live(fleet)
    assert 0 < json.loads(rest.out)["run"]["archived"] < len(live(fleet))
    said = json.loads(later.out)
    assert said["unchanged"] + said["archived"] == len(live(fleet))
    assert said["archived"] < 10, "more than those of an old form, which have no revision"
