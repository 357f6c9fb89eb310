"""`dead list`, `show` and `replay`, which are the same in every system: in a file, and at a RabbitMQ."""

import base64
import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, called, commands
from hypothesis import example, given
from hypothesis import strategies as st
from queue_commands import Queued, at_broker

from sanderling.cli.dead_letters import DEEPEST, depth, pretty
from sanderling.cli.sequence import place as sequence_place
from sanderling.clock import SystemClock
from sanderling.events import outbox as events_outbox
from sanderling.stores.queue import Depth, Letter

NAMES = {"events": events_outbox.QUEUE, "sequence": sequence_place.QUEUE}
BAD = Letter("17", b"no message\xff\x00")
OTHER = Letter("18", b'{"hello": "\xc3\xa9"}')


@dataclass(frozen=True, slots=True)
class Dead:
    """The dead letters of a system."""

    system: str
    queued: Queued

    def __call__(self, *command: str) -> Done:
        return called("dead", *command[:1], *self.queued.named(self.system), *command[1:])

    def as_json(self, *command: str) -> list[dict[str, Any]]:
        done = self(command[0], "--json", *command[1:])
        assert (done.code, done.err) == (0, "")
        return [json.loads(line) for line in done.out.splitlines()]

    def keys(self) -> list[str]:
        return [row["key"] for row in self.as_json("list")]

    def typed(self, said: str) -> Done:
        """What comes of the command that was shown; a password is not shown, and so is typed again."""
        (again,) = commands(said)
        named = self.queued.named(self.system)[2:]  # its name is a setting
        return called(*(self.queued.url if word.startswith("amqp:") else word for word in again), *named)


@pytest.fixture(params=NAMES)
def embedded(request: pytest.FixtureRequest, tmp_path: Path) -> Dead:
    out = tmp_path / request.param
    return Dead(request.param, Queued(f"sqlite:{out}", NAMES[request.param], (f"--out={out}",)))


@pytest.fixture(params=["events, sqlite", "sequence, sqlite", "events, rabbitmq", "sequence, rabbitmq"])
def dead(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Dead]:
    system, kind = request.param.split(", ")
    out = tmp_path / system
    place = (
        nullcontext(Queued(f"sqlite:{out}", NAMES[system], (f"--out={out}",)))
        if kind == "sqlite"
        else at_broker(request.getfixturevalue("rabbitmq"), out, bound=system == "events")
    )
    with place as queued:
        yield Dead(system, queued)


def test_they_are_listed_with_their_reasons_and_what_is_said_to_be_done_works(dead: Dead) -> None:
    dead.queued.bury((BAD, "not one of ours"), (OTHER, "the table is\x1b[31m gone"))

    done = dead("list")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2 dead letters in ")
    first, second = (line for line in done.out.splitlines() if " ago: " in line)
    assert first.split()[:3] == ["17", "12", "B"]
    assert first.endswith(": not one of ours")
    assert "failed before" not in first
    assert second.endswith("the table is\N{REPLACEMENT CHARACTER}[31m gone")
    assert "no message" not in done.out
    assert "guest:guest" not in done.out
    assert dead.typed(done.out) == Done(0, "2 dead letters ready again.\n", "")
    assert (dead.queued.depth().ready, dead.queued.depth().dead) == (2, 0)


def test_as_json_there_is_one_object_per_letter(dead: Dead) -> None:
    dead.queued.bury((BAD, "one"), (OTHER, "two"))

    first, second = dead.as_json("list")

    assert first == {"key": "17", "why": "one", "tries": 0, "size": 12, "at": first["at"]}
    assert first["at"] == pytest.approx(SystemClock().wall(), abs=100)
    assert (second["key"], second["why"], second["size"]) == ("18", "two", len(OTHER.body))


def test_all_of_one_is_shown_and_what_is_said_to_be_done_works(dead: Dead) -> None:
    dead.queued.bury((BAD, "one"), (OTHER, "two"))

    done = dead("show", "18")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("       key  18\n       why  two\n  given up  ")
    assert '    {\n      "hello": "é"\n    }\n' in done.out
    assert "It cannot be read: message " in done.out
    assert dead.typed(done.out).out == "1 dead letter ready again.\n"
    assert dead.keys() == ["17"]


def test_as_json_it_has_the_body_whatever_that_is(dead: Dead) -> None:
    dead.queued.bury((BAD, "one"), (OTHER, "two"))

    (bad,), (other,) = dead.as_json("show", "17"), dead.as_json("show", "18")

    assert base64.b64decode(bad["body_base64"]) == BAD.body
    assert "body" not in bad
    assert other["body"].encode() == OTHER.body
    assert bad["unreadable"].startswith("message")
    assert "    no message\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}\n" in dead("show", "17").out


