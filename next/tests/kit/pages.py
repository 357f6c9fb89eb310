"""How the third edition crawls pages: its words, its exit codes, and its rows read back."""

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

WELL, FAILED, WAITING, STOPPED = 0, 1, 3, 130
Words = list[object]


def crawl(
    addresses: list[str],
    out: Path,
    rps: float = 500,
    depth: int | None = None,
    most: int | None = None,
    patience: float | None = None,
) -> Words:
    """Begin a crawl, or go on with it."""
    flags = {"--rps": rps, "--depth": depth, "--max-pages": most, "--patience": patience}
    given = [word for flag, value in flags.items() if value is not None for word in (flag, value)]
    return ["pages", "crawl", *addresses, "--out", out, "--private", *given]


def resume(out: Path) -> Words:
    """Go on with a folder, and say nothing more."""
    return ["pages", "crawl", "--out", out, "--private"]


def verify(out: Path) -> Words:
    return ["verify", out]


def export(out: Path, to: Path) -> Words:
    return ["export", out, "--to", to]


def forget(out: Path, urls: list[str]) -> Words:
    """Forget, in the folder and in its exports, which are named."""
    exports = [*out.glob("e.sqlite"), *out.parent.glob("e.jsonl")]
    return ["forget", out, *urls, *(word for path in exports for word in ("--export", path))]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """What became of each URL: url, end, status, title, text, links, to."""
    for row in (*lines(Path(folder) / "pages.jsonl"), *lines(Path(folder) / "failed.jsonl")):
        end = row.get("end") or ("moved" if row.get("moved_to") else "fetched")
        same = {key: row.get(key) for key in ("url", "status", "title", "text", "links")}
        yield {"end": end, "to": row.get("moved_to"), "reason": f"{row.get('outcome')} {row.get('detail', '')}", **same}


def exported(path: Path) -> list[str]:
    """The URLs of an export, one for each record."""
    if path.suffix == ".jsonl":
        return [row["url"] for row in lines(path)]
    if path.suffix == ".csv":
        with path.open(newline="") as source:
            return [row["url"] for row in csv.DictReader(source)]
    with closing(sqlite3.connect(path)) as database:
        return [url for (url,) in database.execute("SELECT url FROM records")]


def stores(folder: Path) -> dict[str, list[Path]]:
    """The files that hold rows, and those that hold the ledger."""
    return {"rows": [Path(folder) / "pages.jsonl"], "ledger": [Path(folder) / "crawl.db"]}
