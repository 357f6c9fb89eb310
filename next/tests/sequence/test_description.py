"""What answers mean: times in every form, the shipped descriptions, and broken descriptions in one sentence each."""

import json
from typing import Any

import pytest

from sanderling.fetch.messages import HttpResponse
from sanderling.options import OptionError
from sanderling.outcome import Code, Outcome
from sanderling.sequence.description import Description, IdApi, Meaning, described, read_time
from sanderling.sequence.instances import rows_of
from sanderling.sequence.opening import read_description


def answer(status: int, body: Any) -> HttpResponse:
    code = {200: Code.OK, 404: Code.CONTENT_NOT_FOUND, 429: Code.RATE_LIMITED}.get(status, Code.HOST_UNAVAILABLE)
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpResponse(Outcome(code, status), "https://x.example/1", 1, status, (), text)


@pytest.mark.parametrize(
    "written",
    [
        "2025-06-01T12:00:00Z", "2025-06-01 12:00:00", "2025-06-01T14:00:00+02:00", "Sun, 01 Jun 2025 12:00:00 GMT",
        1748779200, 1748779200.0, 1748779200000, 1748779200000000, "1748779200", "1748779200000", "1748779200000000",
    ],
)  # fmt: skip
def test_times(written: object) -> None:
    assert read_time(written) == 1748779200.0


@pytest.mark.parametrize("written", [None, True, 5, "soon", "", float("nan"), [], "9" * 400])
def test_what_is_no_time(written: object) -> None:
    assert read_time(written) is None
    assert read_time("2025-06-01") == 1748736000.0


GAME = "destiny2 https://game.example"


def report(number: int = 7, mode: int = 4, players: int = 1, period: str = "2025-06-01T12:00:00Z") -> dict[str, Any]:
    def stats(**values: float) -> dict[str, Any]:
        return {name: {"basic": {"value": value}} for name, value in values.items()}

    entry = {
        "characterId": "23",
        "player": {"destinyUserInfo": {"membershipId": "46"}, "classHash": 671},
        "values": stats(
            playerCount=players, activityDurationSeconds=600.0, completed=1, completionReason=0, deaths=0,
            startSeconds=100, timePlayedSeconds=550, teamScore=3, score=5, kills=9,
        ),
        "extended": {
            "values": stats(precisionKills=2.0),
            "weapons": [{"referenceId": 1234, "values": stats(uniqueWeaponKills=5)}],
        },
    }  # fmt: skip
    details = {"instanceId": str(number), "mode": mode, "directorActivityHash": 9, "membershipType": 3}
    return {
        "period": period, "activityWasStartedFromBeginning": True, "activityDetails": details, "entries": [entry],
    }  # fmt: skip


def envelope(code: int, response: Any = None) -> dict[str, Any]:
    return {"ErrorCode": code, "Response": response, "ThrottleSeconds": 0}


CASES: list[tuple[str, int, Any, Meaning]] = [
    (GAME, 200, envelope(1, report()), Meaning.FOUND),
    (GAME, 200, envelope(1, report(mode=5)), Meaning.UNWANTED),
    (GAME, 200, envelope(1, report(players=2)), Meaning.BAD_FORMAT),
    (GAME, 200, envelope(1, report(number=8)), Meaning.BAD_FORMAT),
    (GAME, 200, envelope(1), Meaning.BAD_FORMAT),
    (GAME, 404, envelope(1653), Meaning.MISSING),
    (GAME, 500, envelope(1653), Meaning.MISSING),
    (GAME, 404, b"<html>", Meaning.ERROR),
    (GAME, 503, envelope(5), Meaning.DISABLED),
    (GAME, 200, envelope(12), Meaning.HIDDEN),
    (GAME, 200, envelope(1672), Meaning.REFUSED),
    (GAME, 403, b"<html>", Meaning.REFUSED),
    (GAME, 500, envelope(1618), Meaning.ERROR),
    ("hacker-news https://hn.example", 200, {"id": 7, "time": 1748779200}, Meaning.FOUND),
    ("hacker-news https://hn.example", 200, None, Meaning.MISSING),
    ("hacker-news https://hn.example", 200, {"error": "x"}, Meaning.BAD_FORMAT),
    ("orders https://shop.example", 200, {"order": {"id": "7", "created_at": "2025-06-01 12:00:00"}}, Meaning.FOUND),
    ("orders https://shop.example", 200, {"error": "internal"}, Meaning.ERROR),
    ("orders https://shop.example", 404, {}, Meaning.MISSING),
    ("orders https://shop.example", 403, {}, Meaning.HIDDEN),
    ("orders https://shop.example", 429, {}, Meaning.REFUSED),
]


