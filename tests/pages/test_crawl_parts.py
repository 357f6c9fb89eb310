"""A crawl in parts, under virtual time: as much is fetched as by one, each page once, whoever is killed."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from fake_browser import FakeBrowser, rendered
from parts_in_one_loop import PartsInOneLoop
from plays import seeds
from small_web import PACE, Web, crawl, inline, lines, page, reply, twice, web

from sanderling.apis.auth import FormLogin
from sanderling.crawls.errands import PageMail
from sanderling.crawls.exchange import exchange_files
from sanderling.crawls.kept import Keep
from sanderling.crawls.part_quotas import PartCounts
from sanderling.crawls.parts import part_folder, part_of
from sanderling.crawls.session import HostSettings
from sanderling.fetch.attempts import Sends
from sanderling.fetch.render import PageNetwork, RenderedPage, Renderer, RenderRules
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter, LimiterRules
from sanderling.limit.memory import Memory
from sanderling.limit.slices import Slices
from sanderling.pages.crawl import Crawl
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.pages.verify import verify
from sanderling.stores.board import Board
from sanderling.stores.time_table import TimeTable
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock

START = "http://start.example/"


class Parts(PartsInOneLoop):
    """All parts of a crawl of a small web."""

    def __init__(
        self, root: Path, of: Sends, *seeds: str, rules: CrawlRules | None = None, keep: Keep | None = None
    ) -> None:
        super().__init__(root)
        self.web, self.rules = of, rules or CrawlRules()
        self.renderer: Renderer | None = None
        self.slices = Slices()
        self.plan = CrawlPlan(seeds, ("*.example", "*.example.org"), 16, keep)

    def open_run(self, part: int, board: Board, clock: LoopClock) -> Crawl:
        path = part_folder(self.root, part)
        folder = CrawlFolder.open(path, self.plan, resume=False, wall=clock.wall(), visits=self.rules.visits)
        folder.join(exchange_files(self.root, part, board, PageMail, folder.ledger.meta))
        rules = LimiterRules(pace=PACE).with_logins(each.login.host for each in self.rules.hosts.values() if each.login)
        limiter = Limiter(rules, clock=clock, rng=Random(1), slices=self.slices)
        transport = Transport(self.sender(self.web, part), limiter, Memory(2**30), renderer=self.renderer)
        return Crawl(folder, transport, inline, rules=self.rules, clock=clock)

    @property
    def fetched(self) -> list[str]:
        return [
            row["url"] for part in range(self.number) for row in lines(part_folder(self.root, part) / "pages.jsonl")
        ]


def shore(hosts: int = 24, pages: int = 6) -> Web:
    """Hosts that lead to each other, half of all links."""
    site = web(**{START: page(*(f"http://h{number}.example/" for number in range(3)))})
    for host in range(hosts):
        for number in range(pages):
            path = f"/{number}" if number else "/"
            inside = [f"/{(number * 2 + step) % pages or ''}" for step in (1, 2)]
            across = [f"http://h{(host * 5 + number + step) % hosts}.example{path}" for step in (1, 2)]
            site.answers[f"http://h{host}.example{path}"] = [page(*inside, *across)]
    return site


def test_the_hosts_are_not_all_of_one_part() -> None:
    assert len({part_of(f"h{number}.example", 8) for number in range(24)}) > 4


def test_parts_fetch_what_one_process_fetches(tmp_path: Path) -> None:
    alone = crawl(tmp_path / "one", shore(), START, allow=("*.example",))
    site = shore()
    parts = Parts(tmp_path / "many", site, START)
    parts.run()

    assert sorted(parts.fetched) == sorted(alone.fetched)
    assert twice(site.urls) == []
    assert set(parts.complete.values()) == {True}
    assert all(verify(part_folder(tmp_path / "many", part)).ok for part in range(parts.number))


@pytest.mark.parametrize("seed", seeds(6))
def test_whoever_is_killed_nothing_is_missing_and_nothing_twice(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    parts = Parts(tmp_path, shore(), START)
    parts.run({chance.uniform(0.1, 6): chance.randrange(8) for _ in range(12)})

    assert len(parts.fetched) == 24 * 6 + 1
    assert twice(parts.fetched) == []
    assert set(parts.complete.values()) == {True}


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    site = shore()
    parts = Parts(tmp_path, site, START)
    parts.run(stop_after=0.8)
    before = len(parts.fetched)
    assert 0 < before < 24 * 6
    parts.run()

    assert len(parts.fetched) == 24 * 6 + 1
    assert twice(site.urls) == []


def test_a_limit_of_pages_is_that_of_all_parts(tmp_path: Path) -> None:
    parts = Parts(tmp_path, shore(), START, rules=CrawlRules(max_pages=50))
    parts.run()

    assert len(parts.fetched) == 50


def test_a_limit_of_pages_of_a_domain_is_that_of_all_parts(tmp_path: Path) -> None:
    hosts = [f"h{number}.example.org" for number in range(16)]
    site = web(**{START: page(*(f"http://{host}/" for host in hosts))})
    for host in hosts:
        site.answers |= {
            f"http://{host}/{number or ''}": [page(f"/{number + 1}", title=f"{host} {number}")] for number in range(20)
        }
    counts = PartCounts(TimeTable(tmp_path / "domains", make=True))
    parts = Parts(tmp_path / "many", site, START, rules=CrawlRules(max_per_domain=40, domains=counts))
    parts.run()

    fetched = [url for url in parts.fetched if ".example.org" in url]
    assert 40 <= len(fetched) <= 40 + len(hosts)  # those that were in flight then
    assert counts.of("example.org") == len(fetched)


RULES = "http://rules.example/robots.txt"


def ruled(hosts: int = 24) -> Web:
    """Hosts whose robots.txt is that of another host, which has some pages, too."""
    names = [f"http://h{number}.example" for number in range(hosts)]
    own = [f"http://rules.example/{number}" for number in range(12)]
    site = web(**{START: page(*(f"{each}/" for each in names), *own)})
    for each in names:
        site.answers[f"{each}/robots.txt"] = [reply(302, Location=RULES)]
        site.answers[f"{each}/"] = [page("/closed", "/open", title=each)]
        site.answers |= {f"{each}/{path}": [page(title=f"{each} {path}")] for path in ("closed", "open")}
    site.answers |= {url: [page(title=url)] for url in own}
    site.answers[RULES] = [reply(200, b"User-agent: *\nDisallow: /closed\n", Content_Type="text/plain")]
    return site


def test_robots_txt_that_is_at_another_host_is_asked_by_the_part_of_that_host(tmp_path: Path) -> None:
    alone = crawl(tmp_path / "one", ruled(), START, allow=("*.example",))
    parts = Parts(tmp_path / "many", ruled(), START)
    parts.run()

    assert sorted(parts.fetched) == sorted(alone.fetched)
    assert not [url for url in parts.fetched if url.endswith("/closed")]
    assert len([each for each in parts.log if each.url == RULES]) > 24
    assert parts.strangers() == []
    assert parts.closest("rules.example") > 0.0999


@pytest.mark.parametrize("after", [0.5, 1.0, 1.5, 2.0])
def test_one_that_is_stopped_while_it_waits_for_robots_txt_of_another_part_asks_again_later(
    tmp_path: Path, after: float
) -> None:
    parts = Parts(tmp_path, ruled(), START)
    parts.run(stop_after=after)
    before = len(parts.fetched)
    parts.run()

    assert before < len(parts.fetched) == 1 + 12 + 24 * 2
    assert twice(parts.fetched) == []
    assert set(parts.complete.values()) == {True}
    assert parts.strangers() == []


def test_what_a_page_loads_in_a_browser_and_a_wall_on_its_way_are_asked_by_the_parts_of_their_hosts(
    tmp_path: Path,
) -> None:
    script, loaded = "http://scripts.example/app.js", list[bytes | None]()

    async def make(source: Reply, network: PageNetwork) -> RenderedPage:
        task = Task(script, holder=f"script of {source.url}")
        permit = await network.admit(task)
        assert permit is not None
        found = await network.send(task, permit)
        loaded.append(None if found is None else found.body)
        return rendered(source, source.body)

    names = [f"http://h{number}.example/" for number in range(16)]
    site = web(**{START: page(*names), script: reply(200, b"script")})
    for each in names:
        wall = f"http://walls.example/?to={each}"
        site.answers[each] = [page(status=302, Location=wall, Set_Cookie="a=1"), page(title=each)]
        site.answers[wall] = [reply(302, Location=each, Set_Cookie="b=2")]
    parts = Parts(tmp_path, site, START)
    parts.renderer = FakeBrowser(make, RenderRules(chosen=("*",)))
    parts.run()

    assert sorted(parts.fetched) == sorted([START, *names])
    assert loaded == [b"script"] * 17
    assert {each.host for each in parts.log} >= {"scripts.example", "walls.example"}
    assert parts.strangers() == []
    assert parts.closest("scripts.example") > 0.0999


A, B = "a1.example", next(f"b{n}.example" for n in range(9) if part_of(f"b{n}.example", 8) != part_of("a1.example", 8))


def at(number: int, path: str) -> str:
    """An address at one of two hosts, which are of two parts."""
    return f"http://{(A, B)[number % 2]}/{path}{number}"


def led_on() -> Web:
    """Redirects and sitemaps that lead from one part to another again and again, and a sitemap that is a mere list."""
    lists, hops = 9, 40
    index = "<sitemapindex><sitemap><loc>{}</loc></sitemap></sitemapindex>"
    site = web(**{START: page(at(0, "hop"))})
    site.answers |= {at(each, "hop"): [reply(302, Location=at(each + 1, "hop"))] for each in range(hops)}
    site.answers |= {at(each, "map"): [reply(200, index.format(at(each + 1, "map")).encode())] for each in range(lists)}
    site.answers[at(lists, "map")] = [reply(200, f"{at(0, 'deep')}\n".encode())]
    site.answers[at(1, "list")] = [reply(200, f"{at(0, 'listed')}\n".encode(), Content_Type="text/plain")]
    site.answers |= {url: [page(title=url)] for url in (at(0, "listed"), at(0, "deep"), at(hops, "hop"))}
    rules = f"Sitemap: {at(1, 'list')}\nSitemap: {at(0, 'map')}\n".encode()
    site.answers["http://start.example/robots.txt"] = [reply(200, rules, Content_Type="text/plain")]
    return site


def test_what_led_to_a_url_counts_in_the_part_that_it_belongs_to(tmp_path: Path) -> None:
    """Else two hosts could lead a crawl on for ever, and a sitemap would be a page."""
    alone = crawl(tmp_path / "one", led_on(), START, allow=("*.example",))
    parts = Parts(tmp_path / "many", led_on(), START)
    parts.run()

    assert sorted(parts.fetched) == sorted(alone.fetched)
    assert at(0, "listed") in parts.fetched
    assert at(0, "deep") not in parts.fetched


SSO = "https://sso.club.example.org"


class Club:
    """Hosts that let in whoever has logged in at one of them."""

    async def send(self, task: Task) -> Reply:
        await asyncio.sleep(0.1)
        path, cookies = "/" + task.url.split("/", 3)[3].partition("?")[0], dict(task.headers).get("Cookie", "")
        found = self._reply(task, path, cookies)
        return Reply(found.status, found.headers, found.body, task.url, 0.1)

    def _reply(self, task: Task, path: str, cookies: str) -> Reply:
        if task.url == START:
            return page(*(f"https://h{number}.club.example.org/" for number in range(24)))
        if path == "/robots.txt":
            return reply(404)
        if path == "/login":
            form = b"<form method=post action=/in><input type=hidden name=seen value=1><input name=password></form>"
            return reply(200, form, Content_Type="text/html", Set_Cookie="seen=1")
        if path == "/in":
            assert (task.method, task.body, "seen=1" in cookies) == ("POST", b"seen=1&password=hunter2", True)
            member = "member=1; Domain=club.example.org; Secure"
            return reply(303, Location=f"{SSO}/welcome", Set_Cookie=member)
        if "member=1" not in cookies:
            return reply(302, Location=f"{SSO}/login?to={task.url}")
        return page(title=f"Log out of {task.url}")


def test_a_form_to_log_in_with_is_sent_by_each_part_and_all_else_by_the_part_of_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parts log in at one host, at its pace, and the password is in no file."""
    monkeypatch.setenv("CLUB", "hunter2")
    login = FormLogin(f"{SSO}/login", {"password": "env:CLUB"}, "Log out")
    rules = CrawlRules(hosts={"*.club.example.org": HostSettings(login=login)})
    parts = Parts(tmp_path, Club(), START, rules=rules)
    parts.run()

    assert len(parts.fetched) == 25
    assert {each.url for each in parts.strangers()} == {f"{SSO}/in"}
    assert len({each.part for each in parts.log if each.url == f"{SSO}/in"}) > 4
    assert parts.closest(SSO.removeprefix("https://")) > 0.0999
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]


def test_where_a_first_address_lives_is_known_to_all_parts(tmp_path: Path) -> None:
    """It moved to a host that no flag allows, which another part has."""
    home = next(f"http://w{n}.test" for n in range(99) if part_of(f"w{n}.test", 8) != part_of("start.example", 8))
    other = next(
        f"http://o{n}.example"
        for n in range(99)
        if part_of(f"o{n}.example", 8) not in (part_of(home[7:], 8), part_of("start.example", 8))
    )
    site = web(**{START: reply(301, Location=f"{home}/")})
    site.answers |= {f"{home}/": [page("/a", f"{other}/")], f"{home}/a": [page()], f"{home}/b": [page()]}
    site.answers[f"{other}/"] = [page(f"{home}/b")]
    parts = Parts(tmp_path, site, START)
    parts.run()

    assert sorted(site.urls) == sorted([START, f"{home}/", f"{home}/a", f"{home}/b", f"{other}/"])


def test_a_finished_crawl_in_parts_is_crawled_again(tmp_path: Path) -> None:
    site = shore()
    parts = Parts(tmp_path, site, START)
    parts.run()
    parts.run()

    assert len(parts.fetched) == 24 * 6 + 1
    assert len(site.urls) == 2 * (24 * 6 + 1)
