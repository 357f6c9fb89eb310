"""What the game answers, as the API that we read it with understands it."""

from dataclasses import replace
from math import inf

import pytest
from hostile_game import Hostile, HostileGame, HostileRules

from sanderling.apis.bungie import Bungie
from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.fetch.classify import of_reply
from sanderling.formats.instance import decode
from sanderling.task import Reply
from sanderling.worlds.game import BEGAN, ORIGIN, REPORT, SETTINGS, Game, GameRules
from sanderling.worlds.game_answers import GameAnswer, GameKind
from sanderling.worlds.game_schedule import Piece, ScheduleRules, TimeSpan
from sanderling.worlds.game_weather import Contest, GameRefusal, IdTrouble, WeatherRules

FIRST = 16_000_000_000
API = Bungie(ORIGIN)
SCHEDULE = ScheduleRules(pieces=(Piece(-100.0, inf, 10.0),), delay=0.0, spread=0.0)
CALM = WeatherRules(latency=0.0)
RULES = GameRules(SCHEDULE, CALM, raids=0.2)


def reply(answer: GameAnswer) -> Reply:
    return Reply(answer.status, answer.headers, answer.body, ORIGIN, 0.0)


def read(game: Game, number: int, since: float = 0.0) -> NumberedAnswer:
    wall = BEGAN + since
    found = reply(game.ask(f"{REPORT}{number}/", wall))
    return API.read(number, found, of_reply(found.status, found.headers, wall=wall), wall)


def test_every_report_is_kept_or_skipped_with_the_lag_since_its_completion() -> None:
    game = Game(RULES, 1)

    for number in range(FIRST, FIRST + 500):
        answer = read(game, number, 60.0)
        assert answer.status is (Status.SUCCESS if game.raid(number) else Status.SKIPPED), answer.outcome.detail
        assert answer.outcome.lag == pytest.approx(BEGAN + 60.0 - game.born(number), abs=1.0)


@pytest.mark.parametrize("began", [1_530_000_000.0, 1_610_000_000.0, 1_650_000_000.0, BEGAN])
def test_raids_of_every_era_are_read(began: float) -> None:
    game = Game(replace(RULES, raids=1.0), 1, began)
    for number in range(FIRST, FIRST + 200):
        found = reply(game.ask(f"{REPORT}{number}/", began))
        answer = API.read(number, found, of_reply(200, found.headers, wall=began), began)

        assert answer.status is Status.SUCCESS, answer.outcome.detail
        instance = decode(answer.message).instance
        assert (instance.instance_id, len(instance.players)) == (str(number), 6)


@pytest.mark.parametrize(
    ("weather", "since", "status"),
    [
        (replace(CALM, maintenance=(TimeSpan(0.0, 9.0),)), 5.0, Status.DISABLED),
        (replace(CALM, troubles=(IdTrouble(0.0, 9.0, 1.0),)), 5.0, Status.ERROR),
        (replace(CALM, bad_gateway=1.0), 5.0, Status.ERROR),
        (replace(CALM, contests=(Contest(-100.0, 90.0, 9.0),)), 5.0, Status.HIDDEN),
        (replace(CALM, contests=(Contest(-100.0, 90.0, 9.0),)), 9.0, Status.SUCCESS),
        *((replace(CALM, quota=1.0, refusals=(each,)), 5.0, Status.RATE_LIMITED) for each in GameRefusal),
    ],
)
def test_weather_is_understood(weather: WeatherRules, since: float, status: Status) -> None:
    game = Game(replace(RULES, weather=weather, raids=1.0), 1)

    answers = [read(game, FIRST, since) for _ in range(2)]

    assert answers[-1].status is status


def test_what_is_missing_is_not_found() -> None:
    assert {read(Game(RULES, 1), number).status for number in (FIRST - 1, FIRST + 10**6)} == {Status.NOT_FOUND}


@pytest.mark.parametrize("kind", [kind for kind in Hostile if kind not in (Hostile.CHANGING, Hostile.HUGE)])
def test_nothing_hostile_is_kept(kind: Hostile) -> None:
    game = HostileGame(HostileRules(SCHEDULE, CALM, raids=1.0, hostile={FIRST: kind}), 1)

    assert read(game, FIRST).status in (Status.BAD_FORMAT, Status.ERROR)


def test_young_raids_that_are_not_whole_are_malformed_and_later_kept() -> None:
    game = Game(replace(RULES, raids=1.0, late=1.0, late_seconds=200.0), 1)

    statuses = [{read(game, FIRST + at, since).status for at in range(50)} for since in (0.0, 300.0)]

    assert statuses == [{Status.BAD_FORMAT}, {Status.SUCCESS}]


def test_whether_it_is_switched_on_can_be_asked() -> None:
    game = Game(replace(RULES, weather=replace(CALM, maintenance=(TimeSpan(0.0, 9.0),))), 1)

    assert [API.available(reply(game.ask(SETTINGS, BEGAN + since))) for since in (5.0, 9.0)] == [False, True]
    assert API.availability().url == ORIGIN + SETTINGS
    assert game.ask(API.task(FIRST, 3).url.removeprefix(ORIGIN), BEGAN + 9.0).kind is GameKind.REPORT
