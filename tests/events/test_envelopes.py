"""What messages of every version say, whose they are, and which are not for us."""

import math
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.envelopes import (
    MOST_BYTES,
    EnvelopeError,
    EventEnvelope,
    InlineEnvelope,
    LegacyEnvelope,
    canary,
    read_envelope,
)
from sanderling.events.posts import Context

UUID = "fc5d5ffb-36cc-4c8d-a288-f5215af7fb80"
OTHER = "00000000-1111-2222-3333-444444444444"
PATH = "crawl-results/tiktok/proj_xyz/brand/batch_001.json"
NOON = 1765016130.0
EMPTY: Mapping[str, object] = {}

GUIDE = {
    "event_id": "evt_abc123",
    "timestamp": "2025-12-06T10:15:30Z",
    "payload": {
        "minio_path": PATH,
        "project_id": None,
        "job_id": "proj_xyz-brand-0",
        "platform": "tiktok",
        "content_count": 50,
        "batch_index": 1,
        "total_batches": 4,
    },
}


def event(envelope: Mapping[str, object] = EMPTY, **payload: object) -> bytes:
    """The guide's message with some fields set otherwise; `...` leaves one out."""
    inner = {name: value for name, value in {**GUIDE["payload"], **payload}.items() if value is not ...}  # type: ignore[dict-item] # it is one
    outer = {**GUIDE, "payload": inner, **envelope}
    return msgspec.json.encode({name: value for name, value in outer.items() if value is not ...})


def read_event(envelope: Mapping[str, object] = EMPTY, **payload: object) -> EventEnvelope:
    read = read_envelope(event(envelope, **payload))
    assert isinstance(read, EventEnvelope)
    return read


def test_an_event_of_the_guide_says_where_its_batch_is() -> None:
    assert read_event() == EventEnvelope(
        context=Context(
            event_id="evt_abc123",
            job_id="proj_xyz-brand-0",
            project_id="proj_xyz",
            platform="tiktok",
            batch_index=1,
            content_count=50,
            total_batches=4,
            sent_at=NOON,
        ),
        path=PATH,
        version="1.0",
    )


def test_an_event_of_contract_1_1_has_a_type_and_perhaps_a_task() -> None:
    read = read_event(
        {"event_type": "data.collected"},
        project_id=UUID,
        job_id=f"{UUID}-brand-0",
        task_type="research_and_crawl",
        keyword="Acme VF8",
    )

    assert (read.version, read.notes) == ("1.1", ())
    assert (read.context.project_id, read.context.task_type, read.context.keyword) == (
        UUID,
        "research_and_crawl",
        "Acme VF8",
    )


def test_an_event_of_contract_2_0_has_a_brand_and_counts_from_0() -> None:
    read = read_event(
        {"event_type": "data.collected"},
        project_id=UUID,
        job_id=f"{UUID}-competitor-Misa-0",
        task_type="research_and_crawl",
        keyword="Misa",
        brand_name="Acme",
        batch_index=0,
        platform="YOUTUBE",
    )

    assert (read.version, read.notes) == ("2.0", ())
    assert (read.context.brand_name, read.context.batch_index, read.context.platform) == ("Acme", 0, "youtube")


def test_contract_2_0_expects_a_project() -> None:
    read = read_event({"event_type": "data.collected"}, brand_name="Acme", project_id=...)

    assert read.notes == ("payload.project_id is missing, expected in version 2.0",)


def test_an_event_of_another_type_is_read_and_noted() -> None:
    read = read_event({"event_type": "job.completed"})

    assert read.path == PATH
    assert read.notes == ("event_type is 'job.completed', expected 'data.collected'; read all the same",)


def test_a_path_is_all_that_an_event_needs() -> None:
    read = read_envelope(b'{"payload": {"minio_path": "bucket/key"}}')

    assert isinstance(read, EventEnvelope)
    assert read.path == "bucket/key"
    assert read.context == Context(event_id=read.context.event_id)
    assert read.notes == ("event_id is missing, took one made from the message",)


@pytest.mark.parametrize("path", [None, "", "  ", 5, ["bucket/key"], {"path": "x"}])
def test_an_event_whose_path_is_none_is_refused(path: object) -> None:
    with pytest.raises(EnvelopeError, match=r"payload\.minio_path is .*, expected a path"):
        read_envelope(event(minio_path=path))


