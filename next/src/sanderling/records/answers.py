"""What every system answers to `show`, `verify` and `tasks`."""

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from sanderling.files import lock_holder
from sanderling.observe.control import leave_request, wait_for_answer


@dataclass(frozen=True, slots=True)
class Shown:
    """What is known of one item."""

    records: list[bytes] = field(default_factory=list)  # lines of JSON, the newest last
    said: str = ""  # what became of it, where that is no record; empty: nothing is known


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether what was stored is whole, once each, and as it was written."""

    faults: list[str]
    counts: dict[str, int]  # what was compared, in words


@dataclass(frozen=True, slots=True)
class Task:
    """An item that has no record: it waits, or ended otherwise."""

    key: str  # as people write it: a URL, an id
    state: str
    host: str = ""
    code: str = ""
    detail: str = ""
    due: float | None = None  # seconds since 1970; None: as soon as it is its turn; infinite: not in this run
    requests: int = 0


async def retry_tasks(system: ModuleType, folder: Path, state: str, host: str | None, code: str | None) -> str:
    """Have tasks tried again by the run in the folder, or else by the next one; what was done, in a sentence."""
    if lock_holder(folder) is not None:
        return await wait_for_answer(folder, leave_request(folder, "retry", (state, host or "", code or "")))
    return f"{await system.retry(folder, state, host, code):,} are tried again by the next run"
