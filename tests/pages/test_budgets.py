"""What one host, one domain or one text may take up of a crawl, and that what is beyond is counted and not lost."""

from pathlib import Path

from small_web import crawl, page, reply, twice, web

from sanderling.outcome import Code
from sanderling.pages.budgets import shape_of
from sanderling.pages.folder import CrawlFolder
from sanderling.pages.rules import CrawlRules
from sanderling.pages.verify import verify
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply

A = "http://a.example.org"
LONG = "Nothing happens on this day, nor on the next; look again later. " * 3


def day(following: int) -> Reply:
    """A page of a calendar, which leads to the next."""
    body = f"<main><p>{LONG}</p></main><a href='/day/{following}'>the day after</a>"
    return reply(200, body.encode(), Content_Type="text/html")


def cut_off(path: Path) -> int:
    with CrawlFolder.open(path, None, resume=True, wall=0.0) as folder:
        return sum(folder.ledger.reopen(End.LEFT_OUT, Code.CANCELLED).values())


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
    assert cut_off(tmp_path / "out") == 61 - fetched
    again = crawl(tmp_path / "out", site, resume=True, rules=CrawlRules(max_per_host=10))
    assert again.counts[End.FETCHED] == fetched, "pages of earlier runs count"
    assert cut_off(tmp_path / "out") == 61 - fetched
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


def test_one_text_at_ever_new_addresses_is_cut_off(tmp_path: Path) -> None:
    """A calendar without an end; what else the host has is fetched."""
    site = web(**{f"{A}/": page("/day/0", *(f"/article/{number}" for number in range(20)))})
    site.answers |= {f"{A}/day/{number}": [day(number + 1)] for number in range(200)}
    site.answers |= {f"{A}/article/{number}": [page(title=f"{LONG} {number}")] for number in range(20)}

    done = crawl(tmp_path / "out", site, f"{A}/", depth=500, rules=CrawlRules(max_same_text=12))

    days = [url for url in done.fetched if "/day/" in url]
    assert len(days) == 12
    assert sum("/article/" in url for url in done.fetched) == 20
    (row,) = done.failed
    assert row["detail"] == "max-same-text: one text at 12 addresses like /day/*"
    unbounded = crawl(tmp_path / "all", site, f"{A}/", depth=40, rules=CrawlRules(max_same_text=0))
    assert not unbounded.failed
