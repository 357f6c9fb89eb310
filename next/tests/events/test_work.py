"""Items in all their spellings, what a batch becomes, and the pipeline."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from backports import zstd

from sanderling import read_batch
from sanderling.events import batches
from sanderling.events.batches import MOST_COMMENTS, BatchError, items_of, unpack
from sanderling.events.items import classify
from sanderling.events.tables import ERRORS, POSTS
from sanderling.events.work import BUILT_IN, Rows, WorkOptions, WorkTask, open_work
from sanderling.formats.envelope import Envelope, read_envelope, read_path
from sanderling.formats.loose import moment, read_json
from sanderling.outcome import Category, Code

WALL = 1_800_000_000.0
JOB = "proj_xyz-brand-0"


def rows_of(items: Any, pipeline: str = BUILT_IN, mode: str = "new", **said: Any) -> Rows:
    envelope = Envelope(mode=mode, event_id="e", identity="e~1", **{"job_id": JOB, "platform": "tiktok", **said})  # type: ignore[arg-type]
    work = open_work(msgspec.msgpack.encode(WorkOptions(pipeline, ".", False)))
    body = items if isinstance(items, bytes) else json.dumps(items).encode()
    if mode == "inline":
        body = json.dumps({"success": True, "payload": items}).encode()
    return msgspec.msgpack.decode(work(msgspec.msgpack.encode(WorkTask(WALL, envelope)), body), type=Rows)


def post(rows: Rows, place: int = 0) -> dict[str, Any]:
    return dict(zip([each.name for each in POSTS], rows.posts[place], strict=True))


def error(rows: Rows, place: int = 0) -> dict[str, Any]:
    return dict(zip([each.name for each in ERRORS], rows.errors[place], strict=True))


def item(one: Any = "1", content: Any = None, **meta: Any) -> dict[str, Any]:
    return {"meta": {"id": one, "fetch_status": "success", **meta}, "content": content or {"text": "x"}}


COUNTS = {"views": 5, "likes": 4, "comments_count": 3, "shares": 2, "saves": 1}
LONG = {"view_count": 5, "like_count": "4", "comment_count": 3.0, "share_count": 2, "save_count": 1}


@pytest.mark.parametrize(
    ("given", "column", "expected"),
    [
        ({"interaction": COUNTS}, "view_count", 5),
        ({"interactions": COUNTS}, "save_count", 1),
        ({"content": {"text": "x", **LONG}}, "like_count", 4),
        ({"content": {"text": "x", **LONG}}, "comment_count", 3),
        ({"interaction": {"views": -5}}, "view_count", 0),
        ({"interaction": {"views": "1,2K"}}, "view_count", 0),
        ({"interaction": {"views": 10**30}}, "view_count", 0),
        ({"interaction": {"views": 2**40}}, "view_count", 2**40),
        ({"author": {"follower_count": 7}}, "follower_count", 7),
        ({"author": {"followers": 60_000}}, "is_kol", True),
        ({"author": {"display_name": "A"}}, "author_name", "A"),
        ({"content": {"description": "d"}}, "content_text", "d"),
        ({"content": {"text": "a\0b"}}, "content_text", "ab"),
        ({"content": None}, "content_text", ""),
        ({"author": "someone", "interaction": [1], "comments": {"a": 1}}, "view_count", 0),
    ],
)
def test_an_item_is_read_in_every_spelling(given: dict[str, Any], column: str, expected: Any) -> None:
    assert post(rows_of([{**item(), **given}]))[column] == expected


@pytest.mark.parametrize(
    ("meta", "column", "expected"),
    [
        ({}, "pipeline_version", "crawler_tiktok_v3"),
        ({"platform": "YOUTUBE"}, "platform", "youtube"),
        ({"platform": "not a platform!"}, "platform", "tiktok"),
        ({"crawled_at": "2025-12-06T10:15:30Z"}, "crawled_at", 1765016130.0),
        ({"crawled_at": 1765016130000}, "crawled_at", 1765016130.0),
        ({"published_at": "Sat, 06 Dec 2025 10:15:30 GMT"}, "published_at", 1765016130.0),
        ({"published_at": "yesterday"}, "published_at", WALL),
        ({"permalink": "javascript:alert(1)"}, "permalink", None),
        ({"permalink": "https://x.test/1"}, "permalink", "https://x.test/1"),
        ({"keyword_source": "VF8"}, "keyword_source", "VF8"),
        ({"error_code": "MEDIA_TOO_LARGE", "fetch_error": "cdn"}, "fetch_status", "success"),
        ({"error_code": "MEDIA_TOO_LARGE", "fetch_error": "cdn"}, "fetch_error", "cdn"),
        ({"error_code": "MEDIA_TOO_LARGE", "error_details": {"a": "x\0"}}, "error_details", '{"a":"x"}'),
        ({"error_details": [[[[1]]]]}, "error_details", "[[[[1]]]]"),
    ],
)
def test_what_an_item_says_of_itself(meta: dict[str, Any], column: str, expected: Any) -> None:
    found = rows_of([item(**meta)])
    assert post(found)[column] == expected
    assert found.errors == []


@pytest.mark.parametrize(
    ("raw", "code", "said", "is_post"),
    [
        (None, "INVALID_RESPONSE", "item 0 is nothing, expected an object", False),
        (17, "INVALID_RESPONSE", "item 0 is 17", False),
        ({"meta": {"fetch_status": "success"}}, "INVALID_RESPONSE", "meta.id of item 0: found nothing", False),
        (item("x" * 200), "INVALID_RESPONSE", "found 200 characters, expected an id of up to 128", False),
        (item("NULL"), "INVALID_RESPONSE", "found 'NULL'", False),
        (item(1.5), "INVALID_RESPONSE", "found 1.5", False),
        (item("a\nb"), "INVALID_RESPONSE", "cannot be printed", False),
        (item(fetch_status="halfway"), "INVALID_RESPONSE", "found 'halfway', expected success or error", True),
        ({"meta": {"id": "1"}}, "INVALID_RESPONSE", "found nothing, expected success or error", True),
        (item(fetch_status="error", error_code="TIMEOUT", fetch_error="why"), "TIMEOUT", "why", True),
        (item(fetch_status="ERROR", error_message="why"), "UNKNOWN_ERROR", "why", True),
        (item(fetch_status="error", error_code="NEW" * 30), ("NEW" * 30)[:50], "", True),
    ],
)
def test_a_bad_item_is_an_error_and_its_neighbours_are_posts(raw: Any, code: str, said: str, is_post: bool) -> None:
    found = rows_of([raw, item("good")])

    assert error(found)["error_code"] == code
    assert said in error(found)["error_message"]
    assert error(found)["item_key"] == "e~1#0"
    assert [row[0] for row in found.posts] == (["1", "good"] if is_post else ["good"])
    assert found.counts["tiktok"] == [1, 1]


def test_the_columns_of_an_error_that_may_not_be_null_are_neutral() -> None:
    found = post(rows_of([item(fetch_status="error", error_code="TIMEOUT", error_details={"a": 1})]))

    assert (found["fetch_status"], found["error_details"]) == ("error", '{"a":1}')
    assert (found["overall_sentiment"], found["primary_intent"], found["impact_score"], found["risk_level"]) == (
        "NEUTRAL", "DISCUSSION", 0.0, "LOW",
    )  # fmt: skip
    assert found["published_at"] == WALL


def test_of_several_items_of_a_post_one_row_is_left() -> None:
    early, late = "2025-12-06T10:00:00Z", "2025-12-07T10:00:00Z"
    found = rows_of(
        [
            item("a", {"text": "late"}, crawled_at=late),
            item("a", {"text": "early"}, crawled_at=early),
            item("a", fetch_status="error", error_code="TIMEOUT", crawled_at="2025-12-08T00:00:00Z"),
        ]
    )

    assert [post(found)[name] for name in ("content_text", "fetch_status")] == ["late", "success"]
    assert len(found.posts) == len(found.errors) == 1


def test_comments_are_rows_each_once() -> None:
    said = [
        {"id": "1", "text": "love it", "like_count": 3, "author_display_name": "A"},
        {"id": "1", "text": "love it", "like_count": 3, "author_display_name": "A"},
        {"id": "1", "text": "other"},
        {"text": "without id"},
        {},
        "no comment",
    ]
    found = rows_of([{**item("p"), "comments": said}])

    assert [row[3:5] for row in found.comments] == [["1", "love it"], ["1~2", "other"], ["p#3", "without id"]]
    assert found.comments[0][5:8] == ["A", 3, "POSITIVE"]


def test_too_many_comments_are_an_error_of_their_item(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [{"id": str(number), "text": "x"} for number in range(MOST_COMMENTS + 1)]
    found = rows_of([{**item("many"), "comments": many}, item("good")])

    assert [row[0] for row in found.posts] == ["good"]
    assert "found 10,001, expected at most 10,000" in error(found)["error_message"]
    monkeypatch.setattr(batches, "MOST_ROWS", 30)
    found = rows_of([{**item(str(number)), "comments": many[: number * 5]} for number in range(1, 5)])
    assert [row[0] for row in found.posts] == ["1", "2"]


def test_items_of_our_crawls_are_known_however_they_are_grouped() -> None:
    failed = item("1", fetch_status="error", error_code="TIMEOUT", item_id="key-1")
    keys = {error(rows_of(group, mode="inline"), -1)["item_key"] for group in ([failed], [item("2"), failed])}
    assert keys == {f"{JOB}#key-1"}


def test_who_says_whose_it_is() -> None:
    named = {"job_id": "", "project_id": ""}
    assert post(rows_of([item(job_id="proj_abc-brand-0")], mode="inline", **named))["project_id"] == "proj_abc"
    assert rows_of([item()], job_id="").unknown_projects == 1


@pytest.mark.parametrize(
    ("code", "category", "retryable"),
    [
        ("RATE_LIMITED", "rate_limiting", True),
        ("rate-limited", "rate_limiting", True),
        ("RATE_LIMITED_PERMANENT", "rate_limiting", False),
        ("BLOCKED", "rate_limiting", True),
        ("CONTENT_REMOVED", "content", False),
        ("STORAGE_ERROR", "storage", True),
        ("INTERNAL_ERROR", "generic", False),
        ("OK", "generic", False),
        ("SOMETHING", "generic", False),
    ],
)
def test_codes_have_a_category_and_an_action(code: str, category: str, retryable: bool) -> None:
    assert classify(code) == (category, retryable)


def test_all_21_codes_of_the_seed_are_there() -> None:
    assert len([code for code in Code if code.category in set(Category)][:21]) == 21


@pytest.mark.parametrize(
    ("body", "number"),
    [
        (b'[{"meta": {}}]', 1),
        (b'{"items": [1, 2], "count": 2}', 2),
        (b'{"items": [1, 2], "count": 3}', 2),
        (b'{"meta": {"id": "1"}}', 1),
        (b"\xef\xbb\xbf[1]", 1),
        (b'[{"a": NaN}, "\\ud83d half", 1e999]', 3),
        (b"[]", 0),
    ],
)
def test_a_document_holds_items(body: bytes, number: int) -> None:
    assert len(items_of(body)[0]) == number


def test_objects_are_unpacked_within_bounds() -> None:
    assert unpack(zstd.compress(b"[1]")) == b"[1]"
    assert unpack(zstd.compress(b"[1") + zstd.compress(b"]")) == b"[1]"
    for body, said in ((zstd.compress(b" " * (65 << 20)), "more than"), (zstd.compress(b"[1]")[:-3], "ends early")):
        with pytest.raises(BatchError, match=said):
            unpack(body)


def test_sizes_and_counts_that_differ_are_noted() -> None:
    envelope = rows_of([item()], content_count=3).envelope
    assert envelope is not None
    assert "expected=50, actual=1" in envelope.notes[0]
    assert "content_count is 3, found 1 items" in envelope.notes[1]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("minio://bucket/a/b", ("bucket", "a/b")),
        ("s3://bucket/a", ("bucket", "a")),
        ("bucket/a%2Fb", ("bucket", "a%2Fb")),
        ("/bucket/a b", ("bucket", "a b")),
    ],
)
def test_a_path_has_a_bucket_and_a_key(path: str, expected: tuple[str, str]) -> None:
    assert read_path(path, "x") == expected


@pytest.mark.parametrize(
    "path", ["", " ", "bucket", "bucket/", "b/../x", "b/./x", "b//x", "http://b/x", "b/\0", "b/a\\b"]
)
def test_a_path_that_leads_nowhere_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"expected|begins"):
        read_path(path, "x")


def test_what_a_message_says_wrongly_is_left_out_and_noted() -> None:
    payload = {"minio_path": "b/k", "batch_index": -1, "job_id": "x" * 300, "content_count": "7", "platform": {}}
    envelope, _ = read_envelope(json.dumps({"event_id": [], "event_type": "other", "payload": payload}).encode())

    assert (envelope.batch_index, envelope.job_id, envelope.content_count, envelope.platform) == (None, "", 7, "")
    assert envelope.event_id.startswith("new-")
    assert [note.split()[0] for note in envelope.notes] == ["event_type", "job_id", "event_id", "batch_index"]


def test_messages_are_the_same_by_event_and_object() -> None:
    def identity(event: str, path: str) -> str:
        return read_envelope(json.dumps({"event_id": event, "payload": {"minio_path": path}}).encode())[0].identity

    assert identity("e", "b/k") == identity("e", "minio://b/k")
    assert len({identity("e", "b/k"), identity("e", "b/other"), identity("f", "b/k")}) == 3


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2025-12-06T10:15:30Z", 1765016130.0),
        ("2025-12-06 12:15:30+02:00", 1765016130.0),
        ("2025-12-06 10:15:30 +0000 UTC", 1765016130.0),
        ("1765016130", 1765016130.0),
        (1765016130123456, 1765016130.123456),
        ("06/12/2025", None),
        (True, None),
        (12, None),
        ("0001-01-01T00:00:00Z", None),
        ("x" * 1000, None),
        (float("nan"), None),
        (10**400, None),
    ],
)
def test_a_time_is_read_in_every_spelling(value: Any, seconds: float | None) -> None:
    assert moment(value) == seconds


def test_json_that_is_nearly_json_is_read() -> None:
    assert read_json(b'{"a": "\\ud83d\\ude00 \\ud83d", "b": Infinity}') == ({"a": "😀 \ufffd", "b": None}, False)
    with pytest.raises(ValueError, match="no JSON"):
        read_json(b"[" * 100_000)


def half(posts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A pipeline of a user, as docs/events.md shows it."""
    if any("bad" in each["text"] for each in posts):
        raise RuntimeError("no bad words")
    return [
        {"overall_sentiment": "POSITIVE", "impact_score": len(each["text"]), "model_version": "mine"} for each in posts
    ]


