"""What a simulated game answers, and when."""

import json
import tracemalloc
from collections import Counter
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hostile_game import Hostile, HostileGame, HostileRules
from hypothesis import given
from hypothesis import strategies as st

from sanderling.worlds.game import BEGAN, REPORT, SETTINGS, Game, GameRules
from sanderling.worlds.game_answers import GameAnswer, GameKind
from sanderling.worlds.game_schedule import Hole, Piece, ScheduleRules, TimeSpan
from sanderling.worlds.game_weather import Contest, GameRefusal, IdTrouble, Slowness, WeatherRules

FIRST = 16_000_000_000
# Ten a second from ten seconds before the game began; each is visible at once, so that tests can count on fingers.
SCHEDULE = ScheduleRules(pieces=(Piece(-10.0, inf, 10.0),), delay=0.0, spread=0.0)
CALM = WeatherRules(latency=0.0)


def make(schedule: ScheduleRules = SCHEDULE, weather: WeatherRules = CALM, seed: int = 1, **rules: Any) -> Game:  # noqa: ANN401 - fields by name
    return Game(GameRules(schedule, weather, **rules), seed)


def ask(game: Game, number: int, since: float = 0.0, query: str = "") -> GameAnswer:
    return game.ask(f"{REPORT}{number}/{query}", BEGAN + since)


def said(answer: GameAnswer) -> dict[str, Any]:
    assert dict(answer.headers)["Content-Type"].startswith("application/json")
    found: dict[str, Any] = json.loads(answer.body)
    assert found["ErrorCode"] == answer.code
    return found


def test_an_id_is_found_from_the_instant_on_at_which_it_is_visible() -> None:
    game = make(replace(SCHEDULE, delay=2.0, spread=3.0))
    visible = game.visible(FIRST + 50) - BEGAN

    before, after = ask(game, FIRST + 50, visible - 0.001), ask(game, FIRST + 50, visible + 0.001)

    assert (before.status, before.kind, after.status, after.kind) == (
        404,
        GameKind.MISSING,
        200,
        GameKind.REPORT,
    )
    assert said(after)["Response"]["activityDetails"]["instanceId"] == str(FIRST + 50)


def test_what_is_missing_is_told_in_the_words_of_the_api() -> None:
    answer = ask(make(), FIRST - 1)

    assert said(answer) == {
        "ErrorCode": 1653,
        "ThrottleSeconds": 0,
        "ErrorStatus": "DestinyPGCRNotFound",
        "Message": "The activity you were looking for was not found.",
        "MessageData": {},
    }


def test_what_can_be_had_is_exactly_what_the_game_says_is_live() -> None:
    holes = (Hole(FIRST + 30, 20), Hole(FIRST + 90, 15, jumped=False))
    game = make(replace(SCHEDULE, holes=holes, hole_every=9, delay=1.0, spread=4.0))
    asked = range(FIRST - 5, FIRST + 400)

    for since in (-3.0, 0.0, 7.7, 20.0):
        had = [number for number in asked if ask(game, number, since).kind is GameKind.REPORT]
        assert had == list(game.ids(asked.start, asked.stop, BEGAN + since))
        assert len(had) == game.live(asked.start, asked.stop, BEGAN + since)
        assert had[-1] == game.newest(BEGAN + since)


@given(st.integers(0, 2**70), st.floats(-1e5, 1e9, allow_nan=False))
def test_any_number_gets_an_answer_at_any_time(number: int, since: float) -> None:
    answer = ask(GAME, number, since)

    expected = (
        GameKind.INVALID
        if number >= 2**63
        else GameKind.REPORT
        if GAME.live(number, number + 1, BEGAN + since)
        else None
    )
    assert answer.kind is (expected or GameKind.MISSING)
    assert dict(answer.headers)["Content-Length"] == str(len(answer.body))


GAME = make(replace(SCHEDULE, first=0, hole_every=3))


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (f"{REPORT}{FIRST}/", 200, 1),
        (f"{REPORT}{FIRST}", 200, 1),
        (f"{REPORT}{FIRST}/?malformed_retry=2", 200, 1),
        (f"{REPORT}abc/", 400, 18),
        (f"{REPORT}-1/", 400, 18),
        (f"{REPORT}{2**63}/", 400, 18),
        (f"{REPORT}{'9' * 4000}/", 400, 18),
        (f"{REPORT}1/2/", 400, 18),
        (f"{REPORT}\N{ARABIC-INDIC DIGIT ONE}/", 400, 18),
        (REPORT, 400, 18),
        ("/", 404, 0),
        ("/robots.txt", 404, 0),
        (SETTINGS, 200, 1),
    ],
)
def test_paths_that_mean_nothing_are_told_so(path: str, status: int, code: int) -> None:
    answer = make().ask(path, BEGAN)

    assert (answer.status, answer.code) == (status, code)


