"""What people do from another terminal while it polls: heard by the process that runs, and kept by discovery."""

from pathlib import Path
from typing import Any

from command_line import here, run
from polling_commands import (
    QUIET,
    Admin,
    Server,
    administered,
    asked,
    command,
    database,
    everything,
    served,
    stored,
    until,
)

from sanderling.stores.polling import Op

# Nothing is asked for again by itself while a test lasts, except what it says.
SELDOM = ("--set", "fullIntervalMs=1h", "--set", "raceIdleMs=1h", "--set", "resultsMs=200ms")


async def fresh(server: Server, admin: Admin) -> None:
    """Return when everything was had once, and only results are asked for."""
    await admin.until(lambda status: status["targets"]["all"] == 6 and status["newest"] > 0)
    await until(lambda: all(server.tally.paths[path] for path in server.day.paths))
    await admin.until(lambda status: len(status["accelerated"]) == 0 and status["pending"] == 0)


def due(status: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Those of a kind that are to run soon."""
    return [each for each in status["next"] if each["kind"] == kind and each["due"] < 2]


def test_what_is_paused_set_or_promoted_is_heard_and_discovery_does_not_undo_it(tmp_path: Path) -> None:
    async def main() -> None:
        given = ("--set", "fullIntervalMs=300ms", "--set", "raceIdleMs=1h", "--set", "resultsMs=200ms")
        async with served(QUIET) as server, administered(tmp_path, server, *given) as admin:
            out = ("--out", str(tmp_path / "out"))
            await fresh(server, admin)

            await pause_and_resume(server, admin, *out)
            await promote(server, admin, *out)
            await change(server, admin, *out)

    run(main)


async def pause_and_resume(server: Server, admin: Admin, *out: str) -> None:
    path = server.day.path("Results")
    assert (await command("set", "results", "--pause", *out)).out == "1 target: paused\n"
    await admin.until(lambda status: not due(status, "results") and status["inflight"] == 0)
    before = server.tally.paths[path]
    await asked(server, "/", 4)  # discoveries
    assert server.tally.paths[path] == before
    listed = await command("targets", "--paused", *out)
    assert "1 of these; in all 6 targets, 1 paused" in listed.out

    assert (await command("set", "--all", "--no-pause", *out)).out == "6 targets: not paused\n"
    await asked(server, path, 3)


async def promote(server: Server, admin: Admin, *out: str) -> None:
    race = server.day.heats[0].id
    path = server.day.race_path(race)
    before = server.tally.paths[path]

    assert (await command("set", "race", race[:6], "--now", *out)).out == "promoted 1 target\n"
    await until(lambda: server.tally.paths[path] == before + 1)
    done = await command("set", "race", "--for", "1m", "--json", *out)
    assert done.out == '{"promoted": 1, "seconds": 60.0}\n'
    await asked(server, path, 10)
    (live,) = (await admin.get("/status"))["facts"]["accelerated"]
    assert (live["id"], live["interval"]) == (race, 0.2)
    assert race[:8] in (await command("targets", "--live", *out)).out
    told = await here("status", out[1])
    assert f"now  race {race[:8]} is live: asked for every 200 ms" in told.out


async def change(server: Server, admin: Admin, *out: str) -> None:
    event = server.day.event
    done = await command("set", "channels", "--interval", "100ms", "--priority", "7", *out)
    assert done.out == "1 target: every 100 ms, priority 7\n"
    await asked(server, "/httpfiles/Channels.json", 3)
    target = await admin.get(f"/targets/channels/{event}")
    assert (target["interval"], target["weight"], target["seconds"]) == (0.1, 7, 60.0)

    done = await command("set", "channels", event, "--interval", "default", "--priority", "default", *out)
    assert done.out == "1 target: usual interval, usual priority\n"
    await admin.until(lambda status: not due(status, "channels"))
    assert (await admin.get(f"/targets/channels/{event}"))["interval"] == 60.0


def test_a_setting_is_in_force_without_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(QUIET) as server, administered(tmp_path, server, *SELDOM) as admin:
            race, out = server.day.race_path(server.day.heats[0].id), ("--out", str(tmp_path / "out"))
            await fresh(server, admin)

            assert (await command("settings", "raceIdleMs", "150ms", *out)).out == "scheduler.raceIdleMs is 150\n"
            await asked(server, race, 4)
            # Whoever writes nonsense by hand is told, and what was in force stays so.
            async with database(tmp_path) as store:
                await store.set("scheduler.raceIdleMs", "soon")
                await admin.until(lambda status: bool(status["problems"]))
                await asked(server, race, 4)
            assert (
                "scheduler.raceIdleMs is 'soon', expected 0, or" in (await admin.get("/status"))["facts"]["problems"][0]
            )

            assert (await command("settings", "resultsMs", "0", *out)).code == 0
            await admin.until(lambda status: not due(status, "results") and status["inflight"] == 0)
            done = await command("settings", "resultsMs", "--default", "--json", *out)
            assert '"text": "2000"' in done.out
            await asked(server, server.day.path("Results"))

    run(main)


def test_after_a_purge_everything_is_found_again_and_followers_are_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(QUIET) as server:
            async with administered(tmp_path, server, "--set", "fullIntervalMs=500ms") as admin:
                out = ("--out", str(tmp_path / "out"))
                await fresh(server, admin)
                async with database(tmp_path) as store:
                    before = await stored(store)

                done = await command("purge", "--yes", *out)
                assert done.out == f"removed {sum(map(len, before.values()))} rows and 6 targets\n"
                (purge,) = [
                    each
                    for each in (await admin.get("/changes?since=0&limit=1000"))["changes"]
                    if each["op"] == "purge"
                ]
                await admin.until(lambda status: status["newest"] >= purge["seq"] + sum(map(len, before.values())))
            async with database(tmp_path) as store:
                changes = await everything(store)
                assert await stored(store) == before

        assert [change.op for change in changes].count(Op.PURGE) == 1
        assert [change.seq for change in changes] == list(range(1, len(changes) + 1))

    run(main)


def test_what_is_done_while_nobody_polls_counts_from_the_next_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(QUIET) as server:
            out = ("--out", str(tmp_path / "out"))
            async with administered(tmp_path, server, *SELDOM) as admin:
                await fresh(server, admin)
            race, results, pilots = (
                server.day.race_path(server.day.heats[0].id),
                *(server.day.path(name) for name in ("Results", "Pilots")),
            )
            before = dict(server.tally.paths)

            assert (await command("set", "race", "--now", *out)).code == 0
            assert (await command("set", "results", "--pause", *out)).code == 0
            assert (await command("set", "pilots", "--interval", "200ms", *out)).code == 0
            async with administered(tmp_path, server, *SELDOM) as admin:
                await asked(server, pilots, 3)
                await admin.until(lambda status: status["inflight"] == 0)
            assert server.tally.paths[race] == before[race] + 1
            assert server.tally.paths[results] == before[results]

    run(main)
