"""What changes while `sanderling events consume` runs, its disk and its modes: the same process goes on with it."""

import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command_line import here, run
from events_commands import QUEUE, Place, consuming, drain, ended, proven, said, status_with, until_done

from sanderling.events.modes import FILE, Modes, write_modes
from sanderling.stores.queue import Depth
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo


def test_a_full_disk_is_said_and_waited_for_and_the_same_process_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        place, social = Place(tmp_path / "out"), Social(1, demo())
        await place.put(social, range(12))
        async with consuming(place) as process:
            await status_with(place, lambda status: status.queue, process)
            _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            # No file may grow beyond this, which is what a full disk is like to who writes.
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (50_000, hard))
            await place.publish([social.envelope(number) for number in range(12)])
            status = await status_with(place, lambda status: status.trouble, process)
            assert "disk" in status.trouble
            assert "the disk is well and not full" in status.trouble or "the disk is full" in status.trouble
            before = await place.done()
            assert before < 12
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            await until_done(place, 12, process)
            process.terminate()
            assert await ended(process) == 0
        await proven(place, social, range(12))
        assert (await place.depth()).dead == 0
        assert "Traceback" not in said(place)

    run(main)


def half_a_minute_passes(place: Place) -> None:
    """For messages that wait, while nobody takes any."""
    with closing(sqlite3.connect(place.out / f"{QUEUE}.db", isolation_level=None)) as db:
        db.execute("UPDATE letter SET at = at - 30 WHERE state = 1")


def test_a_format_that_is_off_waits_and_is_switched_on_by_a_command_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEW_MODE_ENABLED", "false")

    async def main() -> None:
        place, social = Place(tmp_path / "out"), Social(1, demo())
        new = [number for number in range(20) if b"minio_path" in social.envelope(number)]
        await place.put(social, range(40))
        await place.publish([social.envelope(number) for number in range(20)])
        async with consuming(place) as process:
            await status_with(
                place, lambda status: status.messages.postponed == len(new) and status.batches == 20 - len(new), process
            )
            assert await place.depth() == Depth(ready=0, taken=0, delayed=len(new), dead=0)
            switched = await here("events", "mode", "--new", "--out", str(place.out))
            assert switched.code == 0, switched.err
            await status_with(place, lambda status: status.modes.new, process)
            await place.publish([social.envelope(number) for number in range(20, 40)])
            await until_done(place, 40 - len(new), process)
            process.terminate()
            assert await ended(process) == 0
        half_a_minute_passes(place)
        await drain(place)  # what was written counts, and not the variable
        await proven(place, social, range(40))
        assert await place.depth() == Depth(0, 0, 0, 0)

    run(main)


def test_half_a_file_of_modes_leaves_them_as_they_were_and_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        place = Place(tmp_path / "out")
        write_modes(place.out, Modes(legacy=False))
        whole = (place.out / FILE).read_bytes()
        async with consuming(place) as process:
            await status_with(place, lambda status: not status.modes.legacy, process)
            (place.out / FILE).write_bytes(whole[: len(whole) // 2])
            torn = await status_with(place, lambda status: status.modes_trouble, process)
            assert torn.modes == Modes(legacy=False)
            told = await here("status", str(place.out))
            assert (told.code, "the modes are as before: " in told.out) == (0, True)
            write_modes(place.out, Modes())
            mended = await status_with(place, lambda status: status.modes.legacy, process)
            assert mended.modes_trouble == ""
            process.terminate()
            assert await ended(process) == 0

    run(main)