def test_maintenance_switches_off_all_but_the_settings() -> None:
    game = make(weather=replace(CALM, maintenance=(TimeSpan(10.0, 5.0),)))

    def enabled(since: float) -> bool:
        systems = said(game.ask(SETTINGS, BEGAN + since))["Response"]["systems"]
        assert {"Destiny2", "D2Profiles", "Activities", "Groups", "Clans", "D2Characters"} == set(systems)
        (found,) = {system["enabled"] for system in systems.values()}
        return bool(found)

    assert [ask(game, FIRST, since).kind for since in (9.9, 10.0, 14.9, 15.0)] == [
        GameKind.REPORT,
        GameKind.DISABLED,
        GameKind.DISABLED,
        GameKind.REPORT,
    ]
    assert [enabled(since) for since in (9.9, 10.0, 14.9, 15.0)] == [True, False, False, True]
    assert said(ask(game, FIRST, 12.0))["ErrorStatus"] == "SystemDisabled"
    assert ask(game, FIRST, 12.0).status == 503
    assert game.tally.kinds[GameKind.DISABLED] == 4


def test_raids_of_a_contest_are_hidden_until_it_opens() -> None:
    game = make(weather=replace(CALM, contests=(Contest(0.0, 100.0, 300.0),)), raids=0.3)
    inside = [number for number in game.ids(FIRST, FIRST + 1500) if 0 <= game.born(number) - BEGAN < 100]
    others = [number for number in game.ids(FIRST, FIRST + 1500) if number not in set(inside)]

    assert {ask(game, number, 299.0).kind for number in others} == {GameKind.REPORT}
    for number in inside:
        kind = ask(game, number, 299.0).kind
        assert (kind is GameKind.HIDDEN) == game.hidden(number, BEGAN + 299.0) == game.raid(number)
        assert ask(game, number, 300.0).kind is GameKind.REPORT
    hidden = ask(game, next(filter(game.raid, inside)), 299.0)
    assert (hidden.status, said(hidden)["ErrorStatus"]) == (403, "InsufficientPrivileges")


def test_trouble_is_with_the_same_ids_for_as_long_as_it_lasts() -> None:
    game = make(weather=replace(CALM, troubles=(IdTrouble(100.0, 50.0, 0.1),)))
    numbers = range(FIRST, FIRST + 1000)

    def troubled(since: float) -> list[int]:
        return [number for number in numbers if ask(game, number, since).kind is GameKind.TROUBLED]

    assert troubled(99.0) == troubled(150.0) == []
    assert troubled(100.0) == troubled(149.0)
    assert 60 < len(troubled(100.0)) < 140
    assert said(ask(game, troubled(100.0)[0], 100.0))["ErrorCode"] == 1618


def test_a_quota_is_kept_and_its_refusals_take_turns() -> None:
    weather = replace(CALM, quota=5.0, window=2.0, refusals=tuple(GameRefusal), retry_after=1.5, throttle_seconds=3)
    game = make(weather=weather)

    answers = [ask(game, FIRST, at / 10) for at in range(14)]

    assert [answer.kind for answer in answers] == [GameKind.REPORT] * 10 + [GameKind.REFUSED] * 4
    assert [(answer.status, answer.code) for answer in answers[10:]] == [(503, 1672), (403, 0), (503, 0), (503, 1672)]
    assert said(answers[10])["ThrottleSeconds"] == 3
    assert b"<title>403 Forbidden</title>" in answers[11].body
    assert {dict(answer.headers)["Retry-After"] for answer in answers[10:]} == {"2"}
    assert ask(game, FIRST, 2.05).kind is GameKind.REPORT


def test_a_refusal_says_nothing_of_when_to_come_back_unless_told_to() -> None:
    game = make(weather=replace(CALM, quota=1.0))

    refused = [ask(game, FIRST), ask(game, FIRST)][1]

    assert said(refused)["ThrottleSeconds"] == 0
    assert "Retry-After" not in dict(refused.headers)


