"""Second visits, under virtual time against a web in a dictionary: when, with what, and what is kept of them."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from small_web import Crawled, crawl, page, reply

from sanderling.pages.folder import CrawlFolder
from sanderling.pages.output import PAGES
from sanderling.pages.records import PageRecords
from sanderling.pages.revisits import VisitRules
from sanderling.pages.rules import CrawlRules
from sanderling.pages.verify import verify
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply, Task

A = "http://a.example"
# Ten minutes stand for a day: what writes looks twice a second, virtual or not.
DAY = 600.0
A_DAY = 86_400 / DAY
DAILY = CrawlRules(visits=VisitRules(DAY, DAY))


@dataclass(slots=True)
class ChangingSite:
    """A page `/` that leads to others; each changes every so many seconds, and `etags` says who sends one."""

    periods: dict[str, float]
    etags: bool = True
    gone_after: float = 1e18
    asked: list[tuple[float, str, int]] = field(default_factory=list)

    async def send(self, task: Task) -> Reply:
        """The page as it is now, or 304."""
        now = asyncio.get_running_loop().time()
        path = task.url.removeprefix(A)
        answer = self._answer(path, now, dict(task.headers))
        self.asked.append((now, path, answer.status))
        return Reply(answer.status, answer.headers, answer.body, task.url, 0.01)

    def _answer(self, path: str, now: float, headers: dict[str, str]) -> Reply:
        if path != "/" and (path not in self.periods or now > self.gone_after):
            return reply(404)
        version = int(now / self.periods.get(path, 1e18))
        if self.etags and headers.get("If-None-Match") == f'"{version}"':
            return reply(304)
        links = list(self.periods) if path == "/" else []
        title = f"{path} is {version}"
        return page(*links, title=title, ETag=f'"{version}"') if self.etags else page(*links, title=title)

    def visits(self, path: str) -> list[int]:
        """The answers that a page gave."""
        return [status for _, asked, status in self.asked if asked == path]


def visit(folder: Path, site: ChangingSite, days: float, rules: CrawlRules = DAILY, epoch: float = 1.8e9) -> Crawled:
    """Crawl and visit for so many days."""
    done = crawl(folder, site, f"{A}/", rules=rules, stop_after=days * DAY, epoch=epoch)
    proof = verify(folder)
    assert proof.ok, proof.problems
    return done


@pytest.mark.parametrize("etags", [True, False])
def test_a_page_has_a_row_for_each_version_and_none_for_a_visit_in_vain(tmp_path: Path, etags: bool) -> None:  # noqa: FBT001
    site = ChangingSite({"/slow": 100 * DAY, "/fast": 1.5 * DAY}, etags=etags)

    done = visit(tmp_path / "out", site, 6.5)

    assert done.complete
    assert done.fetched.count(f"{A}/slow") == 1
    assert done.fetched.count(f"{A}/fast") == 5
    assert len(site.visits("/slow")) == len(site.visits("/fast")) == 7
    assert site.visits("/slow")[1:] == [304 if etags else 200] * 6


def test_what_is_gone_is_a_failure_and_its_versions_stay(tmp_path: Path) -> None:
    site = ChangingSite({"/x": 1.5 * DAY}, gone_after=2.5 * DAY)

    done = visit(tmp_path / "out", site, 4.5)

    assert [row["title"] for row in done.rows if row["url"] == f"{A}/x"] == ["/x is 0", "/x is 1"]
    assert [row["url"] for row in done.failed] == [f"{A}/x"]
    assert done.counts[End.FAILED] == 1


def test_visits_go_on_where_they_were(tmp_path: Path) -> None:
    site = ChangingSite({"/x": 1.5 * DAY})
    visit(tmp_path / "out", site, 2.5)

    done = visit(tmp_path / "out", site, 1.2, epoch=1.8e9 + 2.5 * DAY)

    assert done.counts[End.FETCHED] + done.counts[End.UNCHANGED] == 2
    assert len(site.visits("/x")) in (4, 5)


def test_a_finished_crawl_is_visited_and_not_begun_anew(tmp_path: Path) -> None:
    site = ChangingSite({"/x": 1.5 * DAY})
    crawl(tmp_path / "out", site, f"{A}/")

    done = visit(tmp_path / "out", site, 2.5, epoch=1.8e9 + 60)

    assert not (tmp_path / "out" / "earlier").exists()
    assert done.crawl.folder.crawl == 1
    assert len(site.visits("/x")) >= 3


def test_whoever_goes_on_without_visits_keeps_their_count(tmp_path: Path) -> None:
    site = ChangingSite({f"/{each}": 1.5 * DAY for each in range(400)}, etags=False)
    crawl(tmp_path / "out", site, f"{A}/", rules=DAILY, stop_after=DAY + 15)

    crawl(tmp_path / "out", site, resume=True, epoch=1.8e9 + 2.1 * DAY)

    proof = verify(tmp_path / "out")
    assert proof.ok, proof.problems


def test_rows_that_were_lost_are_fetched_again(tmp_path: Path) -> None:
    site = ChangingSite({"/x": 1.5 * DAY, "/y": 1.2 * DAY}, etags=False)
    visit(tmp_path / "out", site, 3.5)
    rows = tmp_path / "out" / PAGES
    lines = rows.read_bytes().splitlines(keepends=True)
    rows.write_bytes(b"".join(lines[:-2]))

    with CrawlFolder.open(tmp_path / "out", None, resume=True, wall=1.8e9, visits=DAILY.visits) as folder:
        assert folder.put_back in (1, 2)
    visit(tmp_path / "out", site, 1.5, epoch=1.8e9 + 4 * DAY)


def test_a_budget_bounds_the_visits_of_a_day(tmp_path: Path) -> None:
    site = ChangingSite({f"/{each}": 0.1 * DAY for each in range(50)}, etags=False)

    visit(tmp_path / "out", site, 4, CrawlRules(visits=VisitRules(DAY / 24, 30 * DAY, a_day=24 * A_DAY)))

    assert 51 + 48 <= len([path for _, path, _ in site.asked if path != "/robots.txt"]) <= 51 + 4 * 24 + 1


def test_what_changes_is_visited_more_often_than_what_does_not(tmp_path: Path) -> None:
    site = ChangingSite({"/slow": 1e9, "/fast": 0.5 * DAY, "/other": 1e9, "/still": 1e9}, etags=True)

    visit(tmp_path / "out", site, 60, CrawlRules(visits=VisitRules(DAY / 24, 30 * DAY, a_day=3 * A_DAY)))

    assert len(site.visits("/fast")) > 1.5 * len(site.visits("/slow"))


def test_drained_it_ends(tmp_path: Path) -> None:
    from sanderling.stores.control_file import Control  # noqa: PLC0415

    done = crawl(
        tmp_path / "out",
        ChangingSite({"/x": DAY}),
        f"{A}/",
        rules=DAILY,
        wanted={1.5 * DAY: Control(ending="drain")},
    )

    assert done.complete
    assert 1.5 * DAY <= done.seconds < 1.6 * DAY


def test_show_has_the_versions(tmp_path: Path) -> None:
    visit(tmp_path / "out", ChangingSite({"/x": 1.5 * DAY}), 4.5)

    found = PageRecords(tmp_path / "out").show(f"{A}/x")

    assert found.record is not None
    assert b"/x is 2" in found.record
    assert len(found.history) == 2
    assert "visited 5 times" in found.about
