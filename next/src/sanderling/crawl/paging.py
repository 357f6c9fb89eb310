"""Paging: which request follows a page. Each kind is plain data that is stored with its request.

A walk never goes on for ever: a token or URL that came before, the same page twice in a row, or a hundred empty pages
is a `ValueError`, which says why nobody knows what follows.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec

from sanderling.crawl.meaning import Seen, check_expression
from sanderling.crawl.urls import absolute, param_of, put_param

LONGEST_TOKEN = 4000  # characters of a cursor
LARGEST = 2**53  # of offsets, page numbers and totals
MOST_EMPTY = 100  # pages in a row without an item; a host that never stops sends them for ever
REMEMBERED = 32  # tokens of a walk
DIGEST = 6  # bytes of each


class Target(NamedTuple):
    """What a request for a page is made of."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


class Chain(msgspec.Struct, frozen=True, array_like=True):
    """What a walk remembers from page to page."""

    page: int = 0  # pages before this one
    recent: tuple[bytes, ...] = ()  # digests of the last tokens or URLs
    items: bytes = b""  # digest of the last page's items
    start: bytes = b""  # and of the first page's
    empty: int = 0  # pages without items, in a row
    total: int = 0  # the largest that was seen

    def follow(self, token: str) -> "Chain":
        """The chain with one more token. Raises ValueError if it came before."""
        digest = _digest(token.encode(errors="surrogatepass"))
        if digest in self.recent:
            raise ValueError(f"page {self.page + 2} has a token or URL that came before: the pages go round in circles")
        return msgspec.structs.replace(self, page=self.page + 1, recent=(*self.recent[1 - REMEMBERED :], digest))

    def see(self, items: list[Any] | None) -> "Chain":
        """The chain with what was on this page. Raises ValueError for the same page again, or too many empty ones."""
        if items is None:
            return self
        if not items:
            if self.empty + 1 >= MOST_EMPTY:
                raise ValueError(f"{MOST_EMPTY} pages in a row without an item; stop_after_empty_page ends at one")
            return msgspec.structs.replace(self, items=b"", empty=self.empty + 1)
        digest = _digest(msgspec.json.encode(items))
        if digest in (self.items, self.start):
            which = "page before: the host ignores where we are" if digest == self.items else "first: they begin anew"
            raise ValueError(f"page {self.page + 1} has the same items as the {which}")
        return msgspec.structs.replace(self, items=digest, start=self.start or digest, empty=0)


