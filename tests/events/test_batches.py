"""Where a batch is and what is in it: paths and bodies of every form, and of those that should not be."""

import json
import sys
import tracemalloc
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.batches import (
    LONGEST_KEY,
    MOST_FRAMES,
    PIECE,
    SIZES,
    BatchError,
    ObjectLocation,
    decode,
    read_path,
    read_reference,
    size_notes,
)
from sanderling.events.salvage import MOST_MEMBERS, Unreadable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ITEMS: list[object] = [{"meta": {"id": 7301234567890123456 + place}} for place in range(3)]
PLAIN = msgspec.json.encode(ITEMS)
PACKED = zstd.compress(PLAIN)
SAID = {"x-amz-meta-compressed": "true"}
SKIPPED = (0x184D2A50).to_bytes(4, "little") + (4).to_bytes(4, "little") + b"note"


def read(
    body: bytes, metadata: Mapping[str, str] | None = None, key: str = "a/b.json", most: int = 10**6
) -> list[object]:
    return decode(body, metadata=metadata or {}, key=key, most=most).items


def notes(body: bytes, metadata: Mapping[str, str] | None = None, key: str = "a/b.json") -> tuple[str, ...]:
    return decode(body, metadata=metadata or {}, key=key, most=10**6).notes


def streamed(data: bytes) -> bytes:
    """Packed without saying how long it will be."""
    packer = zstd.ZstdCompressor()
    return packer.compress(data[:5]) + packer.compress(data[5:]) + packer.flush()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("minio://crawl-results/tiktok/x.json", ObjectLocation("crawl-results", "tiktok/x.json")),
        ("MinIO://crawl-results/tiktok/x.json", ObjectLocation("crawl-results", "tiktok/x.json")),
        ("s3://crawl-results/x.json", ObjectLocation("crawl-results", "x.json")),
        (
            "crawl-results/tiktok/proj_xyz/brand/batch_001.json",
            ObjectLocation("crawl-results", "tiktok/proj_xyz/brand/batch_001.json"),
        ),
        ("/crawl-results/tiktok/x.json", ObjectLocation("crawl-results", "tiktok/x.json")),
        ("  crawl-results/x.json\n", ObjectLocation("crawl-results", "x.json")),
        ("bucket/tiktok/2025/12/06/a%2Fb c?d#e.json", ObjectLocation("bucket", "tiktok/2025/12/06/a%2Fb c?d#e.json")),
        (
            "bucket/competitor_Cà Phê 👩‍🚀/batch_001.json",
            ObjectLocation("bucket", "competitor_Cà Phê 👩‍🚀/batch_001.json"),
        ),
        ("bucket/%2e%2e/x", ObjectLocation("bucket", "%2e%2e/x")),
        ("bucket/a..b/...", ObjectLocation("bucket", "a..b/...")),
        ("bucket/a//b/", ObjectLocation("bucket", "a//b/")),
        ("x.json", ObjectLocation("results", "x.json")),
        ("/x.json", ObjectLocation("results", "x.json")),
    ],
)
def test_a_path_is_a_place(text: str, place: ObjectLocation) -> None:
    assert read_path(text, "results") == place


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no bucket"),
        ("   ", "no bucket"),
        ("/", "no bucket"),
        ("minio://", "no bucket"),
        ("minio:///key", "no bucket"),
        ("..bucket/key", "no bucket"),
        ("../key", "no bucket"),
        ("a b/key", "no bucket"),
        ("b" * 64 + "/key", "no bucket"),
        ("noslash.json", "no key"),
        ("bucket/", "no key"),
        ("minio://bucket", "no key"),
        ("bucket/..", "step through folders"),
        ("bucket/a/../../etc/passwd", "step through folders"),
        ("bucket/./x", "step through folders"),
        ("bucket//x", "step through folders"),
        ("bucket/a\0b", "control character"),
        ("bucket/a\nb", "control character"),
        ("bucket/a\x85b", "control character"),
        ("bucket/\ud800", "control character"),
        ("bucket/a\\b", "backslash"),
        ("https://bucket/key", "expected minio:// or s3://"),
        ("file://bucket/key", "expected minio:// or s3://"),
        ("bucket/" + "x" * (LONGEST_KEY + 1), "key of 1,025 bytes"),
        ("bucket/" + "é" * LONGEST_KEY, "key of 2,048 bytes"),
        ("x" * 1_000_000, "path of 1,000,000 characters"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(text: str, found: str) -> None:
    with pytest.raises(BatchError, match=found) as raised:
        read_path(text)
    assert not raised.value.transient


@pytest.mark.parametrize("text", ["s3://key:hunter2@bucket/..", "key:hunter2@bucket/x", "s3://key:hunt/er2@bucket/x"])
def test_a_password_in_a_path_is_not_shown(text: str) -> None:
    with pytest.raises(BatchError) as raised:
        read_path(text)
    assert "hunt" not in str(raised.value)


def test_a_bucket_may_be_named_apart() -> None:
    assert read_reference("posts", "/tiktok/x.json") == ObjectLocation("posts", "tiktok/x.json")
    assert read_reference("posts", "x.json") == ObjectLocation("posts", "x.json")
    assert read_reference("", "posts/x.json") == ObjectLocation("posts", "x.json")
    assert read_reference("", "x.json", "results") == ObjectLocation("results", "x.json")
    assert read_reference("posts", "minio://others/x.json") == ObjectLocation("others", "x.json")
    with pytest.raises(BatchError, match="step through folders"):
        read_reference("posts", "../x.json")
    with pytest.raises(BatchError, match="no key"):
        read_reference("posts", "/")
    with pytest.raises(BatchError, match="no bucket"):
        read_reference("..", "x.json")


@given(st.text(max_size=50), st.sampled_from(["", "results"]))
def test_any_path_is_a_safe_place_or_an_error(text: str, default: str) -> None:
    try:
        bucket, key = read_path(text, default)
    except BatchError:
        return
    assert bucket in text or bucket == default
    assert key in text
    assert not {"..", "."} & set(key.split("/"))
    assert key[0] != "/"


@pytest.mark.parametrize(
    "body",
    [
        PLAIN,
        b"\xef\xbb\xbf" + PLAIN,
        b"\n " + PLAIN + b"\n",
        msgspec.json.encode({"items": ITEMS, "count": 3}),
        msgspec.json.encode({"items": ITEMS}),
        PACKED,
        streamed(PLAIN),
        zstd.compress(b"\xef\xbb\xbf" + PLAIN, level=19),
        zstd.compress(PLAIN[:9]) + streamed(PLAIN[9:20]) + zstd.compress(b"") + zstd.compress(PLAIN[20:]),
        SKIPPED + PACKED + SKIPPED,
    ],
)
@pytest.mark.parametrize("key", ["a/b.json", "a/b.json.zst"])
def test_a_body_of_any_form_has_the_same_items(body: bytes, key: str) -> None:
    assert read(body, key=key) == read(body, SAID, key=key) == ITEMS


def test_an_object_alone_is_one_item() -> None:
    assert read(b'{"meta": {"id": "1"}}') == [{"meta": {"id": "1"}}]


def test_numbers_of_19_digits_stay_exact() -> None:
    (item,) = read(b'[{"id": 7301234567890123457, "long": 123456789012345678901234567890}]')

    assert item == {"id": 7301234567890123457, "long": 123456789012345678901234567890}


@pytest.mark.parametrize("body", [b"5", b'"text"', b"null", b"true", zstd.compress(b"5"), b"1.5"])
def test_a_value_that_is_neither_list_nor_object_is_refused(body: bytes) -> None:
    with pytest.raises(BatchError, match=r"a/b\.json: found .*, expected a list of items or an object") as raised:
        read(body)
    assert not raised.value.transient


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        (SAID, "k"),
        ({"X-Amz-Meta-Compressed": " TRUE "}, "k"),
        ({"compressed": "true"}, "k"),
        ({"x-amz-meta-compression-algorithm": "ZSTD"}, "k"),
        ({"Compression-Algorithm": "zstd", "compression-level": "2"}, "k"),
        ({}, "k.json.zst"),
        ({}, "K.ZSTD"),
    ],
)
def test_a_plain_body_that_is_said_to_be_packed_is_noted(metadata: Mapping[str, str], key: str) -> None:
    assert decode(PLAIN, metadata=metadata, key=key) == (ITEMS, (f"{key}: said to be packed with zstd, found plain",))
    assert decode(PACKED, metadata=metadata, key=key) == (ITEMS, ())


