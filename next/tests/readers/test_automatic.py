"""How many readers a machine can use."""

import os
from pathlib import Path

import pytest

from sanderling.readers.automatic import automatic_count

GIB = 1 << 30


@pytest.mark.parametrize(
    ("cores", "available", "files", "count"),
    [
        (8, 64 * GIB, {}, 7),
        (1, 64 * GIB, {}, 1),
        (8, GIB, {}, 4),
        (8, GIB // 10, {}, 1),
        (64, 64 * GIB, {"cpu.max": "max 100000"}, 63),
        (64, 64 * GIB, {"cpu.max": "350000 100000"}, 2),
        (64, 64 * GIB, {"crawls/cpu.max": "400000 100000", "cpu.max": "800000 100000"}, 3),
        (64, 64 * GIB, {"crawls/one/memory.max": f"{2 * GIB}\n"}, 8),
        (64, 64 * GIB, {"memory.max": "max"}, 63),
        (64, 64 * GIB, {"cpu,cpuacct/cpu.cfs_quota_us": "200000", "cpu,cpuacct/cpu.cfs_period_us": "100000"}, 1),
        (64, 64 * GIB, {"cpu,cpuacct/cpu.cfs_quota_us": "-1", "cpu,cpuacct/cpu.cfs_period_us": "100000"}, 63),
        (64, 64 * GIB, {"memory/memory.limit_in_bytes": str(GIB)}, 4),
    ],
)
def test_cores_quota_and_memory_bound_the_readers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cores: int, available: int, files: dict[str, str], count: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)), raising=False)
    written = files | {
        "proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {available >> 10} kB\n",
        "proc/self/cgroup": "4:memory:/crawls/one\n3:cpu,cpuacct:/crawls/one\n0::/crawls/one\n",
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert automatic_count(tmp_path / "proc", tmp_path) == count


def test_other_systems_have_neither(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    assert automatic_count(tmp_path, tmp_path) == 1
