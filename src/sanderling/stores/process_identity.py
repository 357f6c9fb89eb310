"""Which process wrote a file, and whether it still runs: known at once on the same machine, where Linux says so."""

import os
from functools import cache
from pathlib import Path

import msgspec

PROC = Path("/proc")


class ProcessIdentity(msgspec.Struct, frozen=True):
    """What tells a process from one that has its number later, or elsewhere."""

    space: str  # the boot of the machine, and the space in which the number counts: a container has its own
    start: str  # in ticks since that boot


@cache
def _space() -> str:
    boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {(PROC / 'self/ns/pid').readlink()}"


def _start(pid: int) -> str:
    """When the process began; empty if it has ended. Raises OSError."""
    try:
        # Behind the name, which may hold anything: the state, and 19 numbers later the start.
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


@cache
def _own(pid: int) -> ProcessIdentity | None:
    try:
        return ProcessIdentity(_space(), _start(pid))
    except (OSError, IndexError):  # no Linux, or no /proc
        return None


def own_process() -> ProcessIdentity | None:
    """The one that asks; None where the system does not say."""
    return _own(os.getpid())


def has_ended(pid: int, process: ProcessIdentity | None) -> bool:
    """Whether that process is known to have ended. One of another machine, or container, is not known."""
    if process is None:
        return False
    try:
        return process.space == _space() and _start(pid) != process.start
    except (OSError, IndexError):
        return False
