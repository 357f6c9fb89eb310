"""An export that is killed with kill -9, at any call of its own, and run again has each record once."""
# ruff: noqa: F811 - fixtures are arguments

import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kept_records import make_job
from target_places import Place, kind, make_place  # noqa: F401 - fixtures are found by their names
from test_targets import assert_holds

from sanderling.records.export import export
from sanderling.records.folders import open_records
from sanderling.records.selection import Selection

SCRIPT = Path(__file__).with_name("killed_export.py")
# A field that comes late, and a column that must hold more, so that what is there is changed on the way.
RECORDS: list[dict[str, Any]] = [
    {"id": number, "text": "x\ny" * 5} | ({"late": [number]} if number > 200 else {}) for number in range(300)
]
RECORDS[150]["id"] = 10**30
# How often each is killed; those that load a large library seldom.
KILLS = {"jsonl": 12, "csv": 16, "sqlite": 10, "parquet": 3, "duckdb": 3, "postgres": 4}


def run(folder: Path, runs: Sequence[tuple[Place, int]]) -> str:
    listed = json.dumps([(place.to, point) for place, point in runs])
    done = subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, SCRIPT, folder, listed], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", KILLS, indirect=True)
def test_killed_at_any_call_and_run_again_it_has_each_record_once(
    make_place: Callable[[], Place], kind: str, tmp_path: Path
) -> None:
    folder = tmp_path / "job"
    make_job(folder, RECORDS)
    points, chance = int(run(folder, [(make_place(), 0)])), random.Random(kind)
    places = [make_place() for _ in range(KILLS[kind])]

    said = run(folder, [(place, chance.randrange(1, points)) for place in places])

    assert said == ""  # none came to its end
    for place in places:
        with closing(open_records(folder)) as source, closing(place.target()) as target:
            done = export(source, target, Selection(), new=True, watch=lambda *_: None)
        assert done.records == len(RECORDS)
        assert_holds(place, RECORDS)
