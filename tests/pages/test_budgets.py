"""What one host, one domain or one text may take up of a crawl, and that what is beyond is counted and not lost."""

import asyncio
from collections import Counter
from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_web import Crawled, crawl, page, reply, twice, web

from sanderling.ids import host_of
from sanderling.limit import LimiterRules, PaceRules
from sanderling.pages.budgets import TextShare, shape_of
from sanderling.pages.report import report_crawl
from sanderling.pages.rules import CrawlRules
from sanderling.pages.same_text import SeenTexts, mark_text
from sanderling.pages.verify import verify
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply, Task

A = "http://a.example.org"
LONG = "Nothing happens on this day, nor on the next; look again later. " * 3
FAST = LimiterRules(pace=PaceRules(initial_rps=200, max_rps=200))
HONEST = 120  # articles of an honest site, each with a text of its own


def token(*of: object) -> str:
    """Letters and digits that look like a session."""
    return md5(repr(of).encode(), usedforsecurity=False).hexdigest()[:12]


def article(number: int) -> str:
    words = " ".join(md5(f"{number} {n}".encode(), usedforsecurity=False).hexdigest() for n in range(6))
    return f"<main><h1>Article {number}</h1><p>About {words}, in this article of its own.</p></main>"


class TrapWorld:
    """An honest site, and beside it a trap that is made up as it is asked for."""

    def __init__(self, trap: Callable[[str], str]) -> None:
        self.asked: Counter[str] = Counter()  # requests by what was asked, without robots.txt
        self.urls: list[str] = []
        self._trap = trap

    async def send(self, task: Task) -> Reply:
        """The page at an address."""
        await asyncio.sleep(0.01)
        url = task.url
        if url.endswith("/robots.txt"):
            return Reply(404, (), b"", url, 0.01)
        self.urls.append(url)
        path = "/" + url.split("/", 3)[3]
        honest = host_of(url) == "a.example.org" and (path == "/" or path.startswith(("/article/", "/list?")))
        self.asked["honest" if honest else "trap"] += 1
        if path == "/" and honest:
            lists = "".join(f'<a href="/list?page={n}">{n}</a>' for n in range(HONEST // 10))
            body = lists + f'<a href="{"http://www.example.net/" if self._trap is farm else "/trap"}">more</a>'
        elif path.startswith("/list?"):
            at = int(path.partition("=")[2]) * 10
            body = "".join(f'<a href="/article/{n}">Article {n}</a>' for n in range(at, at + 10))
        elif honest:
            body = article(int(path.rpartition("/")[2]))
        else:
            body = self._trap(url)
        return Reply(200, (("Content-Type", "text/html"),), f"<html><body>{body}</body></html>".encode(), url, 0.01)


def calendar(url: str) -> str:
    """Each day leads to the one before, the one after, the next month and the next year."""
    parts = [int(part) for part in url.split("/")[4:]] or [2026, 5, 7]
    year, month, day = [*parts, 1, 1][:3]
    days = [(year, month, day + 1), (year, month, day - 1), (year, month + 1, day), (year + 1, month, day)]
    links = " ".join(f'<a href="/trap/{y}/{m:02}/{d:02}">{d}.{m}.{y}</a>' for y, m, d in days)
    return f"<main><h1>Events of {day}.{month}.{year}</h1><p>{LONG}</p><p>{links}</p></main>"


def empty_calendar(url: str) -> str:
    """The same, with hardly any text."""
    return calendar(url).replace(LONG, "No events.")


def session(url: str) -> str:
    """Twenty pages, each of which gives the reader a new session and leads to five others."""
    at = int(url.rpartition("/page-")[2] or 0) if "/page-" in url else 0
    links = " ".join(f'<a href="/trap/{token(url, n)}/page-{(at + n) % 20}">Page {n}</a>' for n in range(1, 6))
    return f"<main><p>{'These are the terms of shop ' + chr(97 + at) * 9}. {LONG}</p>{links}</main>"


def worded_session(url: str) -> str:
    """The same with sessions of letters, and pages that are named by words: no two addresses are alike."""
    names = [chr(97 + n) * 5 for n in range(20)]
    at = next((n for n, name in enumerate(names) if url.endswith(name)), 0)
    links = " ".join(
        f'<a href="/trap/{token(url, n).translate(LETTERS)}/{names[(at + n) % 20]}">Page</a>' for n in range(1, 6)
    )
    return f"<main><p>{'These are the terms of shop ' + chr(97 + at) * 9}. {LONG}</p>{links}</main>"


LETTERS = str.maketrans("0123456789", "ghijklmnop")


def same_text(url: str) -> str:
    """Whatever is asked for, the same answer, which leads to ever new addresses."""
    links = " ".join(f'<a href="/trap/{token(url, n)}?from={token(n, url)}">more</a>' for n in range(6))
    return f"<main><p>{LONG}</p>{links}</main>"


def farm(url: str) -> str:
    """Any name below one domain is a host, and leads to others."""
    name = host_of(url).partition(".")[0]
    links = " ".join(f'<a href="http://{token(url, n)}.example.net/">friend</a>' for n in range(6))
    return f"<main><h1>{name}</h1><p>Welcome to {name}, the best of all places. {LONG}</p>{links}</main>"


def into(tmp_path: Path, world: TrapWorld, **how: object) -> Crawled:
    given: dict[str, object] = {"depth": 1000, "limits": FAST, "allow": ["*.example.net"]} | how
    return crawl(tmp_path / "out", world, *(() if how.get("resume") else (f"{A}/",)), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("trap", "most"),
    [
        *((calendar, 300), (empty_calendar, 300), (session, 450), (same_text, 300)),
        *((worded_session, 3_000), (farm, 1_700)),  # of which nothing but the whole host or domain can be cut off
    ],
)
def test_a_trap_costs_a_bounded_number_of_requests_and_the_honest_site_none(
    tmp_path: Path, trap: Callable[[str], str], most: int
) -> None:
    """With the settings as they are."""
    world = TrapWorld(trap)

    done = into(tmp_path, world)

    assert done.complete
    assert world.asked["honest"] == 1 + HONEST // 10 + HONEST
    assert 20 < world.asked["trap"] <= most
    assert twice(world.urls) == []
    assert done.counts[End.LEFT_OUT] == done.crawl.source.cut_off > 0
    assert {row["detail"].split()[0] for row in done.failed} == {"max-same-text:"}
    assert verify(tmp_path / "out").ok


def test_the_next_run_asks_for_no_more_of_a_trap(tmp_path: Path) -> None:
    world = TrapWorld(calendar)
    first = into(tmp_path, world)
    asked = len(world.urls)

    again = into(tmp_path, world, resume=True)

    assert len(world.urls) == asked
    assert again.counts == first.counts


def test_what_was_cut_off_can_be_asked_for_and_nothing_else_is(tmp_path: Path) -> None:
    """By whoever wants it, or by a larger budget; what these pages lead to is still within the budget."""
    world = TrapWorld(calendar)
    first = into(tmp_path, world, rules=CrawlRules(max_same_text=20))
    cut, before = {row["url"] for row in first.failed}, len(world.urls)

    second = into(tmp_path, world, resume=True, rules=CrawlRules(max_same_text=20, retry_cut=True))

    assert set(world.urls[before:]) == cut
    assert second.counts[End.LEFT_OUT] == second.crawl.source.cut_off > 0
    cut, before = {row["url"] for row in second.failed}, len(world.urls)
    third = into(tmp_path, world, resume=True, rules=CrawlRules(max_same_text=60))
    assert cut <= set(world.urls[before:]) | {row["url"] for row in third.failed}
    assert len(world.urls) > before
    assert twice(world.urls) == []


def test_a_larger_budget_of_another_kind_reopens_nothing(tmp_path: Path) -> None:
    world = TrapWorld(calendar)
    into(tmp_path, world, rules=CrawlRules(max_same_text=20, max_per_host=10_000))
    before = len(world.urls)

    into(tmp_path, world, resume=True, rules=CrawlRules(max_same_text=20, max_per_host=20_000))

    assert len(world.urls) == before


def test_lists_with_one_text_are_fetched_while_they_lead_to_what_is_new(tmp_path: Path) -> None:
    """A list of forty pages, each with the same words and five articles; three may have a known text."""
    links = {at: [f"/article/{at * 5 + n}" for n in range(5)] for at in range(40)}
    site = web(**{f"{A}/": page("/list/0")})
    for at, found in links.items():
        anchors = "".join(f'<a href="{link}"></a>' for link in [*found, f"/list/{at + 1}"])
        site.answers[f"{A}/list/{at}"] = [reply(200, f"<p>{LONG}</p>{anchors}".encode(), Content_Type="text/html")]
        site.answers |= {
            f"{A}{link}": [reply(200, article(int(link[9:])).encode(), Content_Type="text/html")] for link in found
        }
    site.answers |= {f"{A}/list/{at}": [page(f"/list/{at + 1}", title=LONG)] for at in range(40, 80)}

    done = crawl(tmp_path / "out", site, f"{A}/", depth=500, rules=CrawlRules(max_same_text=3))

    assert sum("/article/" in url for url in done.fetched) == 200
    assert 40 < sum("/list/" in url for url in done.fetched) < 80, "those that lead nowhere are cut off"


def test_an_honest_site_of_numbers_is_not_taken_for_a_trap() -> None:
    """Measurements differ in numbers only; what is echoed, and dates, do not count."""

    def mark(text: str, url: str) -> int:
        found = mark_text(text, url)
        assert found is not None
        return found.key

    at = f"{A}/station"
    assert mark("Wind 412 km/h, 1013.2 hPa", f"{at}/7") != mark("Wind 417 km/h, 1009.8 hPa", f"{at}/8")
    assert mark("7 May 2031: nothing. Next: 8 May", f"{A}/2031/05/07") == mark(
        "8 May 2031: nothing. Next: 9 May", f"{A}/2031/05/08"
    )
    assert mark("Day 741. [Day 742](/day/742)", f"{A}/day/741") == mark("Day 742. [Day 743](/day/743)", f"{A}/day/742")
    assert mark("Welcome to x7!", "http://x7.example.net/") == mark("Welcome to y!", "http://y.example.net/")
    assert mark_text("", at) is None


@given(st.lists(st.booleans(), max_size=400), st.integers(1, 50))
def test_what_is_mostly_new_is_never_spent(pages: list[bool], most: int) -> None:
    share, new = TextShare(), 0
    for is_new in pages:
        share.add(1.0, known=not is_new)
        new += is_new
        if share.is_spent(most, 4):
            assert share.known >= most
            assert share.known >= 4 * new


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=200))
def test_a_text_that_was_seen_is_known(keys: list[int]) -> None:
    seen = SeenTexts()

    fresh = [not seen.add(key) for key in keys]

    assert sum(fresh) >= len(keys) - 2
    assert all(seen.add(key) for key in keys)


