"""No regular expression is made slow by a stranger's text: each is listed with texts built to do so.

Measured is growth: a text eight times as long may take eight times as long, and some noise. Besides the texts in the
table each expression meets every sign and word that it is written with, repeated.
"""

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from kit.growth import is_slow

import sanderling
from sanderling import forms
from sanderling.crawl.scope import UrlPattern
from sanderling.extract.html import read_page
from sanderling.ids import MAX_URL
from sanderling.redact import looks_secret, redact

PACKAGE = Path(sanderling.__file__).parent
CALLS = frozenset("compile match search fullmatch findall finditer split sub subn".split())
WHOLE = frozenset({"match", "fullmatch"})  # methods that look at one place only

Attack = tuple[str, str, str]  # what stands before, is repeated, stands behind
SLOW: dict[str, list[Attack]] = {
    "ids._ESCAPE": [("", "%", ""), ("", "%4", "%")],
    "ids._SESSION": [("", ";jsessionid=", ""), ("", ";jsessionid", "")],
    "ids._TRACKING": [("", "utm", ""), ("gclid", "g", "")],
    "ids._NOT_IN_HOST": [("", "a", "")],
    "ids._AT": [("", "a", "")],
    "redact._VARIABLE": [("", "a", "-")],
    "redact._SECRET": [("", "pass", ""), ("", "api_", ""), ("", "tokens", "")],
    "redact._SECRET_IN_URL": [("", "_key", "x"), ("", "_", "key")],
    "redact._URL": [("", "a", ""), ("", "a:/", ""), ("", "a.", "://"), ("", 'a://"', "")],
    "redact._PAIR": [("", "a", ""), ("", "?a", ""), ("?", "a=", ""), ("", "%a-", "")],
    "redact._HEADER": [("cookie:", " ", "\n"), ("", "cookie:", "\n"), ("", "set-", "cookie"), ("", "cookie:\n", "")],
    "redact._HOST": [("", ":", ""), ("[", "[", ""), ("", "a:", "0")],
    "formats.loose._PLATFORM": [("", "a", "!")],
    "formats.loose._NUMBER": [("1.", "1", "x")],
    "formats.loose._HALF": [("", "\\\\ud83d", ""), ("", "\\\\", ""), ("", "\\\\u", "d")],
    "formats.envelope._BUCKET": [("", "a", "!")],
    "formats.envelope._UNUSABLE": [("", "a", "")],
    "events.job_ids._WHOLE": [("", "a", ""), ("", "aaaaaaaa-", "")],
    "events.job_ids._OWNED": [("", "aaaaaaaa-aaaa-", ""), ("fc5d5ffb-36cc-4c8d-a288-f5215af7fb80-", "a", "")],
    "events.analysis._LINK": [("", "http", ""), ("", "www.", ""), ("", "https://", "")],
    "events.analysis._WORD": [("", "'", ""), ("", "a'", "")],
    "events.analysis._DRAWN": [("", "ab", ""), ("", "a", "")],
    "events.analysis._CHOICE": [("", "(", ""), ("", "()", "")],
    "events.analysis._COMBINING": [("", "a", "")],
    "limit.retry_after._SECONDS": [("", "9", "x"), ("1.", "9", "x")],
    "limit.rate_headers._NUMBER": [("1.", "1", "x")],
    "limit.rate_headers._ISO_DATE": [("2026-01-02T03:04:05.", "0", "x")],
    "limit.rate_headers._MEMBER": [("a", ";a=b", "!"), ("a", ' ; a="b"', '"'), ('"', "a", ""), ("", "a", "!")],
    "limit.rate_headers._PARAMETER": [("", ";a=", ""), (";", "a", "!"), ("", ';a="', ""), ("", "; ", "")],
    "fetch.messages._TOKEN": [("", "a", " ")],
    "fetch.messages._VALUE": [("", "a", "\0")],
    "fetch.messages._CHARSETS": [("gb", "gb", "")],
    "fetch.cookies._UNUSABLE": [("", "a", "")],
    "fetch.cookies._NO_DOMAIN": [("", ".", "a"), ("", "a.", "a")],
    "fetch.cookies._MAX_AGE": [("-", "1", "x")],
    "fetch.cookies._DELIMITER": [("", " ", "a"), ("", "; ", "")],
    "fetch.cookies._TIME": [("", "1:", ""), ("1:1:", "1", "")],
    "fetch.cookies._DAY": [("", "1", "")],
    "fetch.cookies._YEAR": [("", "1", "")],
    "repos.atproto._DID": [("did:plc:", "a", "+"), ("did:", "a", "")],
    "fetch.options._CONTACT": [("mailto:", "a", " ")],
    "extract.content._BAD_NAME": [("", "most-", ""), ("", "ad-", ""), ("", "share", "x")],
    "extract.content._GOOD_NAME": [("", "mai", ""), ("", "conten", "")],
    "extract.content._STYLED_AWAY": [("", "display :", ""), ("display:", " ", "")],
    "extract.content._COMMA": [("", ",", "")],
    "extract.sitemaps._DECLARED": [("", " ", ""), ("<?xml", " encoding", ""), ("<?xml ", "encoding=", "")],
    "extract.sitemaps._AMPERSAND": [("", "<![CDATA[", ""), ("<![CDATA[", "]", ""), ("", "&#", "")],
    "extract.robots._TOKEN": [("", "a", " ")],
    "extract.robots._SECONDS": [("", "9", "x")],
    "extract.robots._ESCAPE": [("", "%", "")],
    "extract.markdown._SUSPECT": [("", "a", "")],
    "extract.markdown._SPECIAL": [("", "_", ""), ("", "&a", ""), ("&", "a", ""), ("", "~", ""), ("", "<", "")],
    "extract.markdown._LINE_START": [("", "-", "x"), (":", "-", "x"), ("-", ": ", "x"), ("", "=", "x"), ("", "9", "x")],
    "extract.markdown._LANGUAGE": [("", " language-", ""), ("language-", "a", ""), ("", " ", "")],
    "extract.markdown._BACKTICKS": [("", "`", "")],
    "crawl.pages._TARGETS": [("", "](", ""), ("](", "a", "")],
    "crawl.pages._BINARY": [("", "a", "")],
    "crawl.render._SCRIPT": [("", "<script", "x")],
    "crawl.render._ROOT": [("", "id ", ""), ("id", " ", "x"), ("", "id=", "x"), ("", "<noscript", "x")],
    "crawl.forget._BODY": [("", "bodies/", ""), ("bodies/aa/", "a", "")],
    "crawl.repeats._DIGITS": [("", "1", "a")],
    "crawl.page._BYTE": [("", "(byte ", ""), ("(byte ", "1", "")],
    "crawl.page._OTHER_SCHEME": [("", " ", "!"), ("", "a", "!"), (" ", "a+", "")],
    "crawl.auth._TOKEN": [("", "a", " ")],
    "crawl.scope._PART": [("", "{", ""), ("", "*", ""), ("{", "a", "")],
    "crawl.meaning._NEGATED": [("", "!", ""), ("!", "a", ""), ("!a", ".a", "."), ("", "!a", "")],
    "crawl.elements._VALUE": [("", "::text ", ""), ("::text", " ", "x"), ("::attr(", " ", ""), ("", "::attr(", "")],
    "crawl.elements._SIGN": [("", '"', "'"), ("", "'\"", ""), ("", '"a', "'")],
    "crawl.job._NAME": [("", "a", " ")],
    "crawl.request._METHOD": [("", "A", " ")],
    "serving.routes._PARAMETER": [("", "{", ""), ("{", "a", ""), ("", "{a", "}")],
    "cli.try_reader._NAME": [("", "a", "-")],
    "formats.dag_cbor._LINK": [("", "X%\0", "")],
    "formats.dag_cbor._NOT_SHORTEST": [("", "4", ""), ("", "8000", "")],
    "formats.dag_cbor._ODD_LINK": [("", "X%\0", "")],
    "formats.mst._COUNT": [("", "ae", "")],
    "formats.mst._ENTRY": [("akX\x7f", "ap", ""), ("", "akX", "ap")],
    "formats.mst._LENGTH": [("", "akX\x18", "")],
    "formats.mst._REST": [("", "ap\x17at", ""), ("ap\x17at", "X%\0\x01q\x12 ", "")],
    "formats.mst._LEFT": [("", "al", "")],
    "formats.repo._KEY": [("a/", "a", " "), ("a", ".", ""), ("", "a/", "")],
    "formats.segments._NAME": [("segment_", "1", ""), ("segment_0001.rca", ".part", "")],
}  # fmt: skip

