"""The accounts of a simulated fleet: numbers that become DIDs and repos, made anew each time they are asked for.

Nothing is stored: which DID a number has is arithmetic, and so is the way back.
"""

import base64
from dataclasses import dataclass, field
from math import exp, log
from random import Random
from typing import Self

from sanderling.formats.cid import Cid
from sanderling.worlds.pds_keys import SigningKey
from sanderling.worlds.pds_repos import Blocks, late_tid, make_blocks, mix, write_blocks

METHOD = "did:plc:"
_DIDS = 2**120  # 24 digits of base32
PER_RECORD = 395  # bytes of a CAR, tree included, in a large repo
MOST = 2000  # records of an account that nobody asked to be large
OLD = 16  # one repo in so many has a commit of version 2
_EMPTY, _FRESH = 0.12, 0.25  # shares that have nothing, and up to which there is a profile and nothing more
_MEDIAN, _SPREAD = 12, 1.2  # records of the others, and the sigma of their logarithm: a few have thousands


@dataclass(frozen=True, slots=True)
class Account:
    """One account, and what its repo holds."""

    seed: int
    did: str
    records: int
    version: int
    key: SigningKey | None  # that signs; None: the signature is noise

    @property
    def rev(self) -> str:
        """The edition of its repo; commits of version 2 have none."""
        return late_tid(self._chance("rev")) if self.version > 2 else ""

    def collections(self) -> dict[str, int]:
        """How many records there are of each kind."""
        return mix(self.records)

    def car(self) -> bytes:
        """Its repo."""
        return write_blocks(*self.blocks())

    def blocks(self, did: str = "") -> tuple[Cid, Blocks]:
        """The parts of its repo, the commit named; `did` says whose it claims to be."""
        sign = None if self.key is None else self.key.sign
        return make_blocks(
            self._chance("repo"),
            did or self.did,
            self.collections(),
            version=self.version,
            rev=self.rev,
            sign=sign,
        )

    def _chance(self, what: str) -> Random:
        return Random(f"{self.seed} {self.did} {what}")


@dataclass(frozen=True, slots=True)
class AccountCensus:
    """All accounts of a fleet, by number."""

    seed: int
    large: int = 0  # bytes of the repo of account 0; 0: as it comes
    factor: int = 1
    offset: int = 0
    # A listing names the commit of each repo, which takes making the repo. Once is enough.
    heads: dict[int, Cid] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def make(cls, seed: int, large: int = 0) -> Self:
        """The census of that seed."""
        rng = Random(f"{seed} dids")
        # Odd, and so there is a way back.
        return cls(seed, large, rng.getrandbits(120) | 1, rng.getrandbits(120))

    def did(self, number: int) -> str:
        """Whose number it is."""
        scattered = (number * self.factor + self.offset) % _DIDS
        return METHOD + base64.b32encode(scattered.to_bytes(15)).decode("ascii").lower()

    def number(self, did: str) -> int:
        """The number of a DID; of one that is none of ours, one larger than any account has, or -1."""
        digits = did.removeprefix(METHOD)
        if len(digits) != 24 or not did.startswith(METHOD) or digits != digits.lower():
            return -1
        try:
            scattered = int.from_bytes(base64.b32decode(digits.upper()))
        except ValueError:
            return -1
        return (scattered - self.offset) * pow(self.factor, -1, _DIDS) % _DIDS

    def account(self, number: int, key: SigningKey | None = None) -> Account:
        """The account of that number; `key` signs for it."""
        did = self.did(number)
        records = self.large // PER_RECORD if self.large and number == 0 else _records(Random(f"{self.seed} {did}"))
        return Account(self.seed, did, records, 2 if number % OLD == OLD - 1 else 3, key)

    def head(self, number: int, key: SigningKey | None = None) -> Cid:
        """The CID of the commit."""
        if number not in self.heads:
            self.heads[number] = self.account(number, key).blocks()[0]
        return self.heads[number]


def _records(rng: Random) -> int:
    kind = rng.random()
    if kind < _FRESH:
        return int(kind >= _EMPTY)
    return min(MOST, 1 + int(exp(rng.gauss(log(_MEDIAN), _SPREAD))))