def test_a_legacy_message_names_bucket_and_path() -> None:
    message = {"data_ref": {"bucket": "posts", "path": "a/1.json"}, "project_id": UUID, "meta": {"platform": "TIKTOK"}}

    read = read_envelope(msgspec.json.encode(message))

    assert isinstance(read, LegacyEnvelope)
    assert (read.bucket, read.path, read.notes) == ("posts", "a/1.json", ())
    assert (read.context.project_id, read.context.platform) == (UUID, "tiktok")


@pytest.mark.parametrize(
    "reference", [{"path": "posts/1.json"}, {"bucket": None, "path": "posts/1.json"}, "posts/1.json"]
)
def test_a_legacy_message_may_leave_the_bucket_to_the_path(reference: object) -> None:
    read = read_envelope(msgspec.json.encode({"data_ref": reference, "payload": "x"}))

    assert isinstance(read, LegacyEnvelope)
    assert (read.bucket, read.path) == ("", "posts/1.json")


@pytest.mark.parametrize(
    "reference", [None, {}, [], 5, "", {"path": 5}, {"bucket": "posts"}, {"bucket": 5, "path": "x"}]
)
def test_a_legacy_message_without_a_path_is_refused(reference: object) -> None:
    with pytest.raises(EnvelopeError, match=r"data_ref.* is .*, expected a (path|name)"):
        read_envelope(msgspec.json.encode({"data_ref": reference}))


def test_an_inline_message_is_the_item_and_its_meta_the_context() -> None:
    meta = {
        "id": "1",
        "job_id": f"{UUID}-brand-2",
        "platform": "TikTok",
        "task_type": "dryrun_keyword",
        "keyword_source": "Acme",
    }
    message = {"meta": meta, "content": {"text": "hello"}}

    read = read_envelope(msgspec.json.encode(message))

    assert isinstance(read, InlineEnvelope)
    assert (read.item, read.notes) == (message, ())
    assert (read.context.project_id, read.context.job_id) == (UUID, f"{UUID}-brand-2")
    assert (read.context.platform, read.context.task_type, read.context.keyword) == ("tiktok", "dryrun_keyword", "Acme")


@pytest.mark.parametrize(
    "message", [{"payload": [], "success": True}, {"payload": [1]}, {"success": False, "payload": None}]
)
def test_the_result_of_a_task_may_come_inline(message: dict[str, object]) -> None:
    read = read_envelope(msgspec.json.encode(message))

    assert isinstance(read, InlineEnvelope)
    assert read.item == message


def test_each_way_has_a_name_and_what_its_items_have_without_a_status() -> None:
    read = [
        read_envelope(event()),
        read_envelope(b'{"data_ref": "a/b"}'),
        read_envelope(b'{"meta": {}}'),
    ]

    assert [each.mode for each in read] == ["new", "legacy", "inline"]
    assert [each.default_status for each in read] == ["", "success", "success"]


def test_of_a_message_that_fits_several_ways_the_newest_counts() -> None:
    both = {**GUIDE, "data_ref": {"bucket": "posts", "path": "1.json"}, "meta": {}}

    assert read_envelope(msgspec.json.encode(both)).mode == "new"
    assert read_envelope(msgspec.json.encode({**both, "payload": {}})).mode == "legacy"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"", "no JSON"),
        (b"nonsense", "no JSON"),
        (b"[" * 10_000 + b"]" * 10_000, "no JSON"),
        (b"[]", "message is a list, expected an object"),
        (b"null", "message is nothing, expected an object"),
        (b'"text"', "message is 'text', expected an object"),
        (b"{}", r"message has nothing; expected payload\.minio_path, data_ref or meta"),
        (
            b'{"event_type": "project.created", "payload": {"project_id": "x"}}',
            "message has 'event_type', 'payload'; expected",
        ),
        (b'{"payload": "minio_path"}', "message has 'payload'; expected"),
        (b'{"payload": null, "meta": null}', "message has 'payload', 'meta'; expected"),
        (b'{"meta": "x", "' + b"k" * 1000 + b'": 1}', f"'{'k' * 40}'; expected"),
        (b" " * (MOST_BYTES + 1), "message of 1,048,577 bytes, expected at most 1,048,576"),
    ],
    ids=range(12),
)
def test_what_is_not_for_us_is_refused_with_what_was_found(body: bytes, found: str) -> None:
    with pytest.raises(EnvelopeError, match=found):
        read_envelope(body)


