"""What is sent is taken as it is described, or it is said what was found, what was expected and where."""

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType

from sanderling.web.parsing import Nothing, read_json, read_path, read_query
from sanderling.web.problems import ProblemError

T = TypeVar("T", bound=msgspec.Struct)


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    id: Annotated[str, Meta(max_length=50)]


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    name: str | UnsetType = UNSET


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seconds: Annotated[float, Meta(ge=0.05, le=100)] | UnsetType | None = UNSET
    number: Annotated[int, Meta(le=1000)] = 0
    places: tuple[Place, ...] = ()


# Text as it can be in a URL or in JSON: no halves of characters.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


def why(kind: type[T], body: bytes) -> str:
    with pytest.raises(ProblemError) as caught:
        read_json(body, kind)
    assert caught.value.problem.status == 400
    return caught.value.problem.detail


def why_not(raw: str) -> str:
    with pytest.raises(ProblemError) as caught:
        read_query(raw, Page)
    assert caught.value.problem.status == 400
    return caught.value.problem.detail


@given(texts.filter(bool), texts.filter(bool))
def test_any_text_can_be_an_id_in_a_path(kind: str, source_id: str) -> None:
    raw = f"/targets/{quote(kind, safe='')}/{quote(source_id, safe='')}/pause"

    assert read_path(raw, "/targets/{kind}/{id}/pause", Place) == Place(kind, source_id)


@given(texts, st.integers(1, 100))
def test_any_text_can_be_a_parameter_of_a_query(name: str, limit: int) -> None:
    assert read_query(urlencode({"name": name, "limit": limit}), Page) == Page(limit, name)


@pytest.mark.parametrize("raw", ["%ff", "%c3", "%ed%a0%80", "\udcff", chr(0xD800)])
def test_what_is_not_utf_8_is_refused(raw: str) -> None:
    with pytest.raises(ProblemError, match="is not UTF-8"):
        read_path(f"/{raw}/1", "/{kind}/{id}", Place)
    assert "is not UTF-8" in why_not(f"name={raw}")


def test_a_percent_sign_that_escapes_nothing_is_a_percent_sign() -> None:
    assert read_path("/a/100%25%zz%", "/{kind}/{id}", Place).id == "100%%zz%"


def test_an_id_that_is_too_long_is_refused_and_shown_in_part() -> None:
    with pytest.raises(ProblemError) as caught:
        read_path(f"/a/{'x' * 51}", "/{kind}/{id}", Place)

    assert "path: Expected `str` of length <= 50 - at `$.id`; found 'xxx" in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("limit=0", "query: Expected `int` >= 1 - at `$.limit`; found '0'"),
        ("limit=x", "query: Expected `int`, got `str` - at `$.limit`; found 'x'"),
        ("limit=", "query: Expected `int`, got `str` - at `$.limit`; found ''"),
        ("limit=99999999999999999999999", "found '99999999999999999999999'"),
        ("limit=nan", "found 'nan'"),
        ("limit", "found ''"),
        ("limit=1&limit=1", "query: 'limit' is there twice, expected it once"),
        ("%6cimit=1&limit=1", "'limit' is there twice"),
        ("Limit=1", "query: Object contains unknown field `Limit`; expected limit, name"),
        ("&limit=1", "unknown field ``"),
        ("a[b]=1", "unknown field"),
        ("&".join(f"p{n}=1" for n in range(51)), "found 51 parameters, expected at most 50"),
    ],
)
def test_a_query_that_is_not_as_described_is_refused(raw: str, said: str) -> None:
    assert said in why_not(raw)


