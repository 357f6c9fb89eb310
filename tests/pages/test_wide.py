"""A crawl of very many hosts: what it holds in memory is bounded, and nothing is lost for it."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_web import crawl, page, twice, web

from sanderling.clock import SystemClock
from sanderling.crawls import source
from sanderling.engine import backlog
from sanderling.engine.backlog import HELD, Loader
from sanderling.ids import host_of
from sanderling.limit import LimiterRules, PaceRules
from sanderling.pages.crawl import Crawl
from sanderling.pages.hosts import PageHost
from sanderling.pages.report import report_crawl
from sanderling.pages.verify import verify
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_rows import End, QueuedUrl
from sanderling.task import Reply, Task

START = "http://start.example/"


def queued(host: str, number: int) -> QueuedUrl:
    return QueuedUrl(number, f"http://{host}/{number}", host, 0)


@pytest.mark.parametrize("number", [3, 5_000, 30_000])
def test_hosts_share_the_memory_whatever_their_number(number: int) -> None:
    """Each has more than its share, and all of it is taken in its order."""
    each_has = 60_000 // number

    def take(wants: Any) -> list[list[QueuedUrl]]:  # noqa: ANN401 - host, id and number
        return [[queued(host, n) for n in range(after + 1, after + 1 + most)] for host, after, most in wants]

    async def inline(work: Any, *args: Any) -> Any:  # noqa: ANN401 - whatever `work` takes
        return work(*args)

    async def main() -> int:
        loader: Loader[PageHost] = Loader(take, inline, SystemClock(), 60.0)
        hosts = [PageHost(f"h{n}.example", on_disk=each_has, waiting=each_has) for n in range(number)]
        most, taken = 0, [0] * number
        running = asyncio.ensure_future(loader.run(lambda _: None))
        loader.sharing = number
        for host in hosts:
            loader.want(host)
        while sum(taken) < number * each_has:
            await asyncio.sleep(0)
            most = max(most, loader.held, sum(host.held for host in hosts) if number < 100 else 0)
            for at, host in enumerate(hosts):
                if (item := host.pop_new()) is not None:
                    taken[at] += 1
                    assert item.id == taken[at]
                    loader.want(host)
        running.cancel()
        assert loader.held == sum(host.held for host in hosts) == 0
        return most

    assert 0 < asyncio.run(main()) <= HELD


def test_a_crawl_of_more_hosts_than_fit_asks_for_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty hosts in memory and 64 URLs, of 150 hosts that lead to each other."""
    monkeypatch.setattr(source, "MOST_HOSTS", 20)
    monkeypatch.setattr(backlog, "HELD", 64)
    hosts = [f"http://h{number}.example" for number in range(150)]
    site = web(**{START: page(*(f"{host}/" for host in hosts[:100]))})
    for at, host in enumerate(hosts):
        others = [f"{hosts[(at * 7 + step) % 150]}/{step}" for step in range(4)]
        site.answers |= {f"{host}/": [page(*others, "/x", "/y")]}
        site.answers |= {f"{host}/{path}": [page(f"{hosts[at - 1]}/")] for path in ("0", "1", "2", "3", "x", "y")}

    done = crawl(tmp_path / "out", site, START, allow=["*.example"], limits=LimiterRules(pace=PaceRules.up_to(50)))

    assert done.complete
    assert twice(site.urls) == []
    assert done.counts[End.FETCHED] > 600
    assert len(done.crawl.hosts) <= 20
    assert verify(tmp_path / "out").ok


def test_what_was_stopped_goes_on_with_hosts_that_did_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_HOSTS", 8)
    hosts = [f"http://h{number}.example" for number in range(60)]
    site = web(**{START: page(*(f"{host}/" for host in hosts))}, **{f"{host}/": page("/x") for host in hosts})
    site.answers |= {f"{host}/x": [page()] for host in hosts}

    first = crawl(tmp_path / "out", site, START, allow=["*.example"], stop_after=1.0)
    again = crawl(tmp_path / "out", site, resume=True)

    assert not first.complete
    assert again.complete
    assert again.counts[End.FETCHED] == 121
    assert twice(site.urls) == []


def test_hosts_that_are_set_aside_give_their_memory_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten that never answer fill it; what waited for them waits for the next run."""
    monkeypatch.setattr(backlog, "HELD", 20)
    dead = [f"http://dead{number}.example" for number in range(10)]
    site = web(**{START: page(*(f"{host}/{path}" for path in range(6) for host in dead), "/live")})
    for host in dead:
        site.answers[f"{host}/robots.txt"] = [Reply(404, (), b"", "", 0.0)]
        site.answers |= {f"{host}/{path}": [ConnectionRefusedError()] for path in range(6)}
    site.answers[f"{START}live"] = [page(*(f"/{number}" for number in range(40)))]
    site.answers |= {f"{START}{number}": [page()] for number in range(40)}

    done = crawl(tmp_path / "out", site, START, allow=["*.example"])

    assert done.counts[End.FETCHED] == 42
    assert not done.complete
    assert done.counts[End.FAILED] + sum(1 for _ in done.reasons) > 0


def test_a_wide_crawl_gives_every_host_its_turn_and_holds_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five hundred hosts of one to three pages; a hundred hosts and 128 URLs fit into memory."""
    hosts, seen = 500, set[tuple[int, int, int]]()
    monkeypatch.setattr(source, "MOST_HOSTS", 100)
    monkeypatch.setattr(backlog, "HELD", 128)
    site = Wide(hosts)

    def look(one: Crawl) -> None:
        seen.add((report_crawl(one, 1.0).hosts_known, len(one.hosts), one._loader.held))

    done = crawl(
        tmp_path / "out",
        site,
        START,
        allow=["*.example"],
        limits=LimiterRules(pace=PaceRules.up_to(50)),
        wanted={tenth / 10: Control() for tenth in range(2, 200)},
        heard=look,
    )

    assert done.complete
    assert done.counts[End.FETCHED] == 1 + sum(1 + number % 3 for number in range(hosts))
    known, in_memory, urls = (max(numbers) for numbers in zip(*seen, strict=True))
    assert known == hosts + 1
    assert 90 < in_memory <= 101
    assert 0 < urls <= 128
    late = [at - site.first.index(f"h{at}.example") for at in range(hosts)]
    assert max(late) <= 250, "in the order in which they were found, but for what fits into memory"


class Wide:
    """Hosts of one to three pages, all of which one page names."""

    def __init__(self, hosts: int) -> None:
        self.first: list[str] = []  # hosts by when they were first asked
        self._hosts = hosts
        self._met: set[str] = set()

    async def send(self, task: Task) -> Reply:
        await asyncio.sleep(0.05)
        host = host_of(task.url)
        if host not in self._met and host != "start.example":
            self._met.add(host)
            self.first.append(host)
        if task.url.endswith("/robots.txt"):
            return Reply(404, (), b"", task.url, 0.05)
        if host == "start.example":
            links = [f"http://h{number}.example/" for number in range(self._hosts)]
        else:
            links = [f"/{path}" for path in range(int(host[1:].partition(".")[0]) % 3)]
        return replace(page(*links), url=task.url)
