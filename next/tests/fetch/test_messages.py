"""JSON in whichever charset, headers that HTTP does not allow, and the tables of hosts."""

import pytest

from sanderling.fetch import HttpRequest, HttpResponse, RequestOptions, limiter_for
from sanderling.fetch.classify import of_response
from sanderling.fetch.messages import in_utf8
from sanderling.limit import LimitOptions
from sanderling.options import OptionError
from sanderling.outcome import Code, Outcome
from sanderling.redact import Secret

TEXT = '{"naïve": "Ÿ €"}'


@pytest.mark.parametrize(
    "charset", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_json_in_every_form_of_unicode(charset: str) -> None:
    assert in_utf8(TEXT.encode(charset), "application/json").decode() == TEXT
    assert in_utf8("1".encode(charset), "application/json") == b"1"


@pytest.mark.parametrize(
    ("body", "label", "text"),
    [
        (TEXT.encode("cp1252"), "application/json; charset=windows-1252", TEXT),
        ('"é"'.encode("latin-1"), 'application/json;charset="ISO-8859-1"', '"é"'),
        ('"é"'.encode(), "application/json; charset=iso-8859-1", '"é"'),
        ('"日本"'.encode("shift_jis"), "application/json; charset=Shift_JIS", '"日本"'),
        (b"{}", "application/json; charset=no-such", "{}"),
        (b"", "", ""),
    ],
)
def test_json_in_what_the_server_says(body: bytes, label: str, text: str) -> None:
    assert in_utf8(body, label).decode() == text


@pytest.mark.parametrize("label", ["punycode", "unicode_escape", "hex", "no-such", "idna", "x" * 100_000])
def test_charsets_that_nobody_should_decode(label: str) -> None:
    with pytest.raises(ValueError, match=r"charset|utf") as caught:
        in_utf8(b'"\xff"', f"application/json; charset={label}")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A B", "x"),
        ("", "x"),
        ("A", "x\r\nB: y"),
        ("A", "x\0"),
        ("Host", "other.example"),
        ("Content-Length", "3"),
        ("é", "x"),
    ],
)
def test_headers_that_are_none_are_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="header"):
        HttpRequest("https://example.org/", headers=((name, value),))


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (200, (), Outcome(Code.OK, 200)),
        (304, (), Outcome(Code.NOT_MODIFIED, 304)),
        (301, (("location", "/x"),), Outcome(Code.OK, 301)),
        (301, (), Outcome(Code.HTTP_ERROR, 301)),
        (300, (("location", "/x"),), Outcome(Code.HTTP_ERROR, 300)),
        (401, (), Outcome(Code.AUTH_FAILED, 401)),
        (403, (), Outcome(Code.ACCESS_DENIED, 403)),
        (404, (), Outcome(Code.CONTENT_NOT_FOUND, 404)),
        (408, (), Outcome(Code.TIMEOUT, 408)),
        (410, (), Outcome(Code.CONTENT_REMOVED, 410)),
        (418, (), Outcome(Code.HTTP_ERROR, 418)),
        (429, (), Outcome(Code.RATE_LIMITED, 429)),
        (451, (), Outcome(Code.CONTENT_UNAVAILABLE, 451)),
        (500, (), Outcome(Code.HOST_UNAVAILABLE, 500)),
        (500, (("Retry-After", "7"),), Outcome(Code.HOST_UNAVAILABLE, 500, retry_after=7.0)),
        (503, (("Retry-After", "7"),), Outcome(Code.RATE_LIMITED, 503, retry_after=7.0)),
        (503, (("Retry-After", "soon"),), Outcome(Code.HOST_UNAVAILABLE, 503)),
        (200, (("retry-after", "3"), ("RETRY-AFTER", "9")), Outcome(Code.OK, 200, retry_after=9.0)),
        (429, (("Retry-After", "Fri, 15 Jan 2027 08:00:30 GMT"),), Outcome(Code.RATE_LIMITED, 429, retry_after=30.0)),
        (
            *(429, (("Retry-After", "Fri, 15 Jan 2027 08:00:30 GMT"), ("Date", "Fri, 15 Jan 2027 08:00:20 GMT"))),
            Outcome(Code.RATE_LIMITED, 429, retry_after=10.0),
        ),
        (999, (), Outcome(Code.HTTP_ERROR, 999)),
    ],
)
def test_what_a_response_means(status: int, headers: tuple[tuple[str, str], ...], outcome: Outcome) -> None:
    assert of_response(status, headers, 1_800_000_000.0) == outcome


