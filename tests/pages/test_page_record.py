"""What is asked for a URL, and what its reply becomes."""

import gzip
import json

import msgspec
import pytest
from small_web import page, reply

from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.output import RowId
from sanderling.stores.frontier_rows import End, QueuedUrl
from sanderling.task import Reply

OK = Outcome(Code.OK, 200)
URL = "http://a.example/dir/page"
QUEUED = QueuedUrl(7, URL, "a.example", 3)
WALL = 1_800_000_000.0


def at(answer: Reply, url: str = URL) -> Reply:
    return Reply(answer.status, answer.headers, answer.body, url, 0.12345)


def read(answer: Reply) -> tuple[dict[str, object], tuple[str, ...]]:
    ended, links, _, _ = record.read(QUEUED, OK, at(answer), WALL)
    assert ended.row is not None
    row: dict[str, object] = json.loads(ended.row)
    return row, links


def test_a_row_says_where_when_and_how() -> None:
    row, _ = read(reply(200, b"hello", Content_Type="text/plain"))

    assert {name: row[name] for name in ("id", "url", "depth", "status", "outcome", "seconds", "bytes")} == {
        "id": 7,
        "url": URL,
        "depth": 3,
        "status": 200,
        "outcome": "OK",
        "seconds": 0.1235,
        "bytes": 5,
    }
    assert row["fetched_at"] == "2027-01-15T08:00:00Z"


def test_what_does_not_apply_is_left_out() -> None:
    row, _ = read(reply(200, b"hello", Content_Type="text/plain"))

    assert set(row) == {
        *("id", "url", "outcome", "status", "depth", "fetched_at", "seconds", "bytes", "content_type"),
        *("charset", "text"),
    }


def test_a_page_leads_where_its_links_do() -> None:
    row, links = read(page("next", "/top"))

    assert links == ("http://a.example/dir/next", "http://a.example/top")
    assert row["links"] == list(links)


@pytest.mark.parametrize("packed", [False, True])
def test_a_sitemap_is_known_by_how_it_begins(packed: bool) -> None:  # noqa: FBT001 - both are tried
    body = b'<?xml version="1.0"?><urlset><url><loc>http://a.example/x</loc></url></urlset>'
    kind = "application/gzip" if packed else "application/xml"

    row, links = read(reply(200, gzip.compress(body) if packed else body, Content_Type=kind))

    assert links == ("http://a.example/x",)
    assert "body_path" not in row


@pytest.mark.parametrize(
    "body", [b"\x1f\x8bnot gzip at all", gzip.compress(b"<html>", mtime=0)[:12], b"<xml>urlset</xml>"]
)
def test_what_is_no_sitemap_is_kept_as_it_is(body: bytes) -> None:
    _, links = read(reply(200, body, Content_Type="application/octet-stream"))

    assert links == ()


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (
            b'{"a": [1, 2.50, 12345678901234567890123],\n"b": "\xc3\xa9"}',
            b'{"a":[1,2.50,12345678901234567890123],"b":"\xc3\xa9"}',
        ),
        (b'\xef\xbb\xbf{"bom": true}', b'{"bom":true}'),
        (b"[]", b"[]"),
        (b"null", b"null"),
    ],
)
def test_json_is_kept_to_the_digit_on_one_line(body: bytes, kept: bytes) -> None:
    ended, _, _, _ = record.read(QUEUED, OK, at(reply(200, body, Content_Type="application/json")), WALL)

    assert ended.row is not None
    assert b'"json":' + kept in ended.row
    assert b"\n" not in ended.row


@pytest.mark.parametrize("body", [b"{", b'{"a":1} trailing', b'"\xff"', b"[" * 100_000, b""])
def test_what_is_said_to_be_json_and_is_none_is_kept_as_text(body: bytes) -> None:
    row, _ = read(reply(200, body, Content_Type="application/json"))

    assert "json" not in row
    assert str(row["detail"]).startswith("said to be JSON")


def test_other_bodies_become_files_named_by_their_content() -> None:
    ended, _, _, _ = record.read(QUEUED, OK, at(reply(200, b"%PDF\x00", Content_Type="application/pdf")), WALL)

    assert ended.body is not None
    assert ended.row is not None
    assert ended.body.data == b"%PDF\x00"
    assert json.loads(ended.row)["body_path"] == ended.body.path
    assert ended.body.path.endswith(".pdf")


def test_validators_are_remembered_for_the_next_crawl() -> None:
    ended, _, _, _ = record.read(QUEUED, OK, at(page(ETag='"1"', Last_Modified="yesterday")), WALL)

    assert (ended.etag, ended.modified) == ('"1"', "yesterday")


def test_an_unchanged_page_keeps_what_was_known_of_it() -> None:
    queued = QueuedUrl(7, URL, "a.example", 3, '"1"', "yesterday")

    ended = record.unchanged(queued, Outcome(Code.NOT_MODIFIED, 304), at(reply(304)), WALL)

    assert ended.end is End.UNCHANGED
    assert ended.row is not None
    assert json.loads(ended.row)["etag"] == '"1"'


def test_only_what_has_changed_is_asked_for() -> None:
    assert record.conditions(QUEUED) == ()
    assert record.conditions(QUEUED._replace(etag='"1"', modified="then")) == (
        ("If-None-Match", '"1"'),
        ("If-Modified-Since", "then"),
    )


def test_a_304_counts_only_if_it_was_asked_for() -> None:
    unchanged = Outcome(Code.NOT_MODIFIED, 304)

    assert record.confirmed(QUEUED._replace(etag='"1"'), unchanged)
    assert not record.confirmed(QUEUED, unchanged)
    assert not record.confirmed(QUEUED._replace(etag='"1"'), OK)


@pytest.mark.parametrize(
    ("location", "leads"),
    [
        ("page;jsessionid=1", f"{URL};jsessionid=1"),
        ("?utm_source=x", f"{URL}?utm_source=x"),
        (URL, None),
        ("other", None),
        ("ftp://a.example/", None),
        ("http://[", None),
    ],
)
def test_a_redirect_to_itself_with_a_session_is_told_from_the_others(location: str, leads: str | None) -> None:
    assert record.respelled(QUEUED, at(reply(302, Location=location))) == leads


def test_a_url_that_was_not_fetched_has_no_row() -> None:
    ended = record.unfetched(QUEUED, Outcome(Code.TIMEOUT, detail="idle"), End.FAILED, 4)

    assert (ended.row, ended.outcome.detail, ended.requests) == (None, "idle", 4)


@pytest.mark.parametrize("nesting", [100, 500, 900, 950, 980, 990, 2000])
def test_a_row_can_be_read_however_deep_the_reader_is_in_calls_of_its_own(nesting: int) -> None:
    """Else a page at the brink of what can be nested would end `verify`, or keep the crawl from going on."""
    body = b"[" * nesting + b"]" * nesting
    ended, _, _, _ = record.read(QUEUED, OK, at(reply(200, body, Content_Type="application/json")), WALL)

    def within(calls: int) -> int:
        return within(calls - 1) if calls else msgspec.json.decode(ended.row or b"", type=RowId).id

    assert within(200) == 7
