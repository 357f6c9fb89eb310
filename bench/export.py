"""How many records a second does an export write, and with how much memory?

A folder of a job with small records is exported by the real command, in a process of its own, to JSON Lines and to
Parquet. What counts is the highest memory of the process: it must not grow with the folder. `--records N` makes the
folder larger.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import Report, at_most
from processes import Program

from sanderling.stores import frontier_file
from sanderling.stores.frontier_file import FrontierMeta

RECORDS = 50_000
LIMIT = 1200.0  # seconds for one run
MOST = {"jsonl": 120.0, "parquet": 400.0}  # MB, whatever the folder has; pyarrow itself takes 130


def make_folder(folder: Path, records: int) -> None:
    """What a job leaves that has kept so many records of some 200 bytes."""
    folder.mkdir()
    size = 0
    with (folder / "records.jsonl").open("wb") as file:
        for lines in _lines(records):
            size += file.write(lines)
    plan = '{"name":"export","arguments":{}}'
    frontier_file.create(folder / "frontier.db", FrontierMeta(plan=plan, watermark=size, records=records, started=1.0))


def _lines(records: int) -> Iterator[bytes]:
    for number in range(records):
        yield (
            b'{"id":%d,"name":"user %d","score":%d.25,"tags":["one","two"],"active":true,"bio":null,'
            b'"text":"Some words that a record has, so that it is as long as records are, number %d."}\n'
        ) % (2**53 + number, number, number, number)


def run(to: str, folder: Path, place: Path) -> tuple[float, float]:
    """Seconds, and MB."""
    words = (sys.executable, "-m", "sanderling", "export", str(folder), "--to", str(place / f"out.{to}"))
    cost = Program(words, {}).run(place / "said", LIMIT)
    return cost.wall, cost.peak / 2**20


def main() -> None:
    """Measure, and say so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="end with one line of JSON for machines")
    parser.add_argument("--records", type=int, default=RECORDS, help="records of the folder")
    records: int = parser.parse_args().records
    sys.argv = [sys.argv[0], *(["--json"] if "--json" in sys.argv else [])]  # what the harness knows
    report = Report("export")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        make_folder(place / "job", records)
        for to, most in MOST.items():
            seconds, memory = run(to, place / "job", place)
            print(f"{to}: {records / seconds:,.0f} records a second, {memory:,.0f} MB at most")
            report.figures |= {f"{to}_records_per_second": records / seconds, f"{to}_mb": memory}
            report.bars.append(at_most(f"memory of an export to {to}, MB", most, memory))
    report.finish()


if __name__ == "__main__":
    main()
