"""The one report: it survives JSON, its counters are whole, and its texts and lists are bounded."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from reports import COUNTS, REPORTS, Facts

from sanderling.observe.report import (
    LONGEST,
    MOST_NAMES,
    MOST_TROUBLES,
    AtFault,
    HostCondition,
    Process,
    Report,
    Severity,
    Trouble,
    WorkCounts,
    bound_troubles,
    join_names,
    largest,
    shorten,
    shorten_all,
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
    assert all(each["state"] in set(HostCondition) for each in document["hosts"])
    assert all(each["at_fault"] in {*AtFault, None} for each in document["hosts"])


@given(REPORTS)
def test_totals_are_the_work_and_what_else_is_counted(report: Report[Facts]) -> None:
    totals, work = report.totals(), report.work

    own = {name: value for name, value in totals.items() if name not in report.counters}
    assert totals == {**own, **report.counters}
    assert set(totals) == WORDS | set(report.counters)
    assert own.get("allowed", 0) == (0 if "allowed" in report.counters else max(0, work.asked - work.refused))


def test_what_a_system_does_not_know_may_be_left_out() -> None:
    work = WorkCounts(asked=3, refused=1, kept=2, failed=0, waiting=0)

    process = Process(pid=1, started=100.0, wall=107.0)
    report = Report(system="pages", doing="asking 1 host", process=process, work=work, facts=Facts(1, {}))

    assert (report.process.paused, report.process.seconds) == (False, 7.0)
    assert (report.troubles, report.time_left, report.set_aside, report.hosts) == ((), None, 0, ())
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


@given(st.lists(st.builds(Trouble, st.sampled_from(Severity), st.text(max_size=5)), max_size=2 * MOST_TROUBLES))
def test_the_worst_troubles_come_first_and_the_rest_is_counted(troubles: list[Trouble]) -> None:
    several = bound_troubles(troubles)

    order = [*reversed(Severity)]
    assert [each.severity for each in several] == sorted((each.severity for each in troubles), key=order.index)[
        :MOST_TROUBLES
    ]
    if len(troubles) > MOST_TROUBLES:
        assert several[-1].text == f"and {len(troubles) - MOST_TROUBLES + 1} more"
    else:
        assert sorted(several, key=str) == sorted(troubles, key=str)
