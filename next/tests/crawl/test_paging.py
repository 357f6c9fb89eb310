"""Each kind of paging: what follows a page, where it ends, and that no walk goes on for ever."""

from typing import Any

import msgspec
import pytest

from sanderling.crawl.meaning import Answers, Seen, check_expression
from sanderling.crawl.paging import (
    Chain,
    Cursor,
    LinkHeader,
    NextUrl,
    Offset,
    PageNumber,
    Paging,
    Single,
    Target,
)
from sanderling.outcome import Code

URL = "https://a.example/posts"
JSON = (("Content-Type", "application/json"),)
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)


def seen(document: object, url: str = URL, status: int = 200, error: str = "", **headers: str) -> Seen:
    said = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Seen(url, status, said, document, error)


def after(paging: Paging, target: Target, page: Seen, chain: Chain | None = None) -> str | None:
    found = paging.next(target, page, chain or Chain())
    if found is None:
        return None
    next_, _ = found
    return " ".join(
        [next_.url, *(f"{name}={value}" for name, value in next_.headers), (next_.body or b"").decode()]
    ).strip()


PAGES: list[tuple[Paging, Target, Seen, str | None]] = [
    (Single(), Target(URL), seen([1]), None),
    (Cursor("body.next", param="c"), Target(f"{URL}?a=1"), seen({"next": "x"}), f"{URL}?a=1&c=x"),
    (Cursor("body.next", param="c"), Target(f"{URL}?c=w"), seen({"next": 7}), f"{URL}?c=7"),
    *((Cursor("body.next", param="c"), Target(URL), seen({"next": end}), None) for end in (None, "", 0, False)),
    (Cursor("body[-1].id", param="c", has_more="headers.more"), Target(URL), seen([{"id": 3}], more="y"), f"{URL}?c=3"),
    (Cursor("body.id", param="c", has_more="body.more"), Target(URL), seen({"id": 3, "more": False}), None),
    (Cursor('headers."x-next"', header="X-After"), Target(URL), seen([1], X_Next="abc"), f"{URL} X-After=abc"),
    (
        Cursor("body.end", body="vars.after"),
        Target(URL, JSON, b'{"q":1}'),
        seen({"end": "e"}),
        f'{URL} Content-Type=application/json {{"q":1,"vars":{{"after":"e"}}}}',
    ),
    (
        Cursor("body.end", body="after"),
        Target(URL, FORM, b"q=1"),
        seen({"end": "e"}),
        f"{URL} {FORM[0][0]}={FORM[0][1]} q=1&after=e",
    ),
    (
        Cursor("body.n", param="c", items="body.i", stop_after_empty_page=True),
        Target(URL),
        seen({"n": 1, "i": []}),
        None,
    ),
    (Cursor("body.n", param="c", items="body.i"), Target(URL), seen({"n": 1, "i": None}), f"{URL}?c=1"),
    (Offset(100, items="body.data"), Target(f"{URL}?offset=5"), seen({"data": [1, 2]}), f"{URL}?offset=7"),
    (Offset(100, items="body.data"), Target(URL), seen({"data": []}), None),
    (Offset(2, items="body.data", total="body.n"), Target(f"{URL}?offset=4"), seen({"data": [1, 2], "n": "6"}), None),
    (Offset(2, maximum=3), Target(f"{URL}?offset=2"), seen([1, 2]), None),
    (
        Offset(9, offset_body="from", limit_body="size"),
        Target(URL, JSON, b'{"size":9}'),
        seen([1]),
        f'{URL} Content-Type=application/json {{"size":9,"from":1}}',
    ),
    (PageNumber(), Target(URL), seen([1]), f"{URL}?page=2"),
    (PageNumber(first=0, param="p", total="body.pages"), Target(f"{URL}?p=1"), seen({"pages": 2}), None),
    (PageNumber(has_more="body.more"), Target(URL), seen({"more": True}), f"{URL}?page=2"),
    (PageNumber(), Target(URL), seen([]), None),
    (NextUrl("body.next"), Target(URL), seen({"next": "?page=2"}), f"{URL}?page=2"),
    (NextUrl("body.next"), Target(URL), seen({"next": "http://a.example/p"}), "https://a.example/p"),
    (NextUrl("body.next"), Target(URL), seen({"next": None}), None),
    (
        LinkHeader(),
        Target(URL),
        seen([1], Link='</p>; rel="prev", <?page=2>; title="a, b"; rel="next last"'),
        f"{URL}?page=2",
    ),
    (LinkHeader(), Target(URL), seen([1], Link="</p>; rel=prev"), None),
    (LinkHeader(), Target(URL), seen([1]), None),
]


@pytest.mark.parametrize(("paging", "target", "page", "expected"), PAGES)
def test_what_follows_a_page(paging: Paging, target: Target, page: Seen, expected: str | None) -> None:
    assert after(paging, target, page) == expected


BAD: list[tuple[Paging, Target, Seen]] = [
    (Cursor("body.next", param="c"), Target(URL), seen({"next": {"a": 1}})),
    (Cursor("body.next", param="c", has_more="body.more"), Target(URL), seen({"more": True})),
    (Cursor("body.next", param="c"), Target(URL), seen({"next": "x" * 5000})),
    (Cursor("body.next", param="c", items="body.items"), Target(URL), seen({"next": "x"})),
    (Cursor("body.next", body="a.b"), Target(URL, JSON, b'{"a":1}'), seen({"next": "x"})),
    (Offset(1), Target(URL), seen({"error": "rate"})),
    (Offset(1), Target(f"{URL}?offset=x"), seen([1])),
    (Offset(1, total="body.n", items="body.i"), Target(URL), seen({"n": [1], "i": [1]})),
    (PageNumber(), Target(URL), seen(None, error="truncated")),
    (NextUrl("body.next"), Target(URL), seen({"next": 7})),
    (NextUrl("body.next"), Target(URL), seen({"next": "ftp://x/"})),
]