@pytest.mark.parametrize(
    "metadata",
    [{}, {"x-amz-meta-compressed": "false"}, {"x-amz-meta-compression-algorithm": "gzip"}, {"compressed": ""}],
)
def test_the_first_bytes_say_more_than_the_metadata(metadata: Mapping[str, str]) -> None:
    assert decode(PACKED, metadata=metadata, key="k") == decode(PLAIN, metadata=metadata, key="k") == (ITEMS, ())


@pytest.mark.parametrize("told", [2, "3", None, 3, 3.5, True])
def test_a_count_that_is_not_the_number_of_items_is_noted(told: object) -> None:
    body = msgspec.json.encode({"items": ITEMS, "count": told})

    assert bool(notes(body)) == (told not in (None, 3))
    assert all("says count" in note and "found 3 items" in note for note in notes(body))


@given(st.integers(0, len(PACKED) - 1))
def test_a_packed_body_that_was_cut_may_be_complete_later(length: int) -> None:
    with pytest.raises(BatchError) as raised:
        read(PACKED[:length], SAID)
    assert raised.value.transient


@given(st.integers(0, len(PLAIN) - 1))
def test_a_plain_body_that_was_cut_may_be_complete_later(length: int) -> None:
    with pytest.raises(BatchError, match=r"end too early|found 0 bytes") as raised:
        read(PLAIN[:length])
    assert raised.value.transient


