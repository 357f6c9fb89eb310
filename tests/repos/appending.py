"""A crawl that appends until it is killed: repos 1, 2, 3 ... to a folder."""

import sys
from itertools import count
from pathlib import Path

from sanderling.formats.parsed import Collection
from sanderling.formats.rca import encode_block
from sanderling.repos.segments import Segments

NOW = 1_700_000_000_000_000


def did(number: int) -> str:
    return f"did:plc:{number:024}"


def encode(number: int, json: bytes) -> bytes:
    """A repo of one record."""
    data = b"\1\0x" + len(json).to_bytes(4, "little") + json
    return encode_block(did(number), "https://host.example", "", number, [Collection("a.b", 1, data)], 1)


def block(number: int) -> bytes:
    return encode(number, (b"%04d" % number) * 50)


def blocks(*numbers: int) -> list[tuple[str, bytes]]:
    return [(did(number), block(number)) for number in numbers]


def crawl(folder: Path, first: int) -> None:
    """Three at a time, a few hundred bytes to a segment."""
    segments = Segments(folder, size=600, created_at=lambda: NOW)
    for number in count(first, 3):
        segments.append(blocks(number, number + 1, number + 2))
        print(number + 2, flush=True)  # noqa: T201 - for whoever wants to kill it


if __name__ == "__main__":
    crawl(Path(sys.argv[1]), int(sys.argv[2]))
