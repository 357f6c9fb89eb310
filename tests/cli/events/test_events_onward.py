"""A crawl with --events-job: all that it finds is in the rows of `events`, once, whatever happens to either."""

import asyncio
import json
import secrets
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from command_line import QUICK, Done, Script, called, commands, finish, here, page, rows, run, start
from events_fed import JOB, consumed, errors, posts, prepared, sizes, twice
from forked import Forked as Process
from queue_commands import in_folder
from raids import letter, usual
from scripted_server import ScriptedServer, answer
from sequence_commands import asked, begin, flags, raids, served, stored
from services.postgres import fresh_database

from sanderling.clock import SystemClock
from sanderling.crawls.parts import folders_of
from sanderling.events.handover import EventsHandOver
from sanderling.formats.instance import Message
from sanderling.stores.queue import Letter
from sanderling.worlds.site import SiteServer, World

KILLS = 2


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return prepared(tmp_path / "events")


def given(events: Path) -> tuple[str, ...]:
    return ("--events-job", JOB, "@events-out", str(events))


# --- pages ---


def test_every_page_is_a_row_and_what_failed_an_error(tmp_path: Path, events: Path) -> None:
    script: Script = {"/": [page("/a", "/gone", "/old")], "/a": [page()], "/gone": [answer(410)]}
    script["/old"] = [answer(301, Location="/a")]

    async def main() -> tuple[str, Done, Done]:
        async with ScriptedServer(script) as server:
            out = ("--out", str(tmp_path / "out"))
            done = await here("pages", "crawl", server.url(), *out, *QUICK, *given(events))
            script["/gone"] = [page()]
            (retry,) = (each for each in commands(done.out) if "--retry" in each)
            return server.url(), done, await here(*retry, "@events-out", str(events))

    url, done, retried = run(main)

    assert (done.code, done.err, retried.code) == (1, "", 0)
    assert f"Handed on to events, as {JOB}: 3 items in " in done.out
    assert ["events", "consume", "--out", str(events)] in commands(done.out)
    consumed(events)
    assert posts(events) == [url, f"{url}a", f"{url}gone"], "also what was asked for again"
    assert errors(events) == [(f"{url}gone", "CONTENT_REMOVED")]


def test_killed_again_and_again_every_page_is_there_once(tmp_path: Path, events: Path) -> None:
    rng, out = Random(5), tmp_path / "out"

    async def main() -> list[int]:
        async with SiteServer(World.make(1, ordinary=4, pages=5, others=()), SystemClock()) as server:
            names = [host.name for host in server.world.hosts]
            crawl = ("pages", "crawl", *map(server.url, names), "--out", str(out), *QUICK, *given(events))
            killed = []
            for _ in range(KILLS):
                process = await start(*crawl)
                wanted = server.tallies[names[0]].asked + rng.randint(2, 3)
                while server.tallies[names[0]].asked < wanted and process.returncode is None:  # noqa: ASYNC110 - a number
                    await asyncio.sleep(0.02)
                await asyncio.sleep(rng.random())  # anywhere in a write, or between two
                process.kill()
                await process.communicate()
                killed.append(process.returncode or 0)
            done = await here(*crawl, "--json")
            assert (done.code, done.err) == (1, "")  # two broken links on each host
            assert json.loads(done.out)["complete"]
            return killed

    killed = run(main)

    consumed(events)
    assert killed == [-9] * KILLS
    assert posts(events) == sorted(row["url"] for row in rows(out) if row["outcome"] == "OK")
    assert {url for url, _ in errors(events)} == {row["url"] for row in rows(out, "failed.jsonl")}


def test_of_a_crawl_that_machines_share_every_page_is_there_once(tmp_path: Path, events: Path, postgres: str) -> None:
    """Also those of a machine that is killed, and of parts that it has given to another."""
    name, pulled = f"events-{secrets.token_hex(4)}", tmp_path / "pulled"

    async def main(url: str) -> None:
        async with SiteServer(World.make(1, ordinary=6, pages=8, others=()), SystemClock()) as server:
            shared = ("--fleet", url, "--objects", f"file:{tmp_path / 'objects'}")
            seeds = [server.url(host.name) for host in server.world.hosts]

            def crawl(machine: str) -> list[str]:
                flags = ("--lease", "3", "--fleet-parts", "8", *shared, *QUICK, *given(events))
                return ["pages", "crawl", *seeds, "--out", str(tmp_path / machine / name), *flags]

            first, second = await start(*crawl("one")), await start(*crawl("two"))
            tally = server.tallies[server.world.hosts[0].name]
            while tally.asked < 6 and first.returncode is None:  # noqa: ASYNC110 - a number
                await asyncio.sleep(0.02)
            first.kill()
            await first.communicate()
            done = await finish(second)
            assert done.code == 1, done  # two broken links on each host
            assert f"Handed on to events, as {JOB}: " in done.out
            brought = await here("fleet", "pull", name, *shared, "--out", str(pulled))
            assert brought.code == 0, brought

    with fresh_database(postgres) as url:
        run(lambda: main(url))

    consumed(events)
    parts = folders_of(pulled)
    kept = [row["url"] for part in parts for row in rows(part) if row["outcome"] == "OK"]
    assert len(kept) > 30
    assert posts(events) == sorted(kept)
    assert {url for url, _ in errors(events)} == {row["url"] for part in parts for row in rows(part, "failed.jsonl")}


async def waits(process: Process) -> None:
    """Return when it has said that it waits."""
    assert process.stderr is not None
    async with asyncio.timeout(300):
        while b"batch_waits" not in (line := await process.stderr.readline()):
            assert line, "it has ended"


