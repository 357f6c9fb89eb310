"""A CAR, as a host sent it, to a block of a segment: read, checked and compressed. For a thread."""

from typing import NamedTuple

from sanderling.apis.atproto import AtprotoCategory, why_unsound
from sanderling.formats.parsed import Stats
from sanderling.formats.rca import BlockError, encode_block
from sanderling.formats.repo import RepoError, parse_repo
from sanderling.repos.rules import RepoRules


class Packed(NamedTuple):
    """A repo that can be archived."""

    block: bytes
    collections: int
    stats: Stats


def pack(car: bytes, did: str, host: str, crawled_at: int, rules: RepoRules) -> Packed | AtprotoCategory:
    """The block of the repo of `did` that `car` is, or why it is none."""
    try:
        repo = parse_repo(car, cids=rules.cids, limits=rules.limits)
        if repo.did != did:
            return AtprotoCategory.DID_MISMATCH
        block = encode_block(did, host, repo.rev, crawled_at, repo.collections, rules.level)
    except RepoError as error:
        return why_unsound(error)
    except BlockError:
        return AtprotoCategory.TOO_LARGE
    return Packed(block, len(repo.collections), repo.stats)
