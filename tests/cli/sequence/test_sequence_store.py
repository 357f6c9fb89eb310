"""`sequence store`: what is queued is stored, once, however the process ends."""

import asyncio
import json
import os
import pty
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from command_line import Done, called, commands, finish, run, running, sanderling
from forked import Command
from forked import Forked as Process
from queue_commands import Queued, at_broker, in_folder
from raids import letter, usual

from sanderling.cli import reach
from sanderling.cli.sequence import store as sequence_store
from sanderling.stores.instances import InstanceCounts
from sanderling.stores.instances_store import open_sqlite_instances
from sanderling.stores.queue import Depth, Letter

NOTHING = Depth(ready=0, taken=0, delayed=0, dead=0)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture(params=["sqlite", "rabbitmq"])
def queued(request: pytest.FixtureRequest, out: Path) -> Iterator[Queued]:
    if request.param == "sqlite":
        yield in_folder(out)
    else:
        with at_broker(request.getfixturevalue("rabbitmq"), out) as queued:
            yield queued


@pytest.fixture
def embedded(out: Path) -> Queued:
    return in_folder(out)


def publish(queued: Queued, count: int, first: int = 1) -> None:
    queued.publish(*(letter(message) for message in usual(count, first)))


def stored(out: Path) -> int:
    """How many instances are in the rows; each of these has its players and its raw answer."""

    async def counts() -> InstanceCounts:
        instances = open_sqlite_instances(out / "rows.db")
        try:
            return await instances.counts()
        finally:
            await instances.close()

    found = asyncio.run(counts())
    assert (found.instance_players, found.raw) == (6 * found.instances, found.instances)
    return found.instances


def emptied(queued: Queued, *more: str) -> tuple[int, dict[str, Any]]:
    done = called("sequence", "store", "--until-empty", "--json", *queued.flags, *more)
    assert done.err == ""
    return done.code, json.loads(done.out)


def test_all_that_is_queued_is_stored_and_what_cannot_be_is_dead(queued: Queued, out: Path) -> None:
    publish(queued, 60)
    queued.publish(Letter("bad", b"no message"))

    code, told = emptied(queued, "@batch=7", "--workers=3")

    assert code == 0
    assert (told["stored"], told["duplicates"], told["buried"], told["trouble"]) == (60, 0, 1, "")
    assert told["queue"] == {"ready": 0, "taken": 0, "delayed": 0, "dead": 1}
    assert "letter bad: message of 10 bytes is not what this version writes" in told["last_error"]
    assert stored(out) == 60


def test_what_was_stored_before_is_a_duplicate(embedded: Queued, out: Path) -> None:
    publish(embedded, 10)
    emptied(embedded)
    publish(embedded, 12)

    _, told = emptied(embedded)

    assert (told["stored"], told["duplicates"]) == (2, 10)
    assert stored(out) == 12


def test_of_an_empty_queue_nothing_is_stored(queued: Queued) -> None:
    code, told = emptied(queued)

    assert (code, told["stored"], told["queue"]["dead"]) == (0, 0, 0)


def test_its_metrics_can_be_scraped(embedded: Queued) -> None:
    publish(embedded, 10)

    async def main() -> str:
        async with running("sequence", "store", "--metrics-port=0", *embedded.flags) as process:
            assert process.stderr is not None
            line = await process.stderr.readline()
            while b"metrics: " not in line:
                line = await process.stderr.readline()
            address = line.decode().split("metrics: ")[1].strip()
            text = ""
            while 'stored_total{result="new"} 10.0' not in text:
                text = await asyncio.to_thread(lambda: urlopen(address, timeout=300).read().decode())  # noqa: S310 - ours
            process.send_signal(signal.SIGTERM)
            await process.wait()
        return text

    text = asyncio.run(asyncio.wait_for(main(), 60))
    assert "sanderling_sequence_store_workers 4.0" in text
    assert 'sanderling_sequence_queue{state="dead"}' in text


def test_in_words_it_says_what_came_of_it_and_what_to_do(embedded: Queued) -> None:
    publish(embedded, 3)
    embedded.publish(Letter("bad", b"no message"))

    done = called("sequence", "store", "--until-empty", *embedded.flags)

    assert done.code == 0
    assert done.out.startswith("3 records stored in ")
    assert "1 letter buried: letter bad: message of 10 bytes" in done.out
    first = done.err.splitlines()[0]
    assert first == "0 stored, 0 duplicates, 0 to be tried again, 0 buried, 4 in the queue, 4 workers"
    (look,) = commands(done.out)
    assert "not what this version writes" in called(*look).out


