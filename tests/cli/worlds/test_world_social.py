"""The command as a person runs it; what it says must come of it comes of it."""

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import aio_pika
import obstore
import pytest
from command_line import called, commands
from services.s3 import S3, hello

from sanderling.cli.worlds import world
from sanderling.cli.worlds.social import FATES
from sanderling.clock import SystemClock
from sanderling.stores.objects import open_objects
from sanderling.stores.queue import open_queue
from sanderling.stores.rabbitmq import DELAYS
from sanderling.worlds.social import Social
from sanderling.worlds.social_envelopes import BUCKET
from sanderling.worlds.social_plan import PRESETS, demo
from sanderling.worlds.social_truth import BatchFate


def stored(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as db:
        ((posts,),) = db.execute("SELECT count(*) FROM post_analytics")
        ((errors,),) = db.execute("SELECT count(*) FROM crawl_errors")
    return posts, errors


def test_what_it_says_must_come_of_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Published, consumed, published again and consumed again: the same rows."""
    monkeypatch.setattr("sanderling.cli.worlds.social.AT_ONCE", 4)  # a message that comes twice is sent twice
    flags = ("--out", str(tmp_path), "--batches", "25")
    done = called("world", "social", *flags)

    assert (done.code, done.err) == (0, "")
    assert "Published 25 batches of 456 items in " in done.out
    (command,) = commands(done.out)
    assert command == ["events", "consume", "--drain", "--out", str(tmp_path)]
    waiting = called("status", str(tmp_path))
    assert waiting.code == 2, "nothing was consumed yet"
    first = json.loads(called(*command, "--json", "--metrics-port", "0", "@log-level", "error").out)
    said = json.loads(called("world", "social", *flags, "--json").out)
    assert stored(tmp_path / "events.db") == (said["posts"], said["errors"])
    assert first["posts"] + first["errors"] == said["items"]
    assert first["messages"]["received"] == said["messages"] == 25 + said["again"] > 25
    again = json.loads(called(*command, "--json", "--metrics-port", "0", "@log-level", "error").out)
    assert (again["batches"], again["messages"]["duplicates"]) == (0, said["messages"])
    assert stored(tmp_path / "events.db") == (said["posts"], said["errors"])


def test_the_batches_are_in_the_bucket_that_was_named(tmp_path: Path) -> None:
    flags = ("--out", str(tmp_path), "--batches", "10", "@events.bucket", "mine")
    done = called("world", "social", *flags)

    assert (done.code, done.err) == (0, "")
    assert [each.name for each in (tmp_path / "objects").iterdir() if not each.name.startswith(".")] == ["mine"]
    (command,) = commands(done.out)
    said = json.loads(called(*command, "--json", "--metrics-port", "0", "@log-level", "error").out)
    assert (said["batches"], said["messages"]["failed"]) == (10, 0)


def test_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    done = called("world", "social", "--out", str(tmp_path), "--batches", "12", "--seed", "7", "--json")
    said, totals = json.loads(done.out), Social(7, demo()).totals(0, 12)

    assert (done.code, done.err) == (0, "")
    assert (said["batches"], said["items"], said["posts"], said["errors"]) == (
        12,
        totals.items,
        totals.posts,
        totals.errors,
    )
    assert sum(said["codes"].values()) == said["errors"]
    assert sum(said["platforms"].values()) == sum(said["projects"].values()) == said["posts"]
    assert said["messages"] == 12 + said["again"]


def test_what_nobody_can_read_is_told_apart(tmp_path: Path) -> None:
    done = called("world", "social", "--out", str(tmp_path), "--preset", "hostile", "--batches", "60")
    said = json.loads(
        called("world", "social", "--out", str(tmp_path / "b"), "--preset", "hostile", "--batches", "60", "--json").out
    )

    assert said["messages"] > 60
    dead = {fate: said["dead"][fate.value] for fate in FATES}
    assert min(dead.values()) > 0
    for fate, number in dead.items():
        assert f"  {number:>10,}  messages {FATES[fate]}" in done.out.splitlines()
    social = Social(1, PRESETS["hostile"]())
    fates = [social.truth(each.number).fate for each in social.deliveries(60)]
    assert dead == {fate: fates.count(fate) for fate in FATES}
    assert BatchFate.READ not in dead


def test_it_keeps_to_a_rate_and_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.cli.worlds.social.TOLD_EVERY", 0.0)
    began = SystemClock().now()
    done = called("world", "social", "--out", str(tmp_path), "--batches", "10", "--rate", "20")

    assert SystemClock().now() - began >= 0.5, "the last one is due then, however fast the machine is"
    assert "10 of 10 batches, " in done.err


def test_what_can_be_chosen_is_what_there_is() -> None:
    assert world.PRESETS["social"] == tuple(PRESETS)


def test_the_help_has_an_example() -> None:
    done = called("world", "social", "--help")

    assert "\n    sanderling world site --hosts 3\n" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--preset", "other"], "--preset"),
        (["--batches", "0"], "--batches"),
        (["--rate", "0"], "--rate"),
        (["--seed", "x"], "--seed"),
        (["--queue", "redis://localhost"], "--queue"),
        (["--objects", "ftp://localhost"], "--objects"),
        (["@events.bucket", "a/b"], "bucket"),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = called("world", "social", "--out", str(tmp_path), *arguments)

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err


def test_a_folder_that_cannot_be_used_is_a_message_and_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")

    done = called("world", "social", "--out", str(tmp_path / "file"))

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"sanderling: cannot use {tmp_path / 'file'}: ")


# Real servers.


@pytest.fixture
def name(rabbitmq: str) -> Iterator[str]:
    """Of a queue and of an exchange: nobody else's, in a server that may be somebody's."""
    name = f"sanderling-test-{uuid4().hex}"
    yield name
    asyncio.run(delete(rabbitmq, name))


async def delete(url: str, name: str) -> None:
    later = (f"{name}.later.{seconds:g}s" for seconds in DELAYS)
    async with asyncio.timeout(300), await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        for each in (name, f"{name}.dead", *later):
            await channel.queue_delete(each, if_unused=False, if_empty=False)
        await channel.exchange_delete(name)


async def everything(url: str, name: str) -> Counter[bytes]:
    """All messages of a queue."""
    queue, found = open_queue(url, name, SystemClock()), Counter[bytes]()
    try:
        async with asyncio.timeout(300):
            while taken := await queue.take(100, 0.3):
                found.update(each.body for each in taken)
                await queue.done(taken)
    finally:
        await queue.close()
    return found


async def fetched(url: str, paths: list[str]) -> list[bytes]:
    objects = open_objects(url)
    try:
        return [(await objects.get(BUCKET, path.removeprefix(f"{BUCKET}/"), 1 << 24)).body for path in paths]
    finally:
        await objects.close()


def test_real_servers_get_it_through_the_exchange(tmp_path: Path, rabbitmq: str, s3: S3, name: str) -> None:
    seed = 4711  # nobody else's objects, in a server that may be somebody's
    social = Social(seed, demo())
    place = s3.endpoint.replace("://", f"://{quote(s3.access_key_id, '')}:{quote(s3.secret_access_key, '')}@")
    hello(f"{place}/{BUCKET}", 10)
    done = called(
        *("world", "social", "--out", str(tmp_path), "--batches", "30", "--seed", str(seed), "--json"),
        *(
            "--queue",
            rabbitmq,
            "@events.queue-name",
            name,
            "@events.exchange",
            name,
            "@events.routing-key",
            "test.collected",
        ),
        *("--objects", f"s3+{place}"),
    )

    assert done.code == 0, done.err
    assert asyncio.run(everything(rabbitmq, name)) == Counter(each.envelope for each in social.deliveries(30))
    batches = [each for each in map(social.batch, range(30)) if each.body is not None]
    assert asyncio.run(fetched(f"s3+{place}", [each.path for each in batches])) == [each.body for each in batches]
    obstore.delete(replace(s3, bucket=BUCKET).store(), [each.path.removeprefix(f"{BUCKET}/") for each in batches])
    assert s3.secret_access_key not in done.out + done.err


def test_a_server_that_is_not_there_is_a_message_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sanderling.cli.reach.PATIENCE", 0.0)

    done = called("world", "social", "--out", str(tmp_path), "--queue", "amqp://me:hidden@127.0.0.1:1/")

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("sanderling: --queue: ")
    assert "hidden" not in done.err
