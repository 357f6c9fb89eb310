"""The commands, as docs/events.md has them; with the services of this machine where they are there."""

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from crawled_posts import CrawledPosts
from events.plays import inline, item
from kit.postgres import shared_postgres

from sanderling.events.system import count_tasks, show, tasks, verify

pytestmark = pytest.mark.real
DOCS = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
OLD = """CREATE TABLE post_analytics (id varchar(50) PRIMARY KEY, project_id uuid, platform varchar(20) NOT NULL,
    published_at timestamp NOT NULL DEFAULT now(), analyzed_at timestamp DEFAULT now(),
    overall_sentiment varchar(10) NOT NULL, overall_sentiment_score float, overall_confidence float,
    primary_intent varchar(20) NOT NULL, intent_confidence float, impact_score float NOT NULL,
    risk_level varchar(10) NOT NULL, is_viral boolean, is_kol boolean, aspects_breakdown jsonb, keywords jsonb,
    sentiment_probabilities jsonb, impact_breakdown jsonb, view_count integer, like_count integer,
    comment_count integer, share_count integer, save_count integer, follower_count integer,
    processing_time_ms integer, model_version varchar(50))"""


def sanderling(*words: object, code: int = 0, folder: Path | None = None, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "sanderling", *map(str, words)], check=False, capture_output=True, text=True,
        timeout=120, env={**os.environ, **variables}, cwd=folder,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def database() -> str:
    base, name = shared_postgres().url, f"events_{uuid4().hex[:8]}"

    async def make() -> None:
        db = await asyncpg.connect(base)
        await db.execute(f"CREATE DATABASE {name}")
        await db.close()

    asyncio.run(make())
    return base.rpartition("/")[0] + "/" + name


def query(url: str, sql: str) -> list[tuple[Any, ...]]:
    async def ask() -> list[tuple[Any, ...]]:
        db = await asyncpg.connect(url)
        rows = [tuple(row) for row in await db.fetch(sql)]
        await db.close()
        return rows

    return asyncio.run(ask())


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    section = DOCS.partition("## Five minutes")[2].partition("\n## ")[0]
    typed = "\n".join(re.findall(r"```\n(.*?)```", section, re.DOTALL)[:2])
    (tmp_path / "messages.jsonl").write_bytes(inline("7303") + b"\n")
    script = f'sanderling() {{ {sys.executable} -m sanderling "$@"; }}\nset -e\n{typed}'
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 0, done.stderr
    assert "proj_xyz" in done.stdout
    assert "7302" in (tmp_path / "posts.csv").read_text()
    sanderling("events", "publish", "messages.jsonl", "--out", "posts", folder=tmp_path)
    sanderling("events", "consume", "--out", "posts", "--drain", "--metrics-port", 0, folder=tmp_path)
    folder = tmp_path / "posts"
    assert asyncio.run(verify(folder)).faults == []
    assert len(asyncio.run(show(folder, "7303")).records) == 1
    assert asyncio.run(count_tasks(folder)) == {("retryable", "RATE_LIMITED"): 1, ("failed", "RATE_LIMITED"): 1}


