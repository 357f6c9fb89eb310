"""Ids that fail for ever, while others are fine: the host is not shut for them, and nobody waits for them."""

from dataclasses import replace
from math import inf
from pathlib import Path

from game_crawl import GameCrawl, game, play, schedule

from sanderling.limit.breaker import State
from sanderling.sequence.retries import Reason
from sanderling.worlds.game_answers import GameKind
from sanderling.worlds.game_weather import Contest, IdTrouble, WeatherRules

ALWAYS = 1e9  # seconds before and after all that happens here
SLOW = schedule(rate=2.0)  # fewer ids, and as much time


def failing(share: float) -> WeatherRules:
    """The same ids answer with an error all the time."""
    return WeatherRules(troubles=(IdTrouble(-ALWAYS, inf, share),))


def fails(crawled: GameCrawl, number: int, share: float) -> bool:
    return crawled.game._chance(number, 40) < share


def test_however_many_ids_fail_the_others_are_stored_as_they_appear(tmp_path: Path) -> None:
    share = 0.5
    states: set[str] = set()

    async def script(crawled: GameCrawl) -> None:
        async def watch() -> None:
            while True:
                states.update(host.state for host in crawled.system.tools.limiter.snapshot().top)
                await crawled.true.sleep(1.0)

        await crawled.run(300.0, watch())

    crawled = play(tmp_path, game(schedule=SLOW, weather=failing(share)), script)

    left = crawled.not_ended(30.0)
    assert all(fails(crawled, number, share) for number in left)
    assert crawled.behind() < 15
    assert crawled.without_fate() == []
    assert State.OPEN.value not in states  # 20 in a row may come; what is known to be good opens the host at once
    # Nobody waits for them: they are on disk, and the cursor has passed them.
    assert crawled.system.waiting < 200
    assert crawled.system.durable.low > crawled.system.durable.next - 600


def test_what_is_missed_for_other_reasons_does_not_wait_for_what_fails(tmp_path: Path) -> None:
    share = 0.2
    weather = replace(failing(share), contests=(Contest(-ALWAYS, ALWAYS + 100.0, 300.0),))

    crawled = play(tmp_path, game(schedule=SLOW, weather=weather, raids=0.3), 700)

    shown = [number for number in crawled.live(600.0) if crawled.game.raid(number)]
    assert crawled.state.given_up[Reason.HIDDEN] > 40
    assert {number for number in shown if number not in crawled.state.ended} == {
        number for number in shown if fails(crawled, number, share)
    }


def test_what_failed_for_a_while_is_stored_though_others_go_on_failing(tmp_path: Path) -> None:
    """Those of the main lane, which fail anew all the time, leave a turn to those on disk."""
    weather = WeatherRules(troubles=(IdTrouble(-ALWAYS, ALWAYS + 200.0, 0.4), IdTrouble(200.0, inf, 0.2)))

    crawled = play(tmp_path, game(schedule=schedule(rate=1.0, history=120.0), weather=weather), 1500)

    before = [number for number in crawled.live(1500.0) if 0.2 <= crawled.game._chance(number, 40) < 0.4]
    assert len(before) > 15
    assert [number for number in before if number not in crawled.state.ended] == []


def test_a_host_that_fails_altogether_is_left_alone_and_asked_for_everything_when_it_is_back(tmp_path: Path) -> None:
    """Half of the ids fails for ever besides: the first question after the outage may well be one of these."""
    weather = WeatherRules(
        troubles=(IdTrouble(-ALWAYS, ALWAYS + 100.0, 0.5), IdTrouble(100.0, 1200.0, 1.0), IdTrouble(1300.0, inf, 0.5))
    )
    asked: list[int] = []

    async def script(crawled: GameCrawl) -> None:
        async def count() -> None:
            for _ in range(2):
                await crawled.true.sleep(600.0)
                asked.append(crawled.game.tally.kinds[GameKind.TROUBLED])

        await crawled.run(1900.0, count())

    crawled = play(tmp_path, game(schedule=schedule(rate=1.0), weather=weather), script)

    assert asked[1] - asked[0] < 100  # in ten minutes of the outage; a request a second would be 600
    assert all(fails(crawled, number, 0.5) for number in crawled.not_ended(60.0))
    assert crawled.without_fate() == []
    assert crawled.behind() < 15
