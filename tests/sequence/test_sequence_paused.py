"""A crawl of ids that rests, or drains, loses nothing by it."""

from pathlib import Path

import pytest
from game_crawl import GameCrawl, game

from sanderling.sequence.retries import Missed, Reason
from sanderling.stores.control_file import NOTHING, Control
from sanderling.testing import run_virtual

PAUSE, GO_ON, END = 15.0, 75.0, 180.0


@pytest.mark.parametrize("by_host", [False, True])
def test_nothing_is_asked_while_it_is_paused_and_nothing_is_lost(tmp_path: Path, by_host: bool) -> None:  # noqa: FBT001
    async def main() -> None:
        crawl = GameCrawl(tmp_path, game())
        counts: list[int] = []

        async def rest() -> None:
            await crawl.true.sleep(PAUSE)
            host = crawl.system.host
            crawl.system.control(Control(hosts=frozenset({host})) if by_host else Control(paused=True))
            await crawl.true.sleep(10)
            counts.append(sum((crawl.game.tally.ids or {}).values()))
            await crawl.true.sleep(GO_ON - PAUSE - 10)
            counts.append(sum((crawl.game.tally.ids or {}).values()))
            crawl.system.control(NOTHING)

        await crawl.run(END, rest())

        assert counts[0] == counts[1]
        assert crawl.without_fate() == []
        assert crawl.not_ended(60) == []

    run_virtual(main())


def test_one_that_drains_ends_what_it_has_and_what_was_missed_and_follows_the_head_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        crawl = GameCrawl(tmp_path, game())
        wall = crawl.true.wall()
        first = crawl.first - 300
        due, later = (
            [Missed(each, each, Reason.ERROR, wall, wall, 1, wall + PAUSE + when) for each in range(low, low + 150)]
            for low, when in ((first, -0.5), (first + 150, 1.0))
        )
        crawl.state.add_new([*due, *later])
        highest = 0

        async def drain() -> None:
            nonlocal highest
            await crawl.true.sleep(PAUSE)
            highest = max(crawl.game.tally.ids or {})
            crawl.system.control(Control(ending="drain"))
            await crawl.true.sleep(600)
            raise AssertionError("it did not end")

        await crawl.start().run(drain())
        ended = crawl.true.now()
        asked = dict(crawl.game.tally.ids or {})

        assert ended < PAUSE + 60
        assert max(asked) == highest
        assert crawl.first + 20 < highest
        assert all(asked.get(each.low) for each in due)
        assert not any(asked.get(each.low) for each in later)
        assert crawl.without_fate() == []

        await crawl.run(END)

        assert crawl.without_fate() == []
        assert crawl.not_ended(60) == []

    run_virtual(main())
