"""`events replay`: what was processed goes into the queue once more, and its rows are the same afterwards."""

import asyncio
import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import aio_pika
import pytest
from command_line import Done, called, commands

# The house is a neighbour's, and its folder is not on the path unless a test of it is run, too.
from event_house import house
from events_rows import event, keep, sql
from queue_commands import Queued, at_broker

from sanderling.cli.progress_line import ProgressLine
from sanderling.clock import SystemClock
from sanderling.events.outbox import QUEUE
from sanderling.stores.queue import WholeQueue
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo

HOUR = 3600.0
PROJECTS = {"project_id": "q", "job_id": "q-brand-0"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With events of so many hours ago; of one there is no message."""
    wall = SystemClock().wall()
    events = [event("six", wall - 6 * HOUR), event("four", wall - 4 * HOUR, **PROJECTS), event("two", wall - 2 * HOUR)]
    keep(tmp_path / "events.db", [*events, event("mute", wall - 2 * HOUR, message=b"")])
    return tmp_path


def replay(folder: Path, *flags: str) -> Done:
    return called("events", "replay", f"--out={folder}", *flags)


def counted(done: Done) -> tuple[int, int]:
    """How many can be, and how many cannot."""
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    return told.get("events", told.get("replayed")), told["without_message"]


def taken(folder: Path) -> list[bytes]:
    """The messages in the queue, which are taken out."""

    async def work(queue: WholeQueue) -> list[bytes]:
        return [each.body for each in await queue.take(2000, 0.01)]

    return Queued(f"sqlite:{folder}", QUEUE, ()).use(work)


def marked(folder: Path) -> set[str]:
    return {name for (name,) in sql(folder / "events.db", "SELECT event_id FROM processed_events WHERE replayed")}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--from=1h"], (0, 0)),
        (["--from=3h"], (1, 1)),
        (["--from=1w"], (3, 1)),
        (["--from=5h", "--to=3h"], (1, 0)),
        (["--from=1w", "--project=q"], (1, 0)),
        (["--from=1w", "--job=p-brand-0"], (2, 1)),
        (["--from=1w", "--job=p-brand-0", "--project=q"], (0, 0)),
        (["--from=2020-01-01", "--to=2020-01-02T00:00:00+07:00"], (0, 0)),
    ],
)
def test_a_dry_run_counts_and_changes_nothing(folder: Path, flags: list[str], expected: tuple[int, int]) -> None:
    done = replay(folder, "--dry-run", "--json", *flags)

    assert counted(done) == expected
    assert marked(folder) == set()
    assert not list(folder.glob("*data.collected*"))


def test_messages_go_into_the_queue_the_first_processed_first(folder: Path) -> None:
    done = replay(folder, "--from=5h")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2 events will be processed again: the messages are in the queue, for whoever consumes.")
    assert "1 event cannot be: the messages were not kept." in done.out
    assert commands(done.out) == [["events", "consume", "--out", str(folder)]]
    assert taken(folder) == [b"message of four", b"message of two"]
    assert marked(folder) == {"four", "two"}
    assert sql(folder / "events.db", "SELECT count(*) FROM outbox") == [(0,)]


def test_what_is_on_its_way_already_is_not_sent_twice(folder: Path) -> None:
    assert counted(replay(folder, "--from=3h", "--json")) == (1, 1)
    assert counted(replay(folder, "--from=1d", "--json")) == (2, 1)
    again = replay(folder, "--from=1d")

    assert again.out == "There is nothing to process again. 1 event cannot be: the messages were not kept.\n"
    assert sorted(taken(folder)) == [b"message of four", b"message of six", b"message of two"]


def test_in_words_a_dry_run_says_the_same(folder: Path) -> None:
    done = replay(folder, "--from=5h", "--dry-run")

    assert done.out == "2 events would be processed again. 1 event cannot be: the messages were not kept.\n"


def test_what_does_not_fit_into_one_page_goes_as_well(folder: Path) -> None:
    numbers = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200)"
    copied = """SELECT 'copy ' || n, job_id, project_id, platform, mode, received_at, processed_at, posts, errors,
        message, replayed FROM n, processed_events WHERE event_id = 'two'"""
    sql(folder / "events.db", f"INSERT INTO processed_events {numbers} {copied}")

    assert counted(replay(folder, "--from=3h", "--json")) == (1201, 1)
    assert len(taken(folder)) == 1201


def test_what_is_processed_again_meanwhile_is_not_replayed_for_ever(folder: Path) -> None:
    """As whoever consumes would, only quicker: as soon as an event is marked it is processed, now."""
    sql(
        folder / "events.db",
        """CREATE TRIGGER consumed AFTER UPDATE OF replayed ON processed_events WHEN new.replayed BEGIN
            UPDATE processed_events SET replayed = false, processed_at = (julianday('now') - 2440587.5) * 86400.0
            WHERE event_id = new.event_id; END""",
        """CREATE TRIGGER enough AFTER INSERT ON outbox WHEN (SELECT count(*) FROM outbox) > 10
            BEGIN SELECT RAISE(ABORT, 'again and again'); END""",
    )

    assert counted(replay(folder, "--from=1d", "--json")) == (3, 1)
    assert len(taken(folder)) == 3


def refuse_letters(folder: Path) -> None:
    """A queue that answers, and takes nothing."""
    Queued(f"sqlite:{folder}", QUEUE, ()).depth()
    no = "CREATE TRIGGER no BEFORE INSERT ON letter BEGIN SELECT RAISE(ABORT, 'no more'); END"
    sql(folder / f"{QUEUE}.db", no)


def test_if_the_queue_takes_nothing_they_are_in_the_outbox(folder: Path) -> None:
    refuse_letters(folder)

    done = replay(folder, "--from=5h")

    assert (done.code, done.out) == (1, "")
    assert "no more" in done.err
    told = "2 events will be processed again: they are in the outbox, and go out as soon as somebody consumes."
    assert told in done.err
    assert marked(folder) == {"four", "two"}
    assert sql(folder / "events.db", "SELECT body FROM outbox") == [(b"message of four",), (b"message of two",)]
    again = replay(folder, "--from=5h", "--json")
    assert (again.code, json.loads(again.out)) == (1, {"replayed": 0, "without_message": 1, "sent": False})
    sql(folder / f"{QUEUE}.db", "DROP TRIGGER no")
    assert replay(folder, "--from=5h").code == 0
    assert taken(folder) == [b"message of four", b"message of two"]


def test_what_fails_midway_says_how_far_it_came(folder: Path) -> None:
    sql(
        folder / "events.db",
        """CREATE TRIGGER no BEFORE UPDATE OF replayed ON processed_events
            BEGIN SELECT RAISE(ABORT, 'not that one'); END""",
    )

    done = replay(folder, "--from=5h")

    assert (done.code, done.out) == (1, "")
    assert "not that one; 0 events marked before that: " in done.err
    assert sql(folder / "events.db", "SELECT count(*) FROM outbox") == [(0,)]


def test_with_a_broker_that_is_away_nothing_is_changed(folder: Path) -> None:
    done = replay(folder, "--from=5h", "--queue=amqp://me:secret@127.0.0.1:1/")

    assert done.code == 1
    assert "127.0.0.1:1" in done.err
    assert "secret" not in done.err
    assert marked(folder) == set()
    assert sql(folder / "events.db", "SELECT count(*) FROM outbox") == [(0,)]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "--from"),
        (["--from=2999-01-01"], "in the future"),
        (["--from=2h", "--to=2999-01-01"], "--to is '2999-01-01', which is in the future"),
        (["--from=2h", "--to=3h"], "expected the first to be before the second"),
        (["--from=2h", "--to=soon"], "--to is 'soon', expected a time such as"),
        (["--from=90"], "--from is '90', expected a time such as"),
        (["--from=2h", f"@exchange={'x' * 256}"], "expected at most 255 bytes"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, flags: list[str], why: str) -> None:
    done = replay(folder, *flags)

    assert (done.code, done.out) == (2, "")
    assert why in done.err
    assert marked(folder) == set()


def test_where_there_is_no_database_nothing_is_made(tmp_path: Path) -> None:
    for flags in ((), ("--dry-run",)):
        done = replay(tmp_path / "out", "--from=2h", *flags)
        assert done.code == 2
        assert f"nothing was consumed yet: there is no {tmp_path / 'out' / 'events.db'}" in done.err
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_it_is_shown_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    for stream, expected in ((Terminal(), True), (StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressLine() as line:
            line.show("3,000 events marked")
        assert ("3,000 events marked" in stream.getvalue()) is expected


def test_at_a_broker_messages_come_to_whoever_is_bound(folder: Path, rabbitmq: str) -> None:
    exchange = f"sanderling-test-{uuid4().hex}"

    async def work(queue: WholeQueue) -> list[bytes]:
        found: list[bytes] = []
        async with asyncio.timeout(300):
            while len(found) < 2:
                some = await queue.take(10, 1)
                found += [each.body for each in some]
                await queue.done(some)
        return found

    async def tidy() -> None:
        async with asyncio.timeout(300), await aio_pika.connect(rabbitmq) as connection:
            await (await connection.channel()).exchange_delete(exchange)

    with at_broker(rabbitmq, folder) as queued:
        done = called("events", "replay", "--from=5h", "--json", "@exchange", exchange, *queued.flags)
        assert (done.code, json.loads(done.out)) == (0, {"replayed": 2, "without_message": 1, "sent": True})
        assert queued.use(work) == [b"message of four", b"message of two"]
    asyncio.run(tidy())


# From end to end.

ROWS = {
    "post_analytics": "id, analyzed_at, processing_time_ms",
    "post_comments": "id, post_id, created_at",
    "crawl_errors": "id, created_at",
    "processed_events": "received_at, processed_at",
}


def rows(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that was made of the batches, but for numbers of rows, and times of the work."""
    found = {}
    for table, without in ROWS.items():
        left_out = ", ".join(f"'{name}'" for name in without.split(", "))
        asked = f"SELECT name FROM pragma_table_info('{table}') WHERE name NOT IN ({left_out})"  # noqa: S608 - ours
        columns = ", ".join(name for (name,) in sql(folder / "events.db", asked))
        found[table] = sorted(sql(folder / "events.db", f"SELECT {columns} FROM {table}"), key=repr)  # noqa: S608 - ours
    return found


async def consume(folder: Path, publish: int = 0) -> tuple[int, int]:
    """Whatever waits; how many messages that were, and how many of them changed nothing."""
    async with house(folder, Social(1, demo())) as here:
        await here.publish(0, publish)
        await here.consume()
        counts = here.system.measures.counted
        return counts["received"], counts["duplicate"]


def test_what_is_processed_again_is_as_it_was(tmp_path: Path) -> None:
    asyncio.run(consume(tmp_path, publish=12))
    before = rows(tmp_path)
    ((latest,),) = sql(tmp_path / "events.db", "SELECT max(processed_at) FROM processed_events")
    events = len(before["processed_events"])

    done = replay(tmp_path, "--from=1h", "@queue-name=data.collected", "--json")

    assert counted(done) == (events, 0)
    assert len(marked(tmp_path)) == events > 5
    again, duplicates = asyncio.run(consume(tmp_path))
    assert (again, duplicates) == (events, 0)
    assert rows(tmp_path) == before
    assert marked(tmp_path) == set()
    ((earliest,),) = sql(tmp_path / "events.db", "SELECT min(processed_at) FROM processed_events")
    assert earliest > latest
