"""How the third edition follows ids: words of its commands, and how its rows are read back."""

import json
from pathlib import Path
from typing import Any

TABLES = (
    "instance", "player", "instance_player", "instance_character", "instance_character_weapon", "player_stats",
    "raw_instance",
)  # fmt: skip


def crawl(
    out: Path,
    url: str | None = None,
    base: str | None = None,
    stamp: str | None = None,
    rows: str | None = None,
    dev_skip: int | None = None,
    **flags: object,
) -> tuple[list[object], dict[str, str]]:
    words: list[object] = ["sequence", "crawl", "--out", out, "--private", "--json"]
    words += [url, "--id", "id"] if url else ["destiny2", "--base", base]
    if stamp:
        words += ["--time", stamp]
    words += ["--database", rows or f"sqlite:{out}/rows.db"]
    if dev_skip is not None:
        words += ["--dev", "--dev-skip", dev_skip]
    # The third edition's default of 40 requests a second is too few for what is asked of a server on loopback here.
    for name, value in ({"rps": 200} | flags).items():
        words += [f"--{name}", value]
    return words, {"BUNGIE_API_KEY": "key"}


def missed(out: Path, file: Path) -> list[object]:
    return ["tasks", out, "missed", "--export", file]


def retry(out: Path, low: int, high: int) -> list[object]:
    return ["tasks", out, "missed", "--ids", f"{low}-{high}"]


def sqlite_rows(path: Path) -> str:
    return f"sqlite:{path}"


def records(out: Path) -> list[tuple[int, str]]:
    """What was stored: (id, the record as text), as often as it is there."""
    path = Path(out) / "records.jsonl"
    found: list[tuple[int, Any]] = []
    for line in path.read_text().splitlines() if path.exists() else ():
        found.append((json.loads(line)["id"], line))
    return found
