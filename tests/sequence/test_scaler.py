"""The periods of a crawl: what becomes of readings, of none, and of the known limits of scaling by them."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from game_crawl import RATE, SMALL, GameCrawl, Script, game, play, schedule

from sanderling.observe.prometheus import Series
from sanderling.sequence.guard import ScalingGuardRules
from sanderling.sequence.lookout import LookRules
from sanderling.sequence.readings import PeriodReadings, PrometheusSource, ReadingError
from sanderling.sequence.scaler import ReadingsSource, ScalingDecision
from sanderling.sequence.scaling import ScaleRules
from sanderling.sequence.system import SequenceRules
from sanderling.worlds.game_presets import born_at
from sanderling.worlds.game_schedule import Hole, Piece
from sanderling.worlds.game_weather import Slowness, WeatherRules

# A decision after so many ids: every 50 seconds at the usual rate, or sooner while workers are on the rise.
OFTEN = ScaleRules(min_workers=2, workers=8, max_workers=40, period=100, max_period=100)
RULES = SequenceRules(scale=OFTEN)
RULE_NAMES = ("one_window", "dead_zone", "slew", "little", "knee", "pacing")


def made(crawled: GameCrawl) -> list[ScalingDecision]:
    """The decisions, the first one first."""
    return list(crawled.system.scaler.made)


def changes(decisions: list[ScalingDecision]) -> int:
    return sum(each.changed for each in decisions)


# Where readings come from.


class Broken:
    """A source that cannot be read."""

    def __init__(self, until: float = inf) -> None:
        self.asked = 0
        self._until = until

    async def read(self, seconds: float) -> PeriodReadings:
        self.asked += 1
        if self.asked <= self._until:
            raise ReadingError("the server is away")
        return PeriodReadings(3000.0, 0.0, 0.0, 10.0, 0, 500, seconds)


def reading_from(source: ReadingsSource, seconds: float) -> Script:
    async def script(crawled: GameCrawl) -> None:
        system = crawled.start()
        system.read_from(source)
        async with asyncio.TaskGroup() as group:
            group.create_task(system.run())
            await crawled.true.sleep(seconds)
            system.stop()

    return script


def test_without_readings_the_plan_stays_and_the_crawl_goes_on(tmp_path: Path) -> None:
    source = Broken()

    crawled = play(tmp_path, game(), reading_from(source, 210), RULES)

    assert source.asked == len(made(crawled)) >= 4
    assert {each.decision.plan for each in made(crawled)} == {OFTEN.first_plan()}
    assert all(each.readings is None and "the server is away" in each.decision.held[0] for each in made(crawled))
    assert crawled.said("status_update") == []
    assert crawled.not_ended(30.0) == []


def test_when_they_are_back_they_count_and_not_what_was_counted_here(tmp_path: Path) -> None:
    """The source says that we are far behind, which we are not."""
    rules = replace(RULES, guard=ScalingGuardRules(little=False, pacing=False, knee=False))

    crawled = play(tmp_path, game(), reading_from(Broken(until=2), 210), rules)

    first = next(each for each in made(crawled) if each.readings)
    assert first.readings is not None
    assert first.readings.lag == 3000.0
    assert first.decision.plan.workers == 2 * OFTEN.workers


class EmptyServer:
    """A Prometheus that has not seen us yet."""

    async def query(self, expr: str, at: float) -> list[Series]:
        return await self.query_range(expr, at, at, 0)

    async def query_range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        del expr, start, end, step
        return []


def test_a_prometheus_that_knows_nothing_does_not_drive_the_workers_up(tmp_path: Path) -> None:
    async def script(crawled: GameCrawl) -> None:
        await reading_from(PrometheusSource(EmptyServer(), crawled.clock), 120)(crawled)

    crawled = play(tmp_path, game(), script, RULES)

    assert len(made(crawled)) >= 3
    assert {each.decision.plan.workers for each in made(crawled)} == {OFTEN.workers}
    assert crawled.network.most <= OFTEN.workers


# Each rule can be left out.


@pytest.mark.parametrize("name", RULE_NAMES)
def test_without_one_of_its_rules_the_guard_loses_nothing_either(tmp_path: Path, name: str) -> None:
    guard = replace(ScalingGuardRules(), **{name: False})
    rules = replace(RULES, guard=guard, look=LookRules(pacing=guard.pacing))

    crawled = play(tmp_path, game(), 75, rules)

    assert crawled.without_fate() == []
    assert crawled.not_ended(45.0) == []
    word = name.replace("_", " ")
    assert not any(held.startswith(word) for each in made(crawled) for held in each.decision.held)


def test_without_all_of_them_the_policy_has_its_way(tmp_path: Path) -> None:
    guard = replace(ScalingGuardRules(), **dict.fromkeys(RULE_NAMES, False))

    crawled = play(tmp_path, game(), 40, replace(RULES, guard=guard, look=LookRules(pacing=False)))

    assert made(crawled)
    assert all(each.decision.plan == each.decision.wanted for each in made(crawled))
    assert crawled.without_fate() == []


# The known limits of scaling by such readings.


def test_limit_1_small_changes_of_what_is_seen_do_not_change_the_workers(tmp_path: Path) -> None:
    """Some ids never exist, now a few more and now a few less: the policy by itself would change them every time."""
    rules = game(schedule=schedule(rate=20.0, hole_every=100), weather=WeatherRules(latency=1.0))
    scale = replace(OFTEN, workers=28, period=200, max_period=200)

    crawled = play(tmp_path, rules, 150, SequenceRules(scale=scale))

    decisions = made(crawled)
    settled = [each for each in decisions if each.wall > crawled.game.began + 60]
    assert len(settled) >= 8
    wanted = [each.decision.wanted.workers != each.decision.plan.workers for each in settled]
    assert sum(wanted) >= len(settled) // 2
    assert changes(settled) == 0
    assert changes(decisions) <= 0.3 * len(decisions)


def test_limit_2_looking_for_a_gap_changes_neither_readings_nor_workers(tmp_path: Path) -> None:
    plain = schedule()
    hole = Hole(born_at(60.0, plain), 5000)

    crawled = play(tmp_path, game(schedule=replace(plain, holes=(hole,))), 240, RULES)

    measures = crawled.system.measures
    assert measures.probes.total() > 50
    counted = sum(each.readings.samples for each in made(crawled) if each.readings)
    assert counted + crawled.system.lookout.window.asked == measures.answers.total()
    disturbed = [each for each in made(crawled) if any("gap" in held for held in each.decision.held)]
    assert disturbed
    assert changes(disturbed) == 0
    # There was nobody beside the workers but the probes, a batch of them at a time.
    assert crawled.network.most <= OFTEN.workers + 32


def test_limit_3_all_readings_are_of_one_window_and_every_answer_is_in_one(tmp_path: Path) -> None:
    crawled = play(tmp_path, game(schedule=schedule(hole_every=20)), 200, RULES)

    decisions = made(crawled)
    for earlier, later in pairwise(decisions):
        assert later.readings is not None
        assert later.readings.seconds == pytest.approx(later.wall - earlier.wall)
        assert later.readings.missing_count == pytest.approx(later.readings.missing * later.readings.samples)
    asked = [each.readings.samples for each in decisions if each.readings]
    assert sum(asked) + crawled.system.lookout.window.asked == crawled.system.measures.answers.total()


def test_limit_4_a_rise_that_brings_nothing_is_taken_back(tmp_path: Path) -> None:
    """The host answers four at a time, however many ask. The policy wants ever more workers for the backlog."""
    scale = replace(OFTEN, workers=4, period=400, max_period=400)

    async def script(crawled: GameCrawl) -> None:
        crawled.network.slots = asyncio.Semaphore(4)
        await crawled.run(100)

    rules = SequenceRules(scale=scale, guard=ScalingGuardRules(little=False))
    crawled = play(tmp_path, game(schedule=schedule(rate=5.0, history=700.0)), script, rules)

    workers = [each.decision.plan.workers for each in made(crawled)]
    assert workers[:2] == [8, 4]
    assert max(workers) == 8
    assert min(each.decision.wanted.workers for each in made(crawled)[:3]) > 8
    assert "knee: 8 workers instead of 4 brought" in made(crawled)[1].decision.held[0]


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_limit_5_there_are_as_many_workers_as_rate_and_latency_need(tmp_path: Path, factor: float) -> None:
    """What one worker gets done in a second is known: one request in the time that a request takes."""
    rate, latency = 10.0, 0.8
    weather = WeatherRules(latency=latency, slow=(Slowness(0.0, inf, factor),))
    scale = replace(OFTEN, workers=12, period=200, max_period=200)

    crawled = play(
        tmp_path, game(schedule=schedule(rate=rate, history=20.0), weather=weather), 160, SequenceRules(scale=scale)
    )

    last = made(crawled)[-1]
    need = rate * latency * factor
    assert last.facts.head_rate == pytest.approx(rate, rel=0.1)
    assert last.facts.latency == pytest.approx(latency * factor, rel=0.15)
    assert need < last.decision.plan.workers < 2.2 * need
    assert crawled.behind() < 20  # slow answers leave little room in flight at first


def test_what_is_being_tried_again_is_no_backlog(tmp_path: Path) -> None:
    """One id that fails for half a minute does not make those behind it count, which were stored long ago."""
    crawled = play(tmp_path, game(schedule=schedule(hole_every=30)), 120, RULES)

    backlogs = [each.facts.backlog for each in made(crawled)[2:]]
    assert all(backlog is not None and backlog < 60 for backlog in backlogs)


def test_a_pause_at_the_head_changes_no_workers(tmp_path: Path) -> None:
    pieces = (Piece(-60.0, 120.0, RATE), Piece(400.0, inf, RATE))

    crawled = play(tmp_path, game(schedule=schedule(pieces=pieces)), 480, SMALL)

    during = [each for each in made(crawled) if 80 < each.wall - crawled.game.began < 430]
    assert during
    assert changes(during) == 0
