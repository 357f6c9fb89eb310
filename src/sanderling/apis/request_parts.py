"""Parts of a request and of a reply's headers: values in a query, a body or a header, and links.

Everything returns a new Task. What cannot be done raises ValueError, which shows no value: it may be a secret.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote_plus, urlencode, urljoin, urlsplit, urlunsplit

import msgspec

from sanderling.apis.json_paths import UNREADABLE, Path
from sanderling.ids import host_of
from sanderling.redact import is_secret, redact_url
from sanderling.task import Headers, Task

LONGEST_URL = 8000  # characters; servers take about as many
FORM = "application/x-www-form-urlencoded"
_BREAKS = re.compile(r"[\x00-\x20\x7f]")
_OWS = r"[ \t]*"
_PARAMETER = re.compile(
    rf";{_OWS}(?P<name>[\w!#$&+.^`|~*-]+){_OWS}(?:={_OWS}(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<token>[^\s;,\"]*)))?{_OWS}"
)
_LINK = re.compile(rf"{_OWS}<(?P<url>[^>]*)>{_OWS}")


def find_header(headers: Headers, name: str) -> str | None:
    """The first value under that name, in whatever case."""
    return next((value for key, value in headers if key.lower() == name.lower()), None)


def put_header(task: Task, name: str, value: str) -> Task:
    """The task with that value under that name, and no other."""
    rest = tuple(pair for pair in task.headers if pair[0].lower() != name.lower())
    return replace(task, headers=(*rest, (name, value)))


def put_cookie(task: Task, name: str, value: str) -> Task:
    """The task with that cookie beside the others that it has."""
    cookies = (find_header(task.headers, "Cookie") or "").split(";")
    rest = [each.strip() for each in cookies if each.strip() and each.partition("=")[0].strip() != name]
    return put_header(task, "Cookie", "; ".join([*rest, f"{name}={value}"]))


def find_param(url: str, name: str) -> str | None:
    """The value of a parameter of the query."""
    pairs = (pair.partition("=") for pair in urlsplit(url).query.split("&"))
    return next((unquote_plus(value) for key, _, value in pairs if unquote_plus(key) == name), None)


def drop_param(url: str, name: str) -> str:
    """The address without a parameter of the query; all others stay as they are written."""
    parts = urlsplit(url)
    rest = [pair for pair in parts.query.split("&") if pair and unquote_plus(pair.partition("=")[0]) != name]
    return urlunsplit(parts._replace(query="&".join(rest)))


def put_param(task: Task, name: str, value: str) -> Task:
    """The task with that value of a parameter, and no other."""
    parts = urlsplit(drop_param(task.url, name))
    query = "&".join(filter(None, (parts.query, f"{quote_plus(name)}={quote_plus(value)}")))
    return replace(task, url=urlunsplit(parts._replace(query=query)))


def find_in_body(task: Task, path: Path) -> object:
    """The value at a path of a JSON body, or the field of a form; None if there is none."""
    if _is_form(task):
        return dict(parse_qsl((task.body or b"").decode(), keep_blank_values=True)).get(str(path))
    return path.find(_decode(task))


def put_in_body(task: Task, path: Path, value: str | float) -> Task:
    """The task with that value at a path of its JSON body, or in that field of its form."""
    if _is_form(task):
        pairs = parse_qsl((task.body or b"").decode(), keep_blank_values=True)
        rest = [(name, text) for name, text in pairs if name != str(path)]
        return replace(task, body=urlencode([*rest, (str(path), str(value))]).encode())
    document = _decode(task)
    _put(document, path, value)
    try:
        body = msgspec.json.encode(document)
    except (*UNREADABLE, OverflowError):
        raise ValueError(f"body for {task.host} cannot be written again, expected plain JSON") from None
    found = replace(task, body=body)
    return found if find_header(task.headers, "Content-Type") else put_header(found, "Content-Type", "application/json")


def _is_form(task: Task) -> bool:
    return (find_header(task.headers, "Content-Type") or "").lower().startswith(FORM)


def _decode(task: Task) -> object:
    try:
        return msgspec.json.decode(task.body) if task.body else {}
    except UNREADABLE:
        raise ValueError(f"body for {task.host} is no JSON, expected some to put a value into") from None


def _put(document: Any, path: Path, value: str | float) -> None:  # noqa: ANN401 - any JSON
    *steps, last = path.steps
    at: Any = document
    for step in steps:
        if isinstance(step, str) and isinstance(at, dict) and at.get(step) is None:
            at[step] = {}
        at = Path((step,)).find(at)
    is_item = isinstance(last, int) and isinstance(at, list) and -len(at) <= last < len(at)
    if not is_item and not (isinstance(last, str) and isinstance(at, dict)):
        raise ValueError(f"body has no place for {path}, expected an object or a list there")
    at[last] = value


def resolve(task: Task, base: str, link: str) -> Task:
    """The same request to the address that a link at `base` names. Raises ValueError.

    A link to http where the request went by https, at the same host, is taken for https: proxies make such links, and
    credentials must not travel in the open. Headers that may hold secrets do not go to another host.
    """
    url = urljoin(base, _BREAKS.sub(lambda found: quote(found[0]), link.strip()))
    if len(url) > LONGEST_URL:
        raise ValueError(f"an address of {len(url)} characters, expected at most {LONGEST_URL}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{redact_url(url)[:80]!r}, expected one that begins with https:// or http://")
    host = host_of(url)
    if host != task.host:
        kept = tuple(pair for pair in task.headers if not is_secret(pair[0]))
        return replace(task, url=urlunsplit(parts._replace(fragment="")), headers=kept, attempt=1)
    if task.url[:6].lower() == "https:" and parts.scheme == "http":
        parts = parts._replace(scheme="https", netloc=parts.netloc.removesuffix(":80"))
    return replace(task, url=urlunsplit(parts._replace(fragment="")), attempt=1)


def find_link(headers: Headers, relation: str) -> str | None:
    """The address of the first link of that relation (RFC 8288); links of another page than this do not count."""
    values = (value for name, value in headers if name.lower() == "link")
    return next((url for value in values for url, rels in _links(value) if relation.lower() in rels), None)


def _links(value: str) -> Iterable[tuple[str, list[str]]]:
    at = 0
    while found := _LINK.match(value, at):
        at, named = found.end(), dict[str, str]()
        while parameter := _PARAMETER.match(value, at):
            text = parameter["token"] if parameter["quoted"] is None else re.sub(r"\\(.)", r"\1", parameter["quoted"])
            named.setdefault(parameter["name"].lower(), text or "")  # the first of a name counts
            at = parameter.end()
        if "anchor" not in named:
            yield found["url"], named.get("rel", "").lower().split()
        at = value.find("<", at)
        if at < 0:
            return
