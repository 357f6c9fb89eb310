"""What a body says, and what a selector or a path finds in it: worked out in a reader process, for `sanderling try`."""

import re

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError

from sanderling.crawl.page import Page
from sanderling.extract.html import read_page
from sanderling.fetch.messages import Headers, in_utf8
from sanderling.readers.reader import Work

MOST_FACTS = 10
SHOWN = 300  # characters of a text
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")  # what a path may call a field without quotes
_DEEPEST = 5  # levels that a proposed path goes down


class Question(msgspec.Struct):
    """A response, and what is looked for in its body."""

    url: str
    status: int
    headers: Headers
    css: str | None
    path: str | None


class Answer(msgspec.Struct):
    """What the body is, and what was found."""

    kind: str  # page, json, text, bytes or nothing
    facts: list[tuple[str, str]] = []
    found: list[str] = []  # each a text, or JSON where a path was given
    fault: str = ""  # why nothing could be looked for
    propose: str = ""  # a selector or a path that finds something


def open_work(_argument: bytes) -> Work:
    """The work function of the readers."""
    return lambda head, body: msgspec.msgpack.encode(examine(msgspec.msgpack.decode(head, type=Question), body))


def examine(question: Question, body: bytes) -> Answer:
    """What a body is, and what is found in it."""
    page = Page(question.url, question.status, question.headers, body)
    said = (page.header("Content-Type") or "").partition(";")[0].strip().lower()
    if not body:
        answer = Answer("nothing")
    elif "html" in said or (not said.endswith("json") and body[:1024].lstrip().startswith(b"<")):
        answer = _page(page)
    else:
        answer = _document(page, said)
    if question.css is not None:
        if answer.kind != "page":
            answer.fault = f"the body is no page, but {answer.kind}, in which --css finds nothing"
        else:
            answer.found = page.css(question.css).getall()
    elif question.path is not None:
        if answer.kind != "json":
            answer.fault = f"the body is no JSON, but {answer.kind}, in which --json finds nothing"
        else:
            _look(question.path, page, answer)
    return answer


def _page(page: Page) -> Answer:
    facts = read_page(page.body, page.header("Content-Type"), page.url)
    text = " ".join((facts.text or "").split())
    rows = {
        "title": facts.title,
        "language": facts.language,
        "charset": facts.charset,
        "canonical": facts.canonical,
        "robots": ", ".join(facts.robots),
        "links": f"{len(facts.links):,}",
        "text": f"{len(text):,} characters: {text[:SHOWN]}" if text else "none",
        "cut": "; ".join(facts.cut),
    }
    page.css("html")  # the shell lets people work on the page in the command's own process, if a reader could read it
    propose = next((each for each in ("h1::text", "a::attr(href)", "title::text") if page.css(each)), "body")
    return Answer("page", [(name, value) for name, value in rows.items() if value], propose=propose)


def _document(page: Page, said: str) -> Answer:
    try:
        document = _json(page)
    except (ValueError, RecursionError) as error:
        if b"\0" in page.body[:1024]:
            return Answer("bytes", [("begins with", page.body[:16].hex(" "))])
        wrong = [("no JSON", str(error)[:SHOWN])] if said.endswith("json") else []
        return Answer("text", [*wrong, ("text", page.text()[:SHOWN])])
    rows = [("JSON", _shape(document))]
    if isinstance(document, dict):
        rows += [(key[:40], _shape(value)) for key, value in list(document.items())[:MOST_FACTS]]
    return Answer("json", rows, propose=_path(document))


def _shape(value: object) -> str:
    match value:
        case dict():
            return f"an object with {len(value):,} fields"
        case list():
            return f"a list of {len(value):,}" + (f", the first {_shape(value[0])}" if value else "")
    return msgspec.json.encode(value).decode()[:SHOWN]


def _path(value: object) -> str:
    """A path to the records, as far as can be told: down lists and objects, to the first field of the first."""
    path = ""
    for _ in range(_DEEPEST):
        if isinstance(value, list) and value:
            path, value = f"{path}[]", value[0]
        elif isinstance(value, dict):
            named = {key: each for key, each in value.items() if _NAME.fullmatch(key)}
            lists = [key for key, each in named.items() if isinstance(each, list) and each] if "[]" not in path else []
            key = next(iter([*lists, *named]), None)
            if key is None:
                break
            path, value = f"{path}.{key}" if path else key, named[key]
        else:
            break
    return path or "@"


def _look(path: str, page: Page, answer: Answer) -> None:
    try:
        found = jmespath.search(path, _json(page))
    except JMESPathError as error:  # a function got a value of another type
        answer.fault = str(error)[:SHOWN]
        return
    if found not in (None, []):
        answer.found = [msgspec.json.format(msgspec.json.encode(found)).decode()]


def _json(page: Page) -> object:
    return msgspec.json.decode(in_utf8(page.body, page.header("Content-Type") or ""))
