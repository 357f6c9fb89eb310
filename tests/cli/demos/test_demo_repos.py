"""The demo proves what it says; only its speed is made for tests."""

from dataclasses import replace
from pathlib import Path

import pytest
from demo_runs import run_small

from sanderling.cli.demos.repos import RepoProof, describe_proof

PROOF = RepoProof(live=4, once=4, strangers=0, dead=2, filed=2, problems=(), sound=4, records=9)


def test_it_crawls_a_fleet_and_proves_it(tmp_path: Path) -> None:
    out = tmp_path / "demo"

    ran = run_small("repos", out, REPOS=12, OTHERS=("limited", "failing", "lying"), SPEED=15.0)

    found = ran.document
    assert (found["ok"], found["complete"], found["output_dir"]) == (True, True, str(out))
    assert found["archived"] == found["live"] == found["sound"]
    assert "simulated hosts, each a port of this machine" in ran.done.err


@pytest.mark.parametrize(
    "change", [{"once": 3}, {"sound": 3}, {"filed": 1}, {"strangers": 1}, {"problems": ("damage",)}]
)
def test_what_is_not_right_is_not_called_right(change: dict[str, object]) -> None:
    assert PROOF.ok
    assert not replace(PROOF, **change).ok  # type: ignore[arg-type] # a change each


def test_the_proof_is_told() -> None:
    told = " ".join(describe_proof(PROOF))

    assert "4 live repos: each is in the archive once" in told
    assert "9 records were replayed" in told
