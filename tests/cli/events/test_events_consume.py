"""`sanderling events consume` as a person runs it: its words, and whom it tells."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from command_line import called, commands, here, run
from events_commands import Place, consuming, ended, proven, said, status_with, until

from sanderling.cli import reach
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo

KEYS = [
    *("seconds", "messages", "batches", "posts", "errors", "categories", "codes", "sentiments", "skipped", "sent"),
    *("outbox", "queue", "trouble", "out"),
]
POISON = b'{"event_type": "project.created", "payload": {}}'
TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105 - of nothing


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
        assert summary["messages"] == {
            "received": 11,
            "processed": 10,
            "duplicates": 0,
            "reused": 0,
            "postponed": 0,
            "failed": 1,
        }
        assert (summary["batches"], summary["posts"], summary["errors"]) == (10, posts, len(items) - posts)
        assert summary["queue"] == {"ready": 0, "taken": 0, "delayed": 0, "dead": 1}
        assert (summary["outbox"], summary["trouble"], summary["out"]) == (0, ["1 message given up"], str(place.out))
        await proven(place, social, range(10))

        words = await here("events", "consume", *place.flags(), "--drain")
        assert (words.code, "Consumed for" in words.out) == (0, True)
        dead, onward = commands(words.out)
        assert (dead[:3], onward[:2]) == (["dead", "list", dead[2]], ["events", "consume"])
        assert POISON in [each.body for each in await place.dead()]
        assert (await here(*dead)).code == 0

    run(main)


USAGE = [
    (("--database", "mysql://localhost/x"), "--database: 'mysql' is no kind of database; expected sqlite:PATH or"),
    (
        ("--database", "postgresql://u:sesame@h:99999/x"),
        "--database: the address of the PostgreSQL is no URL",
    ),
    (("--queue", "redis://localhost"), "--queue: 'redis' is no queue with a place; expected sqlite:FOLDER or amqp:"),
    (("--queue", "amqp://user:sesame@"), "--queue: the URL of the RabbitMQ names no host; expected"),
    (("--objects", "ftp://localhost"), "--objects: 'that' is no object store with a place; expected file:FOLDER"),
    (("--objects", "s3+http://key:sesame@h/bucket"), "--objects: the URL of h goes on behind its host"),
    (("@queue-name", "a/b"), "'a/b' cannot be the name of a queue"),
    (("@bind", "0.0.0.0"), "bind is for the API, and nothing is served; expected --port as well"),  # noqa: S104 - refused
    (("--port", "0", "@bind", "0.0.0.0"), "bind: 0.0.0.0 can be reached from other machines and there is no token"),  # noqa: S104 - refused
    (("--port", "0", "@token-file", "nowhere"), "the token's file nowhere: No such file or directory"),
    (("@webhook-file", "nowhere"), "webhook-file and webhook-template-file go together; one is missing"),
    (("@discord-file", "nowhere"), "discord-file: cannot read nowhere"),
    (("@lexicon", "nowhere"), "nowhere: cannot be read: No such file or directory"),
    (
        ("--queue", "amqp://127.0.0.1:1", "--batches", "100", "@prefetch", "1000"),
        "prefetch: 1,000 for each of 100 batches are 100,000 messages, expected at most 65,535",
    ),
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
            told = ("@webhook-file", str(tmp_path / "hook"), "@webhook-template-file", str(tmp_path / "template"))
            await place.put(social, range(5))
            await place.publish([*map(social.envelope, range(5)), POISON])
            async with consuming(place, "--port", "0", "@token-file", str(tmp_path / "token"), *told) as process:
                await status_with(place, lambda status: status.batches == 5 and status.messages.failed, process)
                async with session.get(address(place, "metrics")) as metrics:
                    text = await metrics.text()
                assert "\nanalytics_events_failed_total 1.0\n" in text
                assert "\nanalytics_rabbitmq_connection_status 1.0\n" in text, "whatever the queue is"
                status = f"{address(place, 'API').rstrip('/')}/api/v1/events/status"
                async with session.get(status) as refused:
                    assert refused.status == 401
                async with session.get(status, headers={"Authorization": f"Bearer {TOKEN}"}) as answer:
                    found = await answer.json()
                told = found["data"]
                assert (answer.status, told["facts"]["batches"], told["work"]["failed"]) == (200, 5, 1)
                await until(lambda: posted, process)
                process.terminate()
                assert await ended(process) == 0
        assert [each["said"] for each in posted if "Buried" in each["said"]] == ["Message Buried"]
        assert TOKEN not in said(place)

    run(main)
