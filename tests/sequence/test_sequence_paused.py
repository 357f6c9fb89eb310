"""A crawl of ids that rests loses nothing by it."""

from pathlib import Path

import pytest
from game_crawl import GameCrawl, game

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
