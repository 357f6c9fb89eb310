"""How the third edition takes events: words, variables, tables, queues."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

POST = "id"
EXCHANGE, QUEUE, KEY = "smap.events", "analytics.data.collected", "data.collected"
DEAD = QUEUE + ".dead"
UP, DOWN = "head", "base"


def consume(
    folder: Path,
    database: str = "",
    queue: str = "",
    objects: str | Path = "",
    drain: bool = False,
    metrics: int = 0,
    name: str = "",
    tries: int = 0,
    variables: dict[str, str] | None = None,
) -> tuple[list[object], dict[str, str]]:
    """Take what is in the queue; without servers all is in the folder."""
    words: list[object] = ["events", "consume", "--out", folder, "--metrics-port", metrics]
    words += ["--database", "env:KIT_DATABASE"] if database else []
    words += ["--broker", "env:KIT_BROKER"] if queue else []
    words += ["--objects", f"file:{objects}"] if objects else []
    words += ["--queue-name", name] if name else []
    words += ["--tries", tries] if tries else []
    words += ["--drain"] if drain else []
    return words, {"KIT_DATABASE": database, "KIT_BROKER": queue, **(variables or {})}


def migrate(to: str, folder: Path, database: str, down: bool = False) -> tuple[list[object], dict[str, str]]:
    """Bring the database to a revision."""
    words: list[object] = ["events", "migrate", to, "--database", "env:KIT_DATABASE", *(["--yes"] if down else [])]
    return words, {"KIT_DATABASE": database}


def objects(folder: Path) -> Path:
    """Where batches lie without an object store: BUCKET/KEY under this."""
    return folder / "objects"


def database(folder: Path) -> Path:
    return folder / "events.db"


def put(folder: Path, bodies: Sequence[bytes]) -> None:
    """Put messages into the queue of the folder, which exists: somebody has consumed there before."""
    with sqlite3.connect(folder / "queue.db", timeout=20) as base:
        base.executemany("INSERT INTO message (queue, body) VALUES (?, ?)", [(QUEUE, body) for body in bodies])
    base.close()


def waiting(folder: Path) -> tuple[int, int]:
    """How many messages wait in the queue of the folder, and how many were given up."""
    with sqlite3.connect(folder / "queue.db", timeout=20) as base:
        found = dict(base.execute("SELECT queue, count(*) FROM message GROUP BY queue"))
    base.close()
    return sum(number for name, number in found.items() if name != DEAD), found.get(DEAD, 0)