def test_shares_of_requests_meet_a_proxy_that_gives_up_or_a_reset() -> None:
    game = make(weather=replace(CALM, bad_gateway=0.1, resets=0.05))

    answers = [ask(game, FIRST) for _ in range(2000)]

    kinds = Counter(answer.kind for answer in answers)
    assert kinds[GameKind.BAD_GATEWAY] == pytest.approx(200, rel=0.3)
    assert kinds[GameKind.RESET] == pytest.approx(100, rel=0.4)
    page = next(answer for answer in answers if answer.kind is GameKind.BAD_GATEWAY)
    assert (page.status, dict(page.headers)["Content-Type"]) == (502, "text/html; charset=utf-8")
    assert {answer.status for answer in answers if answer.kind is GameKind.RESET} == {0}


def test_latency_is_about_what_it_should_be_and_more_in_a_slow_hour() -> None:
    game = make(weather=WeatherRules(latency=0.1, jitter=0.2, slow=(Slowness(100.0, 50.0, 4.0),), quota=1000.0))

    def middle(since: float) -> float:
        return sorted(ask(game, FIRST, since + at).latency for at in range(50))[25]

    assert middle(0.0) == pytest.approx(0.1, rel=0.2)
    assert middle(100.0) == pytest.approx(0.4, rel=0.2)
    assert middle(150.0) == pytest.approx(0.1, rel=0.2)


def test_some_reports_are_not_whole_at_first() -> None:
    game = make(late=0.2, late_seconds=30.0, raids=1.0)
    late = [number for number in range(FIRST, FIRST + 500) if game.whole(number) > game.visible(number)]

    def entries(number: int, age: float) -> list[dict[str, Any]]:
        answer = ask(game, number, game.visible(number) - BEGAN + age)
        found: list[dict[str, Any]] = said(answer)["Response"]["entries"]
        return found

    assert len(late) == pytest.approx(100, rel=0.3)
    shapes = {(len(young := entries(number, 29.9)) == 1, "extended" in young[0]) for number in late}
    assert shapes == {(True, True), (False, False)}
    for number in late:
        old = entries(number, 30.1)
        assert len(old) >= 6
        assert all("extended" in entry for entry in old)
    on_time = next(number for number in range(FIRST, FIRST + 500) if number not in late)
    assert entries(on_time, 0.1) == entries(on_time, 30.1)


def test_some_ids_have_the_report_of_another_activity_later() -> None:
    game = make(changed=0.1, changed_seconds=60.0)
    numbers = range(FIRST, FIRST + 400)

    changed = [number for number in numbers if ask(game, number, 50.0).body != ask(game, number, 1000.0).body]

    assert changed == [number for number in numbers if game.changes(number) < inf]
    assert len(changed) == pytest.approx(40, rel=0.5)
    assert {said(ask(game, number, 1000.0))["Response"]["activityDetails"]["instanceId"] for number in changed} == {
        str(number) for number in changed
    }


def test_raids_are_told_beforehand() -> None:
    game = make(raids=0.3)

    for number in range(FIRST, FIRST + 90):
        assert (said(ask(game, number))["Response"]["activityDetails"]["mode"] == 4) == game.raid(number)


def hostile_game(number: int, kind: Hostile) -> Game:
    return HostileGame(HostileRules(SCHEDULE, CALM, hostile={number: kind}), 1)


def hostile(kind: Hostile) -> GameAnswer:
    return ask(hostile_game(FIRST + 3, kind), FIRST + 3)


def test_hostile_answers_break_what_they_are_said_to_break() -> None:
    assert hostile(Hostile.NOT_JSON).body == b"the report is not available\n"
    assert not hostile(Hostile.CUT).body.endswith(b"}")
    assert said(hostile(Hostile.NULL))["Response"] is None
    assert said(hostile(Hostile.NO_ENTRIES))["Response"]["entries"] == []
    assert said(hostile(Hostile.WRONG_ID))["Response"]["activityDetails"]["instanceId"] == str(FIRST + 4)
    for entry in said(hostile(Hostile.NEGATIVE))["Response"]["entries"]:
        assert entry["values"]["activityDurationSeconds"]["basic"]["value"] < 0
    for entry in said(hostile(Hostile.GIANT_IDS))["Response"]["entries"]:
        assert entry["player"]["destinyUserInfo"]["membershipId"] == str(2**63)
    with pytest.raises(RecursionError):
        json.loads(hostile(Hostile.DEEP).body)


