from dataclasses import replace

import pytest

from sanderling.ids import HostError
from sanderling.task import Blame, Headers, Reply, Task

URL = "https://API.example.com:443/items?page=2"


def reply(headers: Headers = (), status: int = 200) -> Reply:
    return Reply(status=status, headers=headers, body=b"{}", url=URL, latency=0.25)


def test_a_task_knows_its_host_under_its_one_spelling() -> None:
    assert Task(URL).host == "api.example.com"


def test_a_url_without_a_host_is_no_task() -> None:
    with pytest.raises(HostError):
        Task("mailto:someone")


def test_the_next_attempt_differs_only_in_its_number() -> None:
    first = Task(URL, method="POST", headers=(("Accept", "text/plain"),), body=b"x")

    third = first.again().again()

    assert (first.attempt, third.attempt) == (1, 3)
    assert replace(third, attempt=1) == first
    assert third.host == first.host


@pytest.mark.parametrize("url", ["https://a.example/x y", "https://a.example/x\r\nHost: b", "https://a.example/\x7f"])
def test_a_url_that_would_break_the_request_line_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"url for a\.example"):
        Task(url)


@pytest.mark.parametrize("method", ["", "get", "GET /", "GÉT", "GET\n"])
def test_a_method_is_a_word_in_capitals(method: str) -> None:
    with pytest.raises(ValueError, match=r"method for api\.example\.com"):
        Task(URL, method=method)


def test_attempts_count_from_one() -> None:
    with pytest.raises(ValueError, match="attempt for"):
        Task(URL, attempt=0)


@pytest.mark.parametrize("name", ["", "X Key", "X:", "X\r\nY"])
def test_a_header_name_that_would_break_the_request_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="header name"):
        Task(URL, headers=((name, "value"),))


@pytest.mark.parametrize("end", ["\r", "\n", "\0"])
def test_a_header_value_that_would_begin_another_is_refused_without_being_told(end: str) -> None:
    with pytest.raises(ValueError, match="header X-API-Key") as caught:
        Task(URL, headers=(("X-API-Key", f"hunter2{end}X: y"),))

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["Authorization", "COOKIE", "x-api-key", "Proxy-Authorization", "Set-Cookie"])
def test_a_repr_never_shows_a_secret(name: str) -> None:
    headers = ((name, "hunter2"), ("Accept", "text/plain"))

    for shown in (repr(Task(URL, headers=headers)), repr(reply(headers))):
        assert "hunter2" not in shown
        assert f"{name}: '***'" in shown
        assert "Accept: 'text/plain'" in shown


def test_a_repr_never_shows_what_is_said_to_be_secret() -> None:
    task = Task(f"{URL}&k=hunter2&page=3", headers=(("Who", "hunter2"),), secrets=frozenset({"who", "k"}))

    assert "hunter2" not in repr(task)
    assert "page=3" in repr(task)


def test_a_repr_says_how_long_a_body_is_and_not_what_is_in_it() -> None:
    assert repr(Task(URL, method="POST", body=b"password=x")) == f"<Task POST {URL} attempt=1 body=10B>"
    assert repr(Task(URL)) == f"<Task GET {URL} attempt=1>"
    assert repr(reply()) == f"<Reply 200 {URL} latency=0.250s body=2B>"


def test_headers_are_found_in_any_case_and_the_first_one_counts() -> None:
    answer = reply((("Retry-After", "5"), ("retry-after", "9")))

    assert answer.header("RETRY-AFTER") == "5"
    assert answer.header("ETag") is None


@pytest.mark.parametrize("status", [0, 99, 1000])
def test_a_status_has_three_digits(status: int) -> None:
    with pytest.raises(ValueError, match="expected three digits"):
        reply(status=status)


def test_an_odd_status_is_still_a_reply() -> None:
    """Real hosts say 999; what that means is for the classifier to decide."""
    assert reply(status=999).status == 999


def test_whom_a_failure_is_blamed_on_takes_no_part_in_comparing_and_stays_over_a_retry() -> None:
    task = Task("http://a.example/", blame=Blame("item", 3))

    assert task == Task("http://a.example/")
    assert task.again().blame == Blame("item", 3), "whether it failed is for the caller to say"
