"""What earlier releases left in folders, databases and queues is gone on with: nothing is lost, and nothing is twice.

`release_folders.py` makes such a folder with the release it is named after, and stops every system in the middle of
its work. None is made anew by a later release.
"""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
import release_folders
from command_line import called
from fleet_commands import archived, live
from release_folders import HALF, IDS, MISSED, PAGES, Commands, Servers, Upstream

from sanderling.limit import PaceRules

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if path.name[0].isdigit())


class Left:
    """A copy of what a release left, and what its systems have in their databases."""

    def __init__(self, folder: Path, servers: Servers | None) -> None:
        self.folder = folder
        self.servers = servers
        self.commands = Commands(folder, servers.flags() if servers else {})

    def rows(self, file: str, question: str) -> list[tuple[Any, ...]]:
        """What the database says: that file, or the server."""
        if self.servers is None:
            with closing(sqlite3.connect(self.folder / file)) as db:
                return db.execute(question).fetchall()
        return asyncio.run(self._ask(self.servers.postgres, question))

    async def _ask(self, url: str, question: str) -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(question)]
        finally:
            await connection.close()


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


@pytest.fixture(params=["embedded", "servers"])
def left(request: pytest.FixtureRequest, release: Path, tmp_path: Path) -> Iterator[Left]:
    shutil.copytree(release / request.param, tmp_path, dirs_exist_ok=True)
    if request.param == "embedded":
        yield Left(tmp_path, None)
        return
    urls = (request.getfixturevalue(name) for name in ("postgres", "rabbitmq", "redis"))
    servers = Servers(f"sanderling-test-{uuid4().hex}", *urls)
    asyncio.run(servers.create())
    try:
        asyncio.run(servers.restore(tmp_path))
        yield Left(tmp_path, servers)
    finally:
        asyncio.run(servers.drop())


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """The upstream that every system was stopped at."""
    monkeypatch.setattr(PaceRules, "up_to", lambda rps: PaceRules(initial_rps=min(rps, 50.0), max_rps=rps))
    with release_folders.upstream() as server:
        yield server


def done(words: list[str]) -> str:
    """What a command says that ends well."""
    ended = called(*words)
    assert ended.code == 0, f"{words}\n{ended.out}{ended.err}"
    return ended.out


def test_pages_asks_for_the_rest_and_has_every_page_once(release: Path, tmp_path: Path, site: Upstream) -> None:
    shutil.copytree(release / "embedded", tmp_path, dirs_exist_ok=True)
    place = tmp_path / "pages"
    before = [json.loads(line)["url"] for line in (place / "pages.jsonl").read_text().splitlines()]

    done(Commands(tmp_path).pages())

    urls = [json.loads(line)["url"] for line in (place / "pages.jsonl").read_text().splitlines()]
    assert sorted(urls) == sorted(site.url(path) for path in ["/", *(f"/page/{number}" for number in range(PAGES))])
    assert 1 < len(before) < len(urls)
    assert not {site.url(path) for path in site.asked} & set(before)
    done(["verify", str(place)])


def test_sequence_has_every_id_once(left: Left, site: Upstream) -> None:
    done(left.commands.sequence())

    stored = left.rows("sequence/rows.db", "SELECT id FROM record ORDER BY id")
    assert [number for (number,) in stored] == list(range(1, IDS + 1))
    asked = {int(path.rpartition("/")[2]) for path in site.asked}
    assert asked & set(range(1, 2 * HALF + 1)) <= {MISSED}
    missed = done(["sequence", "missed", "list", "--out", str(left.folder / "sequence")])
    assert MISSED in asked or str(MISSED) in missed


def test_repos_has_every_repo_once(left: Left) -> None:
    with release_folders.fleet() as hosts:
        done(left.commands.repos())

        assert archived(left.folder / "repos") == live(hosts.fleet)
        asked = sum(each.asked for each in hosts.tallies.values())
    assert 0 < asked < len(list(hosts.fleet.directory()))


def test_polling_keeps_targets_and_rows(left: Left, site: Upstream) -> None:
    words = left.commands.polling()
    interval = words.index("--set")
    words[interval : interval + 2] = ["--once"]
    before = left.rows("polling/polling.db", "SELECT id FROM polling_targets")

    done(words)

    assert left.rows("polling/polling.db", "SELECT id FROM polling_targets ORDER BY id") == sorted(before)
    assert "/scores/cup/match/2" in site.asked


def test_events_has_every_item_once(left: Left) -> None:
    expected = json.loads((left.folder / "events" / "expected.json").read_text())

    done(left.commands.events())

    ((posts,),) = left.rows("events/events.db", "SELECT count(*) FROM post_analytics")
    ((errors,),) = left.rows("events/events.db", "SELECT count(*) FROM crawl_errors")
    assert (posts, errors) == (expected["posts"], expected["errors"])