async def begun(process: Process) -> None:
    """Return when it has said its first line."""
    assert process.stderr is not None
    async with asyncio.timeout(300):
        await process.stderr.readline()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_lets_what_is_in_hand_be_stored(queued: Queued, out: Path, number: int, code: int) -> None:
    publish(queued, 300)

    async def main() -> Done:
        async with running("sequence", "store", "@batch=5", *queued.flags) as process:
            await begun(process)
            process.send_signal(number)
            return await finish(process)

    done = asyncio.run(main())

    assert done.code == code
    assert "storing what is in hand" in done.err
    assert "Traceback" not in done.err
    left = queued.depth()
    assert (left.taken, left.dead) == (0, 0)
    assert stored(out) + left.ready == 300
    assert done.out.startswith(f"{stored(out):,} record")


def test_a_process_that_is_killed_loses_nothing_and_stores_nothing_twice(queued: Queued, out: Path) -> None:
    publish(queued, 200)

    async def main() -> None:
        async with running("sequence", "store", "@batch=3", *queued.flags) as process:
            await begun(process)
            await asyncio.sleep(0.05)  # in the midst of it, or not: both are fine
            process.kill()
            await process.wait()

    run(main)
    code, told = emptied(queued)

    assert code == 0
    assert told["queue"] == NOTHING._asdict()
    assert stored(out) == 200


def test_two_that_store_from_one_queue_share_it(queued: Queued, out: Path) -> None:
    publish(queued, 120)
    assert stored(out) == 0

    async def main() -> list[Done]:
        command = ("sequence", "store", "--until-empty", "--json", "@batch=5", *queued.flags)
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(sanderling(*command)) for _ in range(2)]
        return [each.result() for each in both]

    done = asyncio.run(main())

    assert [each.code for each in done] == [0, 0], done
    assert sum(json.loads(each.out)["stored"] for each in done) == stored(out) == 120


def test_on_a_terminal_one_line_changes_and_the_summary_stays(embedded: Queued) -> None:
    publish(embedded, 3)
    ours, theirs = pty.openpty()
    command = ["sequence", "store", "--until-empty", *embedded.flags]
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}

    with Command[bytes](command, stdout=theirs, stderr=subprocess.PIPE, env=variables) as child:
        _, said = child.communicate(timeout=300)
    os.close(theirs)
    seen = os.read(ours, 1 << 16).decode()
    os.close(ours)

    assert (child.returncode, said) == (0, b"")
    assert "3 in the queue" in seen
    assert "\x1b[" in seen
    assert "3 records stored in " in seen.splitlines()[-1]


def test_rows_that_take_nothing_end_it_with_the_reason_and_nothing_is_lost(
    embedded: Queued, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence_store, "PATIENCE", 1.0)
    publish(embedded, 5)
    assert stored(out) == 0
    with closing(sqlite3.connect(out / "rows.db")) as vandal:
        vandal.execute("DROP TABLE player")

    done = called("sequence", "store", "--until-empty", "--json", *embedded.flags)

    assert done.code == 1
    assert "no such table: player" in done.err
    assert (json.loads(done.out)["stored"], json.loads(done.out)["outages"]) == (0, 1)
    assert embedded.depth() == Depth(ready=5, taken=0, delayed=0, dead=0)


def test_a_broker_that_is_away_is_waited_for_and_then_told(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "PATIENCE", 0.5)
    monkeypatch.setattr(reach, "AGAIN", 0.1)

    done = called("sequence", "store", "--queue=amqp://me:secret@127.0.0.1:1/", f"--out={out}")

    assert done.code == 1
    trying, gave_up = done.err.splitlines()
    assert trying.startswith("--queue: ")
    assert gave_up.startswith("sanderling: --queue: ")
    assert "secret" not in done.err


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--workers=20"], 2, "min-workers 1, workers 20, max-workers 16: expected them not to decrease"),
        (["@min-workers=5"], 2, "min-workers 5, workers 4"),
        (["--workers=0"], 2, "--workers"),
        (["@batch=0"], 2, "_BATCH. Must be"),
        (["--queue=redis://x"], 2, "--queue: 'redis' is no queue"),
        (["--rows=mysql://x"], 2, "--rows: 'mysql' is no kind of store"),
        (["--raw=mysql://x"], 2, "--raw: "),
    ],
)
def test_what_makes_no_sense_is_refused(
    out: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], code: int, said: str
) -> None:
    monkeypatch.setattr(reach, "PATIENCE", 0.0)

    done = called("sequence", "store", *flags, f"--out={out}")

    assert done.code == code
    assert said in done.err