def test_half_a_document_in_a_whole_frame_stays_one() -> None:
    """So that there is nothing to wait for: what is whole of it is read at once."""
    *whole, rest = read(zstd.compress(PLAIN[:-5]))
    assert whole == ITEMS[: len(whole)]
    assert isinstance(rest, Unreadable)
    with pytest.raises(BatchError, match="end too early") as raised:
        read(zstd.compress(PLAIN[:5]))
    assert not raised.value.transient


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (PACKED + b"junk", "zstd frame 2 of .* does not unpack"),
        (PACKED[:10] + b"\xff" * 20 + PACKED[30:], "zstd frame 1 of .* does not unpack"),
        (zstd.compress(b""), "no JSON"),
        (SKIPPED, "no JSON"),
        (b"\x1f\x8b\x08\x00 and so on", "found gzip, expected JSON or zstd"),
        (b"\x28\xb5", "no JSON"),  # nobody said that it is packed
        (b"<html>", "no JSON"),
        (b"\xff\xfe[\0]\0", "no JSON"),
        (b"[" * 10_000 + b"]" * 10_000, "no JSON"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "no JSON"),
        (zstd.compress(b"") * (MOST_FRAMES + 1), "more than 1,000 zstd frames"),
        (b"[" + b"0," * MOST_MEMBERS + b"0]", "found 10,001 items, expected at most 10,000"),
        (b'[{"a": NaN}, {}', "end too early"),
    ],
    ids=range(13),
)
def test_a_body_that_cannot_be_read_says_why(body: bytes, found: str) -> None:
    with pytest.raises(BatchError, match=rf"a/b\.json: .*{found}") as raised:
        read(body)
    assert raised.value.transient == (found == "end too early")


@pytest.mark.parametrize("pack", [bytes, zstd.compress, streamed])
def test_the_bound_is_the_size_once_unpacked(pack: object) -> None:
    assert callable(pack)
    body = pack(PLAIN)

    assert read(body, most=len(PLAIN)) == ITEMS
    with pytest.raises(BatchError, match=rf"expected at most {len(PLAIN) - 1 if len(PLAIN) < 1000 else ''}|more than"):
        read(body, most=len(PLAIN) - 1)


@pytest.mark.parametrize("pack", [zstd.compress, streamed])
def test_a_bomb_is_noticed_before_it_goes_off(pack: object) -> None:
    assert callable(pack)
    bomb = pack(b" " * 50_000_000)
    most = 1_000_000

    tracemalloc.start()
    try:
        with pytest.raises(BatchError, match="more than 1,000,000 bytes once unpacked") as raised:
            read(bomb, most=most)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert not raised.value.transient
    # The buffer grows by an eighth at a time.
    assert peak < most * 1.3 + 4 * PIECE


def test_a_window_that_would_fill_the_memory_is_refused() -> None:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    body = packer.compress(PLAIN) + packer.flush()

    with pytest.raises(BatchError, match="does not unpack"):
        read(body)


def test_one_bad_item_does_not_cost_the_others() -> None:
    deep = b"[" * 10_000 + b"]" * 10_000
    body = b'[{"a": "\\ud83d"}, ' + deep + b', {"a": 1e999, "b": "\xff"}, {"a": }, {"a": 5}]'

    items, found = decode(zstd.compress(body), metadata={}, key="k")

    assert [item for item in items if not isinstance(item, Unreadable)] == [
        {"a": "\ufffd"},
        {"a": None, "b": "\ufffd"},
        {"a": 5},
    ]
    assert [place for place, item in enumerate(items) if isinstance(item, Unreadable)] == [1, 3]
    assert found == ("k: 2 of 5 members cannot be read, the first is number 1",)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=20), max_size=3), max_size=5))
def test_what_was_packed_comes_out(items: list[object]) -> None:
    body = json.dumps(items).encode()

    assert read(body) == read(zstd.compress(body)) == read(streamed(body)) == items


@given(st.binary(max_size=80), st.sampled_from([b"", PACKED[:4], PACKED[:-3], PACKED, b"[", b'{"items": [']))
def test_whatever_the_bytes_there_are_items_or_an_error(data: bytes, start: bytes) -> None:
    try:
        items = read(start + data, most=5000)
    except BatchError as error:
        assert str(error).startswith("a/b.json: ")  # noqa: PT017 - either is right
        return
    assert isinstance(items, list)


def test_a_full_batch_has_its_size() -> None:
    assert [SIZES.get(name) for name in ("tiktok", "youtube", "facebook", "")] == [50, 20, None, None]
    assert size_notes(50, "tiktok", 50) == size_notes(7, "facebook", None) == size_notes(20, "youtube", None) == ()


def test_a_batch_of_another_size_than_was_said_is_noted_and_no_more() -> None:
    assert size_notes(49, "tiktok", 50) == ("found 49 items, the message says 50",)
    assert size_notes(7, "facebook", 8) == ("found 7 items, the message says 8",)


def test_the_last_batch_of_a_job_may_be_short_and_none_may_be_too_long() -> None:
    assert size_notes(3, "tiktok", 3) == size_notes(3, "tiktok", None) == ()
    assert size_notes(51, "tiktok", 51) == ("found 51 items, a full batch of tiktok has 50",)
