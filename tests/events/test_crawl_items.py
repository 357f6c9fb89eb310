import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from producer_items import item
from producer_play import JSON

from sanderling.events.crawl_items import LineError, from_page, from_report, platform_of, read_line
from sanderling.events.envelopes import read_envelope
from sanderling.events.items import read_item
from sanderling.events.posts import CrawlError, Post
from sanderling.formats.instance import Instance, Message
from sanderling.formats.instance import encode as encode_report

PAGE = {
    "id": 7,
    "url": "https://example.org/a",
    "outcome": "OK",
    "status": 200,
    "depth": 1,
    "fetched_at": "2026-01-02T03:04:05Z",
    "title": "A title",
    "description": "In short",
    "language": "vi",
    "text": "What it says",
    "metadata": {"author": "Somebody", "article:published_time": "2026-01-01T00:00:00Z"},
}


def read_one(made: object) -> Post | CrawlError:
    context = read_envelope(msgspec.json.encode({"meta": {}, "platform": "web"})).context
    return read_item(msgspec.json.decode(msgspec.json.encode(made)), context, 0)


def test_a_page_is_a_post() -> None:
    post = read_one(from_page(PAGE))
    elsewhere = read_one(from_page({**PAGE, "url": "https://example.org/b", "text": "", "description": None}))

    assert isinstance(post, Post)
    assert isinstance(elsewhere, Post)
    assert (post.platform, post.text, post.permalink) == ("web", "What it says", "https://example.org/a")
    assert (post.language, post.author.name, post.pipeline_version) == ("vi", "Somebody", "sanderling_pages")
    assert (post.crawled_at, post.published_at) == (1_767_323_045, 1_767_225_600)
    assert post.id.startswith("url-")
    assert post.id != elsewhere.id
    assert elsewhere.text == "A title"


def test_a_page_that_failed_is_an_error_with_its_code() -> None:
    error = read_one(from_page({**PAGE, "outcome": "TIMEOUT", "status": 0, "detail": "after 30 s"}))

    assert isinstance(error, CrawlError)
    assert (error.code, error.category, error.message) == ("TIMEOUT", "network", "after 30 s")
    assert error.permalink == "https://example.org/a"


@pytest.mark.parametrize("outcome", ["NOT_MODIFIED", "SKIPPED"])
def test_a_page_that_moved_or_is_as_before_is_no_item(outcome: str) -> None:
    assert from_page({**PAGE, "outcome": outcome}) is None


def test_a_page_that_is_an_item_is_that_item() -> None:
    assert from_page({**PAGE, "json": item(5)}) == item(5)


@given(st.dictionaries(st.sampled_from([*PAGE, "json", "detail"]), JSON))
def test_any_row_of_a_page_is_something_that_can_be_read(row: dict[str, object]) -> None:
    made = from_page(row)

    assert made is None or isinstance(read_one(made), Post | CrawlError)


def test_a_report_is_a_post() -> None:
    instance = Instance(
        instance_id="16000000001", date_completed=1_700_000_000.0, activity_hash=99, completed=True, fresh=False,
        player_count=6, duration_seconds=1800,
    )  # fmt: skip
    report = Message("16000000001", "bungie", 1_700_000_100.5, instance, msgspec.Raw(b"{}"))
    bare = Message("5", "numbers", 0.0, Instance(instance_id="5"), msgspec.Raw(b"{}"))

    post, other = read_one(from_report(report)), read_one(from_report(bare))

    assert isinstance(post, Post)
    assert (post.id, post.platform, post.duration) == ("16000000001", "bungie", 1800)
    assert (post.published_at, post.crawled_at) == (1_700_000_000, 1_700_000_100.5)
    assert post.text == "report 16000000001, activity 99, 6 players, completed"
    assert isinstance(other, Post)
    assert (other.text, other.published_at, other.crawled_at) == ("report 5", None, None)
    assert read_line(encode_report(report)) == msgspec.json.decode(msgspec.json.encode(from_report(report)))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "not JSON"),
        (b"[]", "found a list, expected an object"),
        (b"5", "found 5, expected an object"),
        (b'{"a": 1, "b": 2}', "found 'a', 'b'; expected meta, or url and outcome, or instance and api"),
        (b"{}", "found nothing; expected meta"),
        (b'{"meta": 5}', "found 'meta'"),
        (b'{"instance": {}, "api": "x"}', "is not what this version writes"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_line_that_is_nothing_of_ours_says_what_it_is(line: bytes, why: str) -> None:
    with pytest.raises(LineError, match=why):
        read_line(line)


@given(st.text())
def test_every_name_of_an_api_becomes_that_of_a_platform(api: str) -> None:
    message = {"event_id": "1", "payload": {"minio_path": "b/k", "platform": platform_of(api)}}

    context = read_envelope(msgspec.json.encode(message)).context

    assert context.platform == platform_of(api) != ""


def test_names_that_begin_alike_are_told_apart() -> None:
    assert platform_of("bungie") == "bungie"
    assert platform_of("a-name-that-is-too-long-1") != platform_of("a-name-that-is-too-long-2")
    assert platform_of("_game") != platform_of("-game") != "game"
