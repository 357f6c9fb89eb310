"""What a reader process does with a CAR: it parses it, and makes the block of its segment."""

import msgspec

from sanderling.formats.car import CarLimits, RepoError, RepoFault
from sanderling.formats.rca import BlockError, encode_block
from sanderling.formats.repo import parse_repo
from sanderling.readers.reader import ReaderLimits, Work


class BlockWork(msgspec.Struct, frozen=True):
    """How repos are parsed."""

    level: int = 3
    cids: bool = False
    verify: bool = True
    largest: int = 100 << 20


class BlockHeading(msgspec.Struct, frozen=True, array_like=True):
    """What the block of a repo says beside its records."""

    did: str
    host: str
    at: int  # microseconds since 1970


class MadeBlock(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What came of a CAR: a block, or a fault."""

    block: bytes = b""
    did: str = ""
    rev: str = ""
    collections: int = 0
    records: int = 0
    missing: int = 0  # records that are not in the CAR
    dropped: int = 0  # records and keys that nobody can read
    fault: RepoFault | None = None
    detail: str = ""


_heading = msgspec.msgpack.Decoder(BlockHeading)
_encode = msgspec.msgpack.Encoder().encode


def open_work(argument: bytes) -> Work:
    """What a reader is told to open."""
    work = msgspec.msgpack.decode(argument, type=BlockWork)
    limits = CarLimits(car=work.largest)

    def read(head: bytes, body: bytes) -> bytes:
        heading = _heading.decode(head)
        try:
            repo = parse_repo(body, verify=work.verify, cids=work.cids, limits=limits)
        except RepoError as error:
            return _encode(MadeBlock(fault=error.fault, detail=str(error)))
        stats = repo.stats
        block = b""
        if repo.did == heading.did:
            try:
                block = encode_block(repo.did, heading.host, repo.rev, heading.at, repo.collections, work.level)
            except BlockError as error:
                return _encode(MadeBlock(fault=RepoFault.TOO_LARGE, detail=str(error)))
        counts = len(repo.collections), stats.records, stats.missing, stats.bad_records + stats.bad_keys
        return _encode(MadeBlock(block, repo.did, repo.rev, *counts))

    return read


def reader_limits(largest: int) -> ReaderLimits:
    """What a repo of that size may take: a megabyte takes 22 ms here, and ten bytes of memory a byte."""
    megabytes = largest / (1 << 20)
    return ReaderLimits(
        cpu=10.0 + megabytes / 4, wall=120.0 + megabytes, memory=(1 << 30) + 12 * largest, answer=(16 << 20) + largest,
        host_cpu=3600.0,
    )  # fmt: skip
