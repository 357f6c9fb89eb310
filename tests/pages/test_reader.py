"""The reader in C and its twin in Python, and what both promise."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sanderling.pages import reader, reader_python

_reader = pytest.importorskip("sanderling.pages._reader", reason="the C part was not built")
sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))
twins = pytest.importorskip("twins", reason="a C part was not built")

HOSTILE = {
    "nested": "<div>" * 50_000,
    "nested and closed": "<div>" * 50_000 + "</div>" * 50_000,
    "crossed": "<b><i><a>" * 30_000 + "</b></i></a>" * 30_000,
    "attributes": "<p " + "a=b " * 100_000 + ">x",
    "names": "".join(f"<x{number}>" for number in range(50_000)),
    "tables": "<table><tr><td>x" * 30_000,
    "items": "<li>x" * 100_000,
    "links": "<a href=x>y</a>" * 60_000,
    "boxes": "<div><ul><li><a href=x>y</a></ul></div>" * 20_000,
    "cells": "<table>" + "<td>x" * 100_000,
    "open": "<" * 1_000_000,
    "comments": "<!-- -" * 200_000,
    "references": "&" * 1_000_000 + "&notit;" * 1_000,
    "stars": "*_`[" * 200_000,
    "breaks": "<br>" * 150_000,
}


def test_the_c_is_what_runs() -> None:
    assert reader.ACTIVE == "c"


def test_both_say_the_same_of_pages_that_nobody_wrote() -> None:
    for number in range(2_000):
        twins.run("reader", 7, number, ())


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE.keys())
def test_both_say_the_same_of_hostile_pages(html: str) -> None:
    assert tuple(_reader.read(html, twins.resolver)) == tuple(reader_python.read(html, twins.resolver))


@pytest.mark.parametrize("read", [_reader.read, reader_python.read])
def test_a_page_with_more_tags_than_are_read_says_so(read: Callable[..., tuple[object, ...]]) -> None:
    assert not reader_python.Reading._make(read("<p>x" * 1_000, twins.resolver)).cut
    assert reader_python.Reading._make(read("<p>x" * 200_001, twins.resolver)).cut
