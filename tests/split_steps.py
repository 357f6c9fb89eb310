"""Taking a folder apart step by step, as if it were killed after one."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sanderling.crawls.parts import folders_of, number_of_parts, part_of
from sanderling.crawls.split import SplitSystem, split_folder
from sanderling.ids import host_of
from sanderling.records.folders import open_records


def take_apart(out: Path, system: SplitSystem, most: int | None = None) -> int:
    """Take so many steps, or all of them; how many were taken."""
    taken = 0
    for _ in split_folder(out, 2, system):
        taken += 1
        if taken == most:
            break
    return taken


def each_kill(folder: Path, system: SplitSystem) -> Iterator[Path]:
    """Copies of a folder, each of which was killed after another step and then taken apart to the end."""
    number = take_apart(copied(folder), system)
    assert number > 10
    for most in range(1, number + 1):
        out = copied(folder)
        take_apart(out, system, most)
        take_apart(out, system)
        yield out


def copied(folder: Path) -> Path:
    out = folder.with_name(f"{folder.name}-copy")
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(folder, out)
    return out


def records(out: Path) -> list[dict[str, Any]]:
    """All records that are read as one, without where they stand."""
    source = open_records(out)
    places = ("part", "warc_file", "warc_offset", "warc_length", "warc_type")
    rows = [json.loads(each.json) for each in source.read() if each.json]
    source.close()
    return sorted(({key: row[key] for key in row if key not in places} for row in rows), key=str)


def assert_own(out: Path, files: str) -> None:
    """Every part has rows of its own hosts, and no other."""
    parts = number_of_parts(out)
    for part, folder in enumerate(folders_of(out)):
        for path in folder.rglob(files):
            for line in path.read_bytes().splitlines():
                assert part_of(host_of(json.loads(line)["url"]), parts) == part
