"""What a job may say beside where it begins: forms, hosts by wildcard, depths, other statuses; and what is wrong."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_api import API, Api, answer, api, run
from small_shop import SHOP, html

from sanderling import Job, JobReply, Page, Request
from sanderling.jobs.job import JobError, JobStartError
from sanderling.jobs.source import JobScope
from sanderling.task import Task


def test_a_form_is_sent_as_browsers_do(tmp_path: Path) -> None:
    world = Api(lambda task: answer({"type": dict(task.headers), "body": (task.body or b"").decode()}))
    job = Job("form", start=Request(f"{API}/search", form={"q": "a b&ü", "on": True, "tag": ["x", "y"], "no": None}))
    job.read(lambda reply: {"method": reply.request.method, **reply.json()})

    (record,) = run(job, tmp_path, world).records

    assert record["method"] == "POST"
    assert record["body"] == "q=a+b%26%C3%BC&on=true&tag=x&tag=y"
    assert record["type"]["Content-Type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("more", [{"json": {}}, {"body": b""}])
def test_a_request_has_one_body(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="more than one is given, expected one of them"):
        Request("/", form={"a": 1}, **more)


def test_a_header_is_a_text() -> None:
    with pytest.raises(TypeError, match="header A is 1, expected a text"):
        Request("/", headers={"A": 1})  # type: ignore[arg-type]


names = st.lists(st.sampled_from(["a", "b", "example"]), min_size=1, max_size=4).map(".".join)


@given(names, names)
def test_a_wildcard_stands_for_a_host_and_all_below_it(host: str, above: str) -> None:
    assert (host in JobScope([f"*.{above}"])) == (host == above or host.endswith(f".{above}"))
    assert (host in JobScope([above])) == (host == above)


def test_hosts_by_wildcard_are_asked_and_no_others(tmp_path: Path) -> None:
    urls = ["https://example.org/1", "https://a.b.example.org/2", "https://example.com/3", "https://badexample.org/4"]
    job = Job("wild", start=[*urls[:2], Request(urls[2]), urls[3]], hosts=("*.example.org",))
    job.read(lambda reply: {"url": reply.url})

    ran = run(job, tmp_path, api({url: {} for url in urls}))

    assert {each["url"] for each in ran.records} == set(urls[:2])
    assert {each["url"]: each["end"] for each in ran.failed} == dict.fromkeys(urls[2:], "left_out")


def deep(page: Page) -> Iterator[object]:
    yield {"depth": page.depth, "url": page.url}
    yield page.follow(f"/{int(page.url.rpartition('/')[2]) + 1}")


def test_a_page_knows_its_depth_and_a_job_goes_no_deeper_than_it_says(tmp_path: Path) -> None:
    job = Job("deep", start=f"{SHOP}/0", max_depth=2)
    job.page("/*")(deep)

    ran = run(job, tmp_path, api({f"{SHOP}/{each}": html("") for each in range(9)}))

    assert ran.records == [{"depth": each, "url": f"{SHOP}/{each}"} for each in range(3)]
    assert ran.run.functions.passed_over == {f"{SHOP}/3": 1}
    assert ran.failed == []


def test_a_page_function_reads_other_statuses_if_it_says_so(tmp_path: Path) -> None:
    def reply(task: Task) -> Any:  # noqa: ANN401 - a reply
        return answer(body=b"<h1>gone</h1>", status=410 if "old" in task.url else 404, Content_Type="text/html")

    job = Job("gone", start=[f"{SHOP}/old/1", f"{SHOP}/new/1"])
    job.page("/old/*", status=(404, 410))(lambda page: {"status": page.status, "h1": page.css("h1").text})
    job.page("/new/*")(deep)

    ran = run(job, tmp_path, Api(reply))

    assert ran.records == [{"status": 410, "h1": "gone"}]
    assert [each["url"] for each in ran.failed] == [f"{SHOP}/new/1"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Job("a", start="", rps="fast"), "rps of a is 'fast', expected a number above 0"),  # type: ignore[arg-type]
        (lambda: Job("a", start="", max_records=True), "max_records of a is True, expected a number above 0"),
        (lambda: Job("a", start="", max_depth=-1), "max_depth of a is -1, expected a whole number from 0"),
        (lambda: Job("a", start="").page(deep), "@job.page has no pattern, expected one, as in @job.page('/list/*')"),  # type: ignore[arg-type]
        (lambda: Job("a", start="").page("/", status=(429,)), "status of / has 429, expected 400 to 599, and not 401"),
        (lambda: Job("a", start="").page("/", status=(200,)), "status of / has 200, expected 400 to 599"),
    ],
)
def test_what_is_wrong_in_a_job_is_said(make: Callable[[], object], says: str) -> None:
    with pytest.raises(JobError) as error:
        make()

    assert says in str(error.value)


@pytest.mark.parametrize(
    ("start", "hosts", "says"),
    [
        (
            "http://a.example:9310/item/1",
            ("a.example",),
            "a.example:9310 is none of the job's hosts, expected one of a",
        ),
        (f"{SHOP}/list/1", (), f"{SHOP}/list/1 is no page of the job, expected one of /item/*"),
    ],
)
def test_a_start_that_cannot_be_is_said_without_a_line_of_ours(
    tmp_path: Path, start: str, hosts: tuple[str, ...], says: str
) -> None:
    job = Job("a", start=start, hosts=hosts)
    job.page("/item/*")(lambda _: None)

    with pytest.raises(JobStartError) as error:
        run(job, tmp_path, api({}))

    assert str(error.value).startswith(f"start of a: {says}")
    assert ".py:" not in str(error.value)
    assert error.value.code == 2


@pytest.mark.parametrize(
    "found", [lambda page: page.css("h1"), lambda page: page.css("h1")[0], lambda page: page.xpath("//h1")]
)
def test_an_element_in_a_record_is_named_with_its_field(tmp_path: Path, found: Callable[[Page], object]) -> None:
    job = Job("a", start=f"{SHOP}/")
    job.page("/")(lambda page: {"name": {"first": found(page)}, "texts": page.css("h1::text")})

    ran = run(job, tmp_path, api({f"{SHOP}/": html("<h1>a</h1>")}))

    said = "name.first is what a selector found, expected what it says: was .text forgotten?"
    assert f"record 1 is no JSON: {said}" in ran.failed[0]["detail"]


def test_a_reply_of_an_api_knows_its_depth_too(tmp_path: Path) -> None:
    job = Job("deep", start=f"{API}/0", max_depth=1)

    @job.read
    def read(reply: JobReply) -> Iterator[object]:
        yield {"depth": reply.depth}
        yield reply.follow(f"/{reply.depth + 1}")

    assert run(job, tmp_path, api({"/0": {}, "/1": {}, "/2": {}})).records == [{"depth": 0}, {"depth": 1}]