def test_a_message_that_is_nearly_json_is_read_and_noted() -> None:
    read = read_envelope(b'{"meta": {"id": "1"}, "content": {"text": "cut \\ud83d", "views": NaN}}')

    assert isinstance(read, InlineEnvelope)
    assert read.item == {"meta": {"id": "1"}, "content": {"text": "cut \ufffd", "views": None}}
    assert read.notes == ("message: not strictly JSON, read as far as possible",)


@pytest.mark.parametrize("body", [b'{"data_ref": "a/b"}', b'{"meta": {}}', b'{"payload": {"minio_path": "a/b"}}'])
def test_an_id_that_is_missing_is_made_from_the_message(body: bytes) -> None:
    first, again, other = (read_envelope(each).context.event_id for each in (body, body, body + b" "))

    assert first == again != other
    assert first.startswith("body-")
    assert len(first) == 37


@pytest.mark.parametrize("event_id", ["", "x" * 129, "a\0b", 5.5, True, [], {}])
def test_an_id_that_is_none_is_noted_and_made(event_id: object) -> None:
    read = read_event({"event_id": event_id})

    assert read.context.event_id.startswith("body-")
    assert read.notes[0].startswith("event_id is ")


def test_an_id_may_be_a_number() -> None:
    assert read_event({"event_id": 7301234567890123456}).context.event_id == "7301234567890123456"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch_index", -1),
        ("batch_index", "first"),
        ("batch_index", 2**31),
        ("content_count", True),
        ("content_count", "1,2K"),
        ("content_count", 10**400),
        ("total_batches", []),
        ("total_batches", -0.5),
    ],
)
def test_a_number_that_is_none_is_left_out_and_noted(field: str, value: object) -> None:
    read = read_envelope(event({}, **{field: value}))

    assert getattr(read.context, field) is None
    assert len(read.notes) == 1
    assert read.notes[0].startswith(f"{field} is ")


@pytest.mark.parametrize(("value", "index"), [("3", 3), (3.0, 3), (0, 0), (2**31 - 1, 2**31 - 1), (None, None)])
def test_a_batch_keeps_the_number_it_was_sent_with(value: object, index: int | None) -> None:
    read = read_event(batch_index=value)

    assert (read.context.batch_index, read.notes) == (index, ())


@pytest.mark.parametrize(
    "stamp", ["2025-12-06T17:15:30+07:00", 1765016130, 1765016130000, "2025-12-06 10:15:30", "1765016130"]
)
def test_the_time_may_be_written_in_many_ways(stamp: object) -> None:
    assert read_event({"timestamp": stamp}).context.sent_at == NOON


@pytest.mark.parametrize("stamp", ["yesterday", "", -5, 0, {}, "x" * 100_000, 10**400])
def test_a_time_that_is_none_is_left_out_and_noted(stamp: object) -> None:
    read = read_event({"timestamp": stamp})

    assert read.context.sent_at is None
    assert len(read.notes) == 1
    assert read.notes[0].startswith("timestamp is ")
    assert len(read.notes[0]) < 200


def test_texts_that_are_none_are_left_out_and_long_ones_cut() -> None:
    read = read_event(platform="a platform", keyword="k" * 1000, task_type=[], brand_name={}, job_id="j" * 1000)

    assert (read.context.platform, read.context.keyword, read.context.task_type) == ("", "k" * 256, "")
    assert (read.context.brand_name, read.context.job_id, read.context.project_id) == ("", "", None)
    assert [note.split()[0] for note in read.notes] == ["job_id", "platform", "task_type", "keyword", "brand_name"]


@pytest.mark.parametrize("job_id", ["proj\0_xyz-brand-0", "proj_xyz-brand\n-0", "", [], 5.5, "j" * 257])
def test_a_job_that_is_none_is_left_out_and_noted(job_id: object) -> None:
    read = read_event(job_id=job_id)

    assert (read.context.job_id, read.context.project_id) == ("", None)
    assert len(read.notes) == 1
    assert read.notes[0].startswith("job_id is ")