def test_bad_words_are_answered_in_one_sentence(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(inline("1") + b"\n{}\n")
    for words, said in (
        (("consume", "--out", tmp_path / "o", "--pipeline", "nosuch:f"), "--pipeline: pipeline is 'nosuch:f'"),
        (("consume", tmp_path / "nosuch.json", "--out", tmp_path / "o"), "is no file"),
        (("consume", "--out", tmp_path / "o", "--results"), "--results needs --broker"),
        (("publish", bad, "--out", tmp_path / "o"), "bad.jsonl, line 2: the message has nothing"),
        (("publish", bad), "expected --out FOLDER or --broker"),
        (("replay", "--out", tmp_path / "o"), "expected --parked or --dead"),
        (("replay", "--parked", "--out", tmp_path / "nosuch"), "has no queue"),
        (("migrate", "--database", "env:DB"), "expected postgres://"),
        (("migrate", "base", "--database", "env:PG"), "add --yes"),
    ):
        assert said in sanderling("events", *words, code=2, DB="mysql://x", PG="postgres://x/y")
    sanderling(
        "events", "consume", "--out", tmp_path / "o", "--database", "env:DB", code=75, DB="postgres://127.0.0.1:1/x"
    )
    said = sanderling(
        "events", "consume", "--out", tmp_path / "o", "--broker", "env:MQ", code=75, MQ="amqp://127.0.0.1:1/"
    )
    assert "no RabbitMQ answers" in said
    said = sanderling("events", "consume", "--out", tmp_path / "o", "--objects", "http://127.0.0.1:1", code=75)
    assert "object store" in said


def test_what_is_parked_or_dead_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sanderling("events", "consume", "--out", out, "--drain", "--metrics-port", 0)
    with sqlite3.connect(out / "queue.db") as db:
        for number in range(3):
            db.execute(
                "INSERT INTO message (queue, body) VALUES (?, ?)",
                ("analytics.data.collected.parked", inline(str(number))),
            )
        db.execute(
            "INSERT INTO message (queue, body, why) VALUES (?, ?, 'bad')",
            ("analytics.data.collected.dead", inline("9")),
        )
    db.close()

    async def listed(state: str) -> list[str]:
        return [task.detail async for task in tasks(out, state, None, None)]

    assert len(asyncio.run(listed("parked"))) == 3
    assert asyncio.run(listed("dead")) == ["bad"]
    assert "3 messages are back" in sanderling("events", "replay", "--parked", "--out", out)
    assert "1 messages are back" in sanderling("events", "replay", "--dead", "--out", out)
    sanderling("events", "consume", "--out", out, "--drain", "--metrics-port", 0)
    with sqlite3.connect(out / "events.db") as db:
        assert db.execute("SELECT count(*) FROM post_analytics").fetchone() == (4,)
    db.close()


def test_a_table_of_others_is_brought_up_used_and_brought_back(tmp_path: Path) -> None:
    url = database()
    kept = UUID(int=7)
    query(url, OLD)
    query(
        url, f"INSERT INTO post_analytics VALUES ('old', '{kept}', 'TIKTOK', now(), now(), 'NEUTRAL', 0, 0,"
        " 'DISCUSSION', 0, 1.5, 'LOW', false, false, null, null, null, null, 1, 2, 3, 4, 5, 6, 7, 'x')",
    )  # fmt: skip
    before = query(
        url, "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'post_analytics'"
    )
    said = sanderling("events", "consume", "--out", tmp_path / "o", "--database", "env:DB", "--drain", code=2, DB=url)
    assert "events migrate" in said

    sanderling("events", "migrate", "--database", "env:DB", DB=url)
    (tmp_path / "b.json").write_text(json.dumps([item("new", job_id="proj_xyz-brand-0"), item("old")]))
    sanderling("events", "consume", tmp_path / "b.json", "--out", tmp_path / "o", "--database", "env:DB",
               "--metrics-port", 0, DB=url)  # fmt: skip

    rows = dict(query(url, "SELECT id, project_id FROM post_analytics"))
    assert rows == {"old": None, "new": "proj_xyz"}  # the key stays id; nobody's job says whose the old one is
    said = sanderling("events", "migrate", "base", "--yes", "--database", "env:DB", DB=url)
    assert "post_analytics.project_id: 1 that are no UUID become NULL" in said
    after = query(
        url, "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'post_analytics'"
    )
    assert sorted(after) == sorted(before)
    assert query(url, "SELECT to_regclass('crawl_errors')::text") == [(None,)]
    sanderling("events", "migrate", "--database", "env:DB", DB=url)
    sanderling("events", "migrate", "--database", "env:DB", DB=url)  # again: nothing to do


def test_operators_run_alembic_themselves(tmp_path: Path) -> None:
    url = database()
    ini = "[alembic]\nscript_location = sanderling:events/migrations\nsqlalchemy.url = {}\n"
    (tmp_path / "alembic.ini").write_text(ini.format(url.replace("postgres://", "postgresql+asyncpg://")))
    for words in (["upgrade", "head"], ["downgrade", "-1"], ["upgrade", "head"]):
        done = subprocess.run(
            [sys.executable, "-m", "alembic", *words], cwd=tmp_path, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert query(url, "SELECT version_num FROM sanderling_events_version") == [("0001",)]


def test_kills_lose_nothing_and_store_nothing_twice(tmp_path: Path) -> None:
    """One queue in a folder, and its consumer killed again and again."""
    out, world = tmp_path / "out", CrawledPosts(3)
    sanderling("events", "consume", "--out", out, "--drain", "--metrics-port", 0)
    truth: dict[str, str] = {}
    failed = 0
    with sqlite3.connect(out / "queue.db") as db:
        for number in range(60):
            message, path, body, items = world.batch(number, 20)
            place = out / "objects" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(body)
            truth |= {each["meta"]["id"]: each["meta"]["fetch_status"] for each in items}
            failed += sum(each["meta"]["fetch_status"] == "error" for each in items)
            for _ in range(1 + (number % 5 == 0)):
                db.execute("INSERT INTO message (queue, body) VALUES ('analytics.data.collected', ?)", (message,))
    db.close()
    words = [
        sys.executable,
        "-m",
        "sanderling",
        "events",
        "consume",
        "--out",
        str(out),
        "--drain",
        "--metrics-port",
        "0",
    ]
    for number in range(5):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(world.random.uniform(0.5, 1.6) + 0.1 * number)
        process.send_signal(signal.SIGKILL)
        process.wait()
    sanderling(*words[3:])

    with sqlite3.connect(out / "events.db") as db:
        assert dict(db.execute("SELECT id, fetch_status FROM post_analytics")) == truth
        assert db.execute("SELECT count(*) FROM crawl_errors").fetchone() == (failed,)
        assert db.execute("SELECT count(*) FROM post_comments").fetchone() == (3 * (len(truth) - failed),)
        assert db.execute("SELECT count(*) FROM event_attempts").fetchone() == (0,)
    db.close()
    with sqlite3.connect(out / "queue.db") as db:
        assert db.execute("SELECT count(*) FROM message").fetchone() == (0,)
    db.close()
