"""Each row of the tables of a job and its decorators, and what is refused before anything is requested."""

from typing import Any

import pytest

from sanderling.crawl.auth import ApiKey, Basic, Bearer, FormLogin, Login, OAuth2
from sanderling.crawl.job import Job, JobError
from sanderling.crawl.paging import PageNumber
from sanderling.outcome import Code
from sanderling.redact import SecretError

START = "https://a.example/list/1"


def make(**fields: Any) -> Job:
    return Job("shop", **{"start": START, **fields})


def test_the_first_function_that_fits_a_page_reads_it() -> None:
    job = make()

    @job.page("/list/*")
    def listing(page: Any) -> None: ...

    @job.page("/{kind}/{number}", status=(404, 410))
    def item(page: Any, kind: str, number: str) -> None: ...

    assert job.function_for(START) == "listing"
    assert job.function_for("https://a.example/item/9") == "item"
    assert job.function_for("https://a.example/") is None
    assert (job.robots, job.functions["item"].status) == (True, frozenset({404, 410}))


def test_a_job_of_replies_is_for_an_api_that_one_may_request() -> None:
    job = make(robots=None)

    @job.read
    async def posts(reply: Any) -> None: ...

    @job.read(record=dict)
    def detail(reply: Any) -> None: ...

    assert not job.robots
    assert [each.is_async for each in job.functions.values()] == [True, False]
    job.check()


def test_what_a_function_after_each_reply_may_say() -> None:
    job = make()

    assert job.missing().code is Code.CONTENT_NOT_FOUND
    assert (job.refused(3).code, job.refused(3).retry_after) == (Code.RATE_LIMITED, 3)
    assert job.failed("why").detail == "why"


WRONG: dict[str, Any] = {
    "a name with spaces": lambda: Job("a b", start=START),
    "an unknown host": lambda: make(hosts="a b"),
    "no requests a second": lambda: make(rps=0),
    "a budget that is none": lambda: make(max_requests=True),
    "a depth below 0": lambda: make(max_depth=-1),
    "an argument of another type": lambda: make(arguments={"a": [1]}),
    "a pattern without a slash": lambda: make(only=["blog/**"]),
    "a pattern that is no text": lambda: make(skip=[1]),
    "paging that is none": lambda: make(paging="page"),
    "auth that is none": lambda: make(auth="token"),
    "no function": lambda: make().check(),
    "a lambda": lambda: make().read(lambda reply: reply),
    "a pattern that is forgotten": lambda: make().page(test_job_is_shown),  # type: ignore[arg-type]
    "a status that is for us": lambda: make().page("/a", status=(429,)),
    "names that are not taken": lambda: make().page("/{a}")(lambda page: page),
    "an async function for each": lambda: make().each(_waits),
}


async def _waits(record: object) -> None: ...


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_job_is_refused(case: str) -> None:
    with pytest.raises(JobError, match="expected"):
        WRONG[case]()


def test_a_name_twice_and_a_first_function_that_is_not_there() -> None:
    job = make(read="nobody")
    job.read(one := _named("one"))

    with pytest.raises(JobError, match="two functions"):
        job.read(one)
    with pytest.raises(JobError, match="nobody"):
        job.check()


def _named(name: str) -> Any:
    def function(reply: Any) -> None: ...

    function.__name__ = name
    return function


def test_job_is_shown() -> None:
    assert repr(make(paging=PageNumber())) == "<Job shop: >"


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, 3), ({"n": "4"}, 4), ({"n": 5}, 5)],
)
def test_arguments_are_read_as_the_type_of_their_default(given: dict[str, object], expected: int) -> None:
    assert make(arguments={"n": 3, "on": True}).arguments_with(given)["n"] == expected


@pytest.mark.parametrize(
    "given", [{"m": 1}, {"n": "x"}, {"n": 1.5}, {"on": "maybe"}, {"r": "nan"}, {"r": float("inf")}]
)
def test_wrong_arguments_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(JobError, match="argument"):
        make(arguments={"n": 3, "on": True, "r": 1.0}).arguments_with(given)


SECRET = "env:TOKEN"
WRONG_AUTH: dict[str, Any] = {
    "a literal key": lambda: ApiKey("X-Key", "k123456"),
    "a literal token": lambda: Bearer("k123456"),
    "a literal password": lambda: Basic("ann", "p123456"),
    "a name with spaces": lambda: ApiKey("X Key", SECRET),
    "another place": lambda: ApiKey("X-Key", SECRET, "body"),  # type: ignore[arg-type]
    "no address of tokens": lambda: OAuth2("token", "id", SECRET),
    "a life without an end": lambda: OAuth2("https://a.example/t", "id", SECRET, expires_in=float("inf")),
    "json and form": lambda: Login("https://a.example/t", "body.t", json={}, form={}),
    "a token from nowhere": lambda: Login("https://a.example/t", "t", json={}),
    "no fields": lambda: FormLogin("https://a.example/t", {}),
}


@pytest.mark.parametrize("case", WRONG_AUTH)
def test_wrong_auth_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        WRONG_AUTH[case]()


def test_auth_shows_no_secret_and_names_all() -> None:
    auth = Login("https://a.example/t", "body.t", json={"user": "env:A", "deep": [{"p": "file:/x"}]})

    assert repr(auth) == "Login()"
    assert [each.source for each in auth.secrets()] == ["env:A", "file:/x"]
    with pytest.raises(SecretError):
        auth.secrets()[0].reveal()


def test_the_page_of_a_form_is_known_whatever_its_query() -> None:
    form = FormLogin("https://a.example/login", {"user": SECRET})

    assert form.is_page("https://a.example/login/?next=/a")
    assert not form.is_page("https://a.example/logout")
