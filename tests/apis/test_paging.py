"""Paging: every kind collects everything from a world that behaves, and ends in one that does not."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, parse_qsl, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.conditions import JsonReply
from sanderling.apis.paging import (
    Cursor,
    Following,
    LinkHeader,
    NextPage,
    NextUrl,
    Offset,
    PageNumber,
    Paging,
    Single,
)
from sanderling.apis.paging_chain import MOST_EMPTY, Chain
from sanderling.outcome import Code, Outcome
from sanderling.task import Headers, Reply, Task

URL = "https://a.example/posts"
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)


def reply(document: object, headers: Headers = (), url: str = URL) -> Reply:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Reply(200, headers, body, url, 0.1)


@dataclass
class Walk:
    """A walk over the pages that a function of the request serves; each step goes through JSON, as a frontier does."""

    pages: list[Task] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    end: Following = None

    @classmethod
    def over(cls, paging: Paging, serve: Callable[[Task], Reply], start: Task | None = None, most: int = 400) -> "Walk":
        walk, chain = cls(), Chain()
        task = paging.begin(start or Task(URL))
        while len(walk.pages) < most:
            walk.pages.append(task)
            walk.replies.append(serve(task))
            paging = msgspec.json.decode(msgspec.json.encode(paging), type=Paging)
            walk.end = paging.next(task, JsonReply(walk.replies[-1]), chain)
            if not isinstance(walk.end, NextPage):
                return walk
            task, chain = walk.end.task, msgspec.json.decode(msgspec.json.encode(walk.end.chain), type=Chain)
        raise AssertionError(f"no end after {most} pages: {task}")

    @property
    def items(self) -> list[int]:
        found = (json.loads(each.body) for each in self.replies)
        return [item for page in found for item in (page if isinstance(page, list) else page["data"] or [])]

    @property
    def why(self) -> str:
        assert isinstance(self.end, Outcome)
        return self.end.detail


def query(task: Task, name: str) -> str | None:
    return parse_qs(urlsplit(task.url).query).get(name, [None])[0]


def posted(task: Task) -> dict[str, object]:
    document: dict[str, object] = json.loads(task.body or b"{}")
    return document


# Of each kind: the paging, the request, where a request says how far it is, and what a page says of the next.
Says = Callable[[list[int], int, int], Reply]
Kind = tuple[Paging, Task, Callable[[Task], int], Says]


def after(items: list[int], end: int, total: int) -> int | None:
    return end if items and end < total else None


def cursor(where: Callable[[Task], object]) -> Callable[[Task], int]:
    return lambda task: int(str(where(task) or 0))


def in_body(items: list[int], end: int, total: int) -> Reply:
    return reply({"data": items, "meta": {"next": after(items, end, total)}})


POST = Task(URL, "POST", (("Content-Type", "application/json"),), b'{"query": {"a": 1}}')
KINDS: dict[str, Kind] = {
    "cursor in the query": (
        Cursor("meta.next", param="c"),
        Task(f"{URL}?limit=9&c=0"),
        cursor(lambda t: query(t, "c")),
        in_body,
    ),
    "cursor in a body": (
        Cursor("meta.next", body="query.after"),
        POST,
        cursor(lambda t: posted(t)["query"].get("after")),  # type: ignore[attr-defined]
        in_body,
    ),
    "cursor in a form": (
        Cursor("meta.next", body="after"),
        Task(URL, "POST", FORM, b"q=a+b&after="),
        cursor(lambda t: dict(parse_qsl((t.body or b"").decode())).get("after")),
        in_body,
    ),
    "cursor in headers": (
        Cursor("header.x-next", header="X-After"),
        Task(URL),
        cursor(lambda t: dict(t.headers).get("X-After")),
        lambda items, end, total: reply(items, (("X-Next", str(after(items, end, total) or "")),)),
    ),
    "the last item": (
        Cursor("data[-1]", param="after", has_more="more"),
        Task(URL),
        cursor(lambda t: int(query(t, "after") or -1) + 1),
        lambda items, end, total: reply({"data": items, "more": after(items, end, total) is not None}),
    ),
    "never-null cursor, empty page": (
        Cursor("next", param="c", items="data", stop_after_empty_page=True),
        Task(URL),
        cursor(lambda t: query(t, "c")),
        lambda items, end, total: reply({"data": items or None, "next": end or 1}),  # noqa: ARG005
    ),
    "offset to an empty page": (
        Offset(7),
        Task(URL),
        cursor(lambda t: query(t, "offset")),
        lambda items, end, total: reply(items),  # noqa: ARG005
    ),
    "offset and total": (
        Offset(7, items="data", total="total", offset_param="skip", limit_param="take"),
        Task(URL),
        cursor(lambda t: query(t, "skip")),
        lambda items, end, total: reply({"data": items, "total": str(total)}),  # noqa: ARG005
    ),
    "offset in a body": (
        Offset(7, items="data", has_more="more", offset_body="page.from", limit_body="page.size"),
        POST,
        cursor(lambda t: posted(t)["page"]["from"]),  # type: ignore[index]
        lambda items, end, total: reply({"data": items, "more": end < total}),
    ),
    "next URL": (
        NextUrl("next"),
        Task(f"{URL}?at=0"),
        cursor(lambda t: query(t, "at")),
        lambda items, end, total: reply({"data": items, "next": after(items, end, total) and f"?at={end}"}),
    ),
    "link header": (
        LinkHeader(),
        Task(f"{URL}?at=0"),
        cursor(lambda t: query(t, "at")),
        lambda items, end, total: reply(
            items,
            (("Link", f'</x>; rel="first", <http://a.example/posts?at={end}#f>; title="a,<b>"; rel="last next"'),)
            if after(items, end, total)
            else (),
        ),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@given(total=st.integers(0, 60), cap=st.integers(1, 9))
def test_every_kind_brings_everything_once(kind: str, total: int, cap: int) -> None:
    """The host caps pages at `cap` items, whatever limit was asked for."""
    paging, start, place, says = KINDS[kind]

    def serve(task: Task) -> Reply:
        at = place(task)
        return says(list(range(at, min(at + cap, total))), min(at + cap, total), total)

    walk = Walk.over(paging, serve, start)

    assert walk.end is None
    assert walk.items == list(range(total))
    assert len(walk.pages) <= total // cap + 2
    assert {(task.method, task.host) for task in walk.pages} == {(start.method, "a.example")}
    assert all(task.url.startswith("https:") for task in walk.pages)


@pytest.mark.parametrize("first", [0, 1, 5])
@given(pages=st.integers(0, 12), total=st.booleans())
def test_page_numbers_bring_everything_once(first: int, pages: int, total: bool) -> None:  # noqa: FBT001 - drawn
    paging = PageNumber(first=first, param="p", items="data", total="pages" if total else "")

    def serve(task: Task) -> Reply:
        page = int(query(task, "p") or -1) - first
        return reply({"data": [page] if page < pages else [], "pages": pages})

    walk = Walk.over(paging, serve)

    assert (walk.end, walk.items) == (None, list(range(pages)))
    assert len(walk.pages) == (max(pages, 1) if total else pages + 1)


def test_a_body_keeps_what_it_had_and_a_query_too() -> None:
    task = Task(f"{URL}?q=a%20b&empty=&cursor=old&q=2", "POST", (), b'{"a": [1, {"b": null}]}')

    into_query = Cursor("next", param="cursor").next(task, JsonReply(reply({"next": "x&y z"})), Chain())
    into_body = Cursor("next", body="a[1].b.c").next(task, JsonReply(reply({"next": 7})), Chain())

    assert isinstance(into_query, NextPage)
    assert into_query.task.url == f"{URL}?q=a%20b&empty=&q=2&cursor=x%26y+z"
    assert isinstance(into_body, NextPage)
    assert json.loads(into_body.task.body or b"") == {"a": [1, {"b": {"c": 7}}]}
    assert into_body.task.headers == (("Content-Type", "application/json"),)


@pytest.mark.parametrize(
    ("paging", "pages", "why"),
    [
        (Cursor("next", param="c"), [{"next": "a"}], "page 3 has a token or address that came on the page before"),
        (Cursor("next", param="c"), [{"next": "a"}, {"next": "b"}, {"next": "c"}], "came on an earlier page"),
        (Cursor("next", param="c"), [{"next": str(n)} for n in range(50)], "came on an earlier page"),
        (NextUrl("next"), [{"next": URL}], "came on the page before"),
        (NextUrl("next"), [{"next": "?b"}, {"next": "?a"}], "came on an earlier page"),
        (Offset(2), [[1, 2]], "page 2 has the same items as the page before"),
        (PageNumber(), [[1, 2]], "page 2 has the same items as the page before"),
        (PageNumber(), [[n] for n in range(99)], "page 100 has the same items as the first: they begin anew"),
        (Offset(1), [[10**400], [2]], "page 3 has the same items as the first"),
        (Cursor("next", param="c", items="d"), [{"d": [1], "next": n} for n in range(1, 9)], "the same items"),
    ],
)
def test_a_walk_that_goes_round_in_circles_ends_with_a_reason(paging: Paging, pages: list[object], why: str) -> None:
    served = itertools.cycle(pages)

    walk = Walk.over(paging, lambda _: reply(next(served)), most=200)

    assert isinstance(walk.end, Outcome)
    assert walk.end.code is Code.INVALID_RESPONSE
    assert why in walk.why


@given(st.integers(1, 300), st.integers(1, 200))
def test_a_circle_of_any_length_is_found(before: int, length: int) -> None:
    chain = Chain()
    try:
        for step in range(4 * (before + length) + 8):
            chain = chain.follow(str(step if step < before else before + (step - before) % length))
        pytest.fail("no end")
    except ValueError as error:
        assert "round in circles" in str(error)  # noqa: PT017 - how far it came counts, too

    assert chain.page >= before + length - 1  # never before it is one
    assert chain.page <= before + length + 1 or length > 32  # and at once, if it is short
    assert len(msgspec.json.encode(chain)) < 600


@pytest.mark.parametrize(
    "paging", [Cursor("next", param="c", items="d"), PageNumber(items="d", has_more="m", stop_after_empty_page=False)]
)
def test_empty_pages_without_end_are_an_error(paging: Paging) -> None:
    tokens = itertools.count(1)

    walk = Walk.over(paging, lambda _: reply({"d": [], "next": next(tokens), "m": True}))

    assert len(walk.pages) == MOST_EMPTY
    assert "pages in a row without an item; set stop_after_empty_page" in walk.why


def test_an_empty_page_is_no_end_for_a_cursor() -> None:
    pages = iter([{"d": [1], "next": 1}, {"d": [], "next": 2}, {"d": [2], "next": None}])

    assert len(Walk.over(Cursor("next", param="c", items="d"), lambda _: reply(next(pages))).pages) == 3


def test_a_total_that_shrinks_ends_no_walk_early() -> None:
    """Items go while the walk is under way: the total falls, and what is left is still there."""
    totals = iter([6, 3, 0])

    def serve(task: Task) -> Reply:
        at = int(query(task, "offset") or 0)
        return reply({"data": list(range(at, min(at + 2, 6))), "total": next(totals)})

    walk = Walk.over(Offset(2, items="data", total="total"), serve)

    assert (walk.end, walk.items) == (None, list(range(6)))


def test_a_maximum_ends_the_walk() -> None:
    def serve(task: Task) -> Reply:
        return reply([query(task, "offset"), query(task, "page")])

    assert [query(task, "offset") for task in Walk.over(Offset(2, maximum=4), serve).pages] == ["0", "2", "4"]
    assert [query(task, "page") for task in Walk.over(PageNumber(maximum=2), serve).pages] == ["1", "2"]


def test_a_walk_begins_where_the_request_says() -> None:
    walk = Walk.over(
        Offset(2, maximum=11), lambda task: reply([query(task, "offset")]), Task(f"{URL}?limit=1&offset=10")
    )

    assert [task.url for task in walk.pages] == [f"{URL}?limit=1&offset=10", f"{URL}?limit=1&offset=11"]
    with pytest.raises(ValueError, match="offset of the request is 'x', expected a number from 0 up"):
        Offset(2).begin(Task(f"{URL}?offset=x"))
    with pytest.raises(ValueError, match=r"body for a\.example is no JSON"):
        PageNumber(body="page").begin(Task(URL, "POST", (), b"<xml>"))


@pytest.mark.parametrize(
    ("paging", "document", "why"),
    [
        (Cursor("next", param="c"), {"next": {"a": 1}}, "next is an object, expected a text or a number"),
        (Cursor("next", param="c"), {"next": True}, "next is true, expected a text or a number"),
        (Cursor("next", param="c"), {"next": "x" * 5000}, "next has 5000 characters, expected at most 4000"),
        (Cursor("next", header="X-C"), {"next": "a\r\nb"}, "header X-C has a line break"),
        (
            Cursor("next", param="c", has_more="more"),
            {"more": True},
            "next is null though more holds, expected a token",
        ),
        (Cursor("next", param="c", items="data"), {"error": "busy"}, "data is null, expected the list of items"),
        (
            Cursor("next", param="c", items="data"),
            b"<html>",
            "data is not there: the body is no JSON: invalid character (byte 0)",
        ),
        (Cursor("next", body="a.b"), {"next": "x"}, "body has no place for a.b, expected an object"),
        (Offset(2), {"data": []}, "the page is an object, expected a list of items; say where it is with items"),
        (Offset(2), b"", "the page is empty, expected a list of items"),
        (Offset(2, items="data"), {"data": {}}, "data is an object, expected the list of items"),
        (PageNumber(items="a", total="t"), {"a": [1], "t": "many"}, "t is 'many', expected a number"),
        (PageNumber(items="a", total="t"), {"a": [1], "t": 10**300}, "expected a number"),
        (PageNumber(), {"error": "rate limit"}, "the page is an object, expected a list of items"),
        (NextUrl("next"), {"next": 7}, "next is 7, expected an address"),
        (
            NextUrl("next"),
            {"next": "ftp://a.example/"},
            "at no http address: 'ftp://a.example/', expected one that begins with https:// or http://",
        ),
        (NextUrl("next"), {"next": "file:///etc/hosts"}, "no http address: 'file:///etc/hosts', expected one"),
        (NextUrl("next"), {"next": "javascript:next()"}, "no http address: 'javascript:next()', expected one"),
        (NextUrl("next"), {"next": "http://[::1"}, "the next page is at no http address"),
        (NextUrl("next"), {"next": "https://u:p@a.example/"}, "the next page is at no http address"),
        (NextUrl("next"), {"next": "?" + "x" * 9000}, "expected at most 8000"),
    ],
)
def test_a_page_that_says_nonsense_of_the_next_is_an_error(paging: Paging, document: object, why: str) -> None:
    task = Task(URL, "POST", (), b'{"a": 1}')

    end = paging.next(task, JsonReply(reply(document)), Chain())

    assert isinstance(end, Outcome)
    assert end.code is Code.INVALID_RESPONSE
    assert why in end.detail
    assert end.detail.startswith("paging: ")


def test_secrets_do_not_go_to_another_host() -> None:
    task = Task(URL, headers=(("Authorization", "Bearer x"), ("X-Auth-Token", "t"), ("Accept", "a")))

    there = NextUrl("next").next(task, JsonReply(reply({"next": "https://b.example/2 3#x"})), Chain())
    here = NextUrl("next").next(task, JsonReply(reply({"next": "http://a.example:80/2"})), Chain())

    assert isinstance(there, NextPage)
    assert (there.task.url, there.task.headers) == ("https://b.example/2%203", (("Accept", "a"),))
    assert isinstance(here, NextPage)
    assert (here.task.url, here.task.headers) == ("https://a.example/2", task.headers)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("<2>; rel=next", "2"),
        ('<2>;rel="NEXT"', "2"),
        ('<a,b;c>; rel="prev", <2>; title="x, y; rel=next"; rel="start next"', "2"),
        ("<1>; rel=prev; rel=next, <2>; rel=next", "2"),
        ('<1>; rel=next; anchor="#a", <2>; rel=next', "2"),
        ("<1>, <2>; rel=nexts", None),
        ("rel=next", None),
        ("<2; rel=next", None),
        ('<1>; rel="next', None),
        ("", None),
        ("<" * 5000, None),
    ],
)
def test_a_link_header_is_read_as_the_standard_says(value: str, found: str | None) -> None:
    end = LinkHeader().next(Task(URL), JsonReply(reply([], (("link", value),))), Chain())

    assert (end.task.url if isinstance(end, NextPage) else end) == (found and f"https://a.example/{found}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "next", "data"]), inner, max_size=3)
    ),
    max_leaves=8,
)
ALL = [each[0] for each in KINDS.values()] + [PageNumber(items="data"), Single(), NextUrl("header.location")]


@given(st.sampled_from(ALL), JSON.map(lambda each: json.dumps(each).encode()) | st.binary(), st.text(max_size=60))
def test_no_reply_makes_paging_raise(paging: Paging, body: bytes, header: str) -> None:
    answer = reply(body, (("Link", header), ("Location", header), ("X-Next", header)))

    end = paging.next(Task(URL), JsonReply(answer), Chain())

    assert end is None or isinstance(end, NextPage | Outcome)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Cursor("a..b", param="c"), "path: 'a..b', at character 2: found '..b', expected a path"),
        (lambda: Cursor("a"), "Cursor has none of param, body, header, expected exactly one"),
        (lambda: Cursor("a", param="b", header="c"), "Cursor has param and header of param, body, header"),
        (lambda: Cursor("a", body="b[*]"), "body: 'b[*]' is many places"),
        (lambda: Cursor("a", param="b", has_more="("), "has_more: '(', at character 2: found the end"),
        (lambda: Cursor("a", param="b", items=""), "items: '', at character 1"),
        (lambda: Offset(0), "limit is 0 and first 0, expected 1 or more"),
        (lambda: Offset(1, maximum=-1), "maximum is -1, expected 0 to"),
        (lambda: Offset(1, stop_after_empty_page=False), "nothing ends the walk"),
        (lambda: Offset(1, offset_param=""), "Offset has none of offset_param, offset_body"),
        (lambda: PageNumber(first=-1), "first is -1, expected 0 or more"),
        (lambda: NextUrl("status.a"), "path: 'status.a', at character 1"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Paging], why: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - compared below
        make()

    assert why in str(refused.value)
