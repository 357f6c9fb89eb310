"""The one report: it survives JSON, its counters are whole, and its texts and lists are bounded."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sanderling.observe.report import (
    LONGEST,
    MOST_NAMES,
    AtFault,
    HostCondition,
    HostReport,
    Report,
    WorkCounts,
    join_names,
    largest,
    shorten,
    shorten_all,
)


class Facts(msgspec.Struct, frozen=True):
    """What is special about some system."""

    depth: int
    by_name: dict[str, int]


TEXTS = st.text(max_size=30)
COUNTS = st.integers(0, 2**63 - 1)
VALUES = st.floats(allow_nan=False, allow_infinity=False)
WORK = st.builds(WorkCounts, asked=COUNTS, refused=COUNTS, kept=COUNTS, failed=COUNTS, waiting=COUNTS)
HOSTS = st.builds(
    HostReport,
    host=TEXTS,
    state=st.sampled_from(HostCondition),
    waiting=COUNTS,
    in_flight=COUNTS,
    trouble=TEXTS,
    at_fault=st.none() | st.sampled_from(AtFault),
)
REPORTS = st.builds(
    Report[Facts],
    system=TEXTS,
    doing=TEXTS,
    paused=st.booleans(),
    troubles=st.lists(TEXTS, max_size=3).map(tuple),
    work=WORK,
    set_aside=COUNTS,
    hosts=st.lists(HOSTS, max_size=3).map(tuple),
    classes=st.dictionaries(TEXTS, COUNTS, max_size=3),
    counters=st.dictionaries(TEXTS, VALUES, max_size=3),
    gauges=st.dictionaries(TEXTS, st.none() | VALUES, max_size=3),
    numbers=st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
    facts=st.builds(Facts, depth=COUNTS, by_name=st.dictionaries(TEXTS, COUNTS, max_size=3)),
)
WORDS = {"asked", "allowed", "kept", "failed"}


@given(REPORTS)
def test_a_report_comes_back_from_json_as_it_was(report: Report[Facts]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report[Facts]) == report


@given(REPORTS)
def test_json_has_the_field_names_and_every_value_in_words(report: Report[Facts]) -> None:
    document = msgspec.json.decode(msgspec.json.encode(report))

    assert set(document) == set(Report.__struct_fields__)
    assert set(document["work"]) == {"asked", "refused", "kept", "failed", "waiting"}
    assert all(each["state"] in {"going", "done", "throttled", "failing", "set aside"} for each in document["hosts"])
    assert all(each["at_fault"] in {"host", "items", None} for each in document["hosts"])


@given(REPORTS)
def test_totals_are_the_work_and_what_else_is_counted(report: Report[Facts]) -> None:
    totals, work = report.totals(), report.work

    own = {name: value for name, value in totals.items() if name not in report.counters}
    assert totals == {**own, **report.counters}
    assert set(totals) == WORDS | set(report.counters)
    assert own.get("allowed", 0) == (0 if "allowed" in report.counters else max(0, work.asked - work.refused))


def test_what_a_system_does_not_know_may_be_left_out() -> None:
    work = WorkCounts(asked=3, refused=1, kept=2, failed=0, waiting=0)

    report = Report(system="pages", doing="asking 1 host", work=work, facts=Facts(1, {}))

    assert (report.paused, report.troubles, report.set_aside, report.hosts) == (False, (), 0, ())
    assert report.totals() == {"asked": 3, "allowed": 2, "kept": 2, "failed": 0}


@given(st.text(max_size=2 * LONGEST))
def test_a_text_is_cut_only_where_it_is_long(text: str) -> None:
    short = shorten(text)

    assert len(short) <= LONGEST
    assert short == text if len(text) <= LONGEST else text.startswith(short.removesuffix("…"))


@given(st.lists(st.text(max_size=5), max_size=30), st.integers(1, 20))
def test_of_many_texts_the_first_are_given_and_the_rest_is_counted(texts: list[str], most: int) -> None:
    several = shorten_all(texts, most)

    assert len(several) == min(len(texts), most)
    if len(texts) > most:
        assert several == (*texts[: most - 1], f"and {len(texts) - most + 1:,} more")
    else:
        assert several == tuple(texts)


@given(st.dictionaries(st.text(max_size=5), COUNTS, max_size=2 * MOST_NAMES))
def test_the_largest_counts_are_given_first(counts: dict[str, int]) -> None:
    several = largest(counts)

    assert list(several.values()) == sorted(counts.values(), reverse=True)[:MOST_NAMES]
    assert several.items() <= counts.items()


def test_names_are_joined_and_the_rest_is_counted() -> None:
    assert join_names([]) == ""
    assert join_names(["a", "b"]) == "a, b"
    assert join_names("abcde", 2) == "a, b and 3 more"
