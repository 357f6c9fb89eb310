"""`sanderling try`: what is shown of a response, what is found in it, and what is proposed."""

import asyncio
import json

import pytest
from fetch.servers import Reply, says, upstream
from toy_program import Call, Ended

from sanderling.cli.context import Context
from sanderling.cli.try_reader import Answer
from sanderling.cli.try_url import Tried, TryOptions, _advice
from sanderling.fetch import HttpResponse
from sanderling.files import Exit
from sanderling.outcome import Code, Outcome

pytestmark = pytest.mark.real

PAGE = says(headers=("Content-Type: text/html",), body=b"<title>T</title><h1>A \x1b[31mword</h1><a href=/x>x</a>")
JSON = says(headers=("Content-Type: application/json",), body=b'{"next": null, "items": [{"id": 7, "n": "a\\u009b"}]}')


async def attempt(call: Call, reply: Reply, *words: str, private: bool = True) -> Ended:
    """The command, with a host that replies so; URLs are shown as URL."""
    async with upstream(reply) as host:
        ended = await asyncio.to_thread(call, "try", host.url, *words, *["--private"] * private)
    return Ended(ended.code, *(text.replace(host.url, "URL/") for text in (ended.out, ended.err)))


async def test_a_page_is_described_and_a_selector_proposed(call: Call) -> None:
    ended = await attempt(call, PAGE)

    assert ended.code is Exit.DONE
    assert {"title          T", "links          1", "outcome        OK"} <= set(ended.out.splitlines())
    assert "try URL/ --css h1::text --private" in ended.err


async def test_only_what_is_found_is_printed_without_what_moves_a_cursor(call: Call) -> None:
    texts = await attempt(call, PAGE, "--css", "h1::text, a::attr(href)")
    elements = await attempt(call, PAGE, "--css", "a")
    values = await attempt(call, JSON, "--json", "items[]")

    assert (texts.code, texts.out) == (Exit.DONE, "A  [31mword\n/x\n")
    assert elements.out == '<a href="/x">x</a>\n'
    assert values.out.isascii()
    assert json.loads(values.out) == [{"id": 7, "n": "a\x9b"}]


@pytest.mark.parametrize(
    ("reply", "words", "said"),
    [
        (JSON, ("--json", "itmes[].id"), "--json 'items[].id'"),
        (JSON, ("--json", "abs(items)"), "abs()"),
        (JSON, ("--css", "h1"), "no page"),
        (PAGE, ("--json", "@"), "no JSON"),
        (PAGE, ("--css", "h7"), "--css h1::text"),
        (says(headers=("Content-Type: text/html",), body=b"<div>" * 2_000_000), (), "slow"),
        (says("401 No"), (), "bearer"),
        (says("429 No", ("Retry-After: 30",)), (), "30 s"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", (), "https://"),
        (says("500 No"), (), "later"),
    ],
)
async def test_what_did_not_work_is_said_with_what_to_type(
    call: Call, reply: bytes, words: tuple[str, ...], said: str
) -> None:
    ended = await attempt(call, reply, *words)

    assert (ended.code, len(ended.err.splitlines()[-1:])) == (Exit.FAILED, 1)
    assert said in ended.err.splitlines()[-1]


async def test_private_is_proposed_for_what_was_typed(call: Call) -> None:
    ended = await attempt(call, PAGE, private=False)

    assert (ended.code, "--private" in ended.err) == (Exit.FAILED, True)


@pytest.mark.parametrize(
    ("typed", "refused", "requests"),
    [
        ("http://far.example/", "http://127.0.0.1/", 1),  # a redirect
        ("http://far.example/", "http://far.example/", 0),  # a name
        ("http://169.254.169.254/", "http://169.254.169.254/", 0),  # never one's own
    ],
)
def test_private_is_never_proposed_for_where_a_stranger_led(typed: str, refused: str, requests: int) -> None:
    response = HttpResponse(Outcome(Code.REFUSED, detail="address 127.0.0.1 is loopback"), refused, requests)
    context = Context((), {})

    assert _advice(TryOptions(url=typed), Tried(response, Answer("nothing")), context) == []


@pytest.mark.parametrize("words", [("--css", "a[["), ("--json", "a[["), ("--css",)])
async def test_what_is_no_selector_is_said_before_anything_is_sent(call: Call, words: tuple[str, ...]) -> None:
    async with upstream(PAGE) as host:
        ended = await asyncio.to_thread(call, "try", host.url, "--private", *words)

    assert (ended.code, host.heads) == (Exit.WRONG, [])


def test_a_url_with_a_password_is_refused_without_showing_it(call: Call) -> None:
    ended = call("try", "https://me:secret@example.org/")

    assert ended.code is Exit.WRONG
    assert "[hosts]" in ended.err
    assert "secret" not in ended.err


async def test_the_shell_has_the_page(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["print(page.css('h1').text, response.status)"])

    def read(_prompt: str) -> str:
        for line in typed:
            return line
        raise EOFError

    monkeypatch.setattr("builtins.input", read)
    ended = await attempt(call, PAGE, "--shell")

    assert ended.code is Exit.DONE
    assert capsys.readouterr().out == "A \x1b[31mword 200\n"
