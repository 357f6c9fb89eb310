"""`sanderling try URL`: one request, what came back, what a selector or a path finds in it, and what to type next.

`sanderling try FILE`: what a system makes of the responses of an API that a file describes.
"""

import asyncio
import code
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import jmespath
import msgspec

from sanderling.cli.commands import all_commands
from sanderling.cli.context import Context
from sanderling.cli.screen import print_lines
from sanderling.cli.try_reader import Answer, Question
from sanderling.clock import SystemClock
from sanderling.fetch import Client, HttpRequest, HttpResponse, RequestOptions
from sanderling.fetch.guard import is_own
from sanderling.files import Exit, read_small
from sanderling.forms import Form
from sanderling.ids import host_of, normalise_url
from sanderling.observe.render import Line, show_bytes, show_seconds
from sanderling.observe.report import Hint, clean_text
from sanderling.options import REQUIRED, OptionError, option
from sanderling.outcome import Code
from sanderling.readers.pool import ReaderError, Readers
from sanderling.redact import redact
from sanderling.systems import load_name

READER = "sanderling.cli.try_reader:open_work"


def _read_selector(text: str) -> str:
    from sanderling.crawl.elements import select_elements  # noqa: PLC0415 - 30 ms, and only where one is given

    select_elements("").css(text)
    return text


def _read_path(text: str) -> str:
    from jmespath.exceptions import JMESPathError  # noqa: PLC0415 - the same

    try:
        jmespath.compile(text)
    except JMESPathError:
        raise ValueError from None
    return text


def _read_target(text: str) -> str:
    return text if _is_file(text) else normalise_url(text)


def _is_file(text: str) -> bool:
    return text.endswith((".toml", ".py")) and "://" not in text


UrlOrFile = Annotated[str, Form(_read_target, "a URL like https://example.org/, or a file .toml or .py", "URL", redact)]
Selector = Annotated[str, Form(_read_selector, "a CSS selector like h1.title or a::attr(href)", "SELECTOR")]
JsonPath = Annotated[str, Form(_read_path, "a JMESPath expression like items[0].name", "JMESPATH")]


class TryOptions(RequestOptions, table="try"):
    """Options of `try`. Elsewhere `--json` prints for programs; here it does too, what its path finds."""

    url: UrlOrFile = option(
        REQUIRED, "What to request, or a file that describes an API: what is made of its responses.", argument="URL"
    )
    base: str = option("", "With a file: where the API is, up to the path.")
    begin: int | None = option(None, "With a file: the first of ten ids to request.", low=0)
    css: Selector | None = option(None, "Print what this finds in the page, each on a line.")
    json: JsonPath | None = option(None, "Print what this finds in the JSON of the body; @ is all of it.")
    shell: bool = option(default=False, help="Open a Python shell in which the response is page.")


@dataclass(frozen=True, slots=True)
class Tried:
    """What came back, and what a reader has made of the body."""

    response: HttpResponse
    answer: Answer


def try_url(options: TryOptions, context: Context) -> Exit:
    """Send one request and show all about it; FAILED if it did not end well, or nothing was found."""
    if _is_file(options.url):
        return _try_file(options, context)
    tried = asyncio.run(_try(options))
    looked = options.css is not None or options.json is not None
    # What was found can be piped on; then the rest is for people.
    print_lines(_lines(tried), context.err if looked else context.out, context)
    for found in tried.answer.found:
        context.print(_printable(found, lines=options.json is not None))
    for sentence in _advice(options, tried, context):
        context.warn(sentence)
    if options.shell and tried.answer.kind != "nothing" and not tried.answer.fault:
        _shell(tried)
    well = tried.response.outcome.ok and not tried.answer.fault and (bool(tried.answer.found) or not looked)
    return Exit.DONE if well else Exit.FAILED


def _try_file(options: TryOptions, context: Context) -> Exit:
    """Let the system try a file that it describes its upstreams by."""
    # A file of Python has a `description` of one kind.
    try:
        text = {"url": ""} if options.url.endswith(".py") else tomllib.loads(read_small(Path(options.url)).decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"{options.url} is not TOML: {error}") from None
    for system in context.systems:
        if system.tries and jmespath.search(system.described, text) is not None:
            return Exit(load_name(system.tries)(options.url, options, options, context))
    raise OptionError(f"{options.url}: found no url, expected the description of an API")


async def _try(options: TryOptions) -> Tried:
    async with Client(options) as client:
        got = await client.send(HttpRequest(options.url))
    if not got.body:
        return Tried(got, Answer("nothing"))
    question = Question(got.url, got.status, got.headers, options.css, options.json)
    async with Readers(READER, b"", count=1, clock=SystemClock()) as readers:
        try:
            answer = await readers.run(host_of(got.url), msgspec.msgpack.encode(question), got.body)
        except ReaderError as error:
            return Tried(got, Answer("nothing", fault=f"the body cannot be read: {error}"))
    return Tried(got, msgspec.msgpack.decode(answer, type=Answer))


