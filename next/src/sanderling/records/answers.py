"""What every system answers to `show`, `verify` and `tasks`."""

from dataclasses import dataclass, field


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