def test_texts_take_memory_as_they_come_and_few_new_ones_are_taken_for_known() -> None:
    """Each part of a crawl has a filter of its own, and most have few pages."""
    seen, draw = SeenTexts(), Random(1)
    keys = [draw.randrange(-(2**63), 2**63) for _ in range(60_000)]
    first = seen.size

    taken_for_known = sum(map(seen.add, keys))

    assert first < 20_000
    assert taken_for_known < len(keys) / 20
    assert all(map(seen.add, keys[-40_000:]))


def test_the_report_counts_what_was_cut_off(tmp_path: Path) -> None:
    counted: list[int] = []

    into(
        tmp_path,
        TrapWorld(same_text),
        wanted={step / 50: Control() for step in range(1, 400)},
        heard=lambda one: counted.append(report_crawl(one, 1.0).facts.cut_off),
    )

    assert max(counted) > 0


def test_addresses_are_alike_but_for_what_has_digits() -> None:
    assert shape_of(f"{A}/calendar/2031/may-05?view=day&s=x9") == "/calendar/*/*?view=day&s=*"
    assert shape_of(f"{A}/") == "/"


def test_a_host_takes_up_what_it_may(tmp_path: Path) -> None:
    """Its first address and nine more, and what was in flight; the rest can be asked for."""
    site = web(**{f"{A}/": page(*(f"/{number}" for number in range(60)))})
    site.answers |= {f"{A}/{number}": [page()] for number in range(60)}

    done = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(max_per_host=10))
    fetched = done.counts[End.FETCHED]

    assert 10 <= fetched < 30
    assert done.counts[End.LEFT_OUT] == 61 - fetched
    assert done.complete
    assert {row["detail"] for row in done.failed} == {"max-per-host: 10 pages of a.example.org"}
    assert {(row["end"], row["outcome"], row["fault"]) for row in done.failed} == {("left_out", "CANCELLED", "us")}
    assert verify(tmp_path / "out").ok
    again = crawl(tmp_path / "out", site, resume=True, rules=CrawlRules(max_per_host=10))
    assert again.counts[End.FETCHED] == fetched, "pages of earlier runs count"
    assert again.counts[End.LEFT_OUT] == 61 - fetched
    more = crawl(tmp_path / "out", site, resume=True)
    assert (more.counts[End.FETCHED], more.counts[End.LEFT_OUT]) == (61, 0)
    assert twice(site.urls) == []


def test_hosts_of_one_domain_share_what_it_may_take_up(tmp_path: Path) -> None:
    hosts = [f"http://h{number}.example.co.uk" for number in range(40)]
    other = "http://other.example.org/"
    site = web(**{f"{A}/": page(*(f"{host}/" for host in hosts), other), other: page()})
    site.answers |= {f"{host}/": [page(f"{host}/x")] for host in hosts}
    site.answers |= {f"{host}/x": [page()] for host in hosts}

    rules = CrawlRules(max_per_domain=8, slots=2)
    done = crawl(tmp_path / "out", site, f"{A}/", allow=["*.example.co.uk", "*.example.org"], rules=rules)

    of_domain = [url for url in done.fetched if "example.co.uk" in url]
    assert 8 <= len(of_domain) <= 11
    assert other in done.fetched
    assert {row["detail"] for row in done.failed} == {"max-per-domain: 8 pages of example.co.uk"}
