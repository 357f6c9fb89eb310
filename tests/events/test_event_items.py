"""Items of every generation of crawlers, read as posts or as errors; one that is neither is an error too."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.events.fields import LONGEST_ID, LONGEST_NAME
from sanderling.events.items import DEEPEST_DETAILS, MOST_DETAILS, MOST_TAGS, read_item, read_result
from sanderling.events.posts import Author, Comment, Context, CrawlError, Interaction, Post
from sanderling.events.salvage import Unreadable
from sanderling.outcome import Category

CONTEXT = Context(
    event_id="evt_1", job_id="proj_xyz-brand-0", platform="tiktok", batch_index=1, keyword="Acme", sent_at=1765016130.0
)
ID = "7301234567890123456"

# As the crawlers' guide has it: counters in the content, names with underscores.
RICH: dict[str, Any] = {
    "meta": {
        "id": ID,
        "platform": "tiktok",
        "job_id": "proj_xyz-brand-0",
        "crawled_at": "2025-12-06T10:15:29Z",
        "published_at": "2025-12-01T08:00:00Z",
        "permalink": "https://tiktok.example/@acme/video/1",
        "keyword_source": "Acme VF8",
        "lang": "vi",
        "pipeline_version": "crawler_tiktok_v4",
        "fetch_status": "success",
        "fetch_error": None,
        "error_code": None,
        "error_details": None,
    },
    "content": {
        "external_id": "1",
        "url": "https://tiktok.example/1",
        "description": "A caption",
        "view_count": 120_000,
        "like_count": 3000,
        "comment_count": 2,
        "share_count": 5,
        "save_count": 7,
        "duration_seconds": 37,
        "tags": ["#acme", "vf8"],
        "transcription": "What is said",
    },
    "author": {
        "username": "acme",
        "display_name": "Acme Cars",
        "avatar_url": "https://tiktok.example/a.jpg",
        "follower_count": 50_000,
        "verified": True,
    },
    "comments": [
        {"external_id": "c1", "author_username": "u1", "author_display_name": "One", "text": "nice", "like_count": 3},
        {
            "external_id": "c2",
            "author_username": "u2",
            "text": "bad",
            "like_count": 9,
            "created_at": "2025-12-02T00:00:00Z",
        },
    ],
}
# As contract 2 has it: an object for the counters, names without.
LEAN: dict[str, Any] = {
    "meta": {
        **{name: RICH["meta"][name] for name in ("crawled_at", "published_at", "permalink", "keyword_source", "lang")},
        "id": int(ID),
        "platform": "TIKTOK",
        "pipeline_version": "crawler_tiktok_v4",
        "fetch_status": "SUCCESS",
    },
    "content": {"text": "A caption", "transcription": "What is said", "duration": 37.0, "hashtags": ["acme", "#vf8"]},
    "interaction": {"views": 120_000, "likes": "3000", "comments_count": 2, "shares": 5.0, "saves": 7},
    "author": {
        "name": "Acme Cars",
        "username": "acme",
        "avatar_url": "https://tiktok.example/a.jpg",
        "followers": 50_000,
        "is_verified": "True",
    },
    "comments": [
        {"id": "c1", "text": "nice", "author_name": "One", "likes": 3},
        {"id": "c2", "text": "bad", "author_name": "u2", "likes": 9, "created_at": 1764633600},
    ],
}
POST = Post(
    id=ID,
    platform="tiktok",
    text="A caption",
    transcription="What is said",
    duration=37.0,
    hashtags=("acme", "vf8"),
    permalink="https://tiktok.example/@acme/video/1",
    published_at=1764576000.0,
    crawled_at=1765016129.0,
    keyword_source="Acme VF8",
    pipeline_version="crawler_tiktok_v4",
    language="vi",
    author=Author(
        name="Acme Cars", username="acme", avatar_url="https://tiktok.example/a.jpg", followers=50_000, verified=True
    ),
    interaction=Interaction(views=120_000, likes=3000, comments=2, shares=5, saves=7),
    comments=(
        Comment(id="c1", text="nice", author_name="One", likes=3),
        Comment(id="c2", text="bad", author_name="u2", likes=9, created_at=1764633600.0),
    ),
)


def changed(item: dict[str, Any], part: str, **fields: object) -> dict[str, Any]:
    """The item with some fields of a part set otherwise; `...` leaves one out."""
    other = copy.deepcopy(item)
    other[part] = {name: value for name, value in {**other[part], **fields}.items() if value is not ...}
    return other


def post_of(item: object, context: Context = CONTEXT, default_status: str = "") -> Post:
    read = read_item(item, context, 4, default_status)
    assert isinstance(read, Post), read
    return read


def error_of(item: object, context: Context = CONTEXT, index: int = 4) -> CrawlError:
    read = read_item(item, context, index)
    assert isinstance(read, CrawlError), read
    return read


def plural(item: dict[str, Any]) -> dict[str, Any]:
    return {"interactions" if name == "interaction" else name: value for name, value in item.items()}


@pytest.mark.parametrize("item", [RICH, LEAN, plural(LEAN)], ids=["guide", "contract 2", "contract 1.1"])
def test_all_generations_say_the_same(item: dict[str, Any]) -> None:
    assert post_of(item) == POST


def test_the_counters_in_an_object_of_their_own_count_before_those_of_the_content() -> None:
    item = {**RICH, "interaction": {"views": 1, "likes": None}, "interactions": {"views": 2, "likes": 2, "shares": "x"}}

    assert post_of(item).interaction == Interaction(views=1, likes=2, comments=2, shares=5, saves=7)


@pytest.mark.parametrize("odd", [None, "1,2K", "", [], {}, True, 10**400, "²"])
def test_a_counter_that_is_none_is_zero(odd: object) -> None:
    item = {**LEAN, "interaction": dict.fromkeys(LEAN["interaction"], odd)}

    assert post_of(item).interaction == Interaction()
    assert post_of(changed(LEAN, "author", followers=odd)).author.followers == 0


def test_a_counter_below_zero_is_zero_and_one_of_more_than_32_bits_stays() -> None:
    item = {**LEAN, "interaction": {"views": 3_000_000_000, "likes": -5, "shares": -1.5, "saves": 2.9}}

    assert post_of(item).interaction == Interaction(views=3_000_000_000, saves=2)


def test_ids_that_are_numbers_become_texts_digit_by_digit() -> None:
    item = changed(LEAN, "author", id=7301234567890123457)
    item["comments"] = [{"id": 7301234567890123458, "text": "x"}]

    post = post_of(msgspec.json.decode(msgspec.json.encode(item)))

    assert (post.id, post.author.id, post.comments[0].id) == (ID, "7301234567890123457", "7301234567890123458")


def test_what_the_item_does_not_say_the_message_does() -> None:
    post = post_of({"meta": {"id": "1", "fetch_status": "success"}, "content": None, "author": None, "comments": []})

    assert post == Post(
        id="1", platform="tiktok", crawled_at=1765016130.0, keyword_source="Acme", pipeline_version="crawler_tiktok_v3"
    )


def test_what_nobody_says_stays_empty() -> None:
    post = post_of({"meta": {"id": "1", "fetch_status": "success"}}, Context(event_id="e"))

    assert post == Post(id="1", platform="")


def test_the_item_knows_its_platform_better_than_the_message() -> None:
    post = post_of(changed(LEAN, "meta", platform="YouTube", pipeline_version=...))

    assert (post.platform, post.pipeline_version) == ("youtube", "crawler_youtube_v3")


@pytest.mark.parametrize(("name", "other"), [("external_id", "video_id"), ("video_id", "external_id")])
def test_the_id_may_stand_in_the_content(name: str, other: str) -> None:
    item = changed(changed(RICH, "meta", id=...), "content", **{name: "v1", other: ...})

    assert post_of(item).id == "v1"
    assert post_of(changed(item, "meta", id="")).id == "v1"


def test_a_channel_is_an_author() -> None:
    item = changed({**RICH, "author": None}, "content", channel_id="UC1")

    assert post_of(item).author == Author(id="UC1")


def test_the_address_may_stand_in_the_content_and_is_never_a_script() -> None:
    assert post_of(changed(RICH, "meta", permalink=...)).permalink == "https://tiktok.example/1"
    item = changed(changed(RICH, "meta", permalink="javascript:alert(1)"), "content", url="data:x")
    assert post_of(item).permalink == ""


def test_an_empty_text_gives_way_to_the_description() -> None:
    assert post_of(changed(RICH, "content", text="", description="d")).text == "d"
    assert post_of(changed(RICH, "content", text="t", description="d")).text == "t"


@pytest.mark.parametrize("text", ["x" * 1_000_000, "😀" * 500, "שלום עולם", "e\u0301" * 100, " padded "])
def test_texts_are_kept_whole(text: str) -> None:
    item = changed(RICH, "content", description=text, transcription=text)
    item["comments"] = [{"id": "1", "text": text}]

    post = post_of(item)

    assert post.text == post.transcription == post.comments[0].text == text


def test_only_zero_bytes_are_left_out_of_texts() -> None:
    post = post_of(changed(changed(RICH, "content", description="a\0b"), "author", display_name="\0x"))

    assert (post.text, post.author.name) == ("ab", "x")


def test_names_are_cut_and_tags_are_not_endless() -> None:
    long = "n" * 1000
    item = changed(
        changed(RICH, "author", display_name=long, username=long), "content", tags=[long, None, "", "#", {}] * MOST_TAGS
    )

    post = post_of(item)

    assert post.author.name == post.author.username == "n" * LONGEST_NAME
    assert post.hashtags == ("n" * LONGEST_NAME,) * (MOST_TAGS // 5)


def test_comments_stay_in_order_and_the_odd_ones_are_left_out() -> None:
    item = {
        **LEAN,
        "comments": [
            {"text": "a"},
            None,
            "text",
            [],
            {},
            {"id": 7.5},
            {"id": "x"},
            {"id": "NULL", "text": "b", "likes": -1},
        ],
    }

    assert post_of(item).comments == (
        Comment(id=f"{ID}#0", text="a"),
        Comment(id="x", text=""),
        Comment(id=f"{ID}#7", text="b"),
    )


def test_comments_that_share_an_id_are_told_apart_and_what_came_twice_counts_once() -> None:
    said = [{"id": name, "text": text} for name, text in (("1", "good"), ("1", "bad"), ("1", "good"), ("2", ""))]

    comments = post_of(LEAN | {"comments": said}).comments

    assert [(each.id, each.text) for each in comments] == [("1", "good"), ("1~1", "bad"), ("2", "")]


@pytest.mark.parametrize("comments", [None, {}, "text", 5])
def test_comments_that_are_no_list_are_none(comments: object) -> None:
    assert post_of({**LEAN, "comments": comments}).comments == ()


@pytest.mark.parametrize("name", ["fetch_error", "error_message"])
def test_an_item_that_failed_is_an_error_with_its_text(name: str) -> None:
    meta = {"id": ID, "platform": "TIKTOK", "fetch_status": "error", "error_code": "RATE_LIMITED", name: "too many"}
    details: dict[str, object] = {"retry_after": 30, "trace": ["a"]}
    item: dict[str, object] = {
        "meta": {**meta, "error_details": details, "permalink": "https://a.example"},
        "content": None,
        "author": None,
        "comments": [],
    }

    assert error_of(item) == CrawlError(
        content_id=ID,
        platform="tiktok",
        code="RATE_LIMITED",
        category=Category.RATE_LIMITING,
        message="too many",
        details=details,
        permalink="https://a.example",
    )


@pytest.mark.parametrize(
    ("code", "stored", "category"),
    [
        ("CONTENT_REMOVED", "CONTENT_REMOVED", Category.CONTENT),
        ("content_removed", "content_removed", Category.CONTENT),
        ("BLOCKED", "BLOCKED", Category.RATE_LIMITING),
        ("NOT_KNOWN_YET", "NOT_KNOWN_YET", Category.GENERIC),
        (None, "UNKNOWN_ERROR", Category.GENERIC),
        ("", "UNKNOWN_ERROR", Category.GENERIC),
        ([], "UNKNOWN_ERROR", Category.GENERIC),
        (503, "503", Category.GENERIC),
        ("x" * 1000, "x" * 50, Category.GENERIC),
    ],
)
def test_the_code_is_the_crawlers_own(code: object, stored: str, category: Category) -> None:
    error = error_of(changed(RICH, "meta", fetch_status="error", error_code=code))

    assert (error.code, error.category) == (stored, category)


@pytest.mark.parametrize("status", [..., None, "", "failed", "partial", 1, True, [], {}])
def test_a_status_that_is_missing_or_unknown_is_an_error(status: object) -> None:
    error = error_of(changed(RICH, "meta", fetch_status=status))

    assert (error.content_id, error.code, error.category) == (ID, "INVALID_RESPONSE", Category.PARSING)
    assert error.message.startswith("meta.fetch_status of item 4: found ")
    assert error.message.endswith(", expected success or error")


def test_an_unknown_status_with_a_code_keeps_the_code_and_the_text() -> None:
    error = error_of(changed(RICH, "meta", fetch_status="failed", error_code="TIMEOUT", fetch_error="after 30 s"))

    assert (error.code, error.category) == ("TIMEOUT", Category.NETWORK)
    assert error.message == "meta.fetch_status of item 4: found 'failed', expected success or error; after 30 s"


@pytest.mark.parametrize("status", [..., None])
def test_older_items_have_no_status_and_were_fetched(status: object) -> None:
    assert post_of(changed(RICH, "meta", fetch_status=status), default_status="success") == POST
    assert isinstance(read_item(changed(RICH, "meta", fetch_status="error"), CONTEXT, 4, "success"), CrawlError)
    assert isinstance(read_item(changed(RICH, "meta", fetch_status=""), CONTEXT, 4, "success"), CrawlError)


@pytest.mark.parametrize(
    "odd", [None, "", " ", "NULL", 7.3e18, True, [], {}, "x" * (LONGEST_ID + 1), 10**LONGEST_ID, "a\0b"]
)
def test_an_item_without_an_id_is_an_error_known_by_its_place(odd: object) -> None:
    item = changed(changed(RICH, "meta", id=odd), "content", external_id=...)

    error = error_of(item)

    assert (error.code, error.category, error.platform) == ("INVALID_RESPONSE", Category.PARSING, "tiktok")
    assert error.message.startswith("meta.id of item 4: found ")
    assert error.message.endswith("expected an id of up to 128 characters")
    assert error.content_id == error_of(5).content_id == error_of(Unreadable("cut")).content_id


def test_the_place_of_an_item_is_the_same_whenever_it_comes_and_its_own() -> None:
    again = msgspec.structs.replace(CONTEXT, event_id="evt_2", sent_at=None)
    elsewhere = [
        msgspec.structs.replace(CONTEXT, batch_index=2),
        msgspec.structs.replace(CONTEXT, job_id="proj_xyz-brand-1"),
        msgspec.structs.replace(CONTEXT, batch_index=None),
        msgspec.structs.replace(CONTEXT, batch_index=None, event_id="evt_2"),
        msgspec.structs.replace(CONTEXT, job_id=""),
    ]

    assert error_of({}).content_id == error_of({}, again).content_id
    ids = [error_of({}, context).content_id for context in (CONTEXT, *elsewhere)]
    # Without a job or a batch it is the event that counts, so the fourth and the last are of one.
    assert len({*ids, error_of({}, index=5).content_id}) == 6
    assert ids[3] == ids[5] != ids[4]
    assert all(len(each) <= 50 for each in ids)


@pytest.mark.parametrize(
    ("raw", "code", "message"),
    [
        (None, "INVALID_RESPONSE", "item 4: found nothing, expected an object"),
        ([1, 2], "INVALID_RESPONSE", "item 4: found a list, expected an object"),
        ("text", "INVALID_RESPONSE", "item 4: found 'text', expected an object"),
        (5, "INVALID_RESPONSE", "item 4: found 5, expected an object"),
        (Unreadable("malformed"), "PARSE_ERROR", "item 4: malformed"),
    ],
)
def test_an_item_that_is_none_is_an_error(raw: object, code: str, message: str) -> None:
    error = error_of(raw)

    assert (error.code, error.message, error.category) == (code, message, Category.PARSING)
    assert type(error.code) is str


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, {}),
        ({}, {}),
        ({"a": 1}, {"a": 1}),
        ("text", {"details": "text"}),
        ([1], {"details": [1]}),
        ({"a\0": "b\0", "c": "\\u0000", "d": "\\\0"}, {"a": "b", "c": "\\u0000", "d": "\\"}),
        ({"a": "x" * MOST_DETAILS}, {"left_out": "65,544 bytes, expected at most 65,536"}),
    ],
)
def test_details_are_an_object_that_can_be_stored(given: object, kept: dict[str, object]) -> None:
    assert error_of(changed(RICH, "meta", fetch_status="error", error_details=given)).details == kept


def test_details_are_not_nested_too_deep() -> None:
    def nested(depth: int) -> object:
        return {"a": nested(depth - 1)} if depth else 1

    fits, deep = nested(DEEPEST_DETAILS - 1), nested(DEEPEST_DETAILS)

    assert error_of(changed(RICH, "meta", fetch_status="error", error_details=fits)).details == fits
    assert error_of(changed(RICH, "meta", fetch_status="error", error_details=deep)).details == {
        "left_out": "nested more than 50 deep"
    }


NAMES = sorted(
    {"meta", "content", "author", "comments", "interaction", "interactions", *RICH["meta"], *RICH["content"]}
)
NAMES += sorted({*RICH["author"], *LEAN["author"], *LEAN["interaction"], *LEAN["comments"][1], *RICH["comments"][1]})
scalars = st.none() | st.booleans() | st.integers() | st.integers(10**390, 10**400) | st.floats() | st.text(max_size=20)
scalars |= st.sampled_from(["success", "error", "2025-12-06T10:15:30Z", "\0", "1,2K", "https://a.example"])
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)
parts = json_values | st.dictionaries(st.sampled_from(NAMES), json_values, max_size=6)
items = st.fixed_dictionaries(
    {},
    optional={
        "meta": parts
        | parts.map(lambda meta: {"id": "1", "fetch_status": "success"} | (meta if isinstance(meta, dict) else {})),
        "content": parts,
        "author": parts,
        "interaction": parts,
        "interactions": parts,
        "comments": parts | st.lists(parts, max_size=3),
    },
)


@settings(max_examples=200)
@given(items | json_values, st.sampled_from(["", "success"]))
def test_whatever_json_an_item_is_it_is_a_post_or_an_error(raw: object, default_status: str) -> None:
    read = read_item(raw, CONTEXT, 0, default_status)

    assert read == read_item(raw, CONTEXT, 0, default_status)
    again = msgspec.json.decode(msgspec.json.encode(read))
    if isinstance(read, Post):
        assert msgspec.convert(again, Post) == read
        assert 0 < len(read.id) <= LONGEST_ID
        assert min(msgspec.structs.astuple(read.interaction)) >= 0
    else:
        assert read.content_id
        assert read.code
    assert "\\u0000" not in str(again).replace("\\\\", "")


def result(**fields: object) -> dict[str, object]:
    """What a crawler says about a task that went well."""
    whole: dict[str, object] = {
        "success": True,
        "task_type": "research_and_crawl",
        "limit_info": {"requested_limit": 10, "applied_limit": 10, "total_found": 3, "platform_limited": True},
        "stats": {"successful": 2, "failed": 1, "skipped": 0, "completion_rate": 0.67},
        "error": None,
        "payload": [{"meta": {"id": "1"}}, {"meta": {"id": "2"}}],
    }
    return {**whole, **fields}


def test_the_result_of_a_task_is_its_items() -> None:
    assert read_result(result()) == ([{"meta": {"id": "1"}}, {"meta": {"id": "2"}}], ())


@pytest.mark.parametrize(
    "raw",
    [RICH, {}, {"payload": {"a": 1}}, {"meta": {}, "payload": [], "success": True}, {"payload": None}, 5, None, [1]],
)
def test_what_is_no_result_is_an_item(raw: object) -> None:
    assert read_result(raw) == ([raw], ())


@pytest.mark.parametrize(
    ("fields", "noted"),
    [
        ({"payload": []}, "stats.successful is 2, found 0 items"),
        ({"stats": {"successful": 2, "completion_rate": 0.9}}, "stats.completion_rate is 0.9, expected 2 of 3"),
        (
            {"stats": {"successful": 2, "completion_rate": 10**400}},
            "stats.completion_rate is a very long number, expected 2 of 3",
        ),
        (
            {"limit_info": {"requested_limit": 3, "total_found": 3, "platform_limited": True}},
            r"limit_info.platform_limited is True, expected found (3) < requested (3)",
        ),
        ({"success": False}, "the task says it failed, and has no error"),
        (
            {"success": False, "error": {"code": "BLOCKED", "message": "no"}},
            "the task failed: BLOCKED, rate_limiting: no",
        ),
        ({"success": False, "error": {"message": 5}}, "the task failed: UNKNOWN_ERROR, generic: 5"),
    ],
)
def test_numbers_that_contradict_each_other_are_noted(fields: dict[str, object], noted: str) -> None:
    assert read_result(result(**fields))[1] == (noted,)


def test_a_task_that_found_nothing_has_a_rate_of_zero() -> None:
    limits = {"requested_limit": 10, "total_found": 0, "platform_limited": True}
    stats = {"successful": 0, "completion_rate": 0}

    assert read_result(result(limit_info=limits, stats=stats, payload=[])) == ([], ())
    assert read_result(result(limit_info=limits, stats={**stats, "completion_rate": 1}, payload=[]))[1] == (
        "stats.completion_rate is 1, expected 0 of 0",
    )


def test_a_task_that_failed_may_have_no_items_at_all() -> None:
    items, noted = read_result({"success": False, "error": {"code": "TIMEOUT", "message": "x" * 1000}, "payload": None})

    assert items == []
    assert noted == (f"the task failed: TIMEOUT, network: {'x' * 200}",)


def test_success_with_an_error_is_noted() -> None:
    assert read_result(result(error={"code": "CRAWL_PARTIAL", "message": "m"}))[1] == (
        "the task failed: CRAWL_PARTIAL, generic: m",
        "the task says success, and has an error",
    )


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(["success", "payload", "stats", "limit_info", "error"]), parts, max_size=5))
def test_any_result_has_items_and_notes(raw: dict[str, object]) -> None:
    items, noted = read_result(raw)

    assert isinstance(items, list)
    assert all(isinstance(note, str) for note in noted)
