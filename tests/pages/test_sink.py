"""What ended is handed on before the ledger takes note of it; what is not taken has not ended."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from small_web import Crawled, Web, crawl, page, reply, twice, web

from sanderling.engine.writer import WriterRules
from sanderling.fetch.guard import Refused
from sanderling.limit import LimiterRules, PaceRules
from sanderling.pages import crawl as crawl_module
from sanderling.pages.folder import CrawlFolder
from sanderling.pages.leave_out import ExcludedUrls
from sanderling.pages.rules import CrawlRules
from sanderling.stores.frontier_file import connect_to_read
from sanderling.stores.frontier_rows import End

A, B = "http://a.example", "http://b.example"
QUICK = LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000))


@dataclass(slots=True)
class Hands:
    """Somebody who takes rows, and looks into the ledger of the folder meanwhile."""

    folder: Path
    seconds: float = 0.0  # that each takes
    until: float = float("inf")  # virtual seconds after which nothing is taken
    rows: list[dict[str, Any]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    stops: int = 0  # how often it was told that the crawl ends
    early: list[str] = field(default_factory=list)  # what had ended before it was handed

    async def hand(self, rows: Sequence[bytes]) -> bool:
        await asyncio.sleep(self.seconds)
        if asyncio.get_running_loop().time() >= self.until:
            return False
        read = [json.loads(row) for row in rows]
        self.early += [row["url"] for row in read if row["url"] in ended(self.folder)]
        self.rows += read
        self.sizes.append(len(rows))
        return True

    def stop(self) -> None:
        self.stops += 1

    @property
    def urls(self) -> list[str]:
        return sorted(row["url"] for row in self.rows)


def ended(folder: Path) -> set[str]:
    db = connect_to_read(folder / "ledger.db")
    try:
        return {url for (url,) in db.execute("SELECT url FROM url WHERE end != 0")}
    finally:
        db.close()


def known(done: Crawled) -> list[str]:
    return sorted(row["url"] for row in (*done.rows, *done.failed))


def many(pages: int) -> Web:
    """A front page that leads to so many others, and one of these nowhere."""
    names = [f"/{number}" for number in range(pages)]
    return web(**{f"{A}/": page(*names, "/gone"), **{f"{A}{name}": page("/") for name in names}})


def test_every_url_is_handed_on_once_and_before_it_has_ended(tmp_path: Path) -> None:
    site = many(30)
    site.answers[f"{A}/3"] = [reply(301, Location="/4")]
    site.answers[f"{A}/robots.txt"] = [reply(200, b"User-agent: *\nDisallow: /5")]
    hands = Hands(tmp_path / "out")

    done = crawl(tmp_path / "out", site, f"{A}/", hand_over=hands)

    assert done.complete
    assert (hands.urls, twice(hands.urls), hands.early) == (known(done), [], [])
    told = {row["url"]: row for row in hands.rows}
    assert (told[f"{A}/gone"]["outcome"], told[f"{A}/gone"]["end"]) == ("CONTENT_NOT_FOUND", "failed")
    assert (told[f"{A}/5"]["outcome"], told[f"{A}/5"]["end"]) == ("REFUSED", "refused")
    assert (told[f"{A}/3"]["moved_to"], told[f"{A}/4"]["outcome"]) == (f"{A}/4", "OK")
    assert {row["url"]: row for row in done.failed} == {url: told[url] for url in (f"{A}/gone", f"{A}/5")}, "as there"


def test_what_is_left_out_is_not_handed_on(tmp_path: Path) -> None:
    """Not as a failure either: whoever wants to be left out wants to be in nobody's table."""
    hands = Hands(tmp_path / "out")
    rules = CrawlRules(leave_out=ExcludedUrls.of(f"{A}/3"))

    done = crawl(tmp_path / "out", many(5), f"{A}/", hand_over=hands, rules=rules)

    assert (done.complete, done.counts[End.LEFT_OUT]) == (True, 1)
    assert hands.urls == [url for url in known(done) if url != f"{A}/3"]


def test_rows_wait_for_others_and_what_was_found_does_not(tmp_path: Path) -> None:
    """At ten pages a second, a commit every half a second would bring five at a time."""
    hands = Hands(tmp_path / "out")

    crawl(tmp_path / "out", many(200), f"{A}/", hand_over=hands)

    assert sum(hands.sizes) == 202
    assert len(hands.sizes) <= 7
    assert max(hands.sizes) >= 45


