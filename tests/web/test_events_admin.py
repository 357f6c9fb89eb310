"""The routes for those who run `events`: how it stands, its modes, and its dead letters."""

from pathlib import Path

import pytest
from events_house import (
    ANALYTICS,
    EVENTS,
    NOON,
    FakeControl,
    FakeLetters,
    FolderControl,
    as_json,
    events_house,
    is_enveloped,
)
from known_reports import EVENTS as REPORT
from looping import in_loop
from structlog.testing import capture_logs

from sanderling.events.modes import FILE, Modes
from sanderling.stores.durable import FolderError
from sanderling.stores.queue import Dead, DeadLetters, QueueError, WholeQueue

LETTERS = [Dead(f"evt_{number}", b'{"event_id": 1}', "payload is missing", 5, NOON + number) for number in range(5)]


def what_queues_offer_is_what_the_web_asks_for(queue: WholeQueue) -> DeadLetters:
    """Never called: the type checker reads it."""
    return queue


@in_loop
async def test_the_status_is_shown_as_other_processes_see_it() -> None:
    async with events_house() as opened:
        answer = await opened.ask("GET", f"{EVENTS}/status")

    assert answer.data["data"] == as_json(REPORT)
    assert is_enveloped(answer)


@in_loop
async def test_modes_are_switched_all_at_once_and_are_in_the_file(tmp_path: Path) -> None:
    given = {"new": True, "legacy": False, "inline": True, "canary": 0.25}
    async with events_house(control=FolderControl(tmp_path)) as opened:
        before = await opened.ask("GET", f"{EVENTS}/modes")
        changed = await opened.ask("PUT", f"{EVENTS}/modes", given)
        after = await opened.ask("GET", f"{EVENTS}/modes")

    assert before.data["data"] == as_json(Modes())
    assert changed.data["data"] == after.data["data"] == given
    assert is_enveloped(changed)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "VAL_002"),
        ({"new": True, "legacy": True, "inline": True}, "VAL_002"),
        ({"new": True, "legacy": True, "canary": 1}, "VAL_002"),
        ({"new": True, "inline": True, "canary": 1}, "VAL_002"),
        ({"legacy": True, "inline": True, "canary": 1}, "VAL_002"),
        ({"new": True, "legacy": True, "inline": True, "canary": 1.01}, "VAL_001"),
        ({"new": True, "legacy": True, "inline": True, "canary": -0.01}, "VAL_001"),
        ({"new": True, "legacy": True, "inline": True, "canary": None}, "VAL_001"),
        ({"new": 1, "legacy": True, "inline": True, "canary": 1}, "VAL_001"),
        ({"new": True, "legacy": True, "inline": True, "canary": 1, "more": True}, "VAL_001"),
        ([], "VAL_001"),
    ],
)
@in_loop
async def test_modes_that_are_not_all_there_or_make_no_sense_change_nothing(body: object, code: str) -> None:
    async with events_house() as opened:
        answer = await opened.ask("PUT", f"{EVENTS}/modes", body)

    assert (answer.status, answer.data["error"]["code"]) == (400, code)
    assert opened.control.switched == Modes()


@in_loop
async def test_a_file_of_modes_that_makes_no_sense_is_told_and_can_be_written_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"canary": 7}')
    given = {"new": True, "legacy": True, "inline": True, "canary": 1.0}
    async with events_house(control=FolderControl(tmp_path)) as opened:
        broken = await opened.ask("GET", f"{EVENTS}/modes")
        changed = await opened.ask("PUT", f"{EVENTS}/modes", given)
        mended = await opened.ask("GET", f"{EVENTS}/modes")

    assert (broken.status, broken.data["error"]["code"]) == (503, "SYS_001")
    assert "expected a share from 0 to 1" in broken.data["detail"]
    assert (changed.status, mended.data["data"]) == (200, given)


@in_loop
async def test_a_folder_that_cannot_be_written_is_told() -> None:
    control = FakeControl()
    control.trouble = FolderError("the disk under state is full")
    async with events_house(control=control) as opened:
        answer = await opened.ask(
            "PUT", f"{EVENTS}/modes", {"new": True, "legacy": True, "inline": True, "canary": 1.0}
        )

    assert (answer.status, answer.headers["Retry-After"]) == (503, "60")
    assert "the disk under state is full" in answer.data["detail"]


@in_loop
async def test_dead_letters_are_listed_page_by_page_each_once() -> None:
    async with events_house(letters=FakeLetters(*LETTERS)) as opened:
        pages: list[list[str]] = []
        after: str | None = ""
        while after is not None:
            page = (await opened.ask("GET", f"{EVENTS}/dead?limit=2&after={after}")).data["data"]
            pages.append([letter["key"] for letter in page["letters"]])
            after = page["next"]
        first = (await opened.ask("GET", f"{EVENTS}/dead")).data["data"]["letters"][0]

    assert pages == [["evt_0", "evt_1"], ["evt_2", "evt_3"], ["evt_4"], []]
    assert first == {
        "key": "evt_0",
        "why": "payload is missing",
        "tries": 5,
        "at": NOON,
        "size": 15,
        "body": '{"event_id": 1}',
    }


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", ""),
        (b"x" * 500, "x" * 500),
        (b"x" * 501, "x" * 499 + "…"),
        ("🚗".encode() * 3_000_000, "🚗" * 499 + "…"),
        ("🚗".encode() * 500, "🚗" * 500),
        (b"\xff\x00\xed\xa0\x80", "\ufffd\x00\ufffd\ufffd\ufffd"),
    ],
)
@in_loop
async def test_a_body_is_shown_in_short_whatever_it_is(body: bytes, shown: str) -> None:
    async with events_house(letters=FakeLetters(Dead("k", body, "", 1, NOON))) as opened:
        (letter,) = (await opened.ask("GET", f"{EVENTS}/dead")).data["data"]["letters"]

    assert (letter["body"], letter["size"]) == (shown, len(body))


