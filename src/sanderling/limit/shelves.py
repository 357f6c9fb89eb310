"""What is kept of very many hosts: a bounded map that takes as long for the millionth as for the first."""

from collections.abc import Iterator
from typing import Generic, TypeVar

V = TypeVar("V")

# Entries of one dict. A large one stops everybody for 100 ms when it makes room, and to find its first entry is to walk
# over all that were taken from its front since.
SHELF = 512


class Shelves(Generic[V]):
    """Up to `most` entries in many small dicts, each with its oldest first."""

    def __init__(self, most: int) -> None:
        number = most // SHELF | 1  # odd: dicts go by the last bits of the same hash
        self.room = max(1, most // number)  # of one shelf
        self._shelves: list[dict[str, V]] = [{} for _ in range(number)]

    def __len__(self) -> int:
        return sum(map(len, self._shelves))

    def __iter__(self) -> Iterator[dict[str, V]]:
        return iter(self._shelves)

    def get(self, host: str) -> V | None:
        """What is kept of the host, if anything."""
        return self.of(host).get(host)

    def put(self, host: str, kept: V) -> None:
        """Keep this of the host, as the newest of its shelf; if there is no room, the oldest goes."""
        shelf = self.of(host)
        shelf.pop(host, None)
        shelf[host] = kept
        if len(shelf) > self.room:
            del shelf[next(iter(shelf))]

    def of(self, host: str) -> dict[str, V]:
        """The shelf where the host has its place."""
        # Not a hash that is the same everywhere: whoever chooses host names could fill the shelf of another's penalty.
        return self._shelves[hash(host) % len(self._shelves)]
