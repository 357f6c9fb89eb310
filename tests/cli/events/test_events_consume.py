"""`sanderling events consume` as a person runs it: its signals, its words, and whom it tells."""

import json
import resource
import signal
import sqlite3
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from command_line import called, commands, here, run
from events_commands import (
    QUEUE,
    HeldObjects,
    Place,
    consuming,
    drain,
    ended,
    proven,
    said,
    status_with,
    until,
    until_done,
)

from sanderling.cli import reach
from sanderling.events.modes import FILE, Modes, write_modes
from sanderling.stores.queue import Depth
from sanderling.worlds.social import Social
from sanderling.worlds.social_presets import demo

KEYS = [
    *("seconds", "messages", "batches", "posts", "errors", "categories", "codes", "sentiments", "skipped", "sent"),
    *("outbox", "queue", "trouble", "out"),
]
POISON = b'{"event_type": "project.created", "payload": {}}'
TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105 - of nothing


def stored(social: Social, end: int) -> list[int]:
    """The first batches that have an object, so that it can be held back."""
    return [number for number in range(end) if social.batch(number).body is not None]


# What is said.


def test_drained_it_ends_by_itself_and_prints_one_document(tmp_path: Path) -> None:
    async def main() -> None:
        place, social = Place(tmp_path / "out"), Social(1, demo())
        await place.put(social, range(10))
        await place.publish([*map(social.envelope, range(10)), POISON])
        done = await here("events", "consume", *place.flags(), "--drain", "--json")

        assert done.code == 0, done.err
        summary, items = json.loads(done.out), [item for number in range(10) for item in social.truth(number).items]
        posts = sum(item.is_post for item in items)
        assert list(summary) == KEYS
        assert summary["messages"] == {"received": 11, "processed": 10, "duplicates": 0, "postponed": 0, "failed": 1}
        assert (summary["batches"], summary["posts"], summary["errors"]) == (10, posts, len(items) - posts)
        assert summary["queue"] == {"ready": 0, "taken": 0, "delayed": 0, "dead": 1}
        assert (summary["outbox"], summary["trouble"], summary["out"]) == (0, [], str(place.out))
        await proven(place, social, range(10))

        words = await here("events", "consume", *place.flags(), "--drain")
        assert (words.code, "Consumed for" in words.out) == (0, True)
        dead, onward = commands(words.out)
        assert (dead[:3], onward[:2]) == (["events", "dead", "list"], ["events", "consume"])
        assert POISON in [each.body for each in await place.dead()]
        assert (await here(*dead)).code == 0

    run(main)


USAGE = [
    (("--database", "mysql://localhost/x"), "--database: 'mysql' is no kind of database; expected sqlite:PATH or"),
    (("--database", "postgresql://u:sesame@h:99999/x"), "--database: the URL of the PostgreSQL is none; expected"),
    (("--queue", "redis://localhost"), "--queue: 'redis' is no queue with a place; expected sqlite:FOLDER or amqp:"),
    (("--queue", "amqp://user:sesame@"), "--queue: the URL of the RabbitMQ names no host; expected"),
    (("--objects", "ftp://localhost"), "--objects: 'that' is no object store with a place; expected file:FOLDER"),
    (("--objects", "s3+http://key:sesame@h/bucket"), "--objects: the URL of h goes on behind its host"),
    (("--queue-name", "a/b"), "'a/b' cannot be the name of a queue"),
    (("--bind", "0.0.0.0"), "--bind is for the API, and nothing is served; expected --port as well"),  # noqa: S104 - refused
    (("--port", "0", "--bind", "0.0.0.0"), "--bind: 0.0.0.0 can be reached from other machines and there is no token"),  # noqa: S104 - refused
    (("--port", "0", "--token-file", "nowhere"), "the token's file nowhere: No such file or directory"),
    (("--webhook-file", "nowhere"), "--webhook-file and --webhook-template-file go together; one is missing"),
    (("--discord-file", "nowhere"), "--discord-file: cannot read nowhere"),
    (("--lexicon", "nowhere"), "nowhere: cannot be read: No such file or directory"),
    (("--batches", "0"), 'Invalid value "0" for --batches. Must be >= 1.'),
]


@pytest.mark.parametrize(("given", "expected"), USAGE)
def test_what_makes_no_sense_is_said_with_exit_code_2(tmp_path: Path, given: tuple[str, ...], expected: str) -> None:
    done = called("events", "consume", "--out", str(tmp_path), "--metrics-port", "0", "--drain", *given)

    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    assert "sesame" not in done.err


def test_a_switch_in_the_environment_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_MODE_ENABLED", "perhaps")

    done = called("events", "consume", "--out", str(tmp_path), "--drain")

    assert (done.code, "NEW_MODE_ENABLED is 'perhaps', expected" in done.err) == (2, True)


AWAY = [
    (("--database", "postgresql://user:sesame@127.0.0.1:1/x"), "--database: postgresql://127.0.0.1:1/x, schema public"),
    (("--queue", "amqp://user:sesame@127.0.0.1:1/"), "--queue: no RabbitMQ answers at amqp://127.0.0.1:1/"),
    (("--objects", "s3+http://key:sesame@127.0.0.1:1"), "at s3+http://127.0.0.1:1 is not to be had now"),
]


