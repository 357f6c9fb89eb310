"""How the third edition archives repos: words of its commands, and how rows of a replay are read back."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METRICS = "http://127.0.0.1:{port}/metrics"
SEGMENTS = "*.rca"


def crawl(
    out: Path, accounts: Path, redis: str, metrics: int, segment: int, patience: float, page: int
) -> tuple[list[object], dict[str, str]]:
    """Archive the accounts of a file (`did url` a line), with its progress in a Redis."""
    words: list[object] = ["repos", "crawl", "--output-dir", out, "--did-file", accounts, "--private", "--json"]
    words += ["--patience", patience, "--metrics-port", metrics, "--redis-address", redis]
    return [*words, "--segment-size", segment, "--page-size", page], {}


def inspect(place: Path) -> list[object]:
    return ["repos", "inspect", place, "--json"]


def inspected(said: str) -> tuple[int, dict[str, tuple[int, int]]]:
    """Of what inspect said: repos, and (repos, records) of each collection."""
    found = json.loads(said)
    return found["repos"], {name: (row["repos"], row["records"]) for name, row in found["collections"].items()}


def verify(place: Path) -> list[object]:
    """Compare every checksum: 0 if all is well."""
    return ["repos", "inspect", place]


def replay(place: Path, to: Path, collections: str | None = None) -> list[object]:
    """Load records into Parquet files of a folder."""
    words: list[object] = ["repos", "replay", "--input-dir", place, "--to", f"parquet:{to}"]
    return [*words, *(["--collections", collections] if collections else [])]


def replayed(folder: Path, program: Path) -> Iterator[tuple[str, str, str, Any]]:
    """(DID, collection, key, record) of each row; the Python beside the program reads Parquet."""
    script = (
        "import sys,json,glob,pyarrow.parquet as p\n"
        "for f in glob.glob(sys.argv[1]+'/**/*.parquet',recursive=True):\n"
        " for r in p.read_table(f).to_pylist():\n"
        "  print(json.dumps([r['repo'],r['collection'],r['rkey'],r['record_json']]))"
    )
    command: list[str | Path] = [Path(program).parent / "python", "-c", script, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in ran.stdout.splitlines():
        did, collection, key, text = json.loads(line)
        yield did, collection, key, json.loads(text)