@pytest.mark.parametrize(
    ("job_id", "project_id", "whose"),
    [
        (f"{UUID}-brand-0", None, UUID),
        (f"{UUID}-brand-0", UUID.upper(), UUID),
        (f"{UUID}-brand-0", "", UUID),
        ("proj_xyz-brand-0", "proj_xyz", "proj_xyz"),
        ("proj_xyz-brand-0", None, "proj_xyz"),
        (UUID, None, None),
        (None, None, None),
        (None, UUID, UUID),
        (UUID, OTHER, OTHER),
        ("north-star-coca-cola-0", UUID, UUID),
    ],
)
def test_whose_it_is_when_nothing_contradicts(job_id: object, project_id: object, whose: str | None) -> None:
    read = read_event(job_id=job_id, project_id=project_id)

    assert (read.context.project_id, read.notes) == (whose, ())


@pytest.mark.parametrize(
    ("job_id", "project_id", "whose", "noted"),
    [
        (f"{UUID}-brand-0", OTHER, None, f"project_id is {OTHER}, but the job '{UUID}-brand-0' is of {UUID}"),
        ("proj_xyz-brand-0", "proj_abc", None, "project_id is 'proj_abc', expected a UUID"),
        ("proj_xyz-brand-0", UUID, UUID, f"project_id is {UUID}, but the job 'proj_xyz-brand-0' is of proj_xyz"),
        (f"{UUID}-brand-0", "proj_xyz", UUID, "project_id is 'proj_xyz', expected a UUID"),
        (None, "proj_xyz", None, "project_id is 'proj_xyz', expected a UUID"),
        (UUID, 5, None, "project_id is 5, expected a UUID"),
    ],
)
def test_two_that_differ_are_noted_and_two_of_a_kind_cancel(
    job_id: object, project_id: object, whose: str | None, noted: str
) -> None:
    read = read_event(job_id=job_id, project_id=project_id)

    assert (read.context.project_id, read.notes) == (whose, (noted,))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = [
    "event_id",
    "timestamp",
    "event_type",
    "payload",
    "data_ref",
    "meta",
    "minio_path",
    "project_id",
    "job_id",
    "platform",
]
NAMES += [
    "content_count",
    "batch_index",
    "total_batches",
    "task_type",
    "keyword",
    "brand_name",
    "bucket",
    "path",
    "success",
]
objects = st.dictionaries(st.sampled_from(NAMES), json_values, max_size=6)
messages = st.dictionaries(st.sampled_from(NAMES), json_values | objects, max_size=8)


@given(messages | objects.map(lambda payload: {"payload": {"minio_path": "a/b", **payload}}))
def test_any_object_is_an_envelope_or_refused(message: dict[str, object]) -> None:
    body = msgspec.json.encode(message)
    try:
        read = read_envelope(body)
    except EnvelopeError:
        return
    assert read == read_envelope(body)
    assert 0 < len(read.context.event_id) <= 128
    assert all(len(note) < 400 for note in read.notes)
    msgspec.json.encode(read)


@given(st.binary(max_size=50))
def test_any_bytes_are_an_envelope_or_refused(body: bytes) -> None:
    try:
        read = read_envelope(body)
    except EnvelopeError:
        return
    assert read.context.event_id


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("form", ["evt_{}", "{}", "7301234567890{:06}", "body-{:032x}"])
def test_a_share_of_events_is_that_share(share: float, form: str) -> None:
    chosen = sum(canary(form.format(number), share) for number in range(10_000))

    # Five standard deviations.
    assert abs(chosen - share * 10_000) < 5 * math.sqrt(10_000 * share * (1 - share))


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_who_is_in_a_small_share_is_in_every_larger_one(event_id: str, one: float, other: float) -> None:
    smaller, larger = sorted((one, other))

    assert canary(event_id, larger) >= canary(event_id, smaller) == canary(event_id, smaller)
    assert canary(event_id, 1.0)
    assert not canary(event_id, 0.0)


def test_the_choice_is_the_same_on_every_machine() -> None:
    chosen = "".join("01"[canary(f"evt_{number}", 0.3)] for number in range(12))

    assert chosen == "001010000010"


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, math.inf])
def test_a_share_is_between_0_and_1(share: float) -> None:
    with pytest.raises(ValueError, match=r"share is .*, expected 0 to 1"):
        canary("evt", share)
