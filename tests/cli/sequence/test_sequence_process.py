"""A crawl of ids as a process: killed, asked to stop, not alone in its folder, without a disk, and watched."""

import asyncio
import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import urlopen

from command_line import commands, finish, here, run, running, start
from sequence_commands import RULES, asked, begin, flags, missed, raids, served, stored

from sanderling.cli.loop import TOGETHER
from sanderling.cli.sequence.flags import SequenceUpstream
from sanderling.clock import SystemClock
from sanderling.ids import host_of
from sanderling.limit import Feedback
from sanderling.worlds.game_weather import Contest

KILLS = 3


def test_killed_again_and_again_it_stores_every_raid_once_and_accounts_for_every_id(tmp_path: Path) -> None:
    """Raids of some seconds are hidden: those must be missed, and all others stored."""
    rules = replace(RULES, weather=replace(RULES.weather, contests=(Contest(-3596.0, 5.0, 3600.0),)))
    rng, killed = Random(7), []

    async def main() -> None:
        async with served(rules) as server:
            game, until = server.game, server.game.first + 35
            for attempt in range(KILLS):
                where = begin(server) if not attempt else []
                process = await start("sequence", "crawl", *flags(tmp_path, server), *where, "--json")
                await asked(server, server.tally.asked + rng.randint(2, 12))
                await asyncio.sleep(rng.random())  # anywhere in a write, or between two
                process.kill()
                await process.communicate()
                killed.append(process.returncode)
            done = await here("sequence", "crawl", *flags(tmp_path, server), "--until", str(until), "--json")

            assert (done.code, killed) == (0, [-9] * KILLS), done.err
            rows, filed = stored(tmp_path), missed(tmp_path)
            hidden = {number for number in raids(game, until) if game.hidden(number, SystemClock().wall())}
            assert hidden
            assert {number: filed.get(number) for number in hidden} == dict.fromkeys(hidden, "hidden")
            assert [number for number in rows if number <= until] == sorted(set(raids(game, until)) - hidden)
            assert len(rows) == len(set(rows))
            assert set(filed.values()) == {"hidden"}

    run(main)


def test_ctrl_c_finishes_what_is_in_flight_and_says_how_to_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            async with running("sequence", "crawl", *flags(tmp_path, server), *begin(server)) as process:
                await asked(server, 5)
                process.send_signal(signal.SIGINT)
                stopped = await finish(process)

            assert stopped.code == 130
            assert "in flight; once more stops at once" in stopped.err
            onward = commands(stopped.out)[0]
            status = await here("status", str(tmp_path / "out"), "--json")
            cursor = json.loads(status.out)["kept"]["cursor"]
            assert cursor >= server.game.first + 5, "what was asked has its fate"
            done = await here(*onward, "--until", str(cursor + 3))
            assert done.code == 0, done.err
            assert [number for number in stored(tmp_path) if number <= cursor + 3] == raids(server.game, cursor + 3)

    run(main)


def test_a_service_manager_that_ends_it_gets_0(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            served() as server,
            running("sequence", "crawl", *flags(tmp_path, server), *begin(server)) as process,
        ):
            await asked(server, 3)
            process.send_signal(signal.SIGTERM)
            stopped = await finish(process)

        assert (stopped.code, "Nothing is lost; go on" in stopped.out) == (0, True)

    run(main)


def test_ctrl_c_twice_stops_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(latency=10.0) as server:
            process = await start("sequence", "crawl", *flags(tmp_path, server), *begin(server))
            await asked(server, 1)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            while b"once more" not in await process.stderr.readline():
                pass
            await asyncio.sleep(TOGETHER)  # sooner it would count as the same
            process.send_signal(signal.SIGINT)
            stopped = await finish(process)

        assert stopped.code == 130
        assert "stopped at once; what was kept is safe" in stopped.err
        assert "Traceback" not in stopped.err
        assert [command[:2] for command in commands(stopped.err)] == [["sequence", "crawl"]]

    run(main)


def test_two_crawls_in_one_folder_are_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            given = (*flags(tmp_path, server), *begin(server))
            async with running("sequence", "crawl", *given):
                await asked(server, 1)
                second = await here("sequence", "crawl", *given)

        assert (second.code, "another crawl is running in " in second.err) == (2, True)

    run(main)


def test_a_full_disk_is_a_message_and_not_a_traceback(tmp_path: Path) -> None:
    """The status cannot be written where a folder stands in the way: the same road as for a disk that is full."""

    async def main() -> None:
        async with (
            served() as server,
            running("sequence", "crawl", *flags(tmp_path, server), *begin(server)) as process,
        ):
            await asked(server, 5)
            (tmp_path / "out" / "status.json").unlink(missing_ok=True)
            (tmp_path / "out" / "status.json").mkdir()
            done = await finish(process)

        assert (done.code, done.out) == (1, "")
        assert "sanderling: cannot use " in done.err
        assert "Traceback" not in done.err
        assert "never awaited" not in done.err

    run(main)


def test_a_host_that_asked_us_to_stay_away_is_left_alone_by_the_next_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            given = (*flags(tmp_path, server), *begin(server), "--until", str(server.game.first + 2))
            await here("sequence", "crawl", *given)
            limiter, host = SequenceUpstream().limiter(SystemClock()), host_of(server.url())
            limiter.feedback(await limiter.acquire(host), Feedback(status=429, latency=0.1, retry_after=3600.0))
            (tmp_path / "out" / "limiter.json").write_bytes(limiter.save())
            before = server.tally.asked
            async with running("sequence", "crawl", *flags(tmp_path, server), "--json") as process:
                while not (await _status(tmp_path))["running"]:  # noqa: ASYNC110 - another process tells nobody
                    await asyncio.sleep(0.1)
                process.send_signal(signal.SIGINT)
                assert (await finish(process)).code == 130
            assert server.tally.asked == before
            assert host.encode() in (tmp_path / "out" / "limiter.json").read_bytes(), "nor by the one after that"

    run(main)


async def _status(folder: Path) -> dict[str, Any]:
    done = await here("status", str(folder / "out"), "--json")
    shown: dict[str, Any] = json.loads(done.out) if done.code == 0 else {"running": False}
    return shown


def test_metrics_are_served_while_it_runs(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            served() as server,
            running("sequence", "crawl", *flags(tmp_path, server), *begin(server), "--metrics-port", "0") as process,
        ):
            assert process.stderr is not None
            url = (await process.stderr.readline()).decode().split()[1]
            await asked(server, 5)
            text = await asyncio.to_thread(lambda: urlopen(url, timeout=300).read().decode())  # noqa: S310 - our own

        assert "sanderling_sequence_workers 25.0" in text
        assert re.search(r'sanderling_sequence_answers_total\{attempts="1",status="success"\} [1-9]', text)
        assert "sanderling_limiter_permits_total" in text

    run(main)
