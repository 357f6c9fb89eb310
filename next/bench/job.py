"""What a job of ours costs beside the same spider in Scrapy: CPU of all processes, and lines that a person writes.

`examples/shop.py` against `bench/peers/scrapy_shop.py`, with the settings that make Scrapy fastest. Programs alternate;
the CPU of a page is that of a long run less that of a short one.
"""

import argparse
import ast
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from bars import Bar, report
from pages import HERE, PEERS, cpu_of, served

JOB, SPIDER = HERE.parent / "examples" / "shop.py", HERE / "peers" / "scrapy_shop.py"
SHORT, LONG = 200, 2000  # items
EXAMPLE = "https://shop.example"
SETTINGS = {
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "CONCURRENT_REQUESTS": "64",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "64",
    "DOWNLOAD_DELAY": "0",
    "COOKIES_ENABLED": "False",
    "LOG_LEVEL": "ERROR",
    "TELNETCONSOLE_ENABLED": "False",
    "REMOTE_CONTROL_ENABLED": "False",
    "RETRY_ENABLED": "False",
}


def lines_of(path: Path) -> int:
    """Lines of code: no docstrings, comments or blank lines, and every file written in one way."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            del body[0]
    return len([line for line in ast.unparse(tree).splitlines() if line.strip()])


def run(source: Path, base: str, items: int) -> float:
    """One run; it counts only if each item has its record, once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, rows = folder / "shop.py", folder / "rows.jsonl"
        file.write_text(source.read_text().replace(EXAMPLE, base))
        if source == JOB:
            flags = ["--private", "--policy", "none", "--quiet"]
            command = [sys.executable, "-m", "sanderling", "run", str(file), "--out", str(folder / "out"), *flags]
            rows = folder / "out" / "records.jsonl"
        else:
            flags = [word for key, value in SETTINGS.items() for word in ("-s", f"{key}={value}")]
            command = [str(PEERS), "-m", "scrapy", "runspider", str(file), "-o", str(rows), *flags]
        took = cpu_of(command, folder / "said.txt")
        found = [json.loads(line)["number"] for line in rows.read_text().splitlines()]
        if len(found) != items or len(set(found)) != items:
            said = (folder / "said.txt").read_text()[-1500:]
            raise SystemExit(
                f"{source.name}: {len(found)} records of {len(set(found))} items, expected {items}\n{said}"
            )
        return took


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not PEERS.exists():
        raise SystemExit("no peers here: make peers")
    found: dict[Path, list[float]] = {JOB: [], SPIDER: []}
    with served(SHORT, 0) as few, served(LONG, 0) as many:
        for _ in range(1 if given.quick else given.rounds):
            for source, each in found.items():
                each.append(1000 * (run(source, many, LONG) - run(source, few, SHORT)) / (LONG - SHORT))
    ratio = median(ours / theirs for ours, theirs in zip(found[JOB], found[SPIDER], strict=True))
    bars = [
        Bar("ms of CPU an item: examples/shop.py", median(found[JOB])),
        Bar("ms of CPU an item: the same spider in Scrapy", median(found[SPIDER])),
        Bar("CPU of ours, in that of Scrapy", ratio, 0.8),
        Bar("lines of ours", lines_of(JOB), lines_of(SPIDER)),
        Bar("lines of the spider", lines_of(SPIDER)),
    ]
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
