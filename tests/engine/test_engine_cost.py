"""No step of the engine looks at all hosts. The strict bar is in bench/engine.py: here what no busy machine hides."""

from importlib import import_module
from pathlib import Path

import pytest


def test_an_answer_costs_no_more_with_many_hosts_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "bench")
    bench = import_module("engine")
    monkeypatch.setattr(bench, "ANSWERS", 600)

    few = min(bench.cost(100) for _ in range(2))

    assert bench.cost(5_000) <= 3 * few