# Expressions within functions, by what calls them.
CALLED: dict[str, list[Callable[[int], object]]] = {
    "redact.looks_secret": [lambda size: looks_secret("-" * size)],
    "redact._without_value": [lambda size: redact(f"?token={'9' * size}."), lambda size: redact("&key=1." * size)],
    "redact._without_user": [lambda size: redact("a://" + "?" * size), lambda size: redact("a://b@c " * size)],
    "forms._read_units": [lambda size: _read("1" * size), lambda size: _read("1.1a" * size + "?")],
    "extract.markdown._Writer.end_block": [lambda size: read_page(b"<p>" + b"<br> " * size + b"x", None, "http://a/")],
    # By the square of a URL, which has 2,000 characters at most.
    "crawl.scope.UrlPattern.__init__": [
        lambda size: UrlPattern("/*-*-*.html").match("http://a/" + "-" * min(size, MAX_URL)),
        lambda size: UrlPattern("/**a**b**c").match("http://a/" + "ab" * (min(size, MAX_URL) // 2)),
    ],
}
OWN = {"crawl.elements._found_in": "an expression of the job itself, in a reader"}


def _read(text: str) -> None:
    with suppress(ValueError):
        forms._read_units(text, {})


@cache
def found() -> dict[str, frozenset[str]]:
    """Every expression: the name it is given, or the function it stands in, and the methods that it is used by."""
    uses: dict[str, frozenset[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        for place, node in calls(tree, ""):
            names = [place] if place else [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
            for name in names:
                if place or isinstance(getattr(import_module(f"sanderling.{module}"), name, None), re.Pattern | tuple):
                    uses[f"{module}.{name}"] = frozenset(
                        each.attr for each in attributes if isinstance(each.value, ast.Name) and each.value.id == name
                    )
    return uses


def calls(node: ast.AST, place: str) -> Iterator[tuple[str, ast.AST]]:
    """The function around each use of `re`, or, outside of functions, the targets of the assignment."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from calls(child, f"{place}.{child.name}".lstrip("."))
            continue
        for each in ast.walk(child):
            if (
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Attribute)
                and isinstance(each.func.value, ast.Name)
                and each.func.value.id == "re"
                and each.func.attr in CALLS
            ):
                yield place, ast.Module([ast.Expr(target) for target in getattr(child, "targets", [])], [])


def attacks_on(pattern: re.Pattern[str] | re.Pattern[bytes]) -> Iterator[Attack]:
    """Every sign and word that the expression is written with, repeated."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    for unit in sorted({*re.findall(r"\W|\d", text), *re.findall(r"[^\W\d_]{2,}", text), "a", " ", "\n"}):
        yield "", unit, ""
        yield "", unit, "\0"


@pytest.mark.parametrize("name", sorted(SLOW))
def test_no_text_makes_an_expression_slow(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    given = getattr(import_module(f"sanderling.{module}"), attribute)
    for pattern in given if isinstance(given, tuple) else (given,):
        for before, unit, behind in (*SLOW[name], *attacks_on(pattern)):

            def meet(size: int, parts: Attack = (before, unit, behind), pattern: re.Pattern[str] = pattern) -> None:
                text = parts[0] + parts[1] * size + parts[2]
                subject = text if isinstance(pattern.pattern, str) else text.encode()
                # All that is found, wherever it begins, unless the code asks about the beginning only.
                if found()[name] and found()[name] <= WHOLE:
                    pattern.match(subject)
                    pattern.fullmatch(subject)
                else:
                    pattern.sub(lambda match: "" if isinstance(match[0], str) else b"", subject)

            assert not is_slow(meet), (before, unit, behind)


@pytest.mark.parametrize("name", sorted(CALLED))
def test_no_text_makes_a_function_slow(name: str) -> None:
    assert [number for number, act in enumerate(CALLED[name]) if is_slow(act)] == []


def test_every_expression_is_listed() -> None:
    """A new one needs a row in SLOW or CALLED, with texts that would make it slow if it could be."""
    assert found().keys() == SLOW.keys() | CALLED.keys() | OWN.keys()


@pytest.mark.parametrize(("expression", "text"), [("-+[-: ]*$", "-"), (r"(a+)+$", "a"), ("(?:a|aa)+$", "a")])
def test_slow_ones_are_noticed(expression: str, text: str) -> None:
    pattern = re.compile(expression)
    assert is_slow(lambda size: pattern.match(text * size + "!"))