class _Kind(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What all kinds have. `items` is where a page has its list, so that empty and repeated pages are known."""

    items: str = "body"

    def __post_init__(self) -> None:
        self._check("items")

    def _check(self, *names: str) -> None:
        """Raise ValueError for a field that is no expression."""
        for name in names:
            check_expression(name, getattr(self, name))

    def begin(self, target: Target) -> Target:
        """The request for the first page. Raises ValueError for one that does not fit."""
        return target

    def next(self, target: Target, seen: Seen, chain: Chain) -> tuple[Target, Chain] | None:
        """What follows the page that `target` brought; None at the end. Raises ValueError if nobody knows."""
        raise NotImplementedError

    def _list(self, seen: Seen) -> list[Any] | None:
        """The items of a page; None if it is not known where they are."""
        found = seen.find(self.items)
        if isinstance(found, list) or self.items == "body":
            return found if isinstance(found, list) else None
        above, _, last = self.items.rpartition(".")
        if found is None and isinstance(parent := seen.find(above) if above else None, dict) and last in parent:
            return []  # some write an empty list as null
        raise ValueError(f"{self.items} is {_shown(found, seen)}; expected the list of items")


class Single(_Kind, frozen=True, tag="single"):
    """There is one page."""

    def next(self, target: Target, seen: Seen, chain: Chain) -> None:
        """The end."""


class Cursor(_Kind, frozen=True, tag="cursor"):
    """Each page has a token that asks for the next: at `path`, like body.meta.next or headers."x-next".

    It goes into a query parameter, a path of the JSON body (or a field of the form), or a header. The end is a page for
    which `has_more` does not hold or, without one, a token that is null, "", 0 or false.
    """

    path: str
    param: str = ""
    body: str = ""
    header: str = ""
    has_more: str = ""
    stop_after_empty_page: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        self._check("items", "path", "has_more")
        _check_places("Cursor", param=self.param, body=self.body, header=self.header)

    def next(self, target: Target, seen: Seen, chain: Chain) -> tuple[Target, Chain] | None:
        """The same request with the token of this page."""
        chain = chain.see(self._list(seen))
        token = seen.find(self.path)
        if (self.has_more and not seen.holds(self.has_more)) or (self.stop_after_empty_page and chain.empty):
            return None
        if token in (None, False, "") or (token == 0 and not self.has_more):
            if self.has_more:
                raise ValueError(f"{self.path} is {_shown(token, seen)} though {self.has_more} holds; expected a token")
            return None
        if not isinstance(token, str | int | float) or isinstance(token, bool):
            raise ValueError(f"{self.path} is {_shown(token, seen)}; expected a text or a number")  # noqa: TRY004
        if len(str(token)) > LONGEST_TOKEN:
            raise ValueError(f"{self.path} has {len(str(token)):,} characters; expected at most {LONGEST_TOKEN:,}")
        if self.header:
            kept = [pair for pair in target.headers if pair[0].lower() != self.header.lower()]
            return target._replace(headers=(*kept, (self.header, str(token)))), chain.follow(str(token))
        return _put(target, self.param, self.body, token), chain.follow(str(token))


class _Counted(_Kind, frozen=True, kw_only=True):
    """What pages that are counted have in common: how they end."""

    total: str = ""
    has_more: str = ""
    maximum: int | None = None
    stop_after_empty_page: bool = True

    def _check_end(self) -> None:
        self._check("items", "total", "has_more")
        if self.maximum is not None and not 0 <= self.maximum <= LARGEST:
            raise ValueError(f"maximum is {self.maximum}; expected 0 to {LARGEST}")
        if not (self.stop_after_empty_page or self.total or self.has_more or self.maximum is not None):
            raise ValueError("nothing ends the walk; expected total, has_more, maximum or stop_after_empty_page")

    def _see(self, seen: Seen) -> int:
        """The total that a page names; 0 for none."""
        found = seen.find(self.total) if self.total else None
        if isinstance(found, str) and found.isdecimal() and len(found) < 16:
            found = int(found)
        if found is None:
            return 0
        if not isinstance(found, int | float) or isinstance(found, bool) or not -1 <= found <= LARGEST:
            raise ValueError(f"{self.total} is {_shown(found, seen)}; expected a number")
        return int(found)

    def _goes_on(self, seen: Seen, chain: Chain, following: int, behind: int) -> Chain | None:
        """The chain of the next page, which begins at `following`, `behind` the first; None if this was the last."""
        # The largest total counts: one that shrinks under a walk must not end it early.
        chain = msgspec.structs.replace(chain, page=chain.page + 1, total=max(chain.total, self._see(seen)))
        if (chain.empty and self.stop_after_empty_page) or (self.has_more and not seen.holds(self.has_more)):
            return None
        if following > (LARGEST if self.maximum is None else self.maximum) or (chain.total and behind >= chain.total):
            return None
        return chain


class Offset(_Counted, frozen=True, tag="offset"):
    """Each page begins `offset` items behind the first.

    The next offset is this one and as many items as came, not as many as were asked for: hosts cap the limit. The end
    is an empty page, the `total` number of items, a page for which `has_more` does not hold, or `maximum`.
    """

    limit: int
    first: int = 0
    offset_param: str = "offset"
    limit_param: str = "limit"  # "" if the limit is not to be sent
    offset_body: str = ""  # instead of the parameters
    limit_body: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        self._check_end()
        if not 1 <= self.limit <= LARGEST or not 0 <= self.first <= LARGEST:
            raise ValueError(f"limit is {self.limit} and first {self.first}; expected 1 or more and 0 or more")
        _check_places("Offset", offset_param="" if self.offset_body else self.offset_param, body=self.offset_body)

    def begin(self, target: Target) -> Target:
        """The request for the first page, with limit and offset where it has none of its own."""
        if self.limit_body and _found(target, "", self.limit_body) is None:
            target = _put(target, "", self.limit_body, self.limit)
        elif self.limit_param and not self.offset_body and _found(target, self.limit_param, "") is None:
            target = _put(target, self.limit_param, "", self.limit)
        return _begin(target, self.offset_param, self.offset_body, self.first)

    def next(self, target: Target, seen: Seen, chain: Chain) -> tuple[Target, Chain] | None:
        """The same request, further on by as many items as came."""
        items = _needed(self._list(seen), seen)
        at = _position(target, self.offset_param, self.offset_body, self.first)
        following = at + (len(items) or self.limit)
        after = self._goes_on(seen, chain.see(items), following, following - self.first)
        return None if after is None else (_put(target, self.offset_param, self.offset_body, following), after)


class PageNumber(_Counted, frozen=True, tag="page_number"):
    """Pages are numbered from `first`.

    The end is an empty page, the `total` number of pages, a page for which `has_more` does not hold, or `maximum`.
    """

    first: int = 1
    param: str = "page"
    body: str = ""  # instead of the parameter

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        self._check_end()
        if not 0 <= self.first <= LARGEST:
            raise ValueError(f"first is {self.first}; expected 0 or more")
        _check_places("PageNumber", param="" if self.body else self.param, body=self.body)

    def begin(self, target: Target) -> Target:
        """The request for the first page, with a number where it has none of its own."""
        return _begin(target, self.param, self.body, self.first)

    def next(self, target: Target, seen: Seen, chain: Chain) -> tuple[Target, Chain] | None:
        """The same request with the next number."""
        items = self._list(seen)
        if not (self.total or self.has_more):
            items = _needed(items, seen)
        following = _position(target, self.param, self.body, self.first) + 1
        after = self._goes_on(seen, chain.see(items), following, following - self.first)
        return None if after is None else (_put(target, self.param, self.body, following), after)


class NextUrl(_Kind, frozen=True, tag="next_url"):
    """Each page has the URL of the next, at `path`. The end is null or ""."""

    path: str

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        self._check("items", "path")

    def next(self, target: Target, seen: Seen, chain: Chain) -> tuple[Target, Chain] | None:
        """The request for that URL."""
        link = seen.find(self.path)
        chain = chain.see(self._list(seen))
        if link in (None, False, ""):
            return None
        if not isinstance(link, str):
            raise ValueError(f"{self.path} is {_shown(link, seen)}; expected a URL")  # noqa: TRY004 - a value
        return _go(target, seen, chain, link)


class LinkHeader(_Kind, frozen=True, tag="link_header"):
    """Each page has a header `Link: <URL>; rel="next"`."""

    rel: str = "next"

    def next(self, target: Target, seen: Seen, chain: Chain) -> tuple[Target, Chain] | None:
        """The request for that URL."""
        chain = chain.see(self._list(seen))
        link = link_of((value for name, value in seen.headers if name.lower() == "link"), self.rel)
        return None if link is None else _go(target, seen, chain, link)


Paging = Single | Cursor | Offset | PageNumber | NextUrl | LinkHeader


def _go(target: Target, seen: Seen, chain: Chain, link: str) -> tuple[Target, Chain]:
    if not chain.recent:
        chain = msgspec.structs.replace(chain, recent=(_digest(target.url.encode()),))
    url = absolute(link, seen.url)
    start = target.url.split("/", 3)
    if url.startswith(f"http://{start[2]}/") and start[0] == "https:":
        url = f"https{url[4:]}"  # a server behind a proxy does not know better
    return target._replace(url=url), chain.follow(url)


def link_of(headers: Iterable[str], rel: str) -> str | None:
    """The target of the first link with that relation: RFC 8288, read piece by piece."""
    for value in headers:
        rest = value[:20_000]
        while "<" in rest:
            link, _, rest = rest.partition("<")[2].partition(">")
            parameters, _, _ = rest.partition(",<") if ",<" in rest else rest.partition(", <")
            for parameter in parameters.split(";"):
                name, _, said = parameter.partition("=")
                if name.strip().lower() == "rel" and rel in said.strip(" \t,").strip('"').lower().split():
                    return link.strip()
    return None


def _needed(items: list[Any] | None, seen: Seen) -> list[Any]:
    if items is None:
        found = f"no JSON: {seen.error}" if seen.error else "an object"
        raise ValueError(f"the page is {found}; expected a list of items: say where it is with items")
    return items


def _shown(value: object, seen: Seen) -> str:
    """A value in few words; that the body is no JSON says more than that there is none."""
    if seen.error:
        return f"not there: the body is no JSON: {seen.error}"
    return "null" if value is None else msgspec.json.encode(value).decode()[:100]


def _check_places(kind: str, **places: str) -> None:
    given = [name for name, value in places.items() if value]
    if len(given) != 1:
        raise ValueError(f"{kind} has {' and '.join(given) or 'none'} of {', '.join(places)}; expected exactly one")


def _begin(target: Target, param: str, body: str, first: int) -> Target:
    if _found(target, param, body) is None:
        return _put(target, param, body, first)
    _position(target, param, body, first)
    return target


def _position(target: Target, param: str, body: str, first: int) -> int:
    """The number that a request asks for. Raises ValueError."""
    found = _found(target, param, body)
    if found is None:
        return first
    if isinstance(found, str) and found.isdecimal() and len(found) < 16:
        return int(found)
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= LARGEST:
        return found
    raise ValueError(f"{body or param} of the request is {found!r:.60}; expected a number from 0 up")


def _is_form(target: Target) -> bool:
    return any(name.lower() == "content-type" and "form-urlencoded" in value for name, value in target.headers)


def _found(target: Target, param: str, body: str) -> Any:  # noqa: ANN401 - any JSON
    """What a request has at a place of its body, or for a parameter."""
    if not body:
        return param_of(target.url, param)
    if _is_form(target):
        return dict(parse_qsl((target.body or b"").decode(), keep_blank_values=True)).get(body)
    found: Any = msgspec.json.decode(target.body or b"null")
    for name in body.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _put(target: Target, param: str, body: str, value: object) -> Target:
    """The request with a value at a place of its body, or for a parameter. Raises ValueError."""
    if not body:
        return target._replace(url=put_param(target.url, param, str(value)))
    if _is_form(target):
        pairs = dict(parse_qsl((target.body or b"").decode(), keep_blank_values=True))
        return target._replace(body=urlencode({**pairs, body: str(value)}).encode())
    document = msgspec.json.decode(target.body) if target.body else {}
    *above, last = body.split(".")
    place = document
    for name in above:
        if not isinstance(place, dict):
            break
        place = place.setdefault(name, {})
    if not isinstance(place, dict):
        raise ValueError(f"{body} is no place in the body of the request; expected an object there")  # noqa: TRY004
    place[last] = value
    return target._replace(body=msgspec.json.encode(document))


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST).digest()