@pytest.mark.parametrize(("api", "status", "body", "meaning"), CASES)
def test_meanings(api: str, status: int, body: object, meaning: Meaning) -> None:
    name, base = api.split()
    (found,) = IdApi(read_description(name, base)).read([7], answer(status, body))

    assert found.meaning is meaning


def test_the_time_of_a_report_is_its_end() -> None:
    (found,) = IdApi(read_description(*GAME.split())).read([7], answer(200, envelope(1, report())))

    assert found.time == 1748779800.0


def test_a_listing_in_base_36_answers_in_any_order_and_leaves_out() -> None:
    api = IdApi(read_description("listing", "https://l.example"))
    body = {"data": {"children": [{"data": {"name": "t3_zz"}}, {"data": {"name": "t3_10"}}]}}

    found = api.read([36, 37, 1295], answer(200, body))

    assert api.url([36, 37, 1295]) == "https://l.example/api/info.json?id=t3_10,t3_11,t3_zz"
    assert [each.meaning for each in found] == [Meaning.FOUND, Meaning.MISSING, Meaning.FOUND]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"url": "https://x.example/1"}, "t: url is 'https://x.example/1'; expected one with {id}"),
        ({"url": "ftp://x.example/{id}"}, "expected https://"),
        ({"url": "https://x.example/{id}", "batch": 5}, "t: batch is 5 and url has no {ids}"),
        ({"url": "https://x.example/{ids}"}, "t: id is missing"),
        ({"url": "https://x.example/{id}", "base": 40}, "t: base is 40; expected 2 to 36"),
        ({"url": "https://x.example/{id}", "missing": "status =="}, "t: missing: found 'status =='"),
        ({"url": "https://x.example/{id}", "head": {"url": "https://x.example/new", "path": "["}}, "t: head.path"),
        ({"url": 5}, "$.url"),
        ({"url": "https://x.example/{id}", "wrong": 1}, "wrong"),
    ],
)
def test_broken_descriptions(table: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as error:
        described(table, "t")

    assert said in str(error.value)


def test_an_answer_that_is_anything() -> None:
    api = IdApi(Description("https://x.example/{id}", id="id"))
    for body in (b"", b"\xff", b"[" * 100_000, b"[1]", b'"x"', b'{"id": [7]}', b'{"id": null}', b"5"):
        (found,) = api.read([7], answer(200, body))
        assert found.meaning is Meaning.BAD_FORMAT, body[:20]


@pytest.mark.parametrize(
    ("period", "changed", "fresh"),
    [
        ("2025-06-01T12:00:00Z", {}, True),
        ("2025-06-01T12:00:00Z", {"activityWasStartedFromBeginning": False}, False),
        ("2022-03-01T12:00:00Z", {"activityWasStartedFromBeginning": False}, False),
        ("2021-03-01T12:00:00Z", {}, None),
        ("2019-03-01T12:00:00Z", {"startingPhaseIndex": 0}, True),
        ("2019-03-01T12:00:00Z", {"startingPhaseIndex": 2}, False),
    ],
)
def test_rows_of_a_report(period: str, changed: dict[str, Any], fresh: bool | None) -> None:
    rows = rows_of(report(period=period) | changed)

    ((*instance, started, ended, seconds, _, score),) = rows["instance"]
    assert (instance, score) == ([7, 9, True, fresh, fresh, 1], 3)
    assert ended - started == seconds == 600
    assert rows["instance_player"] == [(7, 46, True, True, 500, ended)]
    assert rows["instance_character"] == [(7, 46, 23, 671, 0, True, 5, 9, 0, 0, 100, 550, 2, 0, 0, 0)]
    assert rows["instance_character_weapon"] == [(7, 46, 23, 1234, 5, 0)]
    with pytest.raises(ValueError, match="no report"):
        rows_of({"entries": []})