def test_the_pattern_that_says_most_counts_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "very secret")
    options = RequestOptions.from_table(
        {
            "hosts": {
                "*": {"headers": {"Accept-Language": "de", "X-Key": "all"}, "cookies": False},
                "*.Example.org": {"bearer": "env:API_KEY", "rps": 2, "headers": {"x-key": "some"}},
                "api.example.org": {"user": "me", "password": "env:API_KEY", "cookies": True},
            }
        },
        "sanderling.toml",
    )

    api, other, far = map(options.of_host, ("api.example.org:8443", "www.example.org", "far.example"))
    assert dict(other.sent()) == {"Accept-Language": "de", "x-key": "some", "Authorization": "Bearer very secret"}
    assert dict(api.sent())["Authorization"] == "Basic bWU6dmVyeSBzZWNyZXQ="
    assert (api.cookies, other.cookies, far.cookies) == (True, False, False)
    assert (api.has_secrets, far.has_secrets) == (True, False)
    assert dict(far.sent()) == {"Accept-Language": "de", "X-Key": "all"}
    assert "very secret" not in repr(options)


def test_the_limiter_is_made_of_the_same_options() -> None:
    limiter = limiter_for(RequestOptions(rps=0.5, policy="fixed", hosts={"*.slow.example": {"rps": 0.01}}))

    assert (limiter.policy, limiter.limits.max_rps) == ("fixed", 0.5)
    for host, wait in (("a.slow.example", 100.0), ("example.org", 2.0)):
        assert limiter.try_acquire(host) is not None
        while limiter.try_acquire(host) is not None:
            pass
        assert limiter.ready_at(host) - limiter._now() == pytest.approx(wait, rel=0.1)


@pytest.mark.parametrize(
    "table",
    [
        {"contact": "who"},
        {"contact": "ftp://x"},
        {"contact": "https://x.example/(a)"},
        {"rps": 0},
        {"policy": "fast"},
        {"hosts": {"https://example.org/": {}}},
        {"hosts": {"a b": {}}},
        {"hosts": {"h.example": {"headers": {"A B": "x"}}}},
        {"hosts": {"h.example": {"headers": {"A": "x\ny"}}}},
        {"hosts": {"h.example": {"headers": {"Host": "x"}}}},
        {"hosts": {"h.example": {"bearer": "literal"}}},
        {"hosts": {"h.example": {"user": "me"}}},
        {"hosts": {"h.example": {"bearer": "env:A", "user": "me", "password": "env:B"}}},
        {"hosts": {"h.example": {"proxy": "socks5://proxy.example"}}},
        {"hosts": {"h.example": {"proxy": "proxy.example:3128"}}},
        {"hosts": {"h.example": {"headres": {}}}},
        {"limits": {"max_rps": -1}},
    ],
    ids=str,
)
def test_bad_options_are_said_to_be_so(table: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        RequestOptions.from_table(table, "sanderling.toml")


def test_a_proxy_with_a_password_is_told_it_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY", "http://me:secret@proxy.example:3128")
    options = RequestOptions(hosts={"*": {"proxy": Secret("env:PROXY")}})

    address, headers = options.of_host("example.org").through()
    assert (address, headers[0][0]) == ("http://proxy.example:3128", "Proxy-Authorization")


def test_a_header_is_found_in_whichever_case_the_first_of_them() -> None:
    response = HttpResponse(Outcome(Code.OK, 200), "https://a.example/", headers=(("X-A", "1"), ("x-a", "2")))

    assert (response.header("x-A"), response.header("x-b")) == ("1", None)


def test_limits_that_are_not_enabled_pace_nothing() -> None:
    assert limiter_for(RequestOptions(limits=LimitOptions(enabled=False))).policy == "none"
    assert limiter_for(RequestOptions(policy="aimd")).policy == "aimd"
