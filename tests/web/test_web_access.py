"""Who is let in: by token, or from this machine and not from a stranger's page."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy
from structlog.testing import capture_logs

from sanderling.testing import FakeClock
from sanderling.web.access import (
    HOOK_HEADER,
    VARIABLE,
    Access,
    AccessError,
    Caller,
    Token,
    check_local,
    is_loopback,
    token_from,
)
from sanderling.web.problems import ProblemError

SECRET = "correct-horse-battery"  # noqa: S105 - it opens nothing


def caller(*headers: tuple[str, str], peer: str = "127.0.0.1") -> Caller:
    return Caller(peer, CIMultiDictProxy(CIMultiDict(headers)))


def refusal(access: Access, who: Caller, *, everyone: bool = False, hook: bool = False) -> ProblemError | None:
    try:
        access.check(who, everyone=everyone, hook=hook)
    except ProblemError as error:
        return error
    return None


def by_token() -> Access:
    return Access(Token(SECRET), FakeClock())


@pytest.mark.parametrize("text", ["", "fifteen-letters", "x" * 1025])
def test_a_token_must_be_long_enough_and_not_endless(text: str) -> None:
    with pytest.raises(AccessError, match=f"the token has {len(text)} characters, expected 16 to 1024"):
        Token(text)


@pytest.mark.parametrize(
    "text", ["has a space in it all", "has-a-newline-in-it\n", "hat-ein-ü-in-der-mitte", "tab\there-and-enough"]
)
def test_a_token_must_fit_into_a_header(text: str) -> None:
    with pytest.raises(AccessError) as caught:
        Token(text)

    assert text not in str(caught.value)


def test_a_token_shows_nothing_of_itself() -> None:
    token = Token(SECRET)

    assert SECRET not in repr(token)
    assert SECRET not in repr(Access(token, FakeClock()))
    assert not hasattr(token, "__dict__")
    assert SECRET.encode() not in [getattr(token, name) for name in Token.__slots__]


@given(st.text(max_size=40))
def test_only_the_token_equals_the_token(given_text: str) -> None:
    assert Token(SECRET).equals(given_text) == (given_text == SECRET)


def test_a_token_of_bytes_that_are_no_text_is_just_wrong() -> None:
    assert not Token(SECRET).equals(b"\xff\xfe".decode("utf-8", "surrogateescape"))


def test_the_token_comes_from_the_environment() -> None:
    assert token_from({}) is None
    assert token_from({VARIABLE: "  "}) is None

    token = token_from({VARIABLE: f"{SECRET}\n"})

    assert token is not None
    assert token.equals(SECRET)
    with pytest.raises(AccessError, match=f"{VARIABLE} has 5 characters"):
        token_from({VARIABLE: "short"})


def test_the_token_comes_from_a_file_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")

    token = token_from({VARIABLE: "another-token-altogether"}, file)

    assert token is not None
    assert token.equals(SECRET)


@pytest.mark.parametrize("content", [b"", b"\n", b"short", b"\xff" * 40, b"x" * 100_000])
def test_a_file_without_a_usable_token_is_an_error_and_not_an_open_door(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)

    with pytest.raises(AccessError, match=str(file)):
        token_from({}, file)


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="none: No such file"):
        token_from({}, tmp_path / "none")


@pytest.mark.parametrize("value", [f"Bearer {SECRET}", f"bearer {SECRET}", f"BEARER   {SECRET} "])
def test_the_holder_of_the_token_passes(value: str) -> None:
    assert refusal(by_token(), caller(("Authorization", value), peer="203.0.113.9")) is None


@pytest.mark.parametrize(
    ("headers", "found", "challenge"),
    [
        ([], "no token", 'Bearer realm="sanderling"'),
        ([("Authorization", "Bearer wrong")], "a wrong token", 'Bearer realm="sanderling", error="invalid_token"'),
        ([("Authorization", f"Basic {SECRET}")], "a wrong token", 'Bearer realm="sanderling", error="invalid_token"'),
        ([("Authorization", SECRET)], "a wrong token", 'Bearer realm="sanderling", error="invalid_token"'),
        ([("Authorization", "Bearer")], "a wrong token", 'Bearer realm="sanderling", error="invalid_token"'),
        ([("Authorization", f"Bearer {SECRET}x")], "a wrong token", 'Bearer realm="sanderling", error="invalid_token"'),
        (
            [("Authorization", f"Bearer {SECRET}"), ("Authorization", "Bearer other")],
            "a wrong token",
            'Bearer realm="sanderling", error="invalid_token"',
        ),
        ([(HOOK_HEADER, SECRET)], "no token", 'Bearer realm="sanderling"'),
    ],
)
def test_nobody_else_passes_and_all_are_told_how(headers: list[tuple[str, str]], found: str, challenge: str) -> None:
    error = refusal(by_token(), caller(*headers))

    assert error is not None
    assert error.problem.status == 401
    assert error.problem.detail.startswith(f"found {found}, expected")
    assert error.headers == {"WWW-Authenticate": challenge}


def test_a_hook_may_bring_the_token_in_a_header_of_its_own() -> None:
    access = by_token()

    assert refusal(access, caller((HOOK_HEADER, SECRET)), hook=True) is None
    assert refusal(access, caller((HOOK_HEADER, "wrong")), hook=True) is not None
    assert refusal(access, caller((HOOK_HEADER, SECRET), ("Authorization", "Bearer wrong")), hook=True) is not None
    assert refusal(access, caller((HOOK_HEADER, SECRET)), hook=False) is not None


def test_a_route_for_everyone_needs_no_token() -> None:
    assert refusal(by_token(), caller(peer="203.0.113.9"), everyone=True) is None


def test_a_route_for_everyone_is_for_everyone_on_this_machine_where_there_is_no_token() -> None:
    access = Access(None, FakeClock())

    assert refusal(access, caller(("Host", "localhost")), everyone=True) is None
    assert refusal(access, caller(("Host", "localhost"), peer="203.0.113.9"), everyone=True) is not None


def test_guesses_are_logged_in_one_line_for_many_and_without_the_token() -> None:
    clock = FakeClock()
    access = Access(Token(SECRET), clock)
    guess = caller(("Authorization", "Bearer guess-number-one"), peer="203.0.113.9")

    with capture_logs() as lines:
        for _ in range(100):
            refusal(access, guess)
        clock.advance(10)
        refusal(access, guess)

    assert [line["attempts"] for line in lines] == [1, 100]
    assert [line["last_peer"] for line in lines] == ["203.0.113.9"] * 2
    assert "guess" not in str(lines)


def test_who_brings_no_token_at_all_is_not_logged() -> None:
    with capture_logs() as lines:
        refusal(by_token(), caller())

    assert lines == []


OURS = ("Host", "127.0.0.1:8080")


@pytest.mark.parametrize(
    "headers",
    [
        [OURS],
        [("Host", "localhost")],
        [("Host", "LocalHost:1")],
        [("Host", "[::1]")],
        [("Host", "[::1]:8080")],
        [("Host", "127.0.0.2:8080")],
        [("Host", "[::ffff:127.0.0.1]")],
        [OURS, ("Origin", "http://127.0.0.1:8080")],
        [("Host", "localhost:99"), ("Origin", "HTTP://LOCALHOST:99")],
        [OURS, ("Sec-Fetch-Site", "same-origin")],
        [OURS, ("Sec-Fetch-Site", "none")],
    ],
)
@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_without_a_token_programs_on_this_machine_pass(headers: list[tuple[str, str]], peer: str) -> None:
    check_local(caller(*headers, peer=peer))


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([], id="no Host"),
        pytest.param([("Host", "")], id="an empty one"),
        pytest.param([OURS, OURS], id="two"),
        pytest.param([OURS, ("Host", "evil.example")], id="a second one"),
        pytest.param([("Host", "evil.example")], id="DNS rebinding"),
        pytest.param([("Host", "evil.example:8080")], id="DNS rebinding with a port"),
        pytest.param([("Host", "localhost.evil.example")], id="a name that begins like ours"),
        pytest.param([("Host", "evil.example:127.0.0.1")], id="a port that is none"),
        pytest.param([("Host", "127.0.0.1.nip.io")], id="a name that resolves to us"),
        pytest.param([("Host", "localhost.")], id="a dot"),
        pytest.param([("Host", "0.0.0.0")], id="all addresses"),  # noqa: S104
        pytest.param([("Host", "::1")], id="no brackets"),
        pytest.param([("Host", "[127.0.0.1]")], id="brackets around the older kind"),
        pytest.param([("Host", "[localhost]")], id="brackets around a name"),
        pytest.param([("Host", "192.0.2.1:8080")], id="the address of another machine"),
        pytest.param([("Host", "2130706433")], id="an address as one number"),
        pytest.param([("Host", "0177.0.0.1")], id="an address in octal digits"),
        pytest.param([("Host", "localhost:\uff18\uff10")], id="digits that are not ASCII"),
        pytest.param([("Host", "user@localhost")], id="a user"),
        pytest.param([OURS, ("Origin", "https://evil.example")], id="a page elsewhere"),
        pytest.param([OURS, ("Origin", "http://127.0.0.1:3000")], id="a page at another port"),
        pytest.param([OURS, ("Origin", "http://localhost:8080")], id="a page under another name"),
        pytest.param([OURS, ("Origin", "https://127.0.0.1:8080")], id="a page over TLS"),
        pytest.param([OURS, ("Origin", "null")], id="a page in a sandbox"),
        pytest.param([OURS, ("Origin", "")], id="an empty origin"),
        pytest.param([OURS, ("Origin", "http://127.0.0.1:8080"), ("Origin", "https://evil.example")], id="two origins"),
        pytest.param([OURS, ("Sec-Fetch-Site", "cross-site")], id="another site"),
        pytest.param([OURS, ("Sec-Fetch-Site", "same-site")], id="another port, says the browser"),
        pytest.param([OURS, ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")], id="two sites"),
    ],
)
def test_without_a_token_strangers_pages_do_not_pass(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(ProblemError) as caught:
        check_local(caller(*headers))

    assert caught.value.problem.status == 403
    assert VARIABLE in caught.value.problem.detail


LINK = (("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"))


def test_who_follows_a_link_to_here_sees_what_everyone_may_and_nothing_else() -> None:
    access = Access(None, FakeClock())

    assert refusal(access, caller(OURS, *LINK), everyone=True) is None
    assert refusal(access, caller(OURS, *LINK)) is not None


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([OURS, *LINK[:2], ("Sec-Fetch-Dest", "iframe")], id="in a frame"),
        pytest.param([OURS, *LINK[:2]], id="nobody knows where"),
        pytest.param([OURS, LINK[0], ("Sec-Fetch-Mode", "cors"), LINK[2]], id="by a script"),
        pytest.param([OURS, *LINK, ("Sec-Fetch-Mode", "cors")], id="two modes"),
        pytest.param([OURS, *LINK, ("Origin", "https://evil.example")], id="a form that is posted"),
        pytest.param([("Host", "evil.example"), *LINK], id="DNS rebinding"),
    ],
)
def test_what_only_looks_like_a_link_is_a_strangers_page(headers: list[tuple[str, str]]) -> None:
    assert refusal(Access(None, FakeClock()), caller(*headers), everyone=True) is not None


@pytest.mark.parametrize("peer", ["", "203.0.113.9", "10.0.0.1", "::", "::ffff:10.0.0.1", "fe80::1%eth0", "localhost"])
def test_without_a_token_other_machines_do_not_pass(peer: str) -> None:
    with pytest.raises(ProblemError, match="another machine"):
        check_local(caller(OURS, peer=peer))


@given(st.text(), st.lists(st.tuples(st.sampled_from(["Host", "Origin", "Sec-Fetch-Site"]), st.text())))
def test_whatever_a_request_says_it_passes_or_is_refused(peer: str, headers: list[tuple[str, str]]) -> None:
    error = refusal(Access(None, FakeClock()), caller(*headers, peer=peer))

    assert error is None or error.problem.status == 403


def test_loopback_is_an_address_and_not_a_name() -> None:
    assert [is_loopback(each) for each in ("127.0.0.1", "::1", "0.0.0.0", "::", "localhost", "")] == [  # noqa: S104
        *(True, True),
        *(False, False, False, False),
    ]
