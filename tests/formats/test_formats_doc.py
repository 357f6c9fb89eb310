"""docs/formats.md says what the code does: every kind, limit, count and field of the layout."""

import re
import struct
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from sanderling.formats import rca
from sanderling.formats.parsed import Kind, Limits, Stats

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/formats.md").read_text()
SIZES = {"u16": 2, "u32": 4, "i64": 8, "8 bytes": 8, "32 bytes": 32}


def table(head: str) -> Iterator[list[str]]:
    """The rows of the table whose head begins so."""
    found = re.search(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert found, f"no table {head!r}"
    for line in found[1].splitlines():
        yield [cell.strip().strip("`") for cell in line.strip("|").split("|")]


def test_every_kind_of_fault_is_there_once() -> None:
    assert sorted(row[2] for row in table("step")) == sorted(Kind)


def test_every_limit_is_there_with_its_default() -> None:
    documented = {name: int(default) for name, default, _ in table("limit")}

    assert documented == {field.name: field.default for field in fields(Limits)}


def test_every_count_is_there() -> None:
    assert tuple(name for name, _ in table("in `stats`")) == Stats._fields


def test_header_and_footer_are_laid_out_so() -> None:
    for head, layout in (("header, at", rca.HEADER), ("footer, at", rca.FOOTER)):
        rows = list(table(head))
        at = 0
        for place, kind, _ in rows:
            assert int(place) == at
            at += SIZES[kind]
        assert at == layout.size
        assert len(rows) == len(struct.unpack(layout.format, bytes(layout.size)))


def test_every_part_of_the_c_is_there() -> None:
    parts = {path.name for path in (ROOT / "src/sanderling/formats").glob("_repo*.c")}

    assert {name for name, _ in table("file of the C")} == parts
