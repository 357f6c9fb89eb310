"""The work per page that every system does, so that only the crawling differs: our own extract, and one row.

Usage of each program here: PROGRAM SEEDS ROWS [options]; SEEDS has one URL a line, ROWS gets one JSON object a line.
"""

import argparse
from pathlib import Path
from typing import BinaryIO

import msgspec

from sanderling.pages.extract import extract

IN_FLIGHT = 64
SITE = "http://127.0.0.1:"


class Row(msgspec.Struct, omit_defaults=True):
    """What is kept of a page."""

    url: str
    status: int
    title: str | None = None
    description: str | None = None
    language: str | None = None
    text: str | None = None
    metadata: dict[str, str] = {}
    links: tuple[str, ...] = ()
    json: object = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def read(url: str, status: int, content_type: str, body: bytes) -> Row:
    """The row of a reply; its links lead on."""
    if content_type.startswith("application/json"):
        return Row(url, status, json=_decode(body))
    found = extract(body, content_type=content_type, url=url)
    return Row(url, status, found.title, found.description, found.language, found.text, found.metadata, found.links)


def onward(row: Row) -> list[str]:
    """The links that stay on the site; those to other hosts are kept, and not followed."""
    return [link for link in row.links if link.startswith(SITE)]


def write(rows: BinaryIO, row: Row) -> None:
    """Append one line."""
    rows.write(_encode(row) + b"\n")


def arguments(*more: tuple[str, str]) -> argparse.Namespace:
    """The command line: the two files, and further options by name and help."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=Path)
    parser.add_argument("rows", type=Path)
    for name, words in more:
        parser.add_argument(name, help=words)
    return parser.parse_args()


def seeds(path: Path) -> list[str]:
    """The URLs to begin with."""
    return path.read_text().split()
