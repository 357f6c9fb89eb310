"""An upstream where everything goes wrong that can: what is stored is right all the same, in little memory."""

import asyncio
import re
from pathlib import Path

from command_line import finish, run, start
from polling_commands import OFTEN, SECONDS, SHORT, Server, administered, database, flags, proven, served, until

from sanderling.worlds.race import FAULTS, RaceDay, RaceKind, RaceWeather

MOST = 300e6  # bytes that the process may ever have; a document of the worst kind alone has more
EVERY = 6  # requests, of which one meets a fault
FAULTY = 2 * EVERY * len(FAULTS)  # requests after which it gets better


class Worst(RaceDay):
    """A day on which requests meet one fault after another, each of them twice."""

    def _meet(self, now: float) -> RaceKind:
        asked = self.tally.asked
        if asked % EVERY or asked >= FAULTY:
            return super()._meet(now)
        return FAULTS[asked // EVERY % len(FAULTS)]


def peak(pid: int) -> int:
    """The most memory that a process ever had, in bytes."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


async def right(folder: Path, server: Server) -> None:
    """Return when the day is over and all of it is stored as it is."""
    await until(lambda: server.now > server.day.over)
    async with asyncio.timeout(SECONDS), database(folder) as store:
        while True:
            try:
                await proven(store, server)
            except (AssertionError, KeyError):  # not yet: what went wrong is asked for again in its time
                await asyncio.sleep(0.2)
            else:
                return


def test_a_day_on_which_everything_goes_wrong_is_stored_as_it_was(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(SHORT, RaceWeather(half_written=0.06, slow=0.3), Worst) as server:
            process = await start("polling", "run", *flags(tmp_path, server), *OFTEN, "@timeout", "0.7", "--json")
            try:
                await until(lambda: server.tally.asked > FAULTY)
                await right(tmp_path, server)
                memory = peak(process.pid)
            finally:
                process.terminate()
            done = await finish(process)

        assert done.code == 0, done.err
        assert min(server.tally.kinds[fault] for fault in FAULTS) == 2
        assert memory < MOST
        assert "Traceback" not in done.err

    run(main)


def test_an_upstream_that_answers_nothing_keeps_nobody_from_looking_or_stopping(tmp_path: Path) -> None:
    async def main() -> None:
        hanging = RaceWeather(latency=60.0, jitter=0.0)
        async with served(SHORT, hanging) as server, administered(tmp_path, server, "@timeout", "1") as admin:
            status = await admin.until(lambda status: bool(status["discovery_trouble"]))
            assert status["discovery_trouble"].startswith("TIMEOUT")
            assert await admin.get("/ready") == {"ok": True}
            admin.process.terminate()
            assert (await finish(admin.process)).code == 0

    run(main)