@pytest.mark.parametrize("kind", Hostile)
def test_a_hostile_answer_looks_like_a_success_from_outside(kind: Hostile) -> None:
    answer = hostile(kind)

    assert (answer.status, answer.kind, answer.number) == (200, GameKind.HOSTILE, FIRST + 3)
    assert dict(answer.headers)["Content-Length"] == str(len(answer.body) * answer.times)


def test_a_huge_answer_takes_no_memory() -> None:
    answer = hostile(Hostile.HUGE)

    assert sum(len(piece) for _, piece in answer.pieces()) == 200 * 2**20
    assert len(answer.body) == 2**16


def test_a_changing_answer_is_another_each_time() -> None:
    game = hostile_game(FIRST, Hostile.CHANGING)

    bodies = {ask(game, FIRST).body for _ in range(5)}

    assert len(bodies) == 5
    assert ask(game, FIRST + 1).body == ask(game, FIRST + 1).body


def test_the_same_seed_and_questions_get_the_same_answers() -> None:
    weather = WeatherRules(quota=50.0, bad_gateway=0.1, resets=0.1)

    def answers(seed: int) -> list[GameAnswer]:
        game = make(replace(SCHEDULE, hole_every=5), weather, seed, late=0.3, changed=0.2)
        return [ask(game, FIRST + at, at / 100) for at in range(300)]

    assert answers(1) == answers(1) != answers(2)


def test_what_was_asked_is_tallied_and_ids_only_if_wanted() -> None:
    game = make()
    ask(game, FIRST)
    assert game.tally.ids is None
    game.tally.ids = Counter()

    for number in (FIRST, FIRST, FIRST + 10**6):
        ask(game, number)
    game.ask(SETTINGS, BEGAN)

    tally = game.tally
    assert (tally.asked, tally.statuses, tally.codes) == (5, {200: 4, 404: 1}, {1: 4, 1653: 1})
    assert tally.kinds == {GameKind.REPORT: 3, GameKind.MISSING: 1, GameKind.SETTINGS: 1}
    assert tally.ids == {FIRST: 2, FIRST + 10**6: 1}


def test_questions_take_no_memory_however_many() -> None:
    game = make(replace(SCHEDULE, hole_every=7))
    asked = range(FIRST, FIRST + 1000)
    for number in asked:  # players get known, all that there are
        ask(game, number, 10_000.0)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    for number in range(FIRST + 10**9, FIRST + 10**9 + 15_000):
        ask(game, number)
    for number in asked:
        ask(game, number, 10_000.0)

    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 5_000  # bytes: a third of one for each question, where the smallest table would take 70


def test_a_faster_game_is_the_same_game() -> None:
    weather = replace(CALM, maintenance=(TimeSpan(20.0, 10.0),), quota=10.0, contests=(Contest(0.0, 9.0, 50.0),))
    rules = GameRules(SCHEDULE, weather, late=0.5, late_seconds=30.0, raids=0.5)
    slow, fast = Game(rules, 1), Game(rules.faster(10.0), 1)

    for since in (0.5, 15.0, 25.5, 31.5, 49.5, 50.5):
        kinds = [ask(game, FIRST + 120, since / speed).kind for game, speed in ((slow, 1.0), (fast, 10.0))]
        assert kinds[0] is kinds[1]
    assert fast.whole(FIRST) - BEGAN == pytest.approx((slow.whole(FIRST) - BEGAN) / 10)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (lambda: GameRules(raids=2.0), "raids is 2.0"),
        (lambda: GameRules(late=-0.1), "late is -0.1"),
        (lambda: GameRules().faster(0.0), "speed is 0.0"),
        (lambda: WeatherRules(latency=-1.0), "latency -1.0"),
        (lambda: WeatherRules(quota=0.0), "quota 0.0"),
        (lambda: WeatherRules(quota=0.1), "less than one request"),
        (lambda: WeatherRules(bad_gateway=0.6, resets=0.6), "together"),
        (lambda: WeatherRules(refusals=()), "refusals is empty"),
    ],
)
def test_rules_that_make_no_game_say_why(rules: Any, says: str) -> None:  # noqa: ANN401 - a function without arguments
    with pytest.raises(ValueError, match=says):
        rules()
