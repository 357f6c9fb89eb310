"""A crawl of repos that several machines share: whoever is killed, every DID ends once, and it is read as one."""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from command_line import Done, finish, here, run, start
from fleet_commands import archived, served
from services.postgres import fresh_database
from services.s3 import S3

from sanderling.crawls.parts import folders_of
from sanderling.worlds.pds import Fleet, FleetServer

HOSTS, REPOS, PARTS = 24, 72, 8


@dataclass(frozen=True)
class Shared:
    """A crawl of a name of its own; each machine has a folder."""

    root: Path
    name: str
    fleet: tuple[str, ...]
    objects: str

    def command(self, server: FleetServer, machine: str = "one", *more: str) -> list[str]:
        """What a machine runs."""
        dids = self.root / f"{machine}.txt"
        dids.write_text("".join(f"{did} {host}\n" for did, host in server.fleet.directory()))
        out = self.root / machine / self.name
        return [
            "repos", "crawl", "--out", str(out), "--did-file", str(dids), "--private", "--patience", "5",
            "--fleet-parts", str(PARTS), "--lease", "2", "@page-size", "20", *self.fleet, "--objects", self.objects,
            *more,
        ]  # fmt: skip

    def of(self, *words: str) -> list[str]:
        """A command of `sanderling fleet`."""
        return ["fleet", words[0], self.name, *self.fleet, *words[1:]]

    def pull(self, out: Path) -> list[str]:
        """The command that makes a folder of it."""
        return self.of("pull", "--objects", self.objects, "--out", str(out))


@pytest.fixture
def shared(postgres: str, tmp_path: Path) -> Iterator[Shared]:
    """A crawl whose objects are files."""
    with fresh_database(postgres) as url:
        yield Shared(tmp_path, f"repos-{secrets.token_hex(4)}", ("--fleet", url), f"file:{tmp_path / 'objects'}")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.02)


def asked(server: FleetServer) -> int:
    return sum(tally.asked for tally in server.tallies.values())


def kept(out: Path) -> Counter[str]:
    return Counter(did for folder in folders_of(out) for did in archived(folder))


def live(fleet: Fleet) -> dict[str, int]:
    return {did: 1 for did, end in fleet.expected().items() if end.archived}


@pytest.mark.timeout(180)
def test_whoever_is_killed_every_did_ends_once_and_all_of_it_is_read_as_one(shared: Shared) -> None:
    out = shared.root / "pulled"

    async def main() -> tuple[Fleet, dict[str, Done]]:
        async with served("gone", hosts=HOSTS, repos=REPOS) as server:
            first = await start(*shared.command(server, "one", "--json"))
            await until(lambda: asked(server) > 8)
            second = await start(*shared.command(server, "two", "--json"))
            await until((shared.root / "two" / shared.name / "copies").is_dir)
            before = asked(server)
            await until(lambda: asked(server) > before + 4)
            first.kill()  # -9
            await first.communicate()
            said = {"half": await here(*shared.pull(out))}
            said["second"] = await finish(second)
            did, *_ = sorted(live(server.fleet))
            for name, words in {
                "status": shared.of("status", "--json"),
                "pull": shared.pull(out),
                "pull again": shared.pull(out),
                "kept": ["status", str(out), "--json"],
                "verify": ["verify", str(out), "--json"],
                "export": ["export", str(out), "--to", str(shared.root / "all.jsonl")],
                "show": ["show", str(out), did],
                "inspect": ["repos", "inspect", str(out), "--json"],
                "replay": ["repos", "replay", str(out), "--to", f"parquet:{shared.root / 'parquet'}", "--json"],
                "third": shared.command(server, "three", "--json"),
            }.items():
                said[name] = await here(*words)
            return server.fleet, said

    fleet, said = run(main)

    assert {name: (done.code, done.err) for name, done in said.items() if done.code} == {}
    number = len(live(fleet))
    assert kept(out) == live(fleet)
    assert len(list(out.glob("parts/*/segment_0001.rca"))) > 4
    ended, status = json.loads(said["second"].out), json.loads(said["status"].out)
    assert (ended["done"], ended["repos"], ended["waiting"]) == (True, number, 0)
    assert (status["system"], status["done"], status["repos"], status["busy"]) == ("repos", True, number, 0)
    assert "as far as it is" in said["half"].out
    assert "the whole crawl" in said["pull"].out
    assert said["pull again"].out.startswith("0 bytes of segments")
    assert json.loads(said["kept"].out)["kept"]["total_crawled"] == number
    assert json.loads(said["verify"].out)["repos"] == number
    assert json.loads(said["inspect"].out)["repos"] == number
    assert json.loads(said["replay"].out)["repos"] == number
    exported = {json.loads(line)["did"] for line in (shared.root / "all.jsonl").read_text().splitlines()}
    assert number // 2 < len(exported) == len(exported & set(live(fleet)))  # some have no records
    assert json.loads(said["third"].out)["done"]

    for path in (shared.root / "objects").rglob("rows/*/*/*"):
        if path.suffix != ".json":
            path.write_bytes(path.read_bytes()[:-40])
    torn = run(lambda: here(*shared.pull(shared.root / "torn")))
    assert torn.code == 1
    assert "is damaged: byte " in torn.err


