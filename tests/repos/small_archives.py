"""Small segments, sound and damaged, in a folder."""

import io
import struct
from pathlib import Path
from typing import NamedTuple

from sanderling.formats.parsed import Collection
from sanderling.formats.rca import encode_block
from sanderling.formats.rca_writer import RcaWriter
from sanderling.repos.archives import ArchiveProblem

Records = dict[str, dict[str, bytes]]  # JSON by rkey, by collection
CRAWLED_AT = 1_750_000_000_000_000


class Small(NamedTuple):
    """A repo to be archived."""

    did: str
    records: Records
    crawled_at: int = CRAWLED_AT

    def block(self) -> bytes:
        collections = [collection(name, kept) for name, kept in self.records.items()]
        return encode_block(self.did, "https://host.example", "3kaaaaaaaaaaa", self.crawled_at, collections, 1)


def collection(name: str, records: dict[str, bytes]) -> Collection:
    """The records as `parse_repo` gives them."""
    data = b"".join(
        struct.pack("<H", len(rkey.encode())) + rkey.encode() + struct.pack("<I", len(json)) + json
        for rkey, json in records.items()
    )
    return Collection(name, len(records), data)


POST, LIKE, PROFILE = "app.bsky.feed.post", "app.bsky.feed.like", "app.bsky.actor.profile"
THREE = [
    Small("did:plc:ccc", {POST: {"3k2": b'{"text":"one","createdAt":"2024-03-01T00:00:00.5Z"}', "3k3": b"{}"}}),
    Small("did:plc:aaa", {PROFILE: {"self": b'{"displayName":"\xc3\xa9"}'}, LIKE: {"3k4": b'{"n":1}'}}),
    Small("did:plc:bbb", {LIKE: {"3k5": b'{"n":2}', "3k6": b'{"n":3}', "3k7": b'{"n":4}'}}),
]


def write(path: Path, repos: list[Small] | None = None, *, finalise: bool = True) -> Path:
    """A segment of these repos."""
    file = io.BytesIO()
    writer = RcaWriter(file, created_at=CRAWLED_AT)
    for repo in THREE if repos is None else repos:
        writer.append(repo.did, repo.block())
    if finalise:
        writer.finalise()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.getvalue())
    return path


def offset_of(path: Path, repo: Small) -> int:
    """Where its block is."""
    return path.read_bytes().index(repo.block())


def flip(path: Path, offset: int) -> None:
    """Damage one byte."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)


class Heard(list[ArchiveProblem]):
    """Problems, as they are reported."""

    def __call__(self, problem: ArchiveProblem) -> None:
        self.append(problem)

    @property
    def places(self) -> list[tuple[str, int]]:
        """File and byte of each."""
        return [(problem.path.name, problem.offset) for problem in self]
