"""The demo proves what it says; only its speed is made for tests."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import called, commands

from sanderling.cli.demos import repos as demo_repos
from sanderling.cli.demos.repos import Proof, _proven

PROOF = Proof(live=4, once=4, strangers=0, dead=2, filed=2, problems=(), sound=4, records=9)


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_repos, "REPOS", 12)
    monkeypatch.setattr(demo_repos, "OTHERS", ("limited", "failing", "lying"))
    monkeypatch.setattr(demo_repos, "SPEED", 15.0)


def test_it_crawls_a_fleet_and_proves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    out = tmp_path / "demo"

    done = called("demo", "repos", "--out", str(out), "--json")

    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["ok"], found["complete"], found["output_dir"]) == (True, True, str(out))
    assert found["archived"] == found["live"] == found["sound"]
    assert "simulated hosts, each a port of this machine" in done.err


def test_a_folder_that_is_not_its_own_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")

    done = called("demo", "repos", "--out", str(tmp_path))

    assert done.code == 2
    assert "was not made by this demo, so it is left alone" in done.err
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "change", [{"once": 3}, {"sound": 3}, {"filed": 1}, {"strangers": 1}, {"problems": ("damage",)}]
)
def test_what_is_not_right_is_not_called_right(change: dict[str, object]) -> None:
    assert PROOF.ok
    assert not replace(PROOF, **change).ok  # type: ignore[arg-type] # a change each


def test_the_proof_is_told() -> None:
    told = " ".join(_proven(PROOF))

    assert "4 live repos: each is in the archive once" in told
    assert "9 records were replayed" in told
    assert commands(told) == []
