"""Polling as a person runs it: real processes against a real race day, their signals, exit codes and words."""

import asyncio
import json
import re
import signal
from pathlib import Path
from urllib.request import urlopen

from command_line import commands, finish, here, run, running, start
from known_reports import published
from polling_commands import OFTEN, QUIET, SHORT, administered, asked, command, database, flags, over, proven, served

from sanderling.stores.polling import Query
from sanderling.worlds.race import RaceDay, RaceWeather

KEYS = [
    *("seconds", "source", "host", "event", "targets", "runs", "failed", "missed", "changes", "newest", "late"),
    *("trouble", "out"),
]


def test_a_race_is_polled_to_its_end_and_what_came_of_it_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(SHORT) as server:
            given = (*flags(tmp_path, server), *OFTEN, "--metrics-port", "0")
            async with running("polling", "run", *given) as process:
                assert process.stderr is not None
                metrics = (await process.stderr.readline()).decode().removeprefix("metrics: ")
                await over(server)
                page = await asyncio.to_thread(lambda: urlopen(metrics, timeout=300).read().decode())  # noqa: S310 - ours
                process.send_signal(signal.SIGTERM)
                done = await finish(process)
            async with database(tmp_path) as store:
                changes = await proven(store, server)

        assert done.code == 0, done.err
        assert re.search(r'^sanderling_polling_runs_total\{.*kind="race".*\} [1-9]', page, re.MULTILINE)
        assert f"{len(changes)} changes." in done.out
        assert "Polled 6 targets for " in done.out
        said = done.err.splitlines()
        live = [number for number, line in enumerate(said) if "is live: asked for every 200 ms" in line]
        still = [number for number, line in enumerate(said) if "none of them live" in line]
        assert live
        assert live[0] < max(still), "and after it nothing is"
        assert "stopping; once more stops at once" in done.err or "in flight; once more" in done.err
        onward, look = commands(done.out)
        assert sorted(onward) == sorted(["polling", "run", *flags(tmp_path, server), "--metrics-port", "0"])
        told = await command(*look[1:])
        assert (told.code, "6 targets; nobody polls just now" in told.out) == (0, True)
        last = published(tmp_path / "out")
        assert last is not None
        assert not last.process.running

    run(main)


def test_as_json_there_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server, running("polling", "run", *flags(tmp_path, server), "--json") as process:
            await asked(server, server.day.race_path(server.day.heats[0].id), 5)
            process.send_signal(signal.SIGTERM)
            done = await finish(process)

        summary = json.loads(done.out)
        assert done.code == 0
        assert re.fullmatch(r"(stopping|finishing \d requests? in flight); once more stops at once\n", done.err)
        assert list(summary) == KEYS
        assert (summary["source"], summary["host"]) == ("trackside", server.url().removeprefix("http://"))
        assert (summary["targets"], summary["failed"], summary["trouble"]) == (6, 0, [])
        assert summary["changes"] == summary["newest"] > 0
        assert summary["late"]["accelerated"]["runs"] >= 3

    run(main)


def test_ctrl_c_lets_what_is_under_way_come_to_its_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(weather=RaceWeather(latency=0.3, jitter=0.0)) as server:
            async with running("polling", "run", *flags(tmp_path, server)) as process:
                await asked(server, server.day.race_path(server.day.heats[0].id), 3)
                process.send_signal(signal.SIGINT)
                done = await finish(process)
            async with database(tmp_path) as store:
                targets = await store.list(Query())

        assert done.code == 130
        assert re.search(r"finishing \d requests? in flight; once more stops at once", done.err)
        assert "Go on with" in done.out
        race = next(target for target in targets if target.kind == "race")
        # It was written back, with the run that was under way.
        assert race.runs == server.tally.paths[server.day.race_path(race.source_id)]

    run(main)


def test_ctrl_c_does_not_wait_for_a_discovery_that_hangs(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(weather=RaceWeather(latency=60.0, jitter=0.0)) as server:
            process = await start("polling", "run", *flags(tmp_path, server), "@timeout", "100")
            await asked(server, "/")
            process.send_signal(signal.SIGINT)
            done = await finish(process)

        assert done.code == 130
        assert "once more stops at once" in done.err
        assert "Traceback" not in done.err

    run(main)


def test_two_at_one_database_are_an_error_and_the_first_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server, administered(tmp_path, server) as admin:
            for once in ([], ["--once"]):
                second = await command("run", *once, *flags(tmp_path, server))
                assert second.code == 2
                assert f"another process polls {tmp_path / 'out' / 'polling.db'}" in second.err
                assert "stop it first, or poll into another --out or --database" in second.err
            await asked(server, server.day.race_path(server.day.heats[0].id), 3)
            assert (await admin.get("/status"))["facts"]["store_trouble"] == ""

    run(main)


def test_disabled_it_polls_nothing_but_serves_what_is_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(QUIET) as server, administered(tmp_path, server, "--disabled", *OFTEN) as admin:
            status = await admin.get("/status")
            assert (status["process"]["paused"], status["facts"]["targets"]["all"]) == (True, 0)
            done = await admin.post("/ingest/full")
            assert {each["kind"] for each in done["ingested"]} == {
                *("event", "pilots", "rounds", "channels", "race", "results")
            }
            assert all(each["ok"] for each in done["ingested"])
            before = server.tally.asked
            assert len((await admin.get("/rows/pilots"))["rows"]) == 6
            await asyncio.sleep(1.2)  # more than a look at the settings takes
            assert server.tally.asked == before

            # Switched on by another process, it begins.
            assert (await command("settings", "enabled", "on", "--out", str(tmp_path / "out"))).code == 0
            await asked(server, server.day.path("Event"), 2)

    run(main)


def test_everything_is_fetched_once_and_that_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(QUIET) as server:
            done = await here("polling", "run", "--once", *flags(tmp_path, server))
            async with database(tmp_path) as store:
                changes = await proven(store, server)
            again = await here("polling", "run", "--once", *flags(tmp_path, server), "--json")

        assert done.code == 0, done.err
        assert f": {len(changes)} rows changed." in done.out
        assert json.loads(again.out) == {
            "documents": {"event": 1, "channels": 1, "pilots": 1, "rounds": 1, "race": 1, "results": 1},
            "changes": 0,
            "failed": [],
        }

    run(main)


class Raceless(RaceDay):
    """A day that lists races and does not have them."""

    def document(self, path: str, now: float) -> bytes | None:
        """What a document says."""
        return None if path.endswith("/Race.json") else super().document(path, now)


def test_what_could_not_be_fetched_is_named_and_the_exit_code_is_1(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(QUIET, make=Raceless) as server:
            race = server.day.heats[0].id
            done = await here("polling", "run", "--once", *flags(tmp_path, server))

        assert done.code == 1
        assert "1 document could not be had:" in done.out
        assert f"    race {race}: error: CONTENT_NOT_FOUND" in done.out

    run(main)


def test_flags_are_written_as_settings_and_stay(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(QUIET) as server:
            given = ("--set", "raceActiveMs=300ms", "--set", "channelsMs=90s", "--set", "concurrency=3")
            async with administered(tmp_path, server, *given):
                await asked(server, server.day.path("Event"))
            done = await command("settings", "--json", "--out", str(tmp_path / "out"))
            found = {key: each["text"] for key, each in json.loads(done.out).items() if each["set"]}

        assert found == {
            "scheduler.raceActiveMs": "300",
            "scheduler.channelsMs": "90000",
            "scheduler.concurrency": "3",
        }

    run(main)
