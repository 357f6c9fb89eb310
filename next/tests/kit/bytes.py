"""How the third edition crawls hostile hosts, and its rows read back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WELL, FAILED = 0, 1


def crawl(addresses: list[str], out: Path, patience: float) -> list[object]:
    return ["pages", "crawl", *addresses, "--out", out, "--private", "--rps", 300, "--patience", patience]


def verify(out: Path) -> list[object]:
    return ["verify", out]


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """What became of each URL: url, end, text, reason."""
    for name in ("pages.jsonl", "failed.jsonl"):
        path = Path(folder) / name
        for line in path.read_text().splitlines() if path.exists() else ():
            row = json.loads(line, parse_int=str)
            end = row.get("end") or ("moved" if row.get("moved_to") else "fetched")
            reason = f"{row.get('outcome')} {row.get('detail', '')}"
            yield {"url": row["url"], "end": end, "text": row.get("text"), "reason": reason}