def _lines(tried: Tried) -> list[Line]:
    got, outcome = tried.response, tried.response.outcome
    rows = [("redirect", f"{begun} → {led}") for begun, led in got.redirects]
    rows.append(("url", got.url))
    if got.location:
        rows.append(("leads to", got.location))
    if got.status:
        rows.append(("status", f"{got.status} after {show_seconds(got.latency)}"))
    said = ", ".join(filter(None, (outcome.detail, outcome.category and f"of category {outcome.category}")))
    rows += [(f"< {name.lower()}", value) for name, value in got.headers]
    rows.append(("requests", f"{got.requests}"))
    rows.append(("body", show_bytes(len(got.body)) if got.body else "none"))
    rows += tried.answer.facts
    lines: list[Line] = [[(f"{clean_text(name):<14} ", "dim"), (clean_text(value), "")] for name, value in rows]
    style = "good" if outcome.ok else "bad"
    return [*lines, [("outcome        ", "dim"), (outcome.code, style), (f": {said}" if said else "", "")]]


def _printable(text: str, *, lines: bool) -> str:
    """What a stranger wrote, without what moves a terminal's cursor; JSON keeps its lines."""
    if lines:
        return "".join([each if each.isprintable() or each == "\n" else f"\\u{ord(each):04x}" for each in text])
    return "".join([each if each.isprintable() else " " for each in text]).strip()


# What a person can do about an outcome, where it is not said by the outcome itself.
_ADVICE = {
    Code.AUTH_FAILED: "it wants a log-in: in sanderling.toml, set bearer, or user and password, "
    'under [hosts."{host}"], as in bearer = "env:TOKEN"',
    Code.ACCESS_DENIED: "it refuses who asks like this: say who you are by --contact, and set what it wants under "
    '[hosts."{host}"] headers in sanderling.toml',
    Code.DNS_ERROR: "look at the spelling of {host}, and whether this machine finds other names",
    Code.CONNECTION_REFUSED: "nothing listens at {host}: look at the port, and whether the server runs",
    Code.TLS_ERROR: "if its certificate is of a CA of your own, name that CA's file: SSL_CERT_FILE=ca.pem; "
    "if {host} speaks no TLS, type http:// instead of https://",
    Code.CONNECTION_RESET: "look whether {host} speaks HTTP at that port, and TLS if the URL begins with https://",
    Code.INVALID_RESPONSE: "look whether {host} speaks HTTP at that port; if it speaks TLS, type https://",
    Code.TIMEOUT: "try again, with a longer --timeout if {host} is slow",
    Code.HOST_UNAVAILABLE: "try again later: {host} itself has failed",
    Code.TRUNCATED: "try again: the response broke off",
    Code.TOO_LARGE: "it is larger than what is kept of a body",
}


def _advice(options: TryOptions, tried: Tried, context: Context) -> list[str]:
    """Sentences that say what to type next."""
    got, answer = tried.response, tried.answer
    code, host = got.outcome.code, host_of(got.url)
    if answer.fault:
        return [f"sanderling: {clean_text(answer.fault)}"]
    if code is Code.REFUSED:
        # Never for what a stranger's page or name led to.
        if got.url == options.url and not got.requests and not options.private and is_own(got.url):
            return _typed([Hint("if it is yours", ("try", options.url, "--private"))], context)
        return []
    if code is Code.RATE_LIMITED:
        wait = got.outcome.retry_after
        return [f"{host} wants fewer requests: try again in {show_seconds(wait)}" if wait else f"{host} wants fewer"]
    if not got.outcome.ok:
        return [_ADVICE[code].format(host=host)] if code in _ADVICE else []
    hints = []
    private = ("--private",) * options.private  # what was needed for this is needed for the next
    looked = options.css is not None or options.json is not None
    if looked and answer.found:
        if options.css is not None:
            return [f"{len(answer.found):,} found; in a job: page.css({options.css!r})"]
        return []
    if answer.propose:
        why = "nothing was found; this finds something" if looked else "look for something in it"
        flag = "--css" if answer.kind == "page" else "--json"
        hints.append(Hint(why, ("try", got.url, flag, answer.propose, *private)))
    if answer.kind == "page" and not looked and not options.shell:
        hints.append(Hint("work on it in Python", ("try", got.url, "--shell", *private)))
        hints.append(Hint("collect all pages of the site", ("pages", "crawl", got.url, "--out", "pages", *private)))
    return _typed(hints, context)


def _typed(hints: list[Hint], context: Context) -> list[str]:
    """Hints whose command there is, as they are typed here."""
    known = {command.words for command in all_commands(context.systems)}
    there = [each for each in hints if {each.words[0], " ".join(each.words[:2])} & known]
    return [f"{each.why}: {context.command_line(each.words)}" for each in there]


def _shell(tried: Tried) -> None:
    """A Python shell. The body is here parsed in this process: a reader has done the same before, within its bounds."""
    from sanderling.crawl.page import Page  # noqa: PLC0415 - selectors are needed here alone

    got = tried.response
    page = Page(got.url, got.status, got.headers, got.body)
    banner = f"{page!r}\npage.css('a::attr(href)'), page.json(), page.text(), response.headers; Ctrl-D ends it"
    code.interact(banner, local={"page": page, "response": got}, exitmsg="")