@pytest.mark.parametrize(("given", "expected"), AWAY)
def test_a_server_that_is_not_there_is_said_with_exit_code_1_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setattr(reach, "PATIENCE", 2.0)
    monkeypatch.setattr(reach, "AGAIN", 0.1)

    done = called("events", "consume", "--out", str(tmp_path), "--metrics-port", "0", *given)

    assert (done.code, done.out) == (1, "")
    first, last = done.err.splitlines()
    assert expected in first
    assert first.endswith("; trying for 2 s")
    assert expected in last
    assert "sesame" not in done.err


# Signals.


@asynccontextmanager
async def held_back(folder: Path) -> AsyncIterator[tuple[Place, HeldObjects, Social, list[int]]]:
    """Three batches whose objects do not come until they may."""
    held, social = HeldObjects(), Social(1, demo())
    numbers = stored(social, 10)[:3]
    held.put(social, numbers)
    async with held.serving() as url:
        place = Place(folder / "out", objects=url)
        await place.publish([social.envelope(number) for number in numbers])
        held.may.clear()
        yield place, held, social, numbers


async def asked(held: HeldObjects, process: Process) -> None:
    """Return when the first batch is being fetched: somebody has it in hand."""
    await until(lambda: set(held.asked) - {"sanderling-ping/ping"}, process)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_batch_in_hand_is_finished_and_no_other_is_begun(tmp_path: Path, number: signal.Signals, code: int) -> None:
    async def main() -> None:
        async with held_back(tmp_path) as (place, held, social, numbers):
            async with consuming(place, "--batches", "1") as process:
                await asked(held, process)
                process.send_signal(number)
                await until(lambda: "finishing 1 batch; once more stops at once" in said(place), process)
                held.may.set()
                assert await ended(process) == code
            await proven(place, social, numbers[:1])
            assert await place.depth() == Depth(ready=2, taken=0, delayed=0, dead=0), "it is not delivered again"
            await drain(place)
            await proven(place, social, numbers)
            assert sum(held.asked[path] for path in held.bodies) == 3, "each was fetched once"

    run(main)


def test_the_second_signal_stops_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        async with held_back(tmp_path) as (place, held, social, numbers):
            async with consuming(place) as process:
                await asked(held, process)
                process.terminate()
                await until(lambda: "once more stops at once" in said(place), process)
                process.terminate()
                assert await ended(process) == 130
            held.may.set()
            assert "stopped at once; what was kept is safe. Go on with:" in said(place)
            assert "Traceback" not in said(place)
            assert await place.done() == 0
            await drain(place)
            await proven(place, social, numbers)

    run(main)


# Disk and modes.


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
                place, lambda status: status.postponed == len(new) and status.batches == 20 - len(new), process
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
            told = await here("events", "status", "--out", str(place.out))
            assert (told.code, "the modes are as before, for " in told.out) == (0, True)
            write_modes(place.out, Modes())
            mended = await status_with(place, lambda status: status.modes.legacy, process)
            assert mended.modes_trouble == ""
            process.terminate()
            assert await ended(process) == 0

    run(main)


# Whom it tells.


@asynccontextmanager
async def hooked() -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """A webhook, and what was posted to it."""
    posted: list[dict[str, str]] = []

    async def take(request: web.Request) -> web.Response:
        posted.append(await request.json())
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook", posted
    finally:
        await runner.cleanup()


def address(place: Place, what: str) -> str:
    """Where it says that something is served."""
    return next((line.partition(": ")[2] for line in said(place).splitlines() if line.startswith(f"{what}: ")), "")


def test_metrics_the_api_and_a_webhook_tell_of_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "template").write_text('{"said": "{title}", "all": "{text}"}')
    place, social = Place(tmp_path / "out"), Social(1, demo())

    async def main() -> None:
        async with hooked() as (url, posted), aiohttp.ClientSession() as session:
            (tmp_path / "hook").write_text(url)
            told = ("--webhook-file", str(tmp_path / "hook"), "--webhook-template-file", str(tmp_path / "template"))
            await place.put(social, range(5))
            await place.publish([*map(social.envelope, range(5)), POISON])
            async with consuming(place, "--port", "0", "--token-file", str(tmp_path / "token"), *told) as process:
                await status_with(place, lambda status: status.batches == 5 and status.failed, process)
                async with session.get(address(place, "metrics")) as metrics:
                    text = await metrics.text()
                assert "\nanalytics_events_failed_total 1.0\n" in text
                assert "\nanalytics_rabbitmq_connection_status 1.0\n" in text, "whatever the queue is"
                status = f"{address(place, 'API').rstrip('/')}/api/v1/events/status"
                async with session.get(status) as refused:
                    assert refused.status == 401
                async with session.get(status, headers={"Authorization": f"Bearer {TOKEN}"}) as answer:
                    found = await answer.json()
                assert (answer.status, found["data"]["batches"], found["data"]["failed"]) == (200, 5, 1)
                await until(lambda: posted, process)
                process.terminate()
                assert await ended(process) == 0
        assert [each["said"] for each in posted if "Buried" in each["said"]] == ["Message Buried"]
        assert TOKEN not in said(place)

    run(main)
