"""Jobs of pages: functions by pattern, links to follow, robots.txt, records for each, and what goes wrong in a page."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from small_api import answer, api, run
from small_shop import EXAMPLE, LISTS, SHOP, html, items, shop, shop_job

from sanderling import Job, Page, Request
from sanderling.jobs.job import JobError
from sanderling.jobs.verify import verify_job
from sanderling.stores.frontier_rows import End

MOST_LINES = 10


def by_number(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=lambda each: each["number"])


def pages_job(function: Callable[..., Any], **options: Any) -> Job:  # noqa: ANN401 - of a job
    """A job of one page, which the function reads."""
    job = Job("pages", start=f"{SHOP}/", **options)
    job.page("/")(function)
    return job


def one(tmp_path: Path, job: Job, **pages: object) -> Any:  # noqa: ANN401 - what came of it
    found = {f"{SHOP}/": html("<h1>a</h1>"), **{f"{SHOP}/{path}": reply for path, reply in pages.items()}}
    return run(job, tmp_path / "out", api(found))


def test_a_shop_takes_ten_lines_and_obeys_robots_txt(tmp_path: Path) -> None:
    world = api(shop())

    ran = run(shop_job(), tmp_path / "out", world, rps=100)

    assert by_number(ran.records) == items(without=13)
    assert [(each["url"], each["end"]) for each in ran.failed] == [(f"{SHOP}/item/13", "refused")]
    assert ran.failed[0]["detail"] == "Disallow: /item/13$"
    assert sorted(world.urls) == sorted(set(world.urls))
    assert len(world.urls) == 1 + LISTS + 199
    assert ran.run.functions.passed_over == {f"{SHOP}/about": LISTS, "https://other.example/item/1": LISTS}
    assert ran.report.facts.passed_over == 2 * LISTS
    proof = verify_job(tmp_path / "out")
    assert proof.ok, proof.problems
    assert (proof.counts[End.FETCHED], proof.counts[End.REFUSED], proof.finished) == (219, 1, True)


def test_the_example_has_at_most_ten_lines_of_code() -> None:
    tree = ast.parse(EXAMPLE.read_text())
    for each in (tree, *tree.body):
        if isinstance(each, ast.Module | ast.FunctionDef):
            del each.body[0]  # what it says of itself
    code = ast.unparse(tree)

    assert len([line for line in code.splitlines() if line.strip()]) <= MOST_LINES


def test_it_goes_on_where_it_was_and_asks_for_robots_txt_no_second_time(tmp_path: Path) -> None:
    world = api(shop())

    stopped = run(shop_job(), tmp_path / "out", world, rps=100, stop_after=1.0)
    ran = run(shop_job(), tmp_path / "out", world, rps=100)

    assert not stopped.complete
    assert 0 < len(stopped.records) < 199
    assert by_number(ran.records) == items(without=13)
    assert world.urls.count(f"{SHOP}/robots.txt") == 1
    assert len(set(world.urls)) == len(world.urls)


def test_a_function_yields_records_links_and_requests_of_its_own(tmp_path: Path) -> None:
    job = Job("mixed", start=f"{SHOP}/")

    @job.page("/")
    async def home(page: Page) -> Any:  # noqa: ANN401
        yield {"at": page.url}
        yield "/b/1?x=2"
        yield page.follow(page.css("a")[0], data={"from": "home"})
        yield Request("/api", read="data", method="POST", json={"q": 1})

    @job.page("/b/{part}")
    def part(page: Page, part: str) -> dict[str, object]:
        return {"part": part, "data": page.data}

    @job.read
    def data(reply: Any) -> object:  # noqa: ANN401
        return reply.json()

    pages = {
        "": html("<base href='/b/'><a href=2>"),
        "b/1?x=2": html("1"),
        "b/2": html("2"),
        "api": answer({"api": True}),
    }
    world = api({f"{SHOP}/{path}": reply for path, reply in pages.items()})
    ran = run(job, tmp_path / "out", world)

    assert ran.failed == []
    assert sorted(ran.records, key=str) == sorted(
        [
            {"at": f"{SHOP}/"},
            {"part": "1", "data": None},
            {"part": "2", "data": {"from": "home"}},
            {"api": True},
        ],
        key=str,
    )


def test_a_redirect_is_followed_only_as_far_as_robots_txt_allows(tmp_path: Path) -> None:
    job = pages_job(lambda page: page.follow_all("a"), hosts=("shop.example", "www.shop.example"))
    job.page("/go/*")(go)
    world = api(
        {
            f"{SHOP}/": html("<a href=/go/1><a href=/go/2><a href=/go/3>"),
            f"{SHOP}/robots.txt": answer(body=b"User-agent: *\nDisallow: /secret"),
            f"{SHOP}/go/1": answer(status=302, Location="/secret/1"),
            f"{SHOP}/go/2": answer(status=302, Location="https://www.shop.example/2"),
            f"{SHOP}/go/3": answer(status=302, Location="https://www.shop.example/no"),
            "https://www.shop.example/robots.txt": answer(body=b"User-agent: *\nDisallow: /no"),
            "https://www.shop.example/2": html("two"),
        }
    )

    ran = run(job, tmp_path / "out", world)

    assert ran.records == [{"url": "https://www.shop.example/2"}]
    assert {each["url"]: each["end"] for each in ran.failed} == {f"{SHOP}/go/1": "refused", f"{SHOP}/go/3": "refused"}
    assert not [url for url in world.urls if "secret" in url or url.endswith("/no")]


def go(page: Page) -> dict[str, str]:
    return {"url": page.url}


def test_a_crawl_delay_is_kept(tmp_path: Path) -> None:
    pages = shop() | {f"{SHOP}/robots.txt": answer(body=b"User-agent: *\nCrawl-delay: 5")}

    ran = run(shop_job(), tmp_path / "out", api(pages), rps=100)

    assert by_number(ran.records) == items()
    assert ran.seconds > 219 * 5


def test_a_host_whose_robots_txt_is_unavailable_is_asked_for_nothing(tmp_path: Path) -> None:
    world = api({f"{SHOP}/robots.txt": answer(status=500), f"{SHOP}/": html("")})

    ran = run(pages_job(go), tmp_path / "out", world)

    assert not ran.complete
    assert set(world.urls) == {f"{SHOP}/robots.txt"}


def test_a_job_without_page_functions_asks_for_no_robots_txt(tmp_path: Path) -> None:
    job = Job("api", start=f"{SHOP}/api")
    job.read(lambda reply: reply.json())
    world = api({f"{SHOP}/api": {"a": 1}})

    assert run(job, tmp_path / "out", world).records == [{"a": 1}]
    assert world.urls == [f"{SHOP}/api"]


# Records.


def test_each_record_passes_through_plain_functions_in_order(tmp_path: Path) -> None:
    job = pages_job(lambda _: [{"price": " 1.5 "}, {"price": "free"}, {"price": "2"}])

    @job.each
    def clean(record: dict[str, Any]) -> None:
        record["price"] = record["price"].strip()

    @job.each
    def priced(record: dict[str, Any]) -> object:
        return job.drop if record["price"] == "free" else {"price": float(record["price"])}

    assert one(tmp_path, job).records == [{"price": 1.5}, {"price": 2.0}]


def test_a_mistake_in_a_function_for_each_is_the_error_of_its_record(tmp_path: Path) -> None:
    job = pages_job(lambda _: [{"a": 1}, {}])
    job.each(lambda record: {"b": record["a"]})

    ran = one(tmp_path, job)

    assert ran.records == [{"b": 1}]
    assert "record 2: KeyError: 'a' (test_page_jobs.py:" in ran.failed[0]["detail"]


class Price(msgspec.Struct):
    price: float


@dataclass
class Named:
    name: str


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Price(price="x"), "record 1 is no Price: Expected `float`, got `str`"),  # type: ignore[arg-type]
        (Named(name=None), "record 1 is no Named: Expected `str`, got `null`"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_its_own_type_is_the_error_of_its_page(tmp_path: Path, record: object, reason: str) -> None:
    ran = one(tmp_path, pages_job(lambda _: [record]))

    assert (ran.records, ran.failed[0]["outcome"]) == ([], "PARSE_ERROR")
    assert reason in ran.failed[0]["detail"]


def test_the_type_of_a_page_function_is_checked(tmp_path: Path) -> None:
    job = Job("typed", start=f"{SHOP}/")
    job.page("/", record=Price)(lambda page: {"price": page.css(".none").text})

    assert "record 1 is no Price: Expected `float`, got `null`" in one(tmp_path, job).failed[0]["detail"]


# What is wrong.


def bad_selector(page: Page) -> Iterator[object]:
    yield {"kept": False}
    yield {"x": page.css("a[").text}


def bad_xpath(page: Page) -> Iterator[object]:
    yield {"x": page.xpath("//a[").text}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (bad_selector, "ValueError: 'a[' is no CSS selector, expected one like 'div.price > b' (test_page_jobs.py:"),
        (bad_xpath, "ValueError: '//a[' is no XPath expression: Invalid expression (test_page_jobs.py:"),
        (lambda page: page.follow("mailto:a@b.example"), "has another scheme; expected https or http"),
        (lambda page: page.follow(page.css("h1")[0]), "has no href and no src, expected a link"),
        (lambda page: page.follow(page.css("a").attr("href")), "follow is given None: nothing was found, expected an"),
        (lambda page: page.follow(page.css("h1")), "follow is given a list of 1, expected an address or a link of"),
        (lambda page: page.follow_all(page.css("h1")), "follow_all is given a list of 1, expected a CSS selector"),
    ],
)
def test_what_is_wrong_in_a_page_is_its_row(tmp_path: Path, function: Callable[[Page], Any], reason: str) -> None:
    ran = one(tmp_path, pages_job(function))

    assert ran.records == []
    assert reason in ran.failed[0]["detail"]


@pytest.mark.parametrize("body", ["<div>" * 80_000, f"<div {' '.join(f'a{each}=1' for each in range(80_000))}>"])
def test_a_hostile_page_is_an_error_and_the_others_go_on(tmp_path: Path, body: str) -> None:
    job = Job("hostile", start=[f"{SHOP}/1", f"{SHOP}/2"])
    job.page("/*")(lambda page: {"h1": page.css("h1").text})
    world = api({f"{SHOP}/1": html(body), f"{SHOP}/2": html("<h1>fine</h1>")})

    ran = run(job, tmp_path / "out", world)

    assert ran.records == [{"h1": "fine"}]
    assert "the page is nested too deeply, or has too many tags or attributes" in ran.failed[0]["detail"]


@pytest.mark.parametrize(
    ("head", "sent"),
    [
        ("", "all"),
        ('<meta name="Robots" content="noindex, nofollow">', "all"),
        ('<meta name="sanderling" content="none">', "all"),
        ("", "nofollow"),
    ],
)
def test_follow_all_follows_what_links_are_there_to_follow(tmp_path: Path, head: str, sent: str) -> None:
    links = '<a href="/1">x</a><a href="/2" rel="sponsored NoFollow">y</a>'
    first = answer(body=f"{head}{links}".encode(), Content_Type="text/html", X_Robots_Tag=sent)
    job = pages_job(lambda page: {"links": page.links(), "all": [each.url for each in page.follow_all("a")]})

    ran = run(job, tmp_path / "out", api({f"{SHOP}/": first}))

    led = [] if head or sent != "all" else [f"{SHOP}/1"]
    assert ran.records == [{"links": led, "all": led}]


def test_a_body_that_is_no_page_has_no_elements(tmp_path: Path) -> None:
    job = pages_job(lambda page: {"h1": page.css("h1").text})
    world = api({f"{SHOP}/": answer(body=b"%PDF-1.4", Content_Type="application/pdf")})

    assert "the body is 'application/pdf', expected a page" in run(job, tmp_path / "out", world).failed[0]["detail"]


def test_a_start_that_is_no_page_of_the_job_is_said(tmp_path: Path) -> None:
    job = Job("nowhere", start=f"{SHOP}/about")
    job.page("/item/*")(go)

    with pytest.raises(JobError, match=r"about is no page of the job, expected one of /item/\*"):
        run(job, tmp_path / "out", api({}))


@pytest.mark.parametrize(
    ("declare", "says"),
    [
        (lambda job: job.page("item/*"), "expected one that begins with a slash, as in /shop/*"),
        (lambda job: job.page("/a/{b c}"), "has '{b c}', expected a name in it"),
        (lambda job: job.page("/a/{b}/{b}"), "has a name twice"),
        (lambda job: job.page("/a/{"), "has '{', expected a name in it"),
        (lambda job: job.page(7), "int"),
        (lambda job: job.page("/a/{b}")(go), "go reads /a/{b}, expected go(page, b)"),
        (lambda job: job.each(waits), "waits is async, expected a plain function for each record"),
    ],
)
def test_what_a_job_declares_wrongly_is_said_at_once(declare: Callable[[Job], object], says: str) -> None:
    with pytest.raises(JobError) as raised:
        declare(Job("wrong", start=SHOP))

    assert says in str(raised.value)


async def waits(record: object) -> object:
    return record


def test_a_wall_of_cookies_at_another_host_is_passed_and_a_loop_is_one(tmp_path: Path) -> None:
    other = "https://sso.shop.example"
    job = Job("pages", start=[f"{SHOP}/", f"{SHOP}/loop"], hosts=["shop.example", "sso.shop.example"])
    job.page("/**")(lambda page: {"title": page.css("h1").text})
    wall = answer(status=302, Location=f"{SHOP}/", Set_Cookie="sso=1; Domain=shop.example")
    first = answer(status=302, Location=f"{other}/in", Set_Cookie="try=1")
    pages = {
        f"{SHOP}/": [first, html("<h1>inside</h1>")],
        f"{other}/in": wall,
        f"{SHOP}/loop": answer(status=302, Location=f"{other}/loop"),
        f"{other}/loop": answer(status=302, Location=f"{SHOP}/loop", Set_Cookie="own=1"),
    }
    world = api(pages)

    ran = run(job, tmp_path / "out", world)

    assert ran.records == [{"title": "inside"}]
    assert "redirects, back to a page on the way" in ran.reasons[f"{SHOP}/loop"]
    last = next(task for task in reversed(world.asked) if task.url == f"{SHOP}/")
    assert dict(last.headers)["Cookie"] == "try=1; sso=1"
