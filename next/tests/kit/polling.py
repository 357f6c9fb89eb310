"""How the third edition polls: words, tables, routes."""

import json
import sqlite3
from pathlib import Path
from typing import Any

TARGETS = {
    "table": "ingest_targets",
    "type": "type",
    "sourceId": "sourceId",
    "enabled": "enabled",
    "intervalMs": "intervalMs",
}
SETTINGS = ("server_settings", "key", "value")
FIELDS = {"Laps": ("events", "laps"), "TargetLaps": ("races", "targetLaps")}
TABLES = ["events", "eventPilots", "pilots", "channels", "rounds", "races", "pilotChannels", "detections", "laps"]
STREAM = "/stream?since=0"
INGEST = ("snapshot", "full", "results", "race/{race}")
REFUSED = [
    ("GET", "/admin/scheduler/targets"),
    ("POST", "/ingest/full"),
    ("POST", "/ingest/purge"),
    *(("POST", f"/ingest/events/{{event}}/{each}") for each in INGEST),
    ("POST", "/promote"),
    ("PATCH", "/targets/race/{race}"),
    ("PATCH", "/rows/races/{race}"),
    ("PUT", "/settings/raceActiveMs"),
    ("DELETE", "/settings/raceActiveMs"),
]
ALLOWED = [
    ("GET", "/admin/scheduler/targets"),
    ("GET", "/targets"),
    ("POST", "/ingest/events/{event}/race/{race}"),
]


def run(
    server: str, folder: Path, api: int, quick: bool = False, token: str = "", bind: str = ""
) -> tuple[list[object], dict[str, str]]:
    """Poll, and serve the routes; `quick` requests everything each second."""
    flags = ("-ingest-full-interval=1s", "-ingest-race-idle=1s", "-ingest-results-interval=1s", "-ingest-burst=8")
    words = ["polling", "run", server, "--out", folder, "--port", api, *(flags if quick else ())]
    words += ["--bind", bind] if bind else []
    return [*words, *(["--token", "env:KIT_TOKEN"] if token else [])], {"KIT_TOKEN": token} if token else {}


def database(folder: Path) -> Path:
    return folder / "polling.db"


def milliseconds(number: int) -> int:
    """An interval as its column has it."""
    return number


def rows(folder: Path, table: str) -> dict[str, dict[str, Any]]:
    """The rows of a table by the upstream's id."""
    with sqlite3.connect(f"file:{database(folder)}?mode=ro", uri=True, timeout=5) as base:
        base.row_factory = sqlite3.Row
        return {row["sourceId"]: dict(row) for row in base.execute(f'SELECT * FROM "{table}"')}


def times(row: dict[str, Any]) -> tuple[bool, bool]:
    """Whether a stored race has started, and ended."""
    return row["start"] is not None, row["end"] is not None


def result(row: dict[str, Any]) -> tuple[str, str]:
    """The race and the pilot of a stored result."""
    return row["race"], row["pilot"]


def change(kind: str, number: str, data: str) -> tuple[int, str, str, str] | None:
    """Of an event of the stream: its number, the table, the row's id, what happened; None if it is no change."""
    if kind != "change":
        return None
    said = json.loads(data)
    return int(number), said["table"], said["key"], said["op"]
