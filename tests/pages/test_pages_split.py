"""A crawl of pages that one process began goes on in parts: with rows, documents, archives, visits, earlier crawls."""

from pathlib import Path

import pytest
from frontier_urls import fresh
from small_web import Web, crawl, page, reply, twice
from split_steps import assert_own, each_kill, records, take_apart
from test_crawl_parts import START, Parts, shore

from sanderling.crawls.kept import Keep
from sanderling.crawls.parts import folders_of, number_of_parts
from sanderling.crawls.verify import CrawlProof, verify_parts
from sanderling.pages.forget import begin, finish
from sanderling.pages.revisits import VisitRules
from sanderling.pages.rules import CrawlRules
from sanderling.pages.split import PagesSplit
from sanderling.pages.verify import verify
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End

ALLOW = ("*.example", "*.example.org")


def site() -> Web:
    """Hosts with pages, the same text on many, documents, redirects and what is not there."""
    web = shore(12, 4)
    for number in range(12):
        home = f"http://h{number}.example"
        links = (
            f"{home}/1",
            f"http://h{(number + 5) % 12}.example/2",
            f"{home}/file.pdf",
            f"{home}/old",
            f"{home}/gone",
        )
        web.answers[f"{home}/"] = [page(*links, ETag=f'"{number}"')]
        web.answers[f"{home}/file.pdf"] = [reply(200, b"%PDF-1.4 the same everywhere", Content_Type="application/pdf")]
        web.answers[f"{home}/old"] = [reply(301, Location=f"http://h{(number + 1) % 12}.example/3")]
    return web


def proof(out: Path) -> CrawlProof:
    return verify_parts(out, verify)


def one(folder: Path, keep: Keep | None = None, *, again: bool = False, stop_after: float = 0.9) -> Web:
    """A crawl that one process began; if it is crawled `again`, the second time."""
    web = site()
    if again:
        crawl(folder, web, START, allow=ALLOW, keep=keep)
    crawl(folder, web, START, allow=ALLOW, keep=keep, stop_after=stop_after)
    return web


@pytest.mark.parametrize(("keep", "again"), [(None, False), ("html", True), ("warc", True), ("warc", False)])
def test_parts_read_as_one_say_what_the_folder_said_whenever_it_was_killed(keep: Keep | None, again: bool) -> None:  # noqa: FBT001
    with fresh() as place:
        one(place / "out", keep, again=again)
        before, counts = records(place / "out"), proof(place / "out")
        assert counts.ok, counts.problems

        for out in each_kill(place / "out", PagesSplit()):
            after = proof(out)
            assert after.ok, after.problems
            assert after.counts == counts.counts
            assert records(out) == before
            assert_own(out, "pages.jsonl")
            assert number_of_parts(out) == 8
            left = {path.name for path in out.iterdir()}
            assert left <= {"parts", "parts.json", "lock", "status.json"}, left


@pytest.mark.parametrize("keep", [None, "warc"])
def test_what_was_taken_apart_goes_on_to_what_one_process_would_have_fetched(tmp_path: Path, keep: Keep | None) -> None:
    web = one(tmp_path / "out", keep)
    whole = crawl(tmp_path / "whole", site(), START, allow=ALLOW, keep=keep)
    take_apart(tmp_path / "out", PagesSplit())
    parts = Parts(tmp_path / "out", web, START, keep=keep)
    parts.run()

    assert sorted(parts.fetched) == sorted(whole.fetched)
    assert twice(web.urls) == []
    assert set(parts.complete.values()) == {True}
    assert proof(tmp_path / "out").ok, proof(tmp_path / "out").problems


def test_a_finished_crawl_is_crawled_again_in_parts_by_what_is_remembered(tmp_path: Path) -> None:
    web = site()
    crawl(tmp_path / "out", web, START, allow=ALLOW)
    web.answers |= {url: [reply(304)] for url, (answer,) in web.answers.items() if "ETag" in dict(answer.headers)}  # type: ignore[union-attr]
    take_apart(tmp_path / "out", PagesSplit())
    parts = Parts(tmp_path / "out", web, START)
    parts.run()

    ends = proof(tmp_path / "out").counts
    assert ends[End.UNCHANGED] == 12
    assert proof(tmp_path / "out").ok
    assert len(records(tmp_path / "out")) == 2 * (ends[End.FETCHED] + ends[End.UNCHANGED] + ends[End.MOVED])


def test_visits_cookies_limits_and_robots_txt_are_those_of_the_folder(tmp_path: Path) -> None:
    web, folder = site(), tmp_path / "out"
    web.answers["http://h3.example/robots.txt"] = [reply(200, b"User-agent: *\nDisallow: /2")]
    web.answers["http://h4.example/"] = [page("/1", Set_Cookie="seen=yes")]
    crawl(folder, web, START, allow=ALLOW, rules=CrawlRules(visits=VisitRules()), stop_after=30.0)
    (folder / "limiter.json").write_bytes(b"{}")
    (folder / "control.json").write_bytes(b"{}")
    take_apart(folder, PagesSplit())

    names = {path.name for part in folders_of(folder) for path in part.iterdir()}
    assert {"cookies.json", "limiter.json"} <= names
    assert (folder / "control.json").exists()  # what people want of all of it
    asked = len([url for _, url in web.asked if url.endswith("/robots.txt")])
    parts = Parts(folder, web, START)
    parts.rules = CrawlRules(visits=VisitRules())
    parts.run(stop_after=1.0)
    assert len([url for _, url in web.asked if url.endswith("/robots.txt")]) == asked


def test_what_was_to_be_forgotten_is_forgotten_before_and_after(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    one(folder)
    begin(folder, ["h1.example"], ())  # which was cut short
    take_apart(folder, PagesSplit())
    begin(folder, ["h2.example"], ())
    finish(folder)
    parts = Parts(folder, web := site(), START)
    parts.run()

    assert not [url for url in web.urls if "//h1.example" in url or "//h2.example" in url]
    assert proof(folder).ok


def test_a_folder_that_lacks_rows_is_not_taken_apart(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    one(folder)
    rows = (folder / "pages.jsonl").read_bytes()
    (folder / "pages.jsonl").write_bytes(rows[:-20])
    with pytest.raises(FolderError, match="lacks rows"):
        take_apart(folder, PagesSplit())

    assert number_of_parts(folder) == 0
    assert crawl(folder, site(), START, allow=ALLOW).complete
