"""Write the inputs that fuzzing starts from into a folder: small repos, sound ones and every broken one we know."""

import sys
from hashlib import sha256
from pathlib import Path
from random import Random

from broken_repos import mutations

from sanderling.formats import cbor
from sanderling.formats.car import write_car
from sanderling.formats.cid import Cid
from sanderling.formats.mst import build
from sanderling.worlds.pds_repos import make_commit, make_repo, mix

DID = "did:plc:abcdefghijklmnopqrstuvwx"
# Larger ones only slow the fuzzers down: what they reach is reached with four records.
LARGEST = 40_000


NUMBERS: list[cbor.Value] = [
    *(2.0**-44, 0.001, 1.5, 1e16, -0.0, 5e-324, 1.7976931348623157e308),
    *(0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1, -1, -(2**64)),
]


# Each ends a block, whole or cut: then it says more than is there, and nothing is behind it.
ENDS: list[cbor.Value] = [
    ["x", Cid.of(b"")],
    {"a": Cid(b"\x01\x55\0\x60" + bytes(96))},
    [1, Cid(b"\x01\x55\0\0")],
    [1, "text"],
    ["\x01" * 300],
    {"a": "é"},
    {"cid": "日"},
    [b"bytes"],
    [0.1],
    [2**40],
    [[[]]],
    {"key": {}},
]

# A header whose root says that it is longer than the CAR.
LONG_ROOT = b"\x0f\xa2\x65roots\x81\xd8\x2a\x58\x64\0\x01\x55"


def repo_of(*records: bytes) -> bytes:
    """A CAR with these records, the last of them at its very end: what reads past a block leaves the CAR."""
    blocks = {Cid.of(block): block for block in records}
    root, nodes = build((f"com.example.odd/{number:03}".encode(), cid) for number, cid in enumerate(blocks))
    commit = make_commit(Random(1), DID, root)
    return write_car([Cid.of(commit)], {Cid.of(commit): commit, **nodes, **blocks}.items())


def cars() -> list[bytes]:
    """All of them."""
    sound = [make_repo(Random(size), DID, mix(size), version=2 + size % 2) for size in (0, 1, 4, 9, 40)]
    sound += [make_repo(Random(7), DID, {"com.example.note": 12})]
    # Many small blocks make the table of blocks grow.
    sound += [repo_of(*map(cbor.encode, NUMBERS)), repo_of(*map(cbor.encode, range(200)))]
    ends = [cbor.encode(value) for value in ENDS]
    sound += [repo_of(block[: len(block) - cut]) for block in ends for cut in range(3)]
    small = make_repo(Random(1), DID, mix(4))
    broken = [case.car for case in mutations(small, Random(2)) if len(case.car) <= LARGEST]
    return [*sound, *broken, LONG_ROOT]


def main(folder: Path) -> None:
    """Each input is two bytes of options, which the fuzzers change as they like, and a CAR."""
    folder.mkdir(parents=True, exist_ok=True)
    for car in cars():
        (folder / sha256(car).hexdigest()[:16]).write_bytes(b"\0\0" + car)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
