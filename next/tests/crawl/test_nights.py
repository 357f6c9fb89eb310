"""Three nights on a site that changes, in virtual time: what is requested, what says 304, what is new."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crawl.nights import ChangingSite, by_night
from crawl.sites import lines, page

from sanderling.clock import LoopClock
from sanderling.crawl import system
from sanderling.crawl.options import JobOptions, PagesOptions
from sanderling.crawl.sink import next_interval
from sanderling.crawl.system import open_run
from sanderling.files import Exit
from sanderling.options import OptionError
from sanderling.records.selection import Selection
from sanderling.stores import PageMemory

DAY = 86_400.0
NUMBER = 60  # pages that are there from the first night


def period(number: int) -> int:
    """A page changes every night, every second, every third; the others never."""
    return (1, 2, 3, 0)[number % 4]


def version(number: int, day: float) -> int:
    return int(day) // period(number) if period(number) else 0


def article(number: int, day: float) -> tuple[str, str]:
    said = f"Article {number} says for the {version(number, day)}. time what it has to say."
    # Every fifth has no ETag, and is known by its text alone.
    return page(f"Article {number}", said), "" if number % 5 == 0 else f"{number}-{version(number, day)}"


def front(day: float) -> tuple[str, str]:
    there = NUMBER + 5 * int(day)  # five more each night
    return page("Front", f"There are {there} articles.", [f"/{number}" for number in range(there)]), f"front-{there}"


PAGES: dict[str, Callable[[float], tuple[str, str]]] = {
    "/": front,
    **{f"/{number}": partial(article, number) for number in range(NUMBER + 20)},
}


def stored_in(folder: Path, run: int) -> list[str]:
    with system.records(folder) as rows:
        found = [msgspec.json.decode(line) for line in Selection(since=str(run)).lines(rows)]
    return sorted(row["url"].rpartition("/")[2] for row in found if row["outcome"] == "OK")


def test_a_crawl_that_is_run_again_each_night(tmp_path: Path) -> None:
    async def nights(site: ChangingSite, clock: LoopClock) -> None:
        for night in range(3):
            site.requests.clear()
            async with open_run(PagesOptions(**given_for(tmp_path)), clock) as run:
                assert await run.run() is Exit.DONE
            there = NUMBER + 5 * night
            before = there - 5 if night else 0
            asked = Counter(path for _, path, _ in site.requests)
            assert asked == Counter(["/", *(f"/{number}" for number in range(there))])
            changed = [
                number for number in range(there)
                if number >= before or version(number, night) != version(number, night - 1)
            ]  # fmt: skip
            same = {number for number in range(there) if number not in changed and number % 5}
            assert {int(path[1:]) for _, path, status in site.requests if status == 304} == same
            # What is new: that the page has no ETag is not to say that it is.
            untagged = {number for number in range(before) if number % 5 == 0}
            assert {*map(int, filter(None, stored_in(tmp_path, night + 1)))} == untagged.union(changed)
            assert not (await system.verify(tmp_path)).faults
            await clock.sleep(DAY - clock.now() % DAY + 10)

    by_night(PAGES, nights)


def given_for(folder: Path, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"out": folder, "urls": ("https://example.org/",), "readers": 0, **more}
    return given


def expected_visits(until: float) -> Counter[str]:
    """How often each page is requested by then, told plainly: a day after the first time, then sooner or later."""
    asked: Counter[str] = Counter()
    queue = [(0.0, "/", 1.0, "")]
    known = {"/"}
    while queue:
        queue.sort()
        at, path, interval, seen = queue.pop(0)
        if at > until:
            break
        asked[path] += 1
        text, _ = PAGES[path](at)
        links = {f"/{number}" for number in range(NUMBER + 5 * int(at))} if path == "/" else set()
        queue += [(at, link, 1.0, "") for link in links - known]
        known |= links
        if seen:
            interval = min(interval * 2, 16.0) if text == seen else max(interval / 2, 1 / 16)
        queue.append((at + interval, path, interval, text))
    return asked


def test_pages_are_visited_as_often_as_they_change(tmp_path: Path) -> None:
    until = 3.53  # days; no visit is due near that

    async def nights(site: ChangingSite, clock: LoopClock) -> None:
        options = PagesOptions(**given_for(tmp_path, every=DAY))
        for days in (1.3, until):  # and it goes on where it was stopped
            async with open_run(options, clock) as run:
                clock.call_later(days * DAY - clock.now(), run.stop)
                assert await run.run() is Exit.DONE
        assert Counter(path for _, path, _ in site.requests) == expected_visits(until)
        assert not (await system.verify(tmp_path)).faults
        said: dict[str, str] = {}
        for day, path, status in site.requests:
            text, tag = PAGES[path](day)
            assert (status == 304) == (bool(tag) and said.get(path) == text), (day, path)
            versions[path] += text != said.get(path)
            said[path] = text

    versions = Counter[str]()
    by_night(PAGES, nights)
    with system.records(tmp_path) as rows:
        found = Counter("/" + msgspec.json.decode(line)["url"].split("/", 3)[3] for line in Selection().lines(rows))
    assert found == versions  # a row for each version that was met, and no other


def iso(day: float) -> str:
    return f"{datetime.fromtimestamp(1_800_000_000 + day * DAY, UTC):%Y-%m-%dT%H:%M:%SZ}"


def test_a_sitemap_says_what_has_changed_and_what_is_new(tmp_path: Path) -> None:
    base = "https://example.org"

    def listed(day: float) -> tuple[str, str]:
        changed = {"/busy": int(day * 2) / 2, "/1": 1.6 if day > 1.6 else -9.0, "/2": -9.0}
        changed |= {"/new": 1.6} if day > 1.6 else {}
        entries = (f"<url><loc>{base}{path}</loc><lastmod>{iso(at)}</lastmod></url>" for path, at in changed.items())
        return f"<urlset>{''.join(entries)}</urlset>", ""

    pages: dict[str, Callable[[float], tuple[str, str]]] = {
        "/robots.txt": lambda _: (f"Sitemap: {base}/sitemap.xml", ""),
        "/sitemap.xml": listed,
        "/": lambda _: (page("Front"), ""),
        "/busy": lambda day: (page("Busy", f"Half day {int(day * 2)} it is."), ""),
        "/1": lambda day: (page("One", f"Has it changed? {day > 1.6}."), ""),
        "/2": lambda _: (page("Two"), ""),
        "/new": lambda _: (page("New"), ""),
    }

    async def nights(site: ChangingSite, clock: LoopClock) -> None:
        async with open_run(PagesOptions(**given_for(tmp_path, every=DAY)), clock) as run:
            clock.call_later(1.8 * DAY, run.stop)
            assert await run.run() is Exit.DONE
        visits: dict[str, list[float]] = {}
        for day, path, _ in site.requests:
            visits.setdefault(path, []).append(round(day, 2))
        assert visits["/sitemap.xml"] == [0, 1, 1.5, 1.75]
        assert visits["/1"] == [0, 1, 1.75]  # else it were due on the third day
        assert visits["/2"] == [0, 1]
        assert visits["/new"] == [1.75]

    by_night(pages, nights)


JOB = """
from sanderling import Job