def test_a_key_that_begins_with_a_dash_can_be_shown_and_tried_again(embedded: Dead) -> None:
    embedded.queued.bury((Letter("--all x", b"{}"), "why"), (BAD, "why"))

    done = embedded("show", "--", "--all x")

    assert embedded.typed(done.out).out == "1 dead letter ready again.\n"
    assert embedded.keys() == ["17"]


def test_a_key_that_is_not_there_is_told_with_those_that_are_near(dead: Dead) -> None:
    dead.queued.bury((Letter("evt_1", b"x"), "why"), (Letter("other", b"x"), "why"))

    near, far = dead("show", "evt_l"), dead("show", "0" * 300)

    assert (near.code, near.out) == (1, "")
    assert near.err.endswith("has no dead letter 'evt_l'; did you mean evt_1?\n")
    assert far.code == 1
    assert far.err.endswith(f"; see: sanderling dead list {dead.queued.named(dead.system)[0]}\n")


def test_some_come_back_and_the_others_stay_dead(dead: Dead) -> None:
    dead.queued.bury(*((Letter(f"{number}", b"x"), "why") for number in range(5)))

    some, absent = dead("replay", "1", "3", "3"), dead("replay", "--json", "0", "404")

    assert (some.code, some.out) == (0, "2 dead letters ready again.\n")
    assert (absent.code, json.loads(absent.out)) == (1, {"replayed": 1})
    assert "1 key of 2 not found among the dead letters" in absent.err
    assert dead.keys() == ["2", "4"]


def test_all_come_back(dead: Dead) -> None:
    dead.queued.bury(*((Letter(f"{number}", b"x"), "why") for number in range(5)))

    assert dead.as_json("replay", "--all") == [{"replayed": 5}]
    assert dead.queued.depth() == Depth(ready=5, taken=0, delayed=0, dead=0)


def test_many_are_cut_and_said_to_be(embedded: Dead) -> None:
    embedded.queued.bury(*((Letter(f"{number:03}", b"x"), "why") for number in range(103)))

    assert "and 83 more: see --limit" in embedded("list").out
    assert "and 2 more: see" in embedded("list", "--limit=101").out
    assert len(embedded.as_json("list", "--limit=101")) == 101
    assert embedded.keys() == [f"{number:03}" for number in range(103)]


def test_where_there_is_no_queue_none_is_made(embedded: Dead, tmp_path: Path) -> None:
    assert embedded("list") == Done(0, f"0 dead letters in {tmp_path / embedded.system}.\n", "")
    assert embedded.as_json("list") == []
    assert embedded("replay", "--all").out == "0 dead letters ready again.\n"
    assert embedded("show", "17").code == 1
    assert embedded("replay", "17", f"--queue=sqlite:{tmp_path}").code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keys", [[], ["5", "--all"]])
def test_a_replay_of_nothing_or_of_both_is_refused(embedded: Dead, keys: list[str]) -> None:
    done = embedded("replay", *keys)

    assert done.code == 2
    assert "expected keys of dead letters, or --all" in done.err


@pytest.mark.parametrize("url", ["redis://localhost", "sqlite:", "queue"])
def test_what_is_no_queue_is_refused(embedded: Dead, tmp_path: Path, url: str) -> None:
    done = embedded("list", f"--queue={url}")

    assert done.code == 2
    assert "--queue" in done.err
    assert "expected sqlite:FOLDER or amqp://" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("system", NAMES)
def test_a_broker_that_is_away_is_told_without_a_password(system: str) -> None:
    done = called("dead", "list", system, "--queue=amqp://me:secret@127.0.0.1:1/")

    assert done.code == 1
    assert done.err.startswith("sanderling: --queue: ")
    assert "127.0.0.1:1" in done.err
    assert "secret" not in done.err


# A letter as people like to read it.

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(DOCUMENTS, st.booleans())
@example({"a line\x85that ends": "for\u2028some"}, False)  # noqa: FBT003
def test_a_document_is_the_same_after_it_was_made_pretty(document: object, plain: bool) -> None:  # noqa: FBT001
    body = json.dumps(document, ensure_ascii=plain).encode(errors="replace")

    assert json.loads("\n".join(pretty(body))) == json.loads(body)


@given(st.integers(1, 60), st.text())
def test_the_depth_of_a_document_is_that_of_its_brackets_outside_of_texts(levels: int, text: str) -> None:
    body = json.dumps(text + '[{"]}').encode()

    assert depth(b"[" * levels + body + b"]" * levels) == levels


def test_a_document_that_would_grow_a_thousandfold_is_shown_as_it_is() -> None:
    deep = b"[" * (DEEPEST + 1) + b"1," * 1000 + b"1" + b"]" * (DEEPEST + 1)

    assert pretty(deep) == [deep.decode()]
    assert len(pretty(deep[1:-1])) > 1000


@given(st.binary())
def test_whatever_bytes_there_are_they_are_lines(body: bytes) -> None:
    assert all("\n" not in line for line in pretty(body))
