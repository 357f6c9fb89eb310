"""The crawl, under virtual time against a web in a dictionary: what is asked, when, and what becomes of it."""

import asyncio
from pathlib import Path

import pytest
from small_web import Web, crawl, page, reply, twice, web

from sanderling.limit import LimiterRules, PaceRules
from sanderling.outcome import Code, Outcome
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.pages.verify import verify
from sanderling.stores.frontier_rows import End, Ended, FoundUrl
from sanderling.task import Reply, Task

A = "http://a.example"
B = "http://b.example"


def test_links_are_followed_and_each_url_is_fetched_once(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/x", "/y"), f"{A}/x": page("/y", "/"), f"{A}/y": page("/x#part")})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert sorted(done.fetched) == [f"{A}/", f"{A}/x", f"{A}/y"]
    assert twice(site.urls) == []
    assert done.complete
    assert done.counts[End.FETCHED] == 3


def test_a_row_says_what_the_page_says(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/x", title="Tides", ETag='"1"')})

    row = crawl(tmp_path / "out", site, f"{A}/").row(f"{A}/")

    assert (row["title"], row["outcome"], row["status"], row["depth"], row["etag"]) == ("Tides", "OK", 200, 0, '"1"')
    assert "# Tides" in row["text"]
    assert row["links"] == [f"{A}/x"]


def test_links_stay_within_depth_and_hosts(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/1", f"{B}/"), f"{A}/1": page("/2"), f"{A}/2": page("/3"), f"{B}/": page("/other")})

    done = crawl(tmp_path / "out", site, f"{A}/", depth=2)

    assert done.fetched == [f"{A}/", f"{A}/1", f"{A}/2"]


def test_another_host_belongs_if_it_is_allowed(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page(f"{B}/"), f"{B}/": page()})

    done = crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"])

    assert done.fetched == [f"{A}/", f"{B}/"]


def test_what_is_not_there_fails_with_its_reason(tmp_path: Path) -> None:
    done = crawl(tmp_path / "out", web(**{f"{A}/": page("/gone")}), f"{A}/")

    row = done.row(f"{A}/gone")
    assert (row["outcome"], row["status"]) == (Code.CONTENT_NOT_FOUND, 404)
    assert done.counts[End.FAILED] == 1


def test_what_fails_for_a_while_is_tried_again_later(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/x"), f"{A}/x": [reply(500)] * 3 + [page()]})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/x")["outcome"] == Code.OK


def test_what_keeps_failing_is_given_up_in_the_end(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/x", "/y"), f"{A}/x": reply(500), f"{A}/y": page()})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/x")["outcome"] == Code.HTTP_ERROR  # its own: the host is well
    assert 4 <= len(site.times(f"{A}/x")) <= 10
    assert done.row(f"{A}/y")["outcome"] == Code.OK


def test_not_now_is_no_failure(tmp_path: Path) -> None:
    """A host that says 429 with a Retry-After of a minute is asked again after that, and nothing is given up."""
    site = web(**{f"{A}/": page("/x"), f"{A}/x": [reply(429, Retry_After="60")] * 3 + [page()]})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/x")["outcome"] == Code.OK
    assert all(
        after - before >= 60 for before, after in zip(site.times(f"{A}/x"), site.times(f"{A}/x")[1:], strict=False)
    )


def test_a_host_that_opens_again_is_not_left_idle(tmp_path: Path) -> None:
    """While the probe after a refusal is out, nobody knows when the host may be asked; its answer says so."""
    links = [f"/{number}" for number in range(40)]
    site = web(**{f"{A}/": page(*links), **{f"{A}{link}": page() for link in links}})
    site.answers[f"{A}/20"].insert(0, reply(429, Retry_After="2"))

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.counts[End.FETCHED] == 41
    assert done.seconds < 20


def test_a_host_that_wants_more_quiet_than_we_are_patient_is_given_up(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/x", "/y"), f"{A}/x": reply(429, Retry_After="86400"), f"{A}/y": page()})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert (done.complete, done.failed, done.reasons) == (False, [], {"a.example": Code.RATE_LIMITED})
    assert done.seconds < 3600


def test_a_host_that_does_not_exist_is_given_up_soon(tmp_path: Path) -> None:
    site = Web({f"{A}/robots.txt": [ConnectionRefusedError()], f"{A}/": [ConnectionRefusedError()]})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert (done.complete, done.failed, done.reasons) == (False, [], {"a.example": Code.CONNECTION_REFUSED})
    assert done.seconds < 60


def test_a_host_that_goes_down_is_waited_for(tmp_path: Path) -> None:
    """Down for two minutes in the middle: all is fetched in the end."""
    numbers = range(200)
    site = web(**{f"{A}/": page(*(f"/{n}" for n in numbers)), **{f"{A}/{n}": page() for n in numbers}})

    class Outage:
        async def send(self, task: Task) -> Reply:
            if 10 <= asyncio.get_running_loop().time() < 130:
                raise ConnectionResetError
            return await site.send(task)

    done = crawl(tmp_path / "out", Outage(), f"{A}/")

    assert len(done.fetched) == 201
    assert done.counts[End.FAILED] == 0


def test_what_waits_for_a_host_that_goes_down_for_good_waits_for_the_next_run(tmp_path: Path) -> None:
    """Nothing of it is called failed, also if it was asked for while the host was down; and nothing is left of that."""
    numbers = range(500)
    site = web(**{f"{A}/": page(*(f"/{n}" for n in numbers)), **{f"{A}/{n}": page() for n in numbers}})

    class Down:
        asked = 0

        async def send(self, task: Task) -> Reply:
            if asyncio.get_running_loop().time() < 10:
                return await site.send(task)
            self.asked += 1
            raise ConnectionResetError

    down = Down()
    done = crawl(tmp_path / "out", down, f"{A}/", rules=CrawlRules(patience=120))
    second = crawl(tmp_path / "out", site, f"{A}/")

    assert (done.complete, done.failed, done.reasons) == (False, [], {"a.example": Code.CONNECTION_RESET})
    assert 0 < len(done.fetched) < 501
    assert down.asked < 60
    assert (second.complete, len(second.fetched), second.reasons) == (True, 501, {})
    assert verify(tmp_path / "out").ok


def test_a_host_that_was_left_alone_for_long_is_asked_once_more_before_it_is_given_up(tmp_path: Path) -> None:
    """Its breaker stays open beyond our patience; when that is over the host is well, and all is fetched."""
    numbers = range(60)
    site = web(**{f"{A}/": page(*(f"/{n}" for n in numbers)), **{f"{A}/{n}": page() for n in numbers}})

    class Outage:
        async def send(self, task: Task) -> Reply:
            answer = await site.send(task)
            return reply(500) if 3 <= asyncio.get_running_loop().time() < 40 else answer

    done = crawl(tmp_path / "out", Outage(), f"{A}/", rules=CrawlRules(patience=45))

    assert done.counts[End.FAILED] == 0
    assert len(done.fetched) == 61


def test_nothing_is_forgotten_when_a_host_is_given_up_with_requests_in_flight(tmp_path: Path) -> None:
    numbers = range(100)
    site = web(**{f"{A}/": [page(*(f"/{n}" for n in numbers)), ConnectionResetError()]})
    site.answers |= {f"{A}/{n}": [ConnectionResetError()] for n in numbers}
    site.latency = 7.0  # many are in flight when patience ends

    done = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(patience=20))

    assert done.crawl.folder.ledger.known == 101
    assert done.counts[End.FAILED] + done.crawl.set_aside == 100


def test_redirects_become_urls_of_their_own(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/old"), f"{A}/old": reply(301, Location="/new"), f"{A}/new": page()})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/old")["moved_to"] == f"{A}/new"
    assert done.row(f"{A}/new")["outcome"] == Code.OK
    assert done.counts[End.MOVED] == 1
    assert twice(site.urls) == []


def test_a_redirect_loop_is_one_outcome(tmp_path: Path) -> None:
    site = web(
        **{
            f"{A}/": page("/1", "/self"),
            f"{A}/1": reply(302, Location="/2"),
            f"{A}/2": reply(302, Location="/3"),
            f"{A}/3": reply(302, Location="/1"),
            f"{A}/self": reply(302, Location="/self"),
        }
    )

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/self")["outcome"] == Code.REDIRECT_LOOP
    assert [row["outcome"] for row in done.failed].count(Code.REDIRECT_LOOP) == 2
    assert twice(site.urls) == []


def test_a_redirect_that_only_adds_a_session_is_followed_at_once(tmp_path: Path) -> None:
    """The address with the session is left out of URLs, so to queue it would be to lose the page to a loop."""
    session = f"{A}/x;jsessionid=1"
    site = web(**{f"{A}/": page("/x"), f"{A}/x": reply(302, Location="/x;jsessionid=1"), session: page(title="Here")})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/x")["title"] == "Here"
    assert done.counts[End.FAILED] == 0


def test_redirects_without_an_end_come_to_one(tmp_path: Path) -> None:
    hops = {f"{A}/{n}": reply(302, Location=f"/{n + 1}") for n in range(100)}

    done = crawl(tmp_path / "out", web(**{f"{A}/": page("/0"), **hops}), f"{A}/")

    assert [row["outcome"] for row in done.failed] == [Code.REDIRECT_LOOP]
    assert done.counts[End.MOVED] == 20


def test_a_redirect_out_of_the_crawl_is_not_followed(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/out"), f"{A}/out": reply(301, Location=f"{B}/"), f"{B}/": page()})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/out")["detail"] == "moved out of the crawl"
    assert f"{B}/" not in site.urls


def test_where_a_first_address_moves_belongs_to_the_crawl(tmp_path: Path) -> None:
    site = web(**{f"{A}/": reply(301, Location=f"{B}/"), f"{B}/": page("/x"), f"{B}/x": page()})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{B}/x")["outcome"] == Code.OK


def test_a_redirect_to_nowhere_is_one_outcome(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/x"), f"{A}/x": reply(301, Location="ftp://elsewhere/")})

    assert crawl(tmp_path / "out", site, f"{A}/").row(f"{A}/x")["outcome"] == Code.INVALID_URL


def test_the_page_limit_leaves_the_rest(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page(*(f"/{n}" for n in range(20))), **{f"{A}/{n}": page() for n in range(20)}})

    done = crawl(tmp_path / "out", site, f"{A}/", rules=CrawlRules(max_pages=5))

    assert (done.complete, len(done.fetched), done.counts[End.LEFT]) == (True, 5, 16)


def test_stopped_in_the_middle_it_goes_on_where_it_was(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page(*(f"/{n}" for n in range(50))), **{f"{A}/{n}": page() for n in range(50)}})

    first = crawl(tmp_path / "out", site, f"{A}/", stop_after=3)
    second = crawl(tmp_path / "out", site, resume=True)

    assert not first.complete
    assert 0 < len(first.rows) < 51
    assert second.complete
    assert len(second.fetched) == 51
    assert twice(second.fetched) == []
    assert twice(site.urls) == []


def test_a_crawl_in_which_nothing_waits_any_more_ends_at_once(tmp_path: Path) -> None:
    """Killed after its last commit, it knows that all is decided, and has not said so yet."""
    site = web(**{f"{A}/": page()})
    with CrawlFolder.open(tmp_path / "out", CrawlPlan((f"{A}/",), (), 16), resume=False, wall=0) as folder:
        folder.commit([], [FoundUrl(f"{A}/", "a.example", 0)])
        gone = Ended(id=1, url=f"{A}/", end=End.FAILED, outcome=Outcome(Code.CONTENT_NOT_FOUND, 404), depth=0)
        folder.commit([gone], [])

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert (done.complete, site.asked, done.counts[End.FAILED]) == (True, [], 1)


def test_a_second_crawl_asks_for_what_has_changed(tmp_path: Path) -> None:
    site = web(**{f"{A}/": page("/x", ETag='"1"'), f"{A}/x": page()})
    crawl(tmp_path / "out", site, f"{A}/")

    site.answers[f"{A}/"] = [reply(304)]
    second = crawl(tmp_path / "out", site, f"{A}/")

    conditions = [task.headers for task in site.tasks if task.url == f"{A}/"]
    assert conditions == [(), (("If-None-Match", '"1"'),)]
    assert second.row(f"{A}/")["outcome"] == Code.NOT_MODIFIED
    assert second.row(f"{A}/x")["outcome"] == Code.OK
    assert (second.counts[End.UNCHANGED], second.counts[End.FETCHED]) == (1, 1)


def test_a_host_with_many_urls_does_not_starve_one_with_few(tmp_path: Path) -> None:
    many = {f"{A}/{n}": page() for n in range(300)}
    few = {f"{B}/{n}": page() for n in range(10)}
    links = [*many, *few]  # the few come last
    site = web(**{f"{A}/": page(*links), **many, **few})

    crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"])

    last_of_few = max(when for when, url in site.asked if url.startswith(B))
    assert last_of_few < 5


def test_a_throttled_host_idles_nobody(tmp_path: Path) -> None:
    slow = {f"{A}/{n}": [reply(429, Retry_After="100"), page()] for n in range(5)}
    quick = {f"{B}/{n}": page() for n in range(100)}
    site = web(**{f"{A}/": page(*slow, *quick), **slow, **quick})

    done = crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"], rules=CrawlRules(slots=4))

    assert max(when for when, url in site.asked if url.startswith(B)) < 20
    assert len(done.fetched) == 106


def test_no_more_than_allowed_are_in_flight(tmp_path: Path) -> None:
    busy: dict[str, int] = {}
    most: dict[str, int] = {}
    links = [f"http://h{h}.example/{n}" for h in range(5) for n in range(30)]
    site = web(**{f"{A}/": page(*links), **{link: page() for link in links}})
    site.latency = 5.0

    class Counting:
        async def send(self, task: Task) -> Reply:
            for name in (task.host, "all"):
                busy[name] = busy.get(name, 0) + 1
                most[name] = max(most.get(name, 0), busy[name])
            try:
                return await site.send(task)
            finally:
                for name in (task.host, "all"):
                    busy[name] -= 1

    rules = CrawlRules(slots=8, per_host=2)
    crawl(tmp_path / "out", Counting(), f"{A}/", allow=[f"h{h}.example" for h in range(5)], rules=rules)

    assert most.pop("all") == 8
    assert max(most.values()) == 2


@pytest.mark.parametrize(
    "broken", ["http://[::1", "javascript:alert(1)", "http://user:pw@a.example/", "http://a b/", "x" * 3000]
)
def test_links_of_every_broken_kind_are_not_followed(tmp_path: Path, broken: str) -> None:
    done = crawl(tmp_path / "out", web(**{f"{A}/": page(broken, "/x"), f"{A}/x": page()}), f"{A}/")

    assert done.fetched == [f"{A}/", f"{A}/x"]


def test_other_kinds_are_kept_as_they_are(tmp_path: Path) -> None:
    site = web(
        **{
            f"{A}/": page("/j", "/t", "/b", "/bad"),
            f"{A}/j": reply(200, b'{"a": 1,\n "big": 12345678901234567890}', Content_Type="application/json"),
            f"{A}/t": reply(200, b"plain\ntext", Content_Type="text/plain"),
            f"{A}/b": reply(200, b"%PDF-1.7 \x00\xff", Content_Type="application/pdf"),
            f"{A}/bad": reply(200, b"{no json", Content_Type="application/json"),
        }
    )

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert done.row(f"{A}/j")["json"] == {"a": 1, "big": 12345678901234567890}
    assert done.row(f"{A}/t")["text"] == "plain\ntext"
    assert (tmp_path / "out" / done.row(f"{A}/b")["body_path"]).read_bytes() == b"%PDF-1.7 \x00\xff"
    assert done.row(f"{A}/bad")["text"] == "{no json"
    assert "JSON" in done.row(f"{A}/bad")["detail"]


def test_politeness_holds_across_the_whole_crawl(tmp_path: Path) -> None:
    """At most two a second: so no three within a second, robots.txt included."""
    site = web(**{f"{A}/": page(*(f"/{n}" for n in range(40))), **{f"{A}/{n}": page() for n in range(40)}})
    limits = LimiterRules(pace=PaceRules(initial_rps=2, max_rps=2))

    crawl(tmp_path / "out", site, f"{A}/", limits=limits)

    times = [when for when, _ in site.asked]
    assert min(later - earlier for earlier, later in zip(times, times[2:], strict=False)) > 0.9
