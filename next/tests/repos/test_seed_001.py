"""What docs/seeds.md says of seed 001 can be typed, called or found, with its default."""

import re
from pathlib import Path

import pytest

from sanderling.cli.commands import all_commands
from sanderling.cli.parse import parse
from sanderling.formats.segments import Segments
from sanderling.observe.metrics import metric_name
from sanderling.observe.report import Kind
from sanderling.repos.atproto import RepoCategory
from sanderling.repos.feed import DirectoryFeed
from sanderling.repos.figures import RepoFigures
from sanderling.repos.options import ReposOptions
from sanderling.repos.paces import HostPaces
from sanderling.repos.redis_progress import COMPLETED, CURSOR, FAILED, SEGMENT, STATS
from sanderling.repos.replay import COLUMNS
from sanderling.repos.sink import RepoSink
from sanderling.systems import SYSTEMS, load_name

ROWS = [
    line.strip("|").split("|")
    for line in (Path(__file__).parents[2] / "docs" / "seeds.md").read_text().partition("## Seed 001")[2].splitlines()
    if line.startswith("| 1.")
]


def known() -> set[str]:
    commands = {each.words: load_name(each.options) for each in all_commands(SYSTEMS) if each.words.startswith("repos")}
    found = {*commands, *(f"key {key}" for key in (CURSOR, COMPLETED, SEGMENT, STATS, *FAILED.values()))}
    for words, kind in commands.items():
        for option in kind.fields.values():
            for flag in option.flags:
                start = "" if words == "repos crawl" else f"{words} "
                found |= {f"{start}--{flag}", f"{start}--{flag}={option.show(option.default)}"}
    facts = RepoFigures().facts(hosts=0, active=0, dispatched=0, waiting=0)
    found |= {metric_name("repos", each) + "_total" * (each.kind is Kind.COUNT) for each in facts}
    found |= {f"repo_records.{column}" for column in COLUMNS} | {f"category {each}" for each in RepoCategory}
    classes = (Segments, DirectoryFeed, HostPaces, RepoSink)
    return found | {f"{each.__name__}.{name}" for each in classes for name in dir(each)} | {"ClickhouseDirectory.page"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip()[:30])
def test_what_a_row_names_exists(row: list[str]) -> None:
    named = re.findall(r"`([^`]*)`", row[1])

    assert named
    assert set(named) <= known()


def test_each_row_is_there() -> None:
    found: set[int] = set()
    for row in ROWS:
        numbers = [int(each) for each in re.findall(r"1\.(\d+)", row[0])]
        found.update(range(numbers[0], numbers[-1] + 1) if " to " in row[0] else numbers)

    assert found == set(range(1, 40))


def test_the_flags_of_the_seed_can_be_typed_as_it_types_them() -> None:
    words = (
        "--workers 50 --default-pds-rps 5 --segment-size 2GB --zstd-level 3 --page-size 50000 --skip-pds a.example"
        " --skip-pds b.example --resume --output-dir x --redis-address localhost:6379"
        " --clickhouse-address localhost:8123 --clickhouse-username default --clickhouse-password env:P"
    )
    typed = parse(words.split(), ReposOptions.fields)

    assert len(typed) == 12
    assert typed["skip_pds"].raw == ["a.example", "b.example"]
