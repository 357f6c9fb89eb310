"""Small .rca files and repos to put into them."""

import io
import struct
from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import strategies as st

from sanderling.formats.parsed import Collection
from sanderling.formats.rca import encode_block
from sanderling.formats.rca_reader import RcaReader
from sanderling.formats.rca_writer import RcaWriter

Records = dict[str, list[tuple[str, bytes]]]


class Kept(NamedTuple):
    """A repo, as it goes into a file and comes out."""

    did: str
    pds: str
    rev: str
    crawled_at: int
    records: Records

    def block(self, level: int = 1) -> bytes:
        collections = [collection(name, records) for name, records in self.records.items()]
        return encode_block(self.did, self.pds, self.rev, self.crawled_at, collections, level)


def collection(name: str, records: list[tuple[str, bytes]]) -> Collection:
    """The records as `parse_repo` gives them."""
    data = b"".join(
        struct.pack("<H", len(rkey.encode())) + rkey.encode() + struct.pack("<I", len(json)) + json
        for rkey, json in records
    )
    return Collection(name, len(records), data)


def written(repos: Iterable[Kept], *, finalise: bool = True) -> io.BytesIO:
    """A file of these repos."""
    file = io.BytesIO()
    writer = RcaWriter(file, created_at=1_700_000_000_000_000)
    for repo in repos:
        writer.append(repo.did, repo.block())
    if finalise:
        writer.finalise()
    return file


def read(file: io.BytesIO) -> list[Kept]:
    """All repos of a file, unpacked."""
    return [
        Kept(
            block.did,
            block.pds,
            block.rev,
            block.crawled_at,
            {name: list(block.records(name)) for name, _, _ in block.toc},
        )
        for block in RcaReader(file)
    ]


THREE = [
    Kept("did:plc:bbb", "https://pds.example", "3kaaaaaaaaaaa", 1_700_000_000_000_001, {"a.b": [("x", b'{"n":1}')]}),
    Kept("did:plc:aaa", "https://pds.example", "", 2, {}),
    Kept(
        "did:web:é.example",
        "",
        "r",
        -3,
        {"a.b": [("y", b"{}"), ("z", b"[]")], "a.b.c": [("self", b'{"t":"\xc3\xa9"}')]},
    ),
]

texts = st.text(max_size=6)
records = st.dictionaries(
    texts, st.lists(st.tuples(texts, st.binary(max_size=20)), min_size=1, max_size=3), max_size=3
).map(lambda found: dict(sorted(found.items())))
repos = st.lists(st.builds(Kept, texts, texts, texts, st.integers(-(2**62), 2**62), records), max_size=4)
