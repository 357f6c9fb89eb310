"""What hosts may do to a crawl that would cost others their peace, or us our memory."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from small_web import Web, crawl, page, reply, web

from sanderling.limit.memory import Memory
from sanderling.pages.robots import read
from sanderling.pages.rules import CrawlRules
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply, Task

A, B = "http://a.example", "http://b.example"


def robots(text: str, of: str = A) -> dict[str, Any]:
    return {f"{of}/robots.txt": reply(200, text.encode(), Content_Type="text/plain")}


def test_where_a_session_leads_on_to_is_a_url_of_its_own(tmp_path: Path) -> None:
    """Followed at once, it would be asked without leave of its robots.txt, and out of the crawl."""
    session = {f"{A}/x": reply(302, Location="/x;jsessionid=1"), f"{A}/x;jsessionid=1": reply(302, Location=f"{B}/")}
    site = web(**{f"{A}/": page("/x"), **session, f"{B}/": page(title="Elsewhere")})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/x")["detail"] == "moved out of the crawl"
    assert f"{B}/" not in site.urls


def test_an_address_with_a_session_is_not_asked_for_if_robots_txt_forbids_it(tmp_path: Path) -> None:
    session = {f"{A}/x": reply(302, Location="/x;jsessionid=1"), f"{A}/x;jsessionid=1": page()}
    site = web(**robots("User-agent: *\nDisallow: /*jsessionid"), **{f"{A}/": page("/x"), **session})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert site.urls == [f"{A}/", f"{A}/x"]
    assert done.counts[End.FAILED] == 1


def test_sessions_without_an_end_come_to_one(tmp_path: Path) -> None:
    class Sessions:
        asked = 0

        async def send(self, task: Task) -> Reply:
            self.asked += 1
            if task.url.endswith("/robots.txt"):
                return Reply(404, (), b"", task.url, 0.1)
            return Reply(302, (("Location", f"/;jsessionid={self.asked}"),), b"", task.url, 0.1)

    site = Sessions()

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.counts[End.FAILED] == 1
    assert site.asked < 30


class Holding:
    """A client that holds what it reads, as the real one does."""

    def __init__(self, site: Web, memory: Memory) -> None:
        self._site, self._memory = site, memory

    async def send(self, task: Task) -> Reply:
        answer = await self._site.send(task)
        await self._memory.hold(task.url, len(answer.body))
        await asyncio.sleep(1)
        return answer


def test_what_a_page_holds_of_the_memory_is_let_go_when_it_is_read(tmp_path: Path) -> None:
    """Pages, documents, what failed, what moved and robots.txt: else those who wait for memory would do so for ever."""
    links = [f"/{number}" for number in range(40)]
    answers = [
        page(),
        reply(404, b"x" * 500),
        reply(200, b"\0" * 500, Content_Type="application/pdf"),
        reply(500, b"x"),
    ]
    site = web(
        **robots("User-agent: *\nAllow: /"),
        **{f"{A}/": page(*links)},
        **{f"{A}{link}": answers[number % 4] for number, link in enumerate(links)},
    )
    memory = Memory(4000)

    done = crawl(tmp_path / "out", Holding(site, memory), f"{A}/", memory=memory)

    assert (sum(done.counts.values()), memory.total) == (41, 0)


@pytest.mark.parametrize("room", [1, 3])
def test_robots_txt_of_many_hosts_takes_no_more_memory_than_that_of_a_few(tmp_path: Path, room: int) -> None:
    """What there is no room for is read from the ledger again, never asked for twice, and nobody waits in vain."""
    text = "User-agent: *\nDisallow: /private\n" + "".join(f"Disallow: /{n:x}/\n" for n in range(1000))
    most = room * read(200, text.encode()).size
    hosts = [f"http://h{number}.example" for number in range(12)]
    answers: dict[str, Any] = {}
    for host in hosts:
        answers |= {**robots(text, host), f"{host}/": page("/x", "/y", "/private/z")}
        answers |= {f"{host}/x": page(), f"{host}/y": page()}
    site = web(**answers)

    done = crawl(tmp_path / "out", site, *(f"{host}/" for host in hosts), rules=CrawlRules(robots_held=most))

    assert (done.counts[End.FETCHED], done.counts[End.REFUSED]) == (36, 12)
    assert max(Counter(url for _, url in site.asked).values()) == 1
    assert done.crawl.permissions.held <= most


def test_robots_txt_is_asked_for_again_after_a_day(tmp_path: Path) -> None:
    """RFC 9309, 2.4: a crawl of a week must not go by what the host said on its first day."""
    links = [f"/{number}" for number in range(30)]
    slow, shut = "User-agent: *\nCrawl-delay: 10", "User-agent: *\nDisallow: /"
    site = web(**{f"{A}/": page(*links), **{f"{A}{link}": page() for link in links}})
    site.answers[f"{A}/robots.txt"] = [reply(200, slow.encode()), reply(200, shut.encode())]

    crawl(tmp_path / "out", site, f"{A}/", stop_after=30)
    done = crawl(tmp_path / "out", site, resume=True, epoch=1_800_000_000.0 + 86_400 - 100)

    first, second = site.times(f"{A}/robots.txt")
    assert first < 1
    assert 100 <= second <= 120
    assert 10 <= done.counts[End.FETCHED] <= 16
    assert done.counts[End.REFUSED] == 31 - done.counts[End.FETCHED]


def test_robots_txt_from_tomorrow_is_not_trusted(tmp_path: Path) -> None:
    """It was kept before the clock was set back; nobody knows how old it is."""
    links = [f"/{number}" for number in range(60)]
    site = web(
        **robots("User-agent: *\nAllow: /"), **{f"{A}/": page(*links), **{f"{A}{each}": page() for each in links}}
    )

    crawl(tmp_path / "out", site, f"{A}/", stop_after=3)
    crawl(tmp_path / "out", site, resume=True, epoch=1_000_000_000.0)

    assert len(site.times(f"{A}/robots.txt")) == 2


def test_what_ends_a_crawl_ends_it_without_further_ado(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The disk is full while one request is slow to let go of, and others would be due meanwhile."""
    links = [f"{A}/{number}" for number in range(40)]

    class Failing(Web):
        async def send(self, task: Task) -> Reply:
            if task.url == links[1]:
                raise FolderError("the disk is full")
            try:
                return await super().send(task)
            except asyncio.CancelledError:
                await asyncio.sleep(5)
                raise

    site = Failing({f"{A}/": [page(*links)], **{link: [page()] for link in links}}, latency=2)

    with pytest.raises(ExceptionGroup) as raised:
        crawl(tmp_path / "out", site, f"{A}/")

    assert raised.group_contains(FolderError, match="the disk is full")
    assert caplog.text == ""
