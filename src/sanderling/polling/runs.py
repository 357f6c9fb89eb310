"""One request for a target, and how it ended."""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from sanderling.polling.entries import Entry


class Result(NamedTuple):
    """How a run ended, as it is stored with the target."""

    status: str
    ok: bool = True
    failed: bool = False  # the target's own failure, and not the host's, ours, or a parent's
    changes: int = 0
    waits: bool = False  # for a row that another document has


@dataclass(slots=True, eq=False)
class Run:
    """One request for a target. What comes of it may come after the target's next run was planned."""

    entry: Entry
    began: float
    live: bool
    late: float  # seconds after it was due
    asked: list[asyncio.Future[Result]]  # whoever wants to know how it went
    over: bool = False  # the next run is planned
    since: float = 0.0  # seconds from the end of the run before to that of this one

    @property
    def key(self) -> int:
        """Which target it is."""
        return self.entry.id

    def tell(self, result: Result) -> None:
        """Tell whoever asked."""
        for future in self.asked:
            if not future.done():
                future.set_result(result)
