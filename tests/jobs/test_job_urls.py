"""However an address is spelled, a job of pages asks robots.txt about what the server would read, and asks once."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_api import API, Ran, answer, api, run
from small_shop import SHOP, html

from sanderling import Job, JobReply, Page, Request
from sanderling.jobs.verify import verify_job
from sanderling.pages.urls import normalise

ROBOTS = answer(body=b"User-agent: *\nDisallow: /private/\n", Content_Type="text/plain")
SECRET = "/private/x.html"  # noqa: S105 - a path


@st.composite
def spellings(draw: st.DrawFn, path: str = SECRET) -> str:
    """The path with letters escaped and dot segments put in."""
    parts = []
    for segment in path.split("/")[1:]:
        parts += draw(st.sampled_from([[], [], ["."], ["p", ".."], ["%2e"], ["p", "%2E%2e"], ["p", ".%2E"]]))
        letters = [draw(st.sampled_from([each, f"%{ord(each):02x}", f"%{ord(each):02X}"])) for each in segment]
        parts.append("".join(letters))
    slash = draw(st.sampled_from(["/", "\\"]))
    return slash + draw(st.sampled_from(["/", slash])).join(parts)


def everything(**options: object) -> Job:
    """A job that keeps the address of every page, and follows all that the first names."""
    job = Job("every", start=f"{SHOP}/", **options)  # type: ignore[arg-type] # of a job

    @job.page("/**")
    def each(page: Page) -> Iterator[object]:
        yield {"url": page.url}
        yield from page.follow_all("a")

    return job


def private(urls: list[str]) -> list[str]:
    return [url for url in urls if "/private" in unquote(urlsplit(normalise(url)).path)]


def visit(href: str, **more: object) -> tuple[Ran, list[str]]:
    """What came of a job whose first page has a link."""
    world = api({f"{SHOP}/robots.txt": ROBOTS, f"{SHOP}/": html(f'<a href="{href}">x</a>'), **more})
    with TemporaryDirectory() as folder:
        return run(everything(), Path(folder), world, rps=100), world.urls


@settings(max_examples=60, deadline=None)
@given(spellings())
def test_no_spelling_of_a_link_leads_past_robots_txt(href: str) -> None:
    ran, asked = visit(href)

    assert private(asked) == []
    assert [(each["url"], each["end"]) for each in ran.failed] == [(SHOP + SECRET, "refused")]


@settings(max_examples=40, deadline=None)
@given(spellings().filter(lambda path: "\\" not in path))
def test_nor_does_one_of_a_redirect(location: str) -> None:
    ran, asked = visit("/moved", **{f"{SHOP}/moved": answer(status=302, Location=SHOP + location)})

    assert private(asked) == []
    assert [(each["url"], each["end"]) for each in ran.failed] == [(f"{SHOP}/moved", "refused")]


@pytest.mark.parametrize("path", ["/%70rivate/x.html", "/p/../private/x.html", "/p/%2e%2e/private/x.html"])
def test_nor_does_one_of_start_or_of_a_request_or_of_a_function_before(tmp_path: Path, path: str) -> None:
    world = api({f"{SHOP}/robots.txt": ROBOTS})
    job = Job("every", start=[Request(SHOP + path, priority=1), f"{SHOP}/a", f"{SHOP}/b"])
    job.page("/**")(lambda page: Request(SHOP + path, key=page.url))
    job.before(lambda request: request.replace(url=SHOP + path) if request.url.endswith("/b") else None)
    world.answers = lambda task: ROBOTS if "robots" in task.url else html("<h1>a</h1>")

    ran = run(job, tmp_path, world)

    assert private(world.urls) == []
    assert [each["end"] for each in ran.failed] == ["refused"] * 3


@settings(max_examples=40, deadline=None)
@given(spellings("/item/9"))
def test_all_spellings_of_an_address_are_one_request(href: str) -> None:
    page = html(f'<a href="{href}">x</a><a href="/item/9?#top">y</a><a href="HTTPS://SHOP.example:0443/item/9">z</a>')
    ran, asked = visit(href, **{f"{SHOP}/": page, f"{SHOP}/item/9": html("<h1>9</h1>")})

    assert ran.records == [{"url": f"{SHOP}/"}, {"url": f"{SHOP}/item/9"}]
    assert len(asked) == 3


@settings(max_examples=40, deadline=None)
@given(spellings("/item/9"), st.booleans())
def test_so_they_are_in_start_and_in_what_functions_yield(path: str, as_request: bool) -> None:  # noqa: FBT001 - drawn
    odd = f"HTTPS://Shop.example:0443{path}"
    job = Job("every", start=[f"{SHOP}/item/9", odd, Request(odd)])

    @job.page("/**")
    def each(page: Page) -> Iterator[object]:
        yield {"url": page.url}
        yield Request(path) if as_request else path

    world = api({f"{SHOP}/item/9": html("")})
    with TemporaryDirectory() as folder:
        assert run(job, Path(folder), world).records == [{"url": f"{SHOP}/item/9"}]
    assert world.urls == [f"{SHOP}/robots.txt", f"{SHOP}/item/9"]


def test_a_backslash_is_a_slash_but_in_a_query(tmp_path: Path) -> None:
    job = Job("api", start="HTTPS://api.example/a")

    @job.read
    def read(reply: JobReply) -> Iterator[object]:
        yield {"url": reply.url}
        if reply.url.endswith("/a"):
            yield reply.follow("\\b\\c?d=\\e")

    ran = run(job, tmp_path, api({"/a": {}, "/b/c?d=%5Ce": {}}))

    assert ran.records == [{"url": f"{API}/a"}, {"url": f"{API}/b/c?d=%5Ce"}]


def test_an_address_of_many_characters_is_asked_for_as_ever(tmp_path: Path) -> None:
    far = f"{SHOP}/item/1?q={'a' * 15_000}"
    job = everything()
    job.start = far

    assert run(job, tmp_path, api({far: html("")})).records == [{"url": far}]


LEADS = {
    "/r1": "/item/7",
    "/r2": "/item/7",
    "/r3": "/r1",
    "/r4": "/item/7?b=2&a=1",
    "/item/7?a=1&b=2": "/item/7?b=2&a=1",
}


def moving(leads: dict[str, str], **options: object) -> Job:
    """A job that keeps the address of every page; the first leads to these."""
    job = everything(**options)
    job.start = [f"{SHOP}{each}" for each in leads]
    return job


def moved_world() -> dict[str, object]:
    found = {f"{SHOP}{each}": answer(status=302, Location=to) for each, to in LEADS.items()}
    return {**found, f"{SHOP}/item/7": html("7"), f"{SHOP}/item/7?b=2&a=1": html("7 b a")}


@settings(max_examples=60, deadline=None)
@given(st.permutations([*LEADS, "/item/7"]), st.floats(0.1, 2.0))
def test_a_page_that_redirects_lead_to_is_kept_once(paths: list[str], after: float) -> None:
    with TemporaryDirectory() as folder:
        for stop in (after, None):
            job = moving(dict.fromkeys(paths, ""))
            ran = run(job, Path(folder), api(moved_world()), rps=5, stop_after=stop)
        proof = verify_job(Path(folder))

    assert sorted(each["url"] for each in ran.records) == [f"{SHOP}/item/7", f"{SHOP}/item/7?b=2&a=1"]
    assert ran.run.records == 2
    assert ran.failed == []
    assert proof.ok, proof.problems


def test_a_link_found_later_to_where_a_redirect_led_is_known(tmp_path: Path) -> None:
    first = html('<a href="/item/7">x</a>')
    world = api(
        {
            f"{SHOP}/": answer(status=301, Location="/home"),
            f"{SHOP}/home": first,
            f"{SHOP}/item/7": html('<a href="/home">home</a>'),
        }
    )

    ran = run(everything(), tmp_path, world)

    assert [each["url"] for each in ran.records] == [f"{SHOP}/home", f"{SHOP}/item/7"]
    assert world.urls.count(f"{SHOP}/home") == 1


def test_a_redirect_to_what_has_failed_is_kept_and_one_with_a_key_of_its_own_too(tmp_path: Path) -> None:
    flaky = [answer(status=410), html("7")]
    world = api({f"{SHOP}/item/7": flaky, f"{SHOP}/r1": answer(status=302, Location="/item/7")})
    job = Job("keyed", start=[f"{SHOP}/item/7", f"{SHOP}/r1", Request(f"{SHOP}/r1", key="once more")])
    job.page("/**")(lambda page: {"asked": page.request.url})

    ran = run(job, tmp_path, world, rps=1)

    assert ran.records == [{"asked": f"{SHOP}/r1"}] * 2
    assert [each["url"] for each in ran.failed] == [f"{SHOP}/item/7"]
