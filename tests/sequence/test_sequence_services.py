"""The whole road with real servers: crawl and store as two processes, what is between them, and a chat that is told."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from service_crawl import (
    FIRST,
    Own,
    crawl_flags,
    expected,
    finished,
    own_names,
    playing,
    raids_in,
    report,
    rules,
    running,
    status_with,
)
from services.clickhouse import fresh_database
from services.process import free_ports

from sanderling.stores.clickhouse import open_clickhouse
from sanderling.stores.clickhouse_raw import ClickhouseRaw
from sanderling.worlds.game import GameServer
from sanderling.worlds.game_schedule import Hole

IDS = 200


@pytest.fixture
def own(rabbitmq: str, postgres: str) -> Iterator[Own]:
    with own_names(rabbitmq, postgres) as own:
        yield own


def test_every_raid_is_stored_once_with_all_its_parts_and_what_the_api_said(
    own: Own, clickhouse: str, tmp_path: Path
) -> None:
    async def main(raw_url: str) -> None:
        async with playing(rules()) as server:
            game, until, out = server.game, server.game.first + IDS - 1, tmp_path / "crawl"
            crawl = crawl_flags(server, out, until, "--no-store", *own.queue())
            store = ["store", "--out", str(tmp_path / "store"), *own.queue(), *own.rows(), "--raw", raw_url]
            async with running(*crawl) as crawling, running(*store) as storing:
                crawled = await finished(crawling)
                end = (await status_with(out, lambda _: True)).next  # the last word of one that has ended
                raids = raids_in(game, game.first, end)
                await own.stores_at_least(len(raids))
                storing.terminate()
                stored = await finished(storing)

            assert (crawled.code, crawled.said["complete"], crawled.said["published"]) == (0, True, len(raids))
            assert crawled.said["cursor"] > until
            assert (stored.code, stored.said["stored"], stored.said["duplicates"]) == (0, len(raids), 0)
            assert await own.tables() == expected(game, raids)
            said = {number: report(game, number) for number in raids}
            assert await raw_of(raw_url) == said
            assert await parts_of(own) == sum_parts(said.values())

    with fresh_database(clickhouse) as raw_url:
        asyncio.run(main(raw_url))


async def raw_of(url: str) -> dict[int, bytes]:
    """All that ClickHouse has; as hexadecimal digits, since its client takes every text for UTF-8."""
    raw = ClickhouseRaw(clickhouse := open_clickhouse(url))
    found = clickhouse.rows("SELECT instance_id, hex(data) FROM raw_instance FINAL")
    said = {number: bytes.fromhex(data) for number, data in found}
    try:
        assert await raw.raw(min(said)) == said[min(said)]
    finally:
        await raw.close()
    assert len(found) == len(said)
    return said


async def parts_of(own: Own) -> tuple[int, int, int]:
    tables = await own.tables()
    return len(tables.instance_player), len(tables.instance_character), len(tables.instance_character_weapon)


def sum_parts(reports: Iterable[bytes]) -> tuple[int, int, int]:
    """Players, characters and weapons, counted in the plainest way."""
    players, characters, weapons = 0, 0, 0
    for each in map(json.loads, reports):
        players += len({entry["player"]["destinyUserInfo"]["membershipId"] for entry in each["entries"]})
        characters += len(each["entries"])
        for entry in each["entries"]:
            weapons += len({weapon["referenceId"] for weapon in entry["extended"].get("weapons") or ()})
    return players, characters, weapons


# Alerts.

WEBHOOK = "/api/webhooks/1/secret"
ROLE = "4242"
COLOURS = {"Starting up...": 3447003, "Workers Starting": 3447003, "Gap Mode Block Skip": 16737792}


class Chat:
    """What was posted; without an answer if it is `deaf`."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.posts: list[web.Request] = []
        self.messages: list[dict[str, Any]] = []
        self._deaf = deaf

    async def take(self, request: web.Request) -> web.Response:
        self.posts.append(request)
        self.messages.append(await request.json())
        if self._deaf:
            await asyncio.Event().wait()
        return web.json_response({"id": "1"})

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """The address of its webhook."""
        app = web.Application()
        app.router.add_post(WEBHOOK, self.take)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}{WEBHOOK}"
        finally:
            await runner.cleanup()


def test_a_chat_is_told_of_workers_and_of_a_gap_that_was_skipped(tmp_path: Path) -> None:
    gap, chat = Hole(FIRST + 150, 3000), Chat()

    async def main() -> None:
        async with playing(rules(raids=0.04, holes=(gap,))) as server, chat.open() as url:
            flags = crawl_flags(server, tmp_path, gap.end + 50, "@discord-role", ROLE)
            async with running(*flags, environment={"SANDERLING_DISCORD_WEBHOOK": url}) as crawling:
                done = await finished(crawling)
            assert (done.code, done.said["complete"], done.said["gaps"]) == (0, True, 1)
            assert url not in done.err

    asyncio.run(main())
    assert {post.query_string for post in chat.posts} == {"wait=true"}
    assert {post.content_type for post in chat.posts} == {"application/json"}
    by_title = {message["embeds"][0]["title"]: message for message in chat.messages}
    for title, colour in COLOURS.items():
        (embed,) = by_title[title]["embeds"]
        assert (embed["color"], embed["footer"]) == (colour, {"text": "sanderling"})
        assert datetime.fromisoformat(embed["timestamp"]).tzinfo is not None
    assert fields(by_title["Workers Starting"]).keys() == {"Count", "Period", "Current Instance Id"}
    skipped = fields(by_title["Gap Mode Block Skip"])
    assert (skipped["Previous Id"], skipped["New Starting Id"]) == (f"`{gap.first - 1}`", f"`{gap.end}`")
    assert 0 < int(skipped["Minimum Block Size"]) <= gap.size
    pings = {title: message.get("content") for title, message in by_title.items()}
    assert pings["Gap Mode Block Skip"] == f"<@&{ROLE}>"
    assert pings["Workers Starting"] is None


def fields(message: dict[str, Any]) -> dict[str, str]:
    """The fields of its embed, each as Discord wants it."""
    (embed,) = message["embeds"]
    assert all(each.keys() == {"name", "value", "inline"} for each in embed["fields"])
    return {each["name"]: each["value"] for each in embed["fields"]}


def test_a_chat_that_never_answers_or_is_not_there_holds_up_no_crawl(tmp_path: Path) -> None:
    chat = Chat(deaf=True)

    async def crawl(server: GameServer, out: Path, url: str) -> None:
        flags = crawl_flags(server, out, FIRST + 59)
        async with running(*flags, environment={"SANDERLING_DISCORD_WEBHOOK": url}) as crawling:
            done = await finished(crawling)
        assert (done.code, done.said["complete"]) == (0, True)
        assert done.said["stored"] == done.said["answers"]["success"] > 0

    async def main() -> None:
        (nobody,) = free_ports(1)
        async with playing(rules()) as server, chat.open() as url, asyncio.TaskGroup() as group:
            group.create_task(crawl(server, tmp_path / "deaf", url))
            group.create_task(crawl(server, tmp_path / "nobody", f"http://127.0.0.1:{nobody}{WEBHOOK}"))

    asyncio.run(main())
    assert len(chat.posts) == 1, "and that one has no answer yet"
