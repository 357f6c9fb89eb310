"""`events publish`: a file becomes batches and messages, the same ones however often, whatever happens meanwhile."""

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterable
from pathlib import Path

import aio_pika
import pytest
from command_line import Done, called, commands, finish, run
from events_fed import JOB, consumed, errors, posts, prepared, sizes, waiting
from forked import Command

from sanderling.cli import reach
from sanderling.clock import SystemClock
from sanderling.stores.queue import open_queue
from sanderling.stores.rabbitmq import DELAYS

GIVEN = ("--job", JOB, "--platform", "web")


def page(number: int, outcome: str = "OK") -> str:
    return json.dumps(
        {"id": number, "url": f"https://example.org/{number:03}", "outcome": outcome, "text": "Xe rất đẹp"}
    )


def written(path: Path, lines: Iterable[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return prepared(tmp_path / "out")


def test_files_become_rows_once_however_often_they_are_published(tmp_path: Path, out: Path) -> None:
    pages = written(tmp_path / "pages.jsonl", [*map(page, range(60)), "nonsense", page(60, "SKIPPED"), '{"a": 1}'])
    failed = written(tmp_path / "failed.jsonl", [page(61, "TIMEOUT"), page(62, "CONTENT_NOT_FOUND")])

    first = called("events", "publish", pages, failed, *GIVEN, "--out", str(out))
    consumed(out)
    again = called("events", "publish", failed, pages, *GIVEN, "--out", str(out), "--json")
    then = consumed(out)

    assert first.code == again.code == 1
    assert first.out.startswith(f"Published 62 items in 3 batches of the job {JOB}.\nLeft out: 1 line,")
    assert f"{pages}, line 61: not JSON" in first.err
    assert f"{pages}, line 63: found 'a'; expected meta" in first.err
    told = json.loads(again.out)
    assert (told["items"], told["batches"], told["left_out"], told["bad"], told["sent"]) == (62, 3, 1, 2, 3)
    assert (told["project"], again.err) == ("spring", "")
    assert then["messages"]["duplicates"] == 3
    assert posts(out) == [f"https://example.org/{number:03}" for number in range(60)]
    assert errors(out) == [("https://example.org/061", "TIMEOUT"), ("https://example.org/062", "CONTENT_NOT_FOUND")]
    assert sorted(sizes(out)) == [2, 10, 50]
    (next_,) = commands(first.out)
    assert next_ == ["events", "consume", "--out", str(out)]


def test_only_the_first_bad_lines_are_told(tmp_path: Path, out: Path) -> None:
    path = written(tmp_path / "items.jsonl", ["\x1b[31mbad"] * 30)

    done = called("events", "publish", path, *GIVEN, "--out", str(out))

    assert (done.code, "Bad: 30 lines" in done.out) == (1, True)
    assert len(done.err.splitlines()) == 21
    assert done.err.endswith("and 10 more\n")
    assert "\x1b" not in done.err


def test_all_that_can_be_said_of_a_batch_is_in_its_rows(tmp_path: Path, out: Path) -> None:
    path = written(tmp_path / "pages.jsonl", map(page, range(5)))
    more = ("--project", "fc5d5ffb-36cc-4c8d-a288-f5215af7fb80", "--brand", "VinFast", "--keyword", "VF 8")

    given = ("--job", "campaign", "--platform", "web", "--task-type", "dry", "--batch", "2")
    done = called("events", "publish", path, *given, *more, "--out", str(out))
    consumed(out)

    assert done.code == 0, done.err
    assert sorted(sizes(out)) == [1, 2, 2]
    assert set(posts(out, "project_id || brand_name || keyword || task_type || platform")) == {
        "fc5d5ffb-36cc-4c8d-a288-f5215af7fb80VinFastVF 8dryweb"
    }


# --- what is piped ---


async def piping(out: Path, *more: str) -> Process:
    command = (sys.executable, "-W", "error", "-m", "sanderling", "events", "publish", "-", *GIVEN, "--out", str(out))
    return await asyncio.create_subprocess_exec(*command, *more, stdin=PIPE, stdout=PIPE, stderr=PIPE)


async def piped(process: Process, lines: Iterable[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    await process.stdin.drain()


async def until_safe(out: Path, batches: int) -> None:
    async with asyncio.timeout(300):
        while len(waiting(out)) < batches:  # noqa: ASYNC110 - rows of another process
            await asyncio.sleep(0.02)


async def whole(out: Path, lines: Iterable[str]) -> Done:
    process = await piping(out, "--batch", "4")
    await piped(process, lines)
    assert process.stdin is not None
    process.stdin.close()
    return await finish(process)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ended_midway_and_run_again_it_makes_the_same_batches(out: Path, number: signal.Signals) -> None:
    lines = [*map(page, range(10))]

    async def main() -> None:
        process = await piping(out, "--batch", "4")
        await piped(process, lines[:9])
        await until_safe(out, 2)
        process.send_signal(number)
        ended = await finish(process)
        before = waiting(out)

        assert ended.code == (130 if number is signal.SIGINT else -9)
        if number is signal.SIGINT:
            assert "stopped at once; what was kept is safe. Go on with:" in ended.err
            assert commands(ended.err) == [["events", "publish", "-", *GIVEN, "--batch", "4", "--out", str(out)]]
        done = await whole(out, lines)
        assert (done.code, len(before)) == (0, 2), done.err
        assert "Published 10 items in 3 batches" in done.out
        assert "Sent 5 messages." in done.out, "those of the first time, too"

    run(main)

    told = consumed(out)
    assert (told["batches"], told["messages"]["duplicates"]) == (3, 2)
    assert posts(out) == [f"https://example.org/{number:03}" for number in range(10)]


def test_on_a_terminal_it_says_how_it_goes(tmp_path: Path, out: Path) -> None:
    path = written(tmp_path / "pages.jsonl", map(page, range(3)))
    ours, theirs = pty.openpty()
    command = ("events", "publish", path, *GIVEN, "--out", str(out))
    environment = os.environ | {"TERM": "xterm"}
    with Command[bytes](command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as child:
        os.close(theirs)
        assert child.stdout is not None
        said = child.stdout.read()
    shown = os.read(ours, 65536)
    os.close(ours)

    assert b"Published 3 items in 1 batch" in said
    assert b"pages.jsonl: 0 items in 0 batches" in shown


# --- what is away, and what is wrong ---


def test_while_the_broker_is_away_all_is_safe_in_the_outbox(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "PATIENCE", 0.0)
    path = written(tmp_path / "pages.jsonl", map(page, range(3)))
    nobody = "amqp://user:hush@127.0.0.1:1/"

    done = called("events", "publish", path, *GIVEN, "--out", str(out), "--queue", nobody)

    assert (done.code, "Published 3 items in 1 batch" in done.out) == (1, True)
    assert "--queue: no RabbitMQ answers at amqp://127.0.0.1:1/" in done.err
    assert "The batches are safe, and so are their messages, in the outbox" in done.err
    assert "hush" not in done.out + done.err
    assert len(waiting(out)) == 1
    later = called("events", "publish", path, *GIVEN, "--out", str(out), "--json")
    assert (later.code, json.loads(later.out)["sent"], waiting(out)) == (0, 2, [])
    assert consumed(out)["posts"] == 3


def test_at_a_broker_the_messages_are_in_the_queue(tmp_path: Path, out: Path, rabbitmq: str) -> None:
    """Also where nobody has consumed yet, so that there is no queue."""
    path, name = written(tmp_path / "pages.jsonl", map(page, range(3))), f"sanderling-test-{uuid.uuid4().hex}"
    given = ("--queue", rabbitmq, "@queue-name", name, "@exchange", name, "@routing-key", "some.key")

    async def ready() -> int:
        queue = open_queue(rabbitmq, name, SystemClock())
        try:
            return (await queue.depth()).ready
        finally:
            await queue.close()

    async def removed() -> None:
        async with asyncio.timeout(300), await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            for each in (name, f"{name}.dead", *(f"{name}.later.{seconds:g}s" for seconds in DELAYS)):
                await channel.queue_delete(each, if_unused=False, if_empty=False)
            await channel.exchange_delete(name)

    try:
        done = called("events", "publish", path, *GIVEN, "--out", str(out), "--batch", "1", *given)

        assert (done.code, "Sent 3 messages." in done.out) == (0, True), done.err
        assert asyncio.run(ready()) == 3
    finally:
        asyncio.run(removed())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([*GIVEN], "no file given; try: sanderling events publish pages.jsonl"),
        (["NOWHERE", *GIVEN], "nowhere is not there"),
        (["FOLDER", *GIVEN], "folder is a folder, expected a file of JSON lines"),
        (["FILE", "--platform", "web"], "--job"),
        (["FILE", "--job", JOB], "--platform"),
        (
            ["FILE", "--job", "spring", "--platform", "web"],
            "--project: batches of the job 'spring': it names no project",
        ),
        (["FILE", "--job", "a\x1bb", "--platform", "web", "--project", "p"], "--job: batches of the job 'a\\x1bb'"),
        (["FILE", "--job", JOB, "--platform", "We b"], "--platform: batches of the job 'spring-brand-0': platform is"),
        (["FILE", *GIVEN, "--project", "autumn"], "--project: "),
        (["FILE", *GIVEN, "--brand", "b" * 300], "--brand: "),
        (["FILE", *GIVEN, "--keyword", "k" * 300], "--keyword: "),
        (["FILE", *GIVEN, "--task-type", "t" * 300], "--task-type: "),
        (["FILE", *GIVEN, "@bucket", "../up"], "bucket: "),
        (["FILE", *GIVEN, "--batch", "0"], "--batch. Must be >= 1"),
        (["FILE", *GIVEN, "--batch", "501"], "--batch. Must be <= 500"),
        (["FILE", *GIVEN, "--queue", "ftp://user:hush@there"], "--queue: 'that' is no queue"),
        (["FILE", *GIVEN, "--database", "mysql://user:hush@there"], "--database: 'mysql' is no kind of database"),
        (["FILE", *GIVEN, "--objects", "ftp://user:hush@there"], "--objects: 'that' is no object store"),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "folder").mkdir()
    written(tmp_path / "file", [page(1)])
    places = {"NOWHERE": "nowhere", "FOLDER": "folder", "FILE": "file"}
    given = [str(tmp_path / places[each]) if each in places else each for each in arguments]

    done = called("events", "publish", *given, "--out", str(tmp_path / "out"))

    assert (done.code, done.out) == (2, ""), done.err
    assert says in done.err
    assert "hush" not in done.err
    assert "\x1b" not in done.err


def test_a_file_that_cannot_be_read_is_a_message(out: Path) -> None:
    """As a disk that fails does, after the file was opened."""
    done = called("events", "publish", "/proc/self/mem", *GIVEN, "--out", str(out))

    assert (done.code, "/proc/self/mem" in done.err, "Traceback" in done.err) == (1, True, False)