job = Job("nights", start="https://example.org/", read="front")


@job.read
def front(reply):
    yield from (reply.follow(f"/{number}", read="article") for number in range(8))


@job.read(record=dict)
def article(reply):
    yield {"text": reply.text()}
"""


def test_a_job_visits_again_too(tmp_path: Path) -> None:
    file = tmp_path / "nights.py"
    file.write_text(JOB)

    async def nights(site: ChangingSite, clock: LoopClock) -> None:
        async with open_run(JobOptions(out=tmp_path / "out", file=file, every=DAY, readers=0), clock) as run:
            clock.call_later(2.6 * DAY, run.stop)
            assert await run.run() is Exit.DONE
        assert not (await system.verify(tmp_path / "out")).faults
        asked = Counter(path for _, path, status in site.requests if path != "/")
        assert {path: asked[path] for path in ("/0", "/1", "/3")} == {"/0": 4, "/1": 2, "/3": 2}
        assert {status for _, path, status in site.requests if path == "/3"} == {200, 304}

    by_night(PAGES, nights)
    texts = Counter(line["text"] for line in lines(tmp_path / "out" / "records.jsonl"))
    assert {*texts.values()} == {1}
    assert len([text for text in texts if "Article 0 " in text]) == 3
    with pytest.raises(OptionError, match="--every"):
        JobOptions(out=tmp_path, file=file, every=DAY, from_=tmp_path)


@pytest.mark.parametrize(
    ("before", "same", "after"),
    [
        (0.0, True, DAY),
        (DAY, True, 2 * DAY),
        (DAY, False, DAY / 2),
        (16 * DAY, True, 16 * DAY),
        (DAY / 16, False, DAY / 16),
    ],
)
def test_intervals(before: float, same: bool, after: float) -> None:
    memory = PageMemory(bytes(16), interval=before)
    assert next_interval(DAY, memory, same=same) == after
    assert next_interval(DAY, None, same=same) == DAY
