"""How fast each host may be requested: by its size, and by what failed there in a row. The limiter may be slower.

Seed 001: 2, 5 or 10 requests a second; half of that after five failures in a row, at least 0.5; a success brings it
back. With `--patience 0` a host is blocked for the rest of the run after ten.
"""

from collections import Counter
from collections.abc import Mapping

from sanderling.limit import Limiter
from sanderling.repos.atproto import OF_HOST, RepoCategory
from sanderling.repos.options import LARGE_RPS, LEAST_RPS

SMALL, LARGE = 100, 1000  # accounts
SMALL_RPS = 2.0
HALVE_AT, BLOCK_AT = 5, 10  # failures in a row


class HostPaces:
    """The bound of each host that was met."""

    def __init__(self, limiter: Limiter, usual: float, *, blocks: bool, counts_429: bool) -> None:
        self.blocked: dict[str, RepoCategory] = {}  # by ten failures, and the last of them
        self._limiter = limiter
        self._usual = usual
        self._blocks = blocks
        self._counts_429 = counts_429
        self._sizes = Counter[str]()
        self._row = Counter[str]()  # failures in a row
        self._caps: dict[str, float] = {}  # that the limiter was told

    def __len__(self) -> int:
        return len(self._sizes)

    def meet(self, sizes: Mapping[str, int]) -> None:
        """Hosts have so many accounts more."""
        for host, number in sizes.items():
            self._sizes[host] += number
            self._bound(host)

    def note(self, host: str, category: RepoCategory | None) -> None:
        """A request ended; without a category its repo came."""
        if category in OF_HOST or (self._counts_429 and category is RepoCategory.RATE_LIMITED):
            self._row[host] += 1
            if self._blocks and self._row[host] >= BLOCK_AT and category is not None:
                self.blocked.setdefault(host, category)
        elif category is not RepoCategory.RATE_LIMITED:
            self._row.pop(host, None)
        self._bound(host)

    def rate(self, host: str) -> float:
        """Requests a second that it may have at most."""
        size = self._sizes[host]
        rps = SMALL_RPS if size < SMALL else self._usual if size < LARGE else max(LARGE_RPS, self._usual)
        return max(min(rps, LEAST_RPS), rps / 2) if self._row[host] >= HALVE_AT else rps

    def _bound(self, host: str) -> None:
        rate = self.rate(host)
        if self._caps.get(host) != rate:
            self._caps[host] = rate
            why = "of failures in a row" if self._row[host] >= HALVE_AT else f"it has {self._sizes[host]:,} accounts"
            self._limiter.set_cap(host, rate, why)
