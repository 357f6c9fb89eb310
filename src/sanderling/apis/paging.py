"""Paging: which request follows a page. Each kind is a value that can be stored as JSON, and pure.

    task, chain = paging.begin(Task("https://a.example/posts")), Chain()
    following = paging.next(task, JsonReply(reply), chain)     # a NextPage, None at the end, or an Outcome

`Chain` is what a walk remembers from page to page; it is stored with the next request. An Outcome says why nobody knows
what follows the page: then the page has failed, and can be asked for again with the same chain. A walk never goes round
in circles: a token or address that came before is such an Outcome, and so is the same page twice in a row or a hundred
empty ones.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import msgspec

from sanderling.apis.conditions import JsonReply, check_setting, find_value, parse_subject, reply_condition
from sanderling.apis.json_paths import Path, is_number, show_value
from sanderling.apis.paging_chain import Chain, digest_of
from sanderling.apis.request_parts import (
    find_in_body,
    find_link,
    find_param,
    put_header,
    put_in_body,
    put_param,
    resolve,
)
from sanderling.outcome import Code, Outcome
from sanderling.task import Task

LONGEST_TOKEN = 4000  # characters of a cursor
LARGEST = 2**53  # of offsets, page numbers and totals
LONGEST_DETAIL = 200

_path = lru_cache(maxsize=256)(Path.parse)


class NextPage(NamedTuple):
    """The request for the next page, and what to remember with it."""

    task: Task
    chain: Chain


Following = NextPage | Outcome | None


class _Kind(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """What all kinds have. `items` is where a page has its list, so that empty and repeated pages are known."""

    items: str = "."

    def __post_init__(self) -> None:
        check_setting("items", self.items, _path)

    def begin(self, task: Task) -> Task:
        """The request for the first page. Raises ValueError for one that does not fit."""
        return task

    def next(self, task: Task, reply: JsonReply, chain: Chain) -> Following:
        """What follows the page that `task` brought, at whatever host. Never raises."""
        try:
            return self._next(task, reply, chain.see(self._items(reply), reply.reply.body))
        except ValueError as error:
            status = reply.reply.status if reply.reply.status <= 599 else 0
            return Outcome(Code.INVALID_RESPONSE, status, f"paging: {error}"[:LONGEST_DETAIL])

    def _next(self, task: Task, reply: JsonReply, chain: Chain) -> Following:
        raise NotImplementedError

    def _items(self, reply: JsonReply) -> list[object] | None:
        """The items of a page; None if it is not known where they are. Raises ValueError where they should be."""
        path, document = _path(self.items), reply.document
        found = path.find(document)
        if isinstance(found, list):
            return found
        if not path.steps:
            return None
        if found is None and _is_there(path, document):
            return []  # some write an empty list as null
        raise ValueError(f"{path} is {_shown(found, reply)}, expected the list of items")


class Single(_Kind, frozen=True, tag="single"):
    """There is one page."""

    def _next(self, task: Task, reply: JsonReply, chain: Chain) -> Following:  # noqa: ARG002
        return None


class Cursor(_Kind, frozen=True, tag="cursor"):
    """Each page has a token that asks for the next: at `path`, which may be header.x-name or that of the last item.

    It goes into a query parameter, a path of the body (or field of a form) or a header. The end is a page for which the
    condition `has_more` does not hold or, without one, a token that is null, "", 0 or false.
    """

    path: str
    param: str = ""
    body: str = ""
    header: str = ""
    has_more: str = ""
    stop_after_empty_page: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _Kind.__post_init__(self)
        check_setting("path", self.path, parse_subject)
        _check_place("Cursor", {"param": self.param, "body": self.body, "header": self.header})
        check_setting("body", self.body or "a", _body_path)
        check_setting("has_more", self.has_more or ".", reply_condition)

    def _next(self, task: Task, reply: JsonReply, chain: Chain) -> Following:
        token = find_value(self.path, reply)
        if self.has_more and not reply_condition(self.has_more).holds(reply):
            return None
        if self.stop_after_empty_page and chain.empty:
            return None
        if token is None or token is False or token == "":
            if self.has_more:
                raise ValueError(
                    f"{self.path} is {_shown(token, reply)} though {self.has_more} holds, expected a token"
                )
            return None
        if token == 0 and not self.has_more:
            return None  # some write the end so
        if not isinstance(token, str | int | float) or isinstance(token, bool):
            raise ValueError(f"{self.path} is {_shown(token, reply)}, expected a text or a number")  # noqa: TRY004
        if len(str(token)) > LONGEST_TOKEN:
            raise ValueError(f"{self.path} has {len(str(token))} characters, expected at most {LONGEST_TOKEN}")
        return NextPage(_put(self, task, token), chain.follow(str(token)))


class _Counted(_Kind, frozen=True, kw_only=True):
    """What pages that are counted have in common: how they end."""

    total: str = ""
    has_more: str = ""
    maximum: int | None = None
    stop_after_empty_page: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _Kind.__post_init__(self)
        check_setting("total", self.total or ".", parse_subject)
        check_setting("has_more", self.has_more or ".", reply_condition)
        if self.maximum is not None and not 0 <= self.maximum <= LARGEST:
            raise ValueError(f"maximum is {self.maximum}, expected 0 to {LARGEST}")
        if not (self.stop_after_empty_page or self.total or self.has_more or self.maximum is not None):
            raise ValueError("nothing ends the walk; expected total, has_more, maximum or stop_after_empty_page")

    def _count(self, reply: JsonReply, chain: Chain) -> Chain:
        """The chain with the largest total so far: one that shrinks under a walk must not end it early."""
        found = find_value(self.total, reply) if self.total else None
        if isinstance(found, str) and found.isdecimal() and len(found) < 16:
            found = int(found)
        if found is None:
            return chain
        if not is_number(found) or not -1 <= found <= LARGEST:
            raise ValueError(f"{self.total} is {_shown(found, reply)}, expected a number")
        return msgspec.structs.replace(chain, total=max(chain.total, int(found)))

    def _ends(self, reply: JsonReply, chain: Chain, following: int) -> bool:
        """Whether the page was the last, by all but its total; the next would be `following`."""
        if chain.empty and self.stop_after_empty_page:
            return True
        if self.has_more and not reply_condition(self.has_more).holds(reply):
            return True
        return following > (LARGEST if self.maximum is None else self.maximum)


class Offset(_Counted, frozen=True, tag="offset"):
    """Each page begins `offset` items behind the first.

    The next offset is this one and as many items as came, not as many as were asked for: hosts cap the limit. The end
    is an empty page, the `total` number of items (a path), a page for which `has_more` does not hold, or `maximum`.
    """

    limit: int
    first: int = 0
    offset_param: str = "offset"
    limit_param: str = "limit"  # "" if the limit is not to be sent
    offset_body: str = ""  # instead of the parameters
    limit_body: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _Counted.__post_init__(self)
        if not 1 <= self.limit <= LARGEST or not 0 <= self.first <= LARGEST:
            raise ValueError(f"limit is {self.limit} and first {self.first}, expected 1 or more and 0 or more")
        _check_place(
            "Offset", {"offset_param": "" if self.offset_body else self.offset_param, "offset_body": self.offset_body}
        )
        for name in ("offset_body", "limit_body"):
            check_setting(name, getattr(self, name) or "a", _body_path)

    def begin(self, task: Task) -> Task:
        """The request for the first page, with limit and offset where it has none of its own. Raises ValueError."""
        if self.limit_body and find_in_body(task, _path(self.limit_body)) is None:
            task = put_in_body(task, _path(self.limit_body), self.limit)
        elif self.limit_param and not self.offset_body and find_param(task.url, self.limit_param) is None:
            task = put_param(task, self.limit_param, str(self.limit))
        return _begin(task, self.offset_param, self.offset_body, self.first)

    def _next(self, task: Task, reply: JsonReply, chain: Chain) -> Following:
        items = self._items(reply)
        if items is None:
            found = "is an object" if reply.is_json else reply.error
            raise ValueError(f"the page {found}, expected a list of items; say where it is with items")
        at = _position(task, self.offset_param, self.offset_body, self.first)
        chain = self._count(reply, chain)
        following = at + (len(items) or self.limit)
        if self._ends(reply, chain, following) or (chain.total and following - self.first >= chain.total):
            return None
        return NextPage(_move(task, self.offset_param, self.offset_body, following), _turn(chain))


class PageNumber(_Counted, frozen=True, tag="page_number"):
    """Pages are numbered from `first`.

    The end is an empty page, the `total` number of pages (a path), a page for which `has_more` does not hold, or the
    page `maximum`.
    """

    first: int = 1
    param: str = "page"
    body: str = ""  # instead of the parameter

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _Counted.__post_init__(self)
        if not 0 <= self.first <= LARGEST:
            raise ValueError(f"first is {self.first}, expected 0 or more")
        _check_place("PageNumber", {"param": "" if self.body else self.param, "body": self.body})
        check_setting("body", self.body or "a", _body_path)

    def begin(self, task: Task) -> Task:
        """The request for the first page, with a number where it has none of its own. Raises ValueError."""
        return _begin(task, self.param, self.body, self.first)

    def _next(self, task: Task, reply: JsonReply, chain: Chain) -> Following:
        if not (self.total or self.has_more) and self._items(reply) is None:
            found = "is an object" if reply.is_json else reply.error
            raise ValueError(f"the page {found}, expected a list of items; say where it is with items")
        following = _position(task, self.param, self.body, self.first) + 1
        chain = self._count(reply, chain)
        if self._ends(reply, chain, following) or (chain.total and following - self.first >= chain.total):
            return None
        return NextPage(_move(task, self.param, self.body, following), _turn(chain))


class NextUrl(_Kind, frozen=True, tag="next_url"):
    """Each page has the address of the next, at `path`; relative ones are resolved. The end is null or ""."""

    path: str

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _Kind.__post_init__(self)
        check_setting("path", self.path, parse_subject)

    def _next(self, task: Task, reply: JsonReply, chain: Chain) -> Following:
        link = find_value(self.path, reply)
        if link is None or link is False or link == "":
            return None
        if not isinstance(link, str):
            raise ValueError(f"{self.path} is {_shown(link, reply)}, expected an address")  # noqa: TRY004 - a value
        return _go(task, reply, chain, link)


class LinkHeader(_Kind, frozen=True, tag="link_header"):
    """Each page has a header `Link: <address>; rel="next"`."""

    rel: str = "next"

    def _next(self, task: Task, reply: JsonReply, chain: Chain) -> Following:
        link = find_link(reply.reply.headers, self.rel)
        return None if link is None else _go(task, reply, chain, link)


Paging = Single | Cursor | Offset | PageNumber | NextUrl | LinkHeader


def _go(task: Task, reply: JsonReply, chain: Chain, link: str) -> Following:
    """The next page by its address."""
    if not chain.recent:
        chain = msgspec.structs.replace(chain, recent=digest_of(task.url.encode()))
    try:
        following = resolve(task, reply.reply.url, link)
    except ValueError as error:
        raise ValueError(f"the next page is at no http address: {error}") from None
    return NextPage(following, chain.follow(following.url))


def _shown(value: object, reply: JsonReply) -> str:
    """A value in few words; that the body is no JSON says more than that there is none."""
    return show_value(value) if reply.is_json else f"not there: the body {reply.error}"


def _is_there(path: Path, document: object) -> bool:
    """Whether the document has a value there, be it null."""
    above, last = Path(path.steps[:-1]).find(document), path.steps[-1]
    return isinstance(above, dict) and last in above


def _body_path(text: str) -> Path:
    path = _path(text)
    if path.many or not path.steps:
        raise ValueError(f"{text!r} is many places or all of the body, expected one place in it")
    return path


def _check_place(kind: str, places: dict[str, str]) -> None:
    given = [name for name, value in places.items() if value]
    if len(given) != 1:
        raise ValueError(f"{kind} has {' and '.join(given) or 'none'} of {', '.join(places)}, expected exactly one")


def _put(cursor: Cursor, task: Task, token: str | float) -> Task:
    if cursor.body:
        return replace(put_in_body(task, _path(cursor.body), token), attempt=1)
    if cursor.header:
        return replace(put_header(task, cursor.header, str(token)), attempt=1)
    return replace(put_param(task, cursor.param, str(token)), attempt=1)


def _turn(chain: Chain) -> Chain:
    return msgspec.structs.replace(chain, page=chain.page + 1)


def _position(task: Task, param: str, body: str, first: int) -> int:
    """The number that a request asks for. Raises ValueError."""
    found = find_in_body(task, _path(body)) if body else find_param(task.url, param)
    if found is None:
        return first
    if isinstance(found, str) and found.isdecimal() and len(found) < 16:
        return int(found)
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= LARGEST:
        return found
    raise ValueError(f"{body or param} of the request is {show_value(found)}, expected a number from 0 up")


def _move(task: Task, param: str, body: str, number: int) -> Task:
    moved = put_in_body(task, _path(body), number) if body else put_param(task, param, str(number))
    return replace(moved, attempt=1)


def _begin(task: Task, param: str, body: str, first: int) -> Task:
    """The request with a number where it has none. Raises ValueError."""
    has = find_in_body(task, _path(body)) if body else find_param(task.url, param)
    return task if has is not None and _position(task, param, body, first) >= 0 else _move(task, param, body, first)
