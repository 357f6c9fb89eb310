"""The command as a person runs it: a real process against a real server."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest
from command_line import called, sanderling
from scripted_server import ScriptedServer, Step, answer


async def command(*arguments: str) -> tuple[int, str, str]:
    return await sanderling("fetch", *arguments)


def run(main: Coroutine[Any, Any, tuple[int, str, str]]) -> tuple[int, str, str]:
    return asyncio.run(main)


async def served(script: dict[str, list[bytes | list[Step]]], *arguments: str) -> tuple[int, str, str]:
    async with ScriptedServer(script) as server:
        urls = [server.url(path) for path in script]
        return await command(*urls, "--private", *arguments)


def test_what_was_fetched_is_said_and_why_the_pace_is_what_it_is() -> None:
    code, out, err = run(served({"/": [answer(200, b"hello")]}))

    assert code == 0
    assert out.startswith("200 OK ")
    assert "5 B" in out
    assert "1 requests, 2.00 a second now; growing until the host objects" in err


def test_one_failure_among_others_is_said_and_makes_the_exit_code_1() -> None:
    code, out, _ = run(served({"/good": [answer(200)], "/gone": [answer(410)]}, "--json"))

    lines = {line["status"]: line for line in map(json.loads, out.splitlines())}
    assert code == 1
    assert lines[200]["outcome"] == "OK"
    assert lines[410]["outcome"] == "CONTENT_REMOVED"


PAGE = answer(200, b"<h1>High\n tide</h1><a href=/1>one</a><a href=/2>two</a>", Content_Type="text/html")


def test_a_selector_prints_what_it_finds_a_line_each() -> None:
    texts = run(served({"/": [PAGE]}, "--css", "h1, a"))
    attributes = run(served({"/": [PAGE]}, "--css", "a::attr(href)"))
    as_json = run(served({"/": [PAGE]}, "--css", "h1", "--json"))
    missing = run(served({"/": [answer(404)]}, "--css", "h1"))

    assert texts == (0, "High tide\none\ntwo\n", "")
    assert attributes == (0, "/1\n/2\n", "")
    assert json.loads(as_json[1])["found"] == ["High tide"]
    assert (missing[0], missing[1]) == (1, "")
    assert "404" in missing[2]


def test_ones_own_machine_is_refused_unless_allowed() -> None:
    code, out, _ = run(command("http://127.0.0.1:1/", "--json"))

    assert code == 1
    assert json.loads(out)["outcome"] == "REFUSED"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no address given"),
        (["ftp://host.example/"], "http"),
        (["http://user:secret@host.example/"], "user"),
        (["http://host.example/", "--contact", "me"], "--contact"),
        (["http://host.example/", "--rps", "0"], "--rps"),
        (["http://host.example/", "--css", "a["], "--css: 'a[' is no CSS selector"),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(arguments: list[str], says: str) -> None:
    done = called("fetch", *arguments)

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "secret" not in done.err
    assert "Traceback" not in done.err
