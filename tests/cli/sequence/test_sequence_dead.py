"""`sequence dead show`: what our reader makes of a record. What else these commands do: `test_dead_letters.py`."""

import json
from pathlib import Path

from command_line import called
from queue_commands import in_folder
from raids import letter, member, raid

from sanderling.stores.queue import Letter


def test_what_a_record_says_is_told_in_words_and_as_json(tmp_path: Path) -> None:
    queued, good = in_folder(tmp_path / "out"), letter(raid(18, [member(1), member(2)]))
    queued.bury((good, "the table is gone"))

    words = called("dead", "show", *queued.named("sequence"), "18")
    found = json.loads(called("dead", "show", *queued.named("sequence"), "18", "--json").out)

    assert (words.code, words.err) == (0, "")
    assert "        id  18\n       api  bungie\n" in words.out
    assert found["body"].encode() == good.body
    assert (found["says"]["id"], found["says"]["api"], found["says"]["notes"]) == ("18", "bungie", [])
    assert found["says"]["players"] == "2"


def test_what_an_api_without_players_leaves_out_is_not_said(tmp_path: Path) -> None:
    queued = in_folder(tmp_path / "out")
    body = {"id": "5", "api": "other", "crawled": 1_800_000_000.0, "instance": {"instanceId": "5"}, "raw": {}}
    queued.bury((Letter("5", json.dumps(body).encode()), "why"))

    said = json.loads(called("dead", "show", *queued.named("sequence"), "5", "--json").out)["says"]

    assert (said["crawled"], said["completed"], said["players"]) == ("2027-01-15T08:00:00Z", None, None)
