"""A folder of `sanderling events` that something was published to, and what comes of it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from command_line import called
from events_rows import keep, sql

JOB = "spring-brand-0"


def prepared(folder: Path) -> Path:
    """A folder with a database in it, which takes a while to make."""
    keep(folder / "events.db", [])
    return folder


def consumed(folder: Path) -> dict[str, Any]:
    """Consume all that was sent; what came of it."""
    done = called("events", "consume", "--drain", "--json", "--metrics-port", "0", "--out", str(folder))
    assert done.code == 0, done.err
    told: dict[str, Any] = json.loads(done.out)
    return told


def posts(folder: Path, column: str = "permalink") -> list[str]:
    """What there are rows of."""
    return sorted(value for (value,) in sql(folder / "events.db", f"SELECT {column} FROM post_analytics"))  # noqa: S608


def errors(folder: Path) -> list[tuple[str, str]]:
    """What failed, and why."""
    return sorted(sql(folder / "events.db", "SELECT permalink, error_code FROM crawl_errors"))


def waiting(folder: Path) -> list[dict[str, Any]]:
    """The messages in the outbox."""
    found = sql(folder / "events.db", "SELECT body FROM outbox WHERE routing_key = 'data.collected' ORDER BY number")
    return [json.loads(body) for (body,) in found]


def sizes(folder: Path) -> list[int]:
    """Items of the batches that were processed."""
    return [size for (size,) in sql(folder / "events.db", "SELECT posts + errors FROM processed_events")]


def twice(values: list[str]) -> list[str]:
    """What is there more than once."""
    return [value for value, number in Counter(values).items() if number > 1]