def test_while_the_objects_are_away_it_waits_and_ctrl_c_ends_it(tmp_path: Path, events: Path) -> None:
    """A file stands where the folder was: the same road as for a server that is gone."""
    objects, aside = events / "objects", events / "aside"

    async def gone(_writer: asyncio.StreamWriter) -> None:
        if not aside.exists():
            objects.rename(aside)
            objects.touch()

    script: Script = {"/": [[gone, page("/a", "/b")], page("/a", "/b")], "/a": [page()], "/b": [page()]}

    async def main() -> tuple[Done, Done]:
        async with ScriptedServer(script) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK, *given(events))
            process = await start(*crawl)
            await waits(process)
            process.send_signal(signal.SIGINT)
            stopped = await finish(process)
            objects.unlink()
            aside.rename(objects)
            return stopped, await here(*crawl)

    stopped, done = run(main)

    assert (stopped.code, done.code) == (130, 0), stopped.err + done.err
    assert "Traceback" not in stopped.err
    assert any("--events-job" in each and "--resume" in each for each in commands(stopped.out))
    consumed(events)
    assert len(posts(events)) == 3
    assert len(rows(tmp_path / "out")) == 3


def test_what_will_never_go_well_ends_the_crawl_with_a_message(tmp_path: Path, events: Path) -> None:
    """Of the folder of the project somebody has made a link, and none is followed."""
    place = events / "objects" / "crawl-results" / "web"
    place.mkdir(parents=True)
    (place / "spring").symlink_to(tmp_path)

    async def main() -> Done:
        async with ScriptedServer({"/": [page()]}) as server:
            return await here("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK, *given(events))

    done = run(main)

    assert (done.code, done.out) == (1, "")
    assert "sanderling: what was found does not go on to events: " in done.err
    assert "Traceback" not in done.err
    assert rows(tmp_path / "out") == [], "so it has not ended"


# --- sequence ---


def test_every_report_is_a_row_although_it_is_killed(tmp_path: Path, events: Path) -> None:
    async def main() -> list[str]:
        async with served() as server:
            crawl, until = ("sequence", "crawl", *flags(tmp_path, server), "--json"), server.game.first + 14
            process = await start(*crawl, *begin(server), *given(events))
            await asked(server, 7)
            process.kill()
            await process.communicate()
            done = await here(*crawl, *given(events), "--until", str(until))
            assert (done.code, done.err) == (0, "")
            return [str(number) for number in raids(server.game, until)]

    wanted = run(main)

    consumed(events)
    found = posts(events, "post_id")
    assert found == [str(number) for number in stored(tmp_path)]
    assert (set(wanted) - set(found), twice(found)) == (set(), [])
    assert set(posts(events, "platform")) == {"bungie"}


def test_who_stores_hands_on_as_well(tmp_path: Path, events: Path) -> None:
    queued = in_folder(tmp_path / "out")
    queued.publish(*(letter(each) for each in usual(60)), Letter("bad", b"no message"))

    done = called("sequence", "store", "--until-empty", "--workers", "1", *queued.flags, *given(events))

    assert done.code == 0, done.err
    assert f"Handed on to events, as {JOB}: 60 items in 2 batches." in done.out
    assert queued.depth().ready == 0
    consumed(events)
    assert (len(posts(events)), sorted(sizes(events))) == (60, [30, 30])


def test_a_store_that_cannot_hand_on_gives_up_at_last(
    tmp_path: Path, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sanderling.cli.sequence.store.PATIENCE", 0.5)
    monkeypatch.setattr("sanderling.cli.sequence.store.StoreLines.every", 0.1)
    monkeypatch.setattr("sanderling.events.handover.GRACE", 0.1)
    queued = in_folder(tmp_path / "out")
    queued.publish(*(letter(each) for each in usual(3)))
    sort = EventsHandOver._sorted

    def gone(self: EventsHandOver[Message], found: Sequence[Message]) -> object:
        shutil.rmtree(events / "objects", ignore_errors=True)
        return sort(self, found)

    monkeypatch.setattr(EventsHandOver, "_sorted", gone)

    done = called("sequence", "store", "--until-empty", "--workers", "1", *queued.flags, *given(events))

    assert done.code == 1
    assert "is no folder any more" in done.err
    assert "nothing is handed on to events: " in done.err
    assert queued.depth().ready == 3


# --- flags ---


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            ["pages", "crawl", "https://a.example/"],
            "events-project: batches of the job 'spring': it names no project",
        ),
        (["pages", "failed", "nowhere"], "events-project: "),
        (["sequence", "crawl"], "events-project: "),
        (["sequence", "store"], "events-project: "),
        (["sequence", "crawl", "--no-store"], "give it to `sanderling sequence store`"),
        (["pages", "crawl", "https://a.example/", "@events-brand", "b" * 300], "events-brand: "),
    ],
)
def test_bad_usage_is_said_before_anything_is_asked(tmp_path: Path, command: list[str], says: str) -> None:
    job = JOB if "goes" in says or "go with" in says or "give" in says or "brand" in says else "spring"
    out = [] if command[1] == "failed" else ["--out", str(tmp_path / "out")]

    done = called(*command, *out, "--events-job", job)

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert list(tmp_path.iterdir()) == []


def test_what_the_environment_names_wrongly_is_said_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDERLING_EVENTS_DATABASE", "mysql://user:hush@there")

    done = called("pages", "crawl", "https://a.example/", "--out", str(tmp_path / "out"), *given(tmp_path / "events"))

    assert (done.code, "SANDERLING_EVENTS_DATABASE: 'mysql' is no kind of database" in done.err) == (2, True)
    assert "hush" not in done.err