def test_null_is_a_text_like_any_other_in_a_query() -> None:
    assert read_query("name=null", Page).name == "null"
    assert read_query("", Page) == Page()
    assert read_query("name=a+b%2Bc", Page).name == "a b+c"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"seconds":0}', "body: Expected `float` >= 0.05 - at `$.seconds`; found 0"),
        (b'{"seconds":"1"}', "got `str` - at `$.seconds`; found '1'"),
        (b'{"seconds":1e400}', "body: Number out of range - at `$.seconds`"),
        (b'{"seconds":' + b"9" * 400 + b"}", "at `$.seconds`"),
        (b'{"seconds":NaN}', "expected JSON in UTF-8"),
        (b'{"number":18446744073709551616}', "Expected `int` <= 1000 - at `$.number`; found 18446744073709551616"),
        (b'{"number":1.5}', "Expected `int`, got `float` - at `$.number`; found 1.5"),
        (b'{"number":true}', "Expected `int`, got `bool`"),
        (b'{"places":[{"kind":"a","id":"b"},{"kind":"a","id":7}]}', "at `$.places[1].id`; found 7"),
        (b'{"places":[{"kind":"a","id":"b","x":1}]}', "unknown field `x` - at `$.places[0]`"),
        (b'{"places":[{"kind":"a"}]}', "missing required field `id` - at `$.places[0]`; found {'kind': 'a'}"),
        (b'{"nonsense":1}', "unknown field `nonsense`; expected seconds, number, places"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "Expected `object`, got `null`"),
        (b'{"number":1', "expected JSON in UTF-8"),
        (b'{"number":1}{', "expected JSON in UTF-8"),
        (b'\xef\xbb\xbf{"number":1}', "expected JSON in UTF-8"),
        (b'{"places":[{"kind":"\xff","id":""}]}', "expected JSON in UTF-8"),
        (b'{"places":[{"kind":"\\ud800","id":""}]}', "expected JSON in UTF-8"),
        (b'{"number":1,"number":2}', "body: the member 'number' is there twice, expected it once"),
        (b'{"number":1,"num\\u0062er":2}', "the member 'number' is there twice"),
        (b'{"places":[{"kind":"a","kind":"b","id":"c"}]}', "the member 'kind' is there twice"),
        (b"[" * 10_000, "Expected `object`, got `array`"),
        (b'{"number":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "at `$.number`"),
        (b'{"a":' * 10_000, "unknown field `a`"),
        (b"\x00", "expected JSON in UTF-8"),
    ],
)
def test_a_body_that_is_not_as_described_is_refused(body: bytes, said: str) -> None:
    assert said in why(Body, body)


class Loose(msgspec.Struct):
    any: Any


def test_what_is_nested_too_deeply_is_refused_where_anything_may_be() -> None:
    assert why(Loose, b'{"any":' + b"[" * 10_000 + b"]" * 10_000 + b"}") == "body: JSON that is nested too deeply"


def test_no_body_at_all_is_an_empty_object() -> None:
    assert read_json(b"", Body) == Body()
    assert read_json(b"", Nothing) == read_json(b"{}", Nothing) == Nothing()
    assert "unknown field `a`; expected none" in why(Nothing, b'{"a":1}')
    assert "missing required field `kind`" in why(Place, b"")


@given(texts, texts, st.floats(0.05, 100) | st.none(), st.integers(-(2**63), 1000))
def test_what_is_as_described_comes_through(kind: str, source_id: str, seconds: float | None, number: int) -> None:
    sent = {"seconds": seconds, "number": number, "places": [{"kind": kind, "id": source_id}]}

    assert read_json(json.dumps(sent).encode(), Body) == Body(seconds, number, (Place(kind, source_id),))


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["places", "kind", "id", "x"]), inner),
    max_leaves=15,
)


def status(read: Callable[[], object]) -> int:
    try:
        read()
    except ProblemError as error:
        return error.problem.status
    return 200


@given(st.binary(max_size=60) | jsons.map(lambda value: json.dumps(value).encode()))
def test_whatever_is_sent_as_a_body_is_taken_or_refused(body: bytes) -> None:
    assert status(lambda: read_json(body, Body)) in {200, 400}


@given(st.text(max_size=60) | st.lists(st.tuples(texts, texts), max_size=4).map(urlencode))
def test_whatever_is_sent_as_a_query_is_taken_or_refused(raw: str) -> None:
    assert status(lambda: read_query(raw, Page)) in {200, 400}
