"""The drill of docs/events.md, run as it is written there: roll out, roll back, tables down and up, replay.

It ends with every item of the simulated crawler in one row, as if nothing had happened.
"""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from shell_examples import Example, Running, blocks, called, inside

BEGIN, BACK, TABLES, RESTORE, AGAIN = (block for block in blocks("docs/events.md") if "drill" in block[0].text)


def test_the_drill_ends_with_every_item_in_one_row(tmp_path: Path) -> None:
    with inside(tmp_path):
        published, mode = (run(example) for example in BEGIN[:-1])
        consumed = rolled_back(BEGIN[-1])
        _, status, down, up = (run(example) for example in TABLES)
        for example in RESTORE:
            run(example)
        half_a_minute_passes("drill/analytics.data.collected.db")
        _, would, will, _ = (run(example) for example in AGAIN)

        found = rows("drill/events.db")
    assert "canary  100% -> 50%" in mode
    assert 0 < consumed < 40, "some of the batches, and not all of them"
    assert "not yet" not in status
    assert "at revision 0004 now" in down
    assert "at revision 0005 now" in up
    assert f"{consumed} events would be processed again" in would
    assert f"{consumed} events will be processed again" in will
    assert found == [int(number) for number in re.findall(r"(\d+)  (?:posts|errors)", published)]


def rolled_back(consume: Example) -> int:
    """Consume for a while, roll back beside it, and stop; say how many batches that were."""
    consumer = Running(consume.ours or [])
    try:
        consumer.until_so(lambda: all_put_off(standing().get("queue")))
        for example in BACK:
            run(example)
        consumer.until_so(lambda: not standing()["modes"]["new"])
        assert re.search(r"modes  legacy, inline\n", called(["status", "drill"]).out)
    finally:
        code = consumer.stop()
    assert code == 0, consumer.said
    return int(standing()["batches"])


def all_put_off(queue: dict[str, int] | None) -> bool:
    """Whether what is left waits for another mode, so that nothing is under way when it is switched off."""
    return queue is not None and queue["delayed"] > 0 and not queue["ready"] and not queue["taken"]


def run(example: Example) -> str:
    """Do what it says, and return what it said."""
    match example.words:
        case ["cp", "-r", source, target]:
            shutil.copytree(source, target)
        case ["rm", "-r", folder]:
            shutil.rmtree(folder)
        case ["mv", source, target]:
            Path(source).rename(target)
        case _:
            done = called(example.ours or [])
            assert done.code == 0, f"{example}\n{done.err}"
            return done.out
    return ""


def standing() -> dict[str, Any]:
    """What the consumer has written of itself; empty before it has."""
    path = Path("drill/status.json")
    return dict(json.loads(path.read_text())["facts"]) if path.exists() else {}


def half_a_minute_passes(path: str) -> None:
    """What was put off comes back as soon as it would then; the only thing that is not waited for."""
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute("UPDATE letter SET at = at - 30").rowcount


def rows(path: str) -> list[int]:
    """How many posts and errors there are."""
    asked = "SELECT (SELECT count(*) FROM post_analytics), (SELECT count(*) FROM crawl_errors)"
    with closing(sqlite3.connect(path)) as database:
        return list(database.execute(asked).fetchone())
