"""`sequence dead`: what could not be stored is seen, with its reason, and tried again."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import called, commands
from queue_commands import Queued, at_broker, in_folder
from raids import letter, raid

from sanderling.clock import SystemClock
from sanderling.stores.queue import Depth, Letter

BAD = Letter("17", b"no message\xff\x00")
GOOD = letter(raid(18))


@pytest.fixture(params=["sqlite", "rabbitmq"])
def queued(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queued]:
    if request.param == "sqlite":
        yield in_folder(tmp_path / "out")
    else:
        with at_broker(request.getfixturevalue("rabbitmq"), tmp_path / "out") as queued:
            yield queued


@pytest.fixture
def embedded(tmp_path: Path) -> Queued:
    return in_folder(tmp_path / "out")


def listed(queued: Queued, *more: str) -> list[dict[str, Any]]:
    done = called("sequence", "dead", "list", "--json", *queued.flags, *more)
    assert (done.code, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_dead_are_listed_with_their_reasons_and_without_what_is_in_them(queued: Queued) -> None:
    queued.bury((BAD, "not one of ours"), (GOOD, "the table is\x1b[31m gone"))

    done = called("sequence", "dead", "list", *queued.flags)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2 dead letters in ")
    first, second = (line for line in done.out.splitlines() if " ago, " in line)
    assert first.split()[:3] == ["17", "12", "B"]
    assert first.endswith("0 failed before: not one of ours")
    assert second.endswith("the table is\N{REPLACEMENT CHARACTER}[31m gone")
    assert "no message" not in done.out


def test_what_is_said_to_be_done_works(queued: Queued) -> None:
    queued.bury((BAD, "why"))
    shown = called("sequence", "dead", "list", *queued.flags).out
    assert "guest:guest" not in shown  # a password is not shown, and so must be typed again

    (again,) = commands(shown)
    done = called(*(queued.url if word.startswith("amqp:") else word for word in again))

    assert (done.code, done.out) == (0, "1 dead letter ready again.\n")
    assert (queued.depth().ready, queued.depth().dead) == (1, 0)


def test_as_json_there_is_one_object_per_letter(queued: Queued) -> None:
    queued.bury((BAD, "one"), (GOOD, "two"))

    first, second = listed(queued)

    assert first == {"key": "17", "why": "one", "tries": 0, "size": 12, "at": first["at"]}
    assert first["at"] == pytest.approx(SystemClock().wall(), abs=100)
    assert (second["key"], second["why"], second["size"]) == ("18", "two", len(GOOD.body))


def test_what_is_in_them_is_shown_if_asked_for(queued: Queued) -> None:
    queued.bury((BAD, "one"), (GOOD, "two"))

    bad, good = listed(queued, "--show")
    words = called("sequence", "dead", "list", "--show", *queued.flags).out

    assert base64.b64decode(bad["body_base64"]) == BAD.body
    assert json.loads(good["body"])["id"] == "18"
    assert "    no message\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}\n" in words
    assert f"    {GOOD.body.decode()}\n" in words


def test_some_come_back_and_the_others_stay_dead(queued: Queued) -> None:
    queued.bury(*((Letter(f"{number}", b"x"), "why") for number in range(5)))

    done = called("sequence", "dead", "replay", "1", "3", "3", *queued.flags)

    assert (done.code, done.out) == (0, "2 dead letters ready again.\n")
    assert queued.depth() == Depth(ready=2, taken=0, delayed=0, dead=3)
    assert [row["key"] for row in listed(queued)] == ["0", "2", "4"]


def test_all_come_back(queued: Queued) -> None:
    queued.bury(*((Letter(f"{number}", b"x"), "why") for number in range(5)))

    done = called("sequence", "dead", "replay", "--all", "--json", *queued.flags)

    assert (done.code, json.loads(done.out)) == (0, {"replayed": 5})
    assert queued.depth() == Depth(ready=5, taken=0, delayed=0, dead=0)


def test_a_key_that_is_not_dead_is_told(queued: Queued) -> None:
    queued.bury((BAD, "why"))

    done = called("sequence", "dead", "replay", "17", "404", *queued.flags)

    assert (done.code, done.out) == (1, "1 dead letter ready again.\n")
    assert "1 key of 2 not found among the dead letters" in done.err


def test_many_are_cut_and_said_to_be(embedded: Queued) -> None:
    embedded.bury(*((Letter(f"{number:03}", b"x"), "why") for number in range(230)))

    assert "and 210 more: see --limit" in called("sequence", "dead", "list", *embedded.flags).out
    assert "and 105 more: see" in called("sequence", "dead", "list", "--limit=125", *embedded.flags).out
    assert len(listed(embedded, "--limit=125")) == 125
    assert [row["key"] for row in listed(embedded)] == [f"{number:03}" for number in range(230)]


def test_where_there_is_no_queue_none_is_made(embedded: Queued, tmp_path: Path) -> None:
    words = called("sequence", "dead", "list", *embedded.flags)

    assert (words.code, words.out) == (0, f"0 dead letters in {tmp_path / 'out'}.\n")
    assert listed(embedded) == []
    assert called("sequence", "dead", "replay", "--all", *embedded.flags).out == "0 dead letters ready again.\n"
    assert called("sequence", "dead", "replay", "5", f"--queue=sqlite:{tmp_path}").code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keys", [[], ["5", "--all"]])
def test_a_replay_of_nothing_or_of_both_is_refused(embedded: Queued, keys: list[str]) -> None:
    done = called("sequence", "dead", "replay", *keys, *embedded.flags)

    assert done.code == 2
    assert "expected ids of dead letters, or --all" in done.err


@pytest.mark.parametrize("url", ["redis://localhost", "sqlite:", "queue"])
def test_what_is_no_queue_is_refused(tmp_path: Path, url: str) -> None:
    done = called("sequence", "dead", "list", f"--queue={url}", f"--out={tmp_path}")

    assert done.code == 2
    assert "--queue" in done.err
    assert "expected sqlite:FOLDER or amqp://" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_is_away_is_told_without_a_password() -> None:
    done = called("sequence", "dead", "list", "--queue=amqp://me:secret@127.0.0.1:1/")

    assert done.code == 1
    assert "127.0.0.1:1" in done.err
    assert "secret" not in done.err