def test_a_long_way_of_links_takes_no_longer(tmp_path: Path) -> None:
    """Beside a host that keeps the crawl busy, for otherwise nothing would wait for anything."""
    robots = reply(200, b"User-agent: *\nCrawl-delay: 7")
    chain = {f"{A}/{number}": page(f"/{number + 1}") for number in range(15)}
    slow = {f"{B}/": page(*(f"/{number}" for number in range(4))), f"{B}/robots.txt": robots}
    pages = chain | slow | {f"{B}/{number}": page() for number in range(4)}
    times = []
    for name in ("alone", "handed"):
        site = web(**pages)
        hands = Hands(tmp_path / name) if name == "handed" else None
        crawl(tmp_path / name, site, f"{A}/0", f"{B}/", hand_over=hands)
        (last,) = site.times(f"{A}/14")
        times.append(last)

    assert times[1] <= times[0] + 0.5


def test_at_the_end_nothing_waits_for_more(tmp_path: Path) -> None:
    alone = crawl(tmp_path / "alone", many(3), f"{A}/")
    handed = crawl(tmp_path / "handed", many(3), f"{A}/", hand_over=Hands(tmp_path / "handed"))

    assert handed.seconds <= alone.seconds + 0.1


def test_a_host_that_is_given_up_is_handed_on_url_by_url(tmp_path: Path) -> None:
    names = [f"{B}/{number}" for number in range(35)]
    site = web(**{f"{A}/": page(*names), f"{B}/robots.txt": Refused("private")})
    hands = Hands(tmp_path / "out")

    done = crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"], hand_over=hands)

    assert done.counts[End.FAILED] == 35
    assert (hands.urls, hands.early) == (known(done), [])


def test_what_is_not_taken_has_not_ended_and_comes_again(tmp_path: Path) -> None:
    hands = Hands(tmp_path / "out", until=10.0)

    first = crawl(tmp_path / "out", many(100), f"{A}/", hand_over=hands, stop_after=10.0)
    assert hands.stops == 1, "who waits for it need not wait for ever"
    taken = hands.urls
    hands.until = float("inf")
    second = crawl(tmp_path / "out", many(100), hand_over=hands, resume=True)

    assert (first.complete, second.complete) == (False, True)
    assert known(first) == taken, "rows are kept of those only"
    assert 0 < len(taken) < 101
    assert (hands.urls, hands.early) == (known(second), [])
    assert twice(hands.urls) == []


def test_a_host_is_not_given_up_if_nobody_takes_that(tmp_path: Path) -> None:
    site = web(**{f"{B}/": page(), f"{B}/robots.txt": Refused("private")})
    hands = Hands(tmp_path / "out", seconds=100.0, until=50.0)

    done = crawl(tmp_path / "out", site, f"{B}/", hand_over=hands, stop_after=50.0)

    assert (done.complete, done.counts[End.FAILED], hands.rows) == (False, 0, [])


class LostError(Exception):
    """As kill -9, between two steps."""


def test_killed_after_it_was_handed_on_it_is_handed_on_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Hands(tmp_path / "out")

    real = CrawlFolder.commit

    def commit(*batch: Any) -> Mapping[str, int]:  # noqa: ANN401 - whatever the sink hands over
        if len(hands.rows) > 60:
            raise LostError
        return real(*batch)

    with monkeypatch.context() as patch:
        patch.setattr(CrawlFolder, "commit", commit)
        with pytest.RaisesGroup(LostError, flatten_subgroups=True):
            crawl(tmp_path / "out", many(100), f"{A}/", hand_over=hands)
    before = len(hands.rows)
    done = crawl(tmp_path / "out", many(100), hand_over=hands, resume=True)

    assert done.complete
    assert sorted(set(hands.urls)) == known(done)
    assert before < 102 < len(hands.rows)
    assert hands.early == []


def test_while_nobody_takes_anything_nothing_more_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_module, "GATHER", WriterRules(gather=5.0, enough=20, items=20, most_items=40))
    site, hands = many(300), Hands(tmp_path / "out", seconds=1000.0)
    asked: list[int] = []

    async def hand(rows: Sequence[bytes]) -> bool:
        before = len(site.asked)
        taken = await Hands.hand(hands, rows)
        asked.append(len(site.asked) - before)
        return taken

    hands_ = type("Slow", (), {"hand": staticmethod(hand)})()
    done = crawl(
        tmp_path / "out", site, f"{A}/", hand_over=hands_, rules=CrawlRules(slots=10, per_host=10), limits=QUICK
    )

    assert (done.complete, hands.urls) == (True, known(done))
    assert max(asked) <= 20 + 10 + 10, "of a thousand seconds, a batch and what is in flight"
