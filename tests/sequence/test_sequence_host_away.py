"""A host that goes away for a while: it is probed every half a minute, and from its return on the lag falls."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from game_crawl import CountingNetwork, GameCrawl, game, play

from sanderling.fetch.guard import GuardRules
from sanderling.task import Reply, Task

START = 60.0
EVERY = 30.0  # seconds between the starts of two probes, at most


class Away(CountingNetwork):
    """A game that nobody reaches for a while."""

    kind = ""
    end = 0.0

    async def send(self, task: Task) -> Reply:
        now = asyncio.get_running_loop().time()
        self.asked.append(now)
        if not START <= now < self.end:
            return await super().send(task)
        if self.kind == "silence":
            await asyncio.sleep(min(40.0, task.wait or 40.0))
            raise TimeoutError("first byte")
        await asyncio.sleep(0.05)
        if self.kind == "reset":
            raise ConnectionResetError
        if self.kind == "refused":
            raise ConnectionRefusedError
        return Reply(int(self.kind), (), b"away", task.url, 0.05)

    @classmethod
    def of(cls, crawled: GameCrawl, kind: str, lasts: float) -> "Away":
        network = cls(crawled.game, crawled.true, guard=GuardRules(private=True))
        network.kind, network.end, network.asked = kind, START + lasts, []
        return network

    asked: list[float]

    @property
    def longest_gap(self) -> float:
        return max(other - one for one, other in pairwise(self.asked) if START <= one < self.end)


# A bare 503 for less than a minute may be a quota, which is not for the breaker to say. Ten minutes of the others are
# as ten minutes of silence: what differs is seen in the first hundred seconds.
LASTS = [("500", 40.0), ("refused", 40.0), ("503", 100.0), ("reset", 100.0), ("silence", 100.0), ("silence", 600.0)]


@pytest.mark.parametrize(("kind", "lasts"), LASTS)
def test_it_is_probed_and_the_lag_falls_from_its_return_on(tmp_path: Path, kind: str, lasts: float) -> None:
    behind: list[float] = []

    async def script(crawled: GameCrawl) -> None:
        crawled.network = Away.of(crawled, kind, lasts)

        async def watch() -> None:
            await crawled.true.sleep(START + lasts + 60.0)
            for _ in range(2):
                behind.append(crawled.behind())
                await crawled.true.sleep(15.0)

        await crawled.run(START + lasts + 120.0, watch())

    crawled = play(tmp_path, game(), script)

    assert isinstance(crawled.network, Away)
    assert crawled.network.longest_gap <= EVERY
    assert behind[1] < max(behind[0], 10.0)
    assert crawled.behind() < 15
    assert crawled.without_fate() == []
    assert crawled.not_ended(60.0) == []


@pytest.mark.parametrize("kind", ["500", "silence"])
def test_a_restart_in_the_middle_goes_on_probing(tmp_path: Path, kind: str) -> None:
    async def script(crawled: GameCrawl) -> None:
        crawled.network = Away.of(crawled, kind, 300.0)
        await crawled.crash(START + 100.0)
        await crawled.run(START + 300.0)

    crawled = play(tmp_path, game(), script)

    assert isinstance(crawled.network, Away)
    # The first requests of a process may hang for as long as any: nothing is known of the host yet.
    assert crawled.network.longest_gap <= EVERY + (15.0 if kind == "silence" else 0.0)
    assert crawled.behind() < 15
    assert crawled.not_ended(60.0) == []
