"""Whole crawls of a simulated game: at the head, behind it, and through what happens to an upstream."""

from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from game_crawl import RATE, SMALL, GameCrawl, game, play, schedule

from sanderling.formats.instance import decode
from sanderling.sequence.gaps import WaitRules
from sanderling.sequence.lookout import LookRules
from sanderling.sequence.retries import Reason
from sanderling.worlds.game import Game
from sanderling.worlds.game_answers import GameKind
from sanderling.worlds.game_schedule import Piece, TimeSpan
from sanderling.worlds.game_weather import Contest, Slowness, WeatherRules

SETTLED = 30.0  # seconds after which an id that could be fetched should be here


def assert_nothing_lost(crawled: GameCrawl) -> None:
    """Whatever the crawl has passed has a fate, and only one."""
    assert crawled.without_fate() == []
    assert not crawled.missed_ids & crawled.state.ended.keys()


# At the head.


def test_at_the_head_every_id_gets_its_fate_and_every_raid_is_queued_once(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(schedule=schedule(hole_every=100)), 200)

    assert_nothing_lost(crawled)
    assert crawled.not_ended(SETTLED) == []
    queued = Counter(crawled.queue.published)
    assert queued.keys() >= crawled.raids(SETTLED)
    assert set(queued.values()) == {1}
    assert all(crawled.game.raid(int(key)) for key in queued)


