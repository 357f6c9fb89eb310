"""Databases, and the ledger in them.

Terms. A *key* is the 16 bytes that tell one URL from all others. What is *known* is in the table `seen`; of that, what
waits is in `frontier`, what ended without a row of output in `ended`, and the rest beside the rows in the folder. A
host is *held* by the process that works for it, and *parked* while it does not answer. A URL is *set aside* if it waits
for a run that asks for it.
"""

from collections.abc import Sequence
from pathlib import Path

from sanderling.clock import Clock
from sanderling.stores.ledger import Fenced, Ledger, Plan, PlanError
from sanderling.stores.work import (
    KINDS,
    Batch,
    Counts,
    EndedUrl,
    Fault,
    Forgotten,
    FoundUrl,
    HostCount,
    HostNote,
    HostWork,
    PageMemory,
    QueuedUrl,
    RetryUrl,
    RowFile,
    StoredUrl,
    Taken,
    UrlState,
)

__all__ = [
    "KINDS",
    "Batch",
    "Counts",
    "EndedUrl",
    "Fault",
    "Fenced",
    "Forgotten",
    "FoundUrl",
    "HostCount",
    "HostNote",
    "HostWork",
    "Ledger",
    "PageMemory",
    "PlanError",
    "QueuedUrl",
    "RetryUrl",
    "RowFile",
    "StoredUrl",
    "Taken",
    "UrlState",
    "open_ledger",
]


def open_ledger(
    place: Path | str,
    *,
    plan: Plan,
    clock: Clock,
    name: str = "sanderling",
    kinds: Sequence[str] = ("new", "again"),
    read_only: bool = False,
) -> Ledger:
    """The ledger of a crawl, to be entered: in a file, or in the schema `name` of a database (`postgres://…`).

    `plan` is what the crawl may not change later, `kinds` are the classes of work it has.
    """
    if isinstance(place, Path):
        from sanderling.stores.sqlite_ledger import SqliteLedger  # noqa: PLC0415 - each needs its own library

        return SqliteLedger(place, plan, clock, kinds, read_only=read_only)
    from sanderling.stores.postgres_ledger import PostgresLedger  # noqa: PLC0415

    return PostgresLedger(place, name, plan, clock, kinds, read_only=read_only)
