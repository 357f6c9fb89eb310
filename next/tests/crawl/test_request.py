"""Each row of the table of requests, what values may be, and by what a request is known."""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pytest

from sanderling.crawl.paging import Cursor
from sanderling.crawl.request import Request, Stored, request_key
from sanderling.crawl.urls import param_of, put_param
from sanderling.crawl.values import encode_value

URL = "https://a.example/x"


@dataclass
class Point:
    x: int
    name: str = "p"


class Colour(Enum):
    RED = "red"


class Item(msgspec.Struct):
    price: Decimal


VALUES: list[tuple[object, object]] = [
    ({"a": (1, 2.5, None, True, "ż")}, {"a": [1, 2.5, None, True, "ż"]}),
    (Point(1), {"x": 1, "name": "p"}),
    (Item(Decimal("1.10")), {"price": "1.10"}),
    (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
    (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),  # noqa: DTZ001
    (date(2026, 1, 2), "2026-01-02"),
    (time(3, 4, 5), "03:04:05"),
    (timedelta(days=1, seconds=2), "P1DT2S"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Colour.RED, "red"),
    (2**70, 2**70),
]
_loop: list[Any] = []
_loop.append(_loop)
BAD = [
    math.nan,
    {"a": [math.inf]},
    b"x",
    {1: 2},
    {"a": {1, 2}},
    "\ud800",
    object(),
    _loop,
    Point(b"x"),  # type: ignore[arg-type]
    Decimal("NaN"),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=lambda each: type(each).__name__)
def test_values_are_written_as_json(value: object, expected: object) -> None:
    assert msgspec.json.decode(encode_value(value)) == expected


@pytest.mark.parametrize("value", BAD, ids=lambda each: type(each).__name__)
def test_nothing_is_changed_silently(value: object) -> None:
    with pytest.raises(ValueError, match=r"expected|nested|Encoding objects"):
        encode_value(value)


def test_a_flaw_is_said_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"^a\[1\]\.b is bytes"):
        encode_value({"a": [1, {"b": b""}]})


REQUESTS: list[tuple[Request, tuple[str, str, bytes | None]]] = [
    (Request(URL), ("GET", URL, None)),
    (Request(URL, params={"a": [1, 2], "b": True, "c": None}), ("GET", f"{URL}?a=1&a=2&b=true", None)),
    (Request(f"{URL}?z=1#f", params={"a": "ż"}), ("GET", f"{URL}?z=1&a=%C5%BC#f", None)),
    (Request(URL, json={"a": 1}), ("POST", URL, b'{"a":1}')),
    (Request(URL, form={"a": "b c"}), ("POST", URL, b"a=b+c")),
    (Request(URL, method="PUT", body="é"), ("PUT", URL, "é".encode())),
    (Request(URL).with_params(b=1), ("GET", f"{URL}?b=1", None)),
]


@pytest.mark.parametrize(("request_", "expected"), REQUESTS, ids=str)
def test_request(request_: Request, expected: tuple[str, str, bytes | None]) -> None:
    assert (request_.method, request_.url, request_.body) == expected


def test_headers() -> None:
    request = Request(URL, json=1, headers={"X-A": "1"}).with_headers(x_a="2")

    assert dict(request.headers) == {"Content-Type": "application/json", "x-a": "2"}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"json": 1, "form": {}}, ValueError),
        ({"json": math.nan}, ValueError),
        ({"method": "get"}, ValueError),
        ({"priority": 1001}, ValueError),
        ({"priority": True}, ValueError),
        ({"key": 7}, TypeError),
        ({"headers": {"a": 1}}, TypeError),
    ],
)
def test_a_wrong_request_cannot_be_made(fields: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Request(URL, **fields)


def test_by_what_a_request_is_known() -> None:
    same = {request_key(f"{URL}?b=2&a=1"), request_key(f"{URL}?a=1&b=2", "GET", None)}
    others = {
        request_key(URL),
        request_key(URL, "POST", b""),
        request_key(URL, "POST", b"1"),
        request_key(URL, own="k"),
        request_key("https://b.example/x", own="k"),
    }

    assert len(same) == 1
    assert len(others | same) == 6
    assert {key[:5] for key in same} == {request_key(URL, own="k")[:5]}  # the host's keys lie together


def test_what_is_stored_comes_back_and_a_plain_get_takes_no_room() -> None:
    stored = Stored("POST", (("A", "b"),), b"x", {"id": [1]}, Cursor("body.next", param="c"))

    assert Stored.unpack(stored.pack()) == stored
    assert Stored().pack() == b""
    assert Stored.unpack(b"") == Stored()


@pytest.mark.parametrize(
    ("url", "expected"),
    [("", "?p=2"), ("?p=1&q=3", "?p=2&q=3"), ("?q=%20&p=1&p=4", "?q=%20&p=2"), ("?a", "?a&p=2")],
)
def test_put_param(url: str, expected: str) -> None:
    assert put_param(URL + url, "p", "2") == URL + expected
    assert param_of(URL + expected, "p") == "2"