def test_at_the_head_records_are_young_and_few_questions_come_too_early(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(), 200)

    later = [number for number in crawled.live(SETTLED) if crawled.game.visible(number) > crawled.game.began + 60]
    late = sorted(crawled.state.ended[number] - crawled.game.visible(number) for number in later)
    assert late[len(late) // 2] < 8
    assert late[-1] < 45
    assert crawled.game.tally.kinds[GameKind.MISSING] < 0.05 * crawled.game.tally.asked


def test_without_pacing_nothing_is_lost_either(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(), 90, replace(SMALL, look=LookRules(pacing=False)))

    assert_nothing_lost(crawled)
    assert crawled.not_ended(SETTLED) == []


def test_what_is_in_the_queue_is_what_the_game_said(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(), 60)

    bodies = crawled.queue.bodies()
    assert len(bodies) > 15
    for key, body in bodies.items():
        message = decode(body)
        assert (message.id, message.instance.instance_id) == (key, key)


# Behind it.


def test_a_backlog_under_a_quota_is_caught_up_and_nothing_is_diverted(tmp_path: Path) -> None:
    """Two minutes behind, with twice the quota it takes to keep up: nobody could do it in less than two."""
    rules = game(schedule=schedule(rate=10.0, history=120.0), weather=WeatherRules(quota=20.0, window=10.0))

    crawled = play(tmp_path, rules, 180)

    assert_nothing_lost(crawled)
    assert crawled.behind() < 10
    assert crawled.state.given_up[Reason.RATE_LIMITED] == 0
    assert crawled.game.tally.kinds[GameKind.REFUSED] < 0.01 * crawled.game.tally.asked
    assert set(Counter(crawled.queue.published).values()) == {1}


def test_there_are_never_more_requests_in_flight_than_workers(tmp_path: Path) -> None:
    weather = WeatherRules(latency=1.0, slow=(Slowness(30.0, 60.0, 4.0),))

    crawled = play(tmp_path, game(schedule=schedule(history=300.0), weather=weather), 120)

    workers = [SMALL.scale.workers, *(made.decision.plan.workers for made in crawled.system.scaler.made)]
    assert 1 < crawled.network.most <= max(workers)
    assert_nothing_lost(crawled)


# A pause.


PAUSED = TimeSpan(60.0, 600.0)
PAUSE = schedule(pieces=(Piece(-60.0, 60.0 + PAUSED.start, RATE), Piece(PAUSED.end, inf, RATE)))


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> GameCrawl:
    return play(tmp_path_factory.mktemp("paused"), game(schedule=PAUSE), PAUSED.end + 120)


def test_in_a_pause_of_ten_minutes_nothing_is_skipped_and_little_is_asked(paused: GameCrawl) -> None:
    assert_nothing_lost(paused)
    assert paused.system.measures.skipped == 0
    assert paused.not_ended(SETTLED) == []
    assert paused.missed == []
    assert paused.game.tally.kinds[GameKind.MISSING] < 5_000
    assert paused.said("runaway") == []


def test_after_a_pause_it_goes_on_within_seconds(paused: GameCrawl) -> None:
    first = paused.first + round(RATE * (60.0 + PAUSED.start))
    assert paused.game.born(first - 1) < paused.game.began + PAUSED.start < paused.game.born(first)
    waited = [paused.state.ended[number] - paused.game.visible(number) for number in range(first, first + 150)]
    assert min(waited) < 20
    assert max(waited) < 60


def test_a_pause_that_lasts_is_told_once(tmp_path: Path) -> None:
    look = LookRules(wait=WaitRules(runaway=150.0))

    crawled = play(tmp_path, game(schedule=PAUSE), PAUSED.end + 60, replace(SMALL, look=look))

    (told,) = crawled.said("runaway")
    assert PAUSED.start + 150 < told < PAUSED.start + 450
    assert crawled.not_ended(SETTLED) == []


def test_records_that_come_in_bursts_are_all_stored(tmp_path: Path) -> None:
    """Nothing can be seen for four minutes, and then all of it, again and again."""
    holds = tuple(TimeSpan(start, 240.0) for start in (30.0, 270.0))

    crawled = play(tmp_path, game(schedule=schedule(rate=1.5, holds=holds)), 600)

    assert_nothing_lost(crawled)
    assert crawled.system.measures.skipped == 0
    # A few had all their tries before they came, and are asked again.
    left = crawled.not_ended(SETTLED)
    assert set(left) <= crawled.missed_ids
    assert len(left) < 10


# Maintenance, and what is hidden.


def test_while_the_api_is_switched_off_hardly_anyone_asks(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(weather=WeatherRules(maintenance=(TimeSpan(60.0, 150.0),))), 330)

    kinds = crawled.game.tally.kinds
    assert 1 <= kinds[GameKind.DISABLED] <= SMALL.scale.workers
    assert kinds[GameKind.SETTINGS] <= 150 / 45 + 1
    assert len(crawled.said("api_disabled")) == len(crawled.said("api_back")) == 1
    assert_nothing_lost(crawled)
    # Nobody was counted against, and nothing that came meanwhile is missing.
    assert crawled.state.given_up == {}
    assert crawled.not_ended(SETTLED) == []


def test_maintenance_during_a_look_ahead_ends_neither(tmp_path: Path) -> None:
    """Nothing is born, so there is a wait at the head; meanwhile the API is switched off, and on again."""
    pieces = (Piece(-60.0, 120.0, RATE), Piece(240.0, inf, RATE))
    weather = WeatherRules(maintenance=(TimeSpan(150.0, 60.0),))

    crawled = play(tmp_path, game(schedule=schedule(pieces=pieces), weather=weather), 330)

    assert_nothing_lost(crawled)
    assert crawled.not_ended(SETTLED) == []
    assert crawled.system.measures.skipped == 0


def test_hidden_raids_wait_among_the_missed_and_all_come_when_it_opens(tmp_path: Path) -> None:
    contest = Contest(0.0, 60.0, 300.0)

    async def script(crawled: GameCrawl) -> None:
        await crawled.run(280)
        hidden.update(number for each in crawled.missed for number in range(each.low, each.high + 1))
        reasons.update(each.reason for each in crawled.missed)
        await crawled.run(200)

    hidden: set[int] = set()
    reasons: set[Reason] = set()
    crawled = play(tmp_path, game(weather=WeatherRules(contests=(contest,))), script)

    born = [number for number in crawled.live(SETTLED) if 0 <= crawled.game.born(number) - crawled.game.began < 60]
    assert hidden == {number for number in born if crawled.game.raid(number)}
    assert reasons == {Reason.HIDDEN}
    assert crawled.not_ended(SETTLED) == []
    assert {str(number) for number in hidden} <= set(crawled.queue.published)
    assert_nothing_lost(crawled)


# Answers that change.


def test_a_report_that_is_not_whole_at_first_is_stored_whole(tmp_path: Path) -> None:
    rules = game(raids=0.25, late=0.2, late_seconds=40.0)

    crawled = play(tmp_path, rules, 240)

    assert crawled.state.given_up[Reason.BAD_FORMAT] > 0
    waited = [key for key in crawled.raids(150.0) if crawled.game.whole(int(key)) > crawled.game.visible(int(key))]
    assert len(waited) > 10
    bodies = crawled.queue.bodies()
    for key in waited:
        players = decode(bodies[key]).instance.players
        assert all(player.characters for player in players)
    assert_nothing_lost(crawled)


class SecondThoughts(Game):
    """Says of one id in fifty, the first time it is asked, that there is no such report."""

    def exists(self, number: int) -> bool:
        asked = self.tally.ids[number] if self.tally.ids is not None else 1
        return super().exists(number) and (number % 50 != 3 or asked > 0)


def test_an_id_that_answers_otherwise_the_second_time_is_stored(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(), 120, kind=SecondThoughts)

    assert_nothing_lost(crawled)
    assert crawled.not_ended(SETTLED + 15) == []
    assert set(Counter(crawled.queue.published).values()) == {1}


def test_an_id_whose_report_is_replaced_later_is_stored_as_it_was(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(changed=1.0, changed_seconds=60.0), 120)

    assert_nothing_lost(crawled)
    assert crawled.not_ended(SETTLED) == []
    assert set(Counter(crawled.queue.published).values()) == {1}