@in_loop
async def test_a_page_after_a_letter_that_has_gone_is_gone_but_not_where_the_queue_is_away() -> None:
    letters = FakeLetters(*LETTERS)
    async with events_house(letters=letters) as opened:
        gone = await opened.ask("GET", f"{EVENTS}/dead?after=evt_9")
        letters.trouble = QueueError("localhost:5672: connection refused")
        away = [await opened.ask("GET", f"{EVENTS}/dead{query}") for query in ("?after=evt_9", "")]

    assert (gone.status, gone.data["error"]["code"]) == (410, "RES_001")
    assert "evt_9" in gone.data["detail"]
    assert [(each.status, each.data["error"]["code"]) for each in away] == [(503, "SYS_001")] * 2
    assert all("connection refused" in each.data["detail"] for each in away)


@in_loop
async def test_a_queue_that_was_away_for_a_moment_is_not_taken_for_a_letter_that_has_gone() -> None:
    class Blinking(FakeLetters):
        async def dead(self, limit: int, after: str = "") -> list[Dead]:
            trouble, self.trouble = self.trouble, None
            if trouble is not None:
                raise trouble
            return await super().dead(limit, after)

    letters = Blinking(*LETTERS)
    letters.trouble = QueueError("localhost:5672: connection reset")
    async with events_house(letters=letters) as opened:
        answer = await opened.ask("GET", f"{EVENTS}/dead")

    assert answer.status == 503


@in_loop
async def test_some_dead_letters_are_replayed_or_all() -> None:
    letters = FakeLetters(*LETTERS)
    async with events_house(letters=letters) as opened:
        with capture_logs() as lines:
            some = await opened.ask("POST", f"{EVENTS}/dead/replay", {"keys": ["evt_1", "evt_3", "evt_1", "unknown"]})
            rest = await opened.ask("POST", f"{EVENTS}/dead/replay", {"all": True})

    assert letters.replayed == [{"evt_1", "evt_3", "unknown"}, None]
    assert (some.data["data"], rest.data["data"]) == ({"replayed": 2}, {"replayed": 3})
    told = [(line["letters"], line["log_level"]) for line in lines if line["event"] == "dead_letters_replayed"]
    assert told == [(2, "info"), (3, "info")]


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"all": False},
        {"all": True, "keys": ["a"]},
        {"all": False, "keys": ["a"]},
        {"all": 1},
        {"keys": []},
        {"keys": [""]},
        {"keys": "evt_1"},
        {"keys": ["x" * 201]},
        {"keys": ["a"] * 1001},
        {"keys": None},
        {"key": "a"},
    ],
)
@in_loop
async def test_nothing_is_replayed_unless_it_is_clear_what(body: object) -> None:
    letters = FakeLetters(*LETTERS)
    async with events_house(letters=letters) as opened:
        answer = await opened.ask("POST", f"{EVENTS}/dead/replay", body)

    assert (answer.status, answer.data["error"]["code"]) == (400, "VAL_001")
    assert letters.replayed == []


@in_loop
async def test_a_queue_that_is_away_replays_nothing_and_says_so() -> None:
    letters = FakeLetters(*LETTERS)
    letters.trouble = QueueError("localhost:5672: connection refused")
    async with events_house(letters=letters) as opened:
        answer = await opened.ask("POST", f"{EVENTS}/dead/replay", {"all": True})

    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")


@in_loop
async def test_it_is_healthy_if_all_it_needs_is() -> None:
    async with events_house() as opened:
        plain = await opened.ask("GET", f"{ANALYTICS}/health")
        well = await opened.ask("GET", f"{ANALYTICS}/health/detailed")
        opened.control.parts["queue"] = "localhost:5672: connection refused"
        ill = await opened.ask("GET", f"{ANALYTICS}/health/detailed")

    assert plain.data["data"] == {"status": "ok"}
    assert well.data["data"] == {"status": "ok", "parts": {"database": "ok", "objects": "ok", "queue": "ok"}}
    assert (ill.status, ill.data["data"]["status"]) == (200, "degraded")
    assert ill.data["data"]["parts"]["queue"] == "localhost:5672: connection refused"
    assert all(is_enveloped(each) for each in (plain, well, ill))


@in_loop
async def test_it_is_ready_if_all_it_needs_answers_and_says_no_more_to_everyone() -> None:
    stranger = {"Authorization": ""}
    async with events_house() as opened:
        fine = await opened.ask("GET", "/ready", headers=stranger)
        opened.control.parts["database"] = "postgresql at db: connection refused"
        troubled = await opened.ask("GET", "/ready", headers=stranger)

    assert (fine.status, troubled.status, troubled.headers["Retry-After"]) == (200, 503, "5")
    assert b"db" not in troubled.body


@in_loop
async def test_what_is_wrong_is_told_in_short_and_without_passwords() -> None:
    control = FakeControl()
    control.parts = {
        "queue": "amqp://guest:hunter22@localhost:5672: refused",
        "database": "x" * 10_000,
        "objects": "a\r\nb\x1b[31m",
    }
    async with events_house(control=control) as opened:
        answer = await opened.ask("GET", f"{ANALYTICS}/health/detailed")

    assert b"hunter22" not in answer.body
    assert "localhost:5672" in answer.data["data"]["parts"]["queue"]
    assert all(len(said) <= 100 and said.isprintable() for said in answer.data["data"]["parts"].values())