@pytest.mark.parametrize(("paging", "target", "page"), BAD)
def test_a_page_that_does_not_say_what_follows_fails(paging: Paging, target: Target, page: Seen) -> None:
    with pytest.raises(ValueError, match=r"."):
        after(paging, target, page)


def walk(paging: Paging, pages: list[object]) -> int:
    target, chain = paging.begin(Target(URL)), Chain()
    for number, document in enumerate(pages):
        found = paging.next(target, seen(document, target.url), chain)
        if found is None:
            return number
        target, chain = found
        chain = msgspec.msgpack.decode(msgspec.msgpack.encode(chain), type=Chain)
    return -1


CIRCLES: dict[str, tuple[Paging, list[object]]] = {
    "a token that came before": (Cursor("body.n", param="c"), [{"n": token} for token in "abca"]),
    "the same token again": (Cursor("body.n", param="c"), [{"n": "a"}, {"n": "a"}]),
    "the first page's URL": (NextUrl("body.n"), [{"n": "?p=2"}, {"n": "/posts"}]),
    "the same items": (PageNumber(), [[1], [2], [2]]),
    "the first page's items": (PageNumber(), [[1], [2], [1]]),
    "empty pages": (Cursor("body.n", param="c", items="body.i"), [{"n": at + 1, "i": []} for at in range(100)]),
}


@pytest.mark.parametrize("case", CIRCLES)
def test_a_walk_never_goes_round_in_circles(case: str) -> None:
    paging, pages = CIRCLES[case]

    assert walk(paging, pages[:-1]) == -1
    with pytest.raises(ValueError, match=r"came before|same items|without an item"):
        walk(paging, pages)


def test_a_total_that_shrinks_does_not_end_a_walk() -> None:
    paging = Offset(2, items="body.i", total="body.n")

    assert walk(paging, [{"i": [1, 2], "n": 6}, {"i": [3, 4], "n": 2}, {"i": [5, 6], "n": 2}]) == 2


def test_a_request_begins_where_it_says() -> None:
    assert Offset(9).begin(Target(URL)).url == f"{URL}?limit=9&offset=0"
    assert Offset(9).begin(Target(f"{URL}?offset=4&limit=2")).url == f"{URL}?offset=4&limit=2"
    assert PageNumber(param="p").begin(Target(URL)).url == f"{URL}?p=1"


def test_a_paging_is_stored() -> None:
    for paging, *_ in PAGES:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(paging), type=Paging) == paging


WRONG: list[Any] = [
    lambda: Cursor("body.a"),
    lambda: Cursor("body.a", param="c", header="d"),
    lambda: Cursor("a.b", param="c"),
    lambda: Cursor("body.[", param="c"),
    lambda: Offset(0),
    lambda: Offset(1, stop_after_empty_page=False),
    lambda: PageNumber(first=-1),
    lambda: PageNumber(maximum=-1),
    lambda: NextUrl("next"),
    lambda: Answers(error="error"),
    lambda: Answers(seconds="body.s"),
]


@pytest.mark.parametrize("make", WRONG)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|body"):
        make()


ANSWERS = Answers(
    refused="body.error.code == `17` || contains(body.error.message || '', 'limit')",
    seconds="body.error.retry_in",
    missing="status == `200` && body.data == null && !(body.error)",
    error="body.error",
    message="body.error.message",
)
MEANINGS: list[tuple[Seen, tuple[Code, float | None] | None]] = [
    (seen({"error": {"code": 17, "retry_in": 30}}), (Code.RATE_LIMITED, 30.0)),
    (seen({"error": {"code": 17, "retry_in": 0}}), (Code.RATE_LIMITED, 0.0)),
    (seen({"error": {"code": 17, "retry_in": 2_000_000_060}}), (Code.RATE_LIMITED, 60.0)),
    (seen({"error": {"code": 17}}), (Code.RATE_LIMITED, None)),
    (seen({"error": {"message": "a limit"}}), (Code.RATE_LIMITED, None)),
    (seen({"data": None}), (Code.CONTENT_NOT_FOUND, None)),
    (seen({"error": {"message": "locked"}}), (Code.HOST_UNAVAILABLE, None)),
    (seen(None, error="truncated"), (Code.HOST_UNAVAILABLE, None)),
    (seen(None, error="truncated", status=502), None),
    (seen({"data": 1}), None),
]


@pytest.mark.parametrize(("page", "expected"), MEANINGS)
def test_what_a_response_means(page: Seen, expected: tuple[Code, float | None] | None) -> None:
    found = ANSWERS.read(page, wall=2_000_000_000.0)

    assert (found and (found.code, found.retry_after)) == expected


def test_the_reason_is_the_messages() -> None:
    found = ANSWERS.read(seen({"error": {"message": "the index is broken"}}), 0.0)

    assert found is not None
    assert "the index is broken" in found.detail


@pytest.mark.parametrize("expression", ["body.a[", "error", "body | f(@) ||", "!body.error"])
def test_a_wrong_expression_is_refused_with_its_place(expression: str) -> None:
    with pytest.raises(ValueError, match="refused"):
        check_expression("refused", expression)