def wrong(posts: Sequence[dict[str, Any]]) -> Any:
    return [{"impact_score": "high"} if each["id"] == "1" else {"nonsense": 1} for each in posts]


def short(posts: Sequence[dict[str, Any]]) -> Any:
    return []


def test_a_pipeline_of_ones_own_judges_and_its_exception_is_that_items_error() -> None:
    found = rows_of([item("1", {"text": "good"}), item("2", {"text": "bad"})], "events.test_work:half")

    assert post(found)["overall_sentiment"] == "POSITIVE"
    assert post(found)["impact_score"] == 4
    assert [row[0] for row in found.posts] == ["1"]
    assert error(found)["error_code"] == "INTERNAL_ERROR"
    assert "no bad words" in error(found)["error_message"]
    assert found.counts["tiktok"] == [1, 1]


@pytest.mark.parametrize(
    ("name", "said"),
    [("wrong", "impact_score = 'high', expected int"), ("wrong", "'nonsense'"), ("short", "a list of 1")],
)
def test_what_a_pipeline_gives_is_checked(name: str, said: str) -> None:
    found = rows_of([item("1"), item("2")], f"events.test_work:{name}")
    assert found.posts == []
    assert any(said in row[6] for row in found.errors)


@pytest.mark.parametrize("name", ["nosuch:function", "events.test_work:nosuch"])
def test_a_pipeline_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="pipeline is"):
        rows_of([item()], name)


def test_a_batch_is_read_from_python() -> None:
    found = read_batch(zstd.compress(json.dumps([item("a"), 17]).encode()), platform="tiktok")

    assert [(each.id, each.platform) for each in found.posts] == [("a", "tiktok")]
    assert [each.code for each in found.errors] == ["INVALID_RESPONSE"]
    with pytest.raises(ValueError, match="expected a list"):
        read_batch(b"42")
