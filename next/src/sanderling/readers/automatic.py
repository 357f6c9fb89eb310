"""How many readers a machine can use: `--readers auto`."""

import os
from pathlib import Path, PurePosixPath
from typing import Annotated

from sanderling.forms import Form

AUTO = -1


def _count_of(text: str) -> int:
    if text != "auto" and not (text.isascii() and text.isdigit()):
        raise ValueError
    return AUTO if text == "auto" else int(text)


def _shown(count: int) -> str:
    return "auto" if count == AUTO else str(count)


ReaderCount = Annotated[int, Form(_count_of, "a whole number or auto", "N|auto", _shown)]

EACH = 256 << 20  # bytes a reader counts as: 25 MB as a rule, 459 MB of address space for a page of 20 MB


def reader_count(wanted: int) -> int:
    """How many readers there are for an option's value."""
    return automatic_count() if wanted == AUTO else wanted


def automatic_count(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """One less than the cores that this process may use, at least one, and no more than the memory allows."""
    # macOS has neither affinity nor control groups.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _lines(proc / "meminfo"):
        if line.startswith("MemAvailable:"):
            memory = int(line.split()[1]) << 10
    for line in _lines(proc / "self/cgroup"):
        _, controllers, path = line.split(":", 2)
        # The groups above bound it too. In a container the path may be the host's, and its group is the root.
        group = PurePosixPath(path.lstrip("/"))
        for folder in (cgroups / controllers / each for each in (group, *group.parents)):
            for limit in _numbers(folder / "memory.max") + _numbers(folder / "memory.limit_in_bytes"):
                memory = min(memory, limit)
            old = _numbers(folder / "cpu.cfs_quota_us") + _numbers(folder / "cpu.cfs_period_us")
            for quota in (_numbers(folder / "cpu.max"), old):
                if len(quota) == 2 and quota[0] > 0:
                    cores = min(cores, quota[0] // quota[1])
    return max(1, min(cores - 1, memory // EACH))


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _numbers(path: Path) -> list[int]:
    """The numbers in a file of a control group; none if it does not exist or sets no limit ("max")."""
    words = " ".join(_lines(path)).split()
    return [] if "max" in words else [int(word) for word in words]