@pytest.mark.timeout(120)
def test_who_drains_gives_its_parts_away_and_what_a_host_left_is_asked_by_the_same_command(
    shared: Shared, s3: S3
) -> None:
    login, place = f"{s3.access_key_id}:{s3.secret_access_key}", s3.endpoint.removeprefix("http://")
    shared = replace(shared, objects=f"s3+http://{login}@{place}/{s3.bucket}")
    out = shared.root / "pulled"

    async def main() -> tuple[Fleet, dict[str, Done]]:
        async with served("dead", hosts=HOSTS, repos=REPOS) as server:
            first = await start(*shared.command(server, "one"))
            await until(lambda: asked(server) > 8)
            said = {"drain": await here(*shared.of("drain"))}
            said["drained"] = await finish(first)
            before = asked(server)
            third = await start(*shared.command(server, "three"))
            await until(lambda: asked(server) > before + 4)
            said["control"] = await here("control", str(shared.root / "three" / shared.name), "drain")
            said["controlled"] = await finish(third)
            before = asked(server)
            said["second"] = await here(*shared.command(server, "two", "--processes", "2"))
            assert asked(server) > before
            said["again"] = await here(*shared.command(server, "two", "--resume", "--json"))
            said["status"] = await here(*shared.of("status"))
            said["pull"] = await here(*shared.pull(out))
            said["forget"] = await here(*shared.of("forget", "--objects", shared.objects, "--yes"))
            return server.fleet, said

    fleet, said = run(main)

    number = len(live(fleet))
    codes = {name: done.code for name, done in said.items()}
    assert codes == dict.fromkeys(said, 0) | dict.fromkeys(("drained", "controlled", "second", "again"), 3), said
    assert "1 worker told to end" in said["drain"].out
    assert "Nobody else works on the crawl" in said["drained"].out
    assert "Nobody else works on the crawl" in said["controlled"].out
    assert f"is done: {number} repos; 4 repos still wait, since their hosts did not answer" in said["second"].out
    assert json.loads(said["again"].out)["repos"] == number
    assert f"{number} repos, 4 repos wait; done" in said["status"].out
    assert "as far as it is" in said["pull"].out
    assert kept(out) == live(fleet)


BAD = {
    "another directory": (["--did-file", "OTHER"], "its directory has 6 DIDs"),
    "other records": (["@cids", "keep"], "its cids are strip, not keep"),
    "other objects": (["--objects", "file:elsewhere"], "its rows are in"),
    "progress in Redis": (["@redis-address", "localhost:6379"], "a fleet keeps its progress in PostgreSQL"),
}


def test_who_comes_with_something_else_is_refused(shared: Shared, tmp_path: Path) -> None:
    async def main() -> dict[str, Done]:
        async with served() as server:
            command = shared.command(server)
            said = {"resume": await here(*command, "--resume"), "begun": await here(*command)}
            other = tmp_path / "other.txt"
            other.write_text("".join((tmp_path / "one.txt").read_text().splitlines(keepends=True)[:-1]))
            for name, (words, _) in BAD.items():
                flags = [str(other) if word == "OTHER" else word for word in words]
                said[name] = await here(*_with(command, *flags))
            pages = ["pages", "crawl", "http://127.0.0.1:9/", "--out", command[3], *shared.fleet]
            said["pages"] = await here(*pages, "--objects", shared.objects)
            said["alone"] = await here("repos", "crawl", "--out", command[3], "--objects", shared.objects)
            return said

    said = run(main)

    assert said.pop("begun").code == 0
    assert {name: done.code for name, done in said.items()} == dict.fromkeys(said, 2), said
    expected = {name: words for name, (_, words) in BAD.items()} | {
        "resume": f"the fleet has no crawl {shared.name}. Begin without --resume",
        "pages": f"the fleet has a crawl {shared.name} already, and it is one of repos",
        "alone": "--objects without --fleet",
    }
    assert {name: words in said[name].err for name, words in expected.items()} == dict.fromkeys(expected, True), said


def _with(command: list[str], *flags: str) -> list[str]:
    """A command whose flags have other values, or more flags."""
    name, value = flags
    if name not in command:
        return [*command, *flags]
    at = command.index(name)
    return [*command[: at + 1], value, *command[at + 2 :]]
