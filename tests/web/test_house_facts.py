"""What a system looks like on the dashboard: its words and numbers, its rates, and its last ten minutes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_reports import ALL, EVENTS, HOSTILE, PAGES, POLLING, REPOS, SEQUENCE, WALL, changed, found, host, many_hosts

from sanderling.events.report import DeadShown
from sanderling.observe.rates import WINDOW, Rates, Run
from sanderling.observe.report import LONGEST, MOST_TROUBLES, AnyReport, Severity, Trouble
from sanderling.stores.control_file import Control
from sanderling.web.house import Found, Stamp
from sanderling.web.house_facts import MOST_SENT, Extra, System, Track
from sanderling.web.house_history import POINTS, Ring
from sanderling.web.house_hosts import HostRow, HostsQuery, page, requests_of, rows_of
from sanderling.web.polling_types import SettingView

# Rates.

ONE, OTHER = Run(1, 100.0), Run(2, 200.0)


def test_a_rate_is_what_a_counter_grew_by_a_second_over_the_last_few() -> None:
    rates = Rates()

    for second in range(20):
        rates.take(ONE, WALL + second, {"asked": 7 * second if second < 10 else 63 + 3 * (second - 9)})

    assert rates.rate("asked") == pytest.approx(3.0)


def test_nothing_is_known_after_one_look() -> None:
    rates = Rates()
    rates.take(ONE, WALL, {"asked": 1000})

    assert rates.rate("asked") is None
    assert rates.rate("nothing") is None


def test_what_was_said_once_is_counted_once() -> None:
    rates = Rates()
    for wall, asked in ((WALL, 0), (WALL + 1, 10), (WALL + 1, 10), (WALL + 1, 10)):
        rates.take(ONE, wall, {"asked": asked})

    assert rates.rate("asked") == pytest.approx(10.0)


def test_a_process_that_reckons_back_when_it_began_is_the_same_all_the_time() -> None:
    """By two clocks, which drift: it never says quite the same."""
    rates = Rates()
    for second in range(4_000):
        rates.take(Run(1, 100.0 + 0.0004 * second), WALL + second, {"asked": 7 * second})

    assert rates.rate("asked") == pytest.approx(7.0)


def test_a_process_that_begins_anew_counts_from_0_and_that_is_no_rate() -> None:
    rates = Rates()
    rates.take(ONE, WALL, {"asked": 1000})
    rates.take(ONE, WALL + 1, {"asked": 1010})

    rates.take(OTHER, WALL + 2, {"asked": 500})
    begun = rates.rate("asked")
    rates.take(OTHER, WALL + 3, {"asked": 520})

    assert begun is None
    assert rates.rate("asked") == pytest.approx(20.0)


def test_a_counter_that_falls_did_not_grow() -> None:
    rates = Rates()
    for second, asked in enumerate((100, 110, 30, 40)):
        rates.take(ONE, WALL + second, {"asked": asked})

    assert rates.rate("asked") == pytest.approx(20 / 3, abs=1e-3)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([ONE, OTHER]),
            st.floats(-1e4, 1e4),  # how far the clock goes, or jumps
            st.integers(-(10**6), 10**12),
        ),
        max_size=30,
    )
)
def test_a_rate_is_never_below_0_whatever_clocks_and_counters_do(looks: list[tuple[Run, float, int]]) -> None:
    rates, wall = Rates(), WALL
    for run, step, asked in looks:
        wall += step
        rates.take(run, wall, {"asked": asked})

        rate = rates.rate("asked")
        assert rate is None or 0 <= rate < float("inf")


def test_a_clock_that_is_set_back_begins_anew() -> None:
    rates = Rates()
    for wall, asked in ((WALL, 0), (WALL + 1, 100), (WALL - 3600, 103), (WALL - 3599, 106)):
        rates.take(ONE, wall, {"asked": asked})

    assert rates.rate("asked") == pytest.approx(3.0)


def test_old_counts_are_forgotten() -> None:
    rates = Rates()
    for second in range(1000):
        rates.take(ONE, WALL + second, {"asked": second})

    assert len(rates._counts) <= WINDOW + 2


# The last ten minutes.


def test_a_ring_has_a_point_for_every_second_and_none_where_nobody_looked() -> None:
    ring = Ring(("asked", "lag"))
    ring.put(10.0, {"asked": 1.0, "lag": None})
    ring.put(11.0, {"asked": 2.00001})
    ring.put(14.5, {"asked": 3.0, "lag": 0.5})

    assert ring.history(WALL) == {
        "every": 1.0,
        "from": WALL - 4,
        "asked": [1.0, 2.0, None, None, 3.0],
        "lag": [None, None, None, None, 0.5],
    }
    assert ring.newest() == {"asked": 3.0, "lag": 0.5}


def test_two_looks_within_a_second_are_one_point() -> None:
    ring = Ring(("asked",))
    for now in (10.0, 10.4, 10.9, 9.0):
        ring.put(now, {"asked": now})

    assert ring.history(WALL)["asked"] == [9.0]


def test_a_ring_holds_ten_minutes_whatever_time_does() -> None:
    ring = Ring(("asked",))
    for now in (*range(2000), 10**9):
        ring.put(now, {"asked": 1.0})

    history = ring.history(WALL)
    assert len(history["asked"]) == POINTS  # type: ignore[arg-type]
    assert history["asked"] == [*[None] * (POINTS - 1), 1.0]


def test_an_empty_ring_has_no_points() -> None:
    ring = Ring(("asked",))

    assert ring.newest() == {"asked": None}
    assert ring.history(WALL) == {"every": 1.0, "from": WALL, "asked": []}


# Systems.


def shown(status: AnyReport, home: Path, wall: float = WALL, **changes: Any) -> System:  # noqa: ANN401 - fields of it
    return Track().take(found(changed(status, **changes), home, wall), 0.0, wall)


@pytest.mark.parametrize("name", ALL)
def test_every_system_has_all_that_is_shown(tmp_path: Path, name: str) -> None:
    document = msgspec.to_builtins(shown(ALL[name], tmp_path))

    assert set(document) == {
        *("name", "system", "running", "paused", "ending", "age", "pid", "started", "doing", "troubles", "flow"),
        *("severities",),
        *("time_left", "lines", "events"),
        *("ended", "silent", "set_aside", "numbers", "facts", "points"),
    }
    assert document["name"] == document["system"] == name
    assert (document["running"], document["paused"], document["age"]) == (True, False, 0.0)
    assert document["doing"]
    assert len(document["numbers"]) == 8
    assert all(label and text for label, text in document["numbers"])
    assert set(document["flow"]) == {"asked", "allowed", "waiting", "kept", "failed"}
    own = set(document["facts"].get("series", ()))
    assert set(document["points"]) == {"asked", "kept", "failed", "waiting"} | own


def test_what_is_set_aside_is_shown(tmp_path: Path) -> None:
    system = shown(PAGES, tmp_path, set_aside=10)

    assert system.set_aside == 10
    assert system.doing == "asking 2 hosts; 30 URLs wait, 10 of them for hosts that do not answer"


FACTS = {
    "pages": {"counts", "known", "waiting", "bytes", "hosts"},
    "jobs": {"name", "counts", "requests", "records", "known", "waiting", "bytes", "hosts", "gone"},
    "sequence": {
        *("cursor", "head", "behind", "lag", "workers", "strategy", "why", "decisions", "missed", "gaps", "skipped"),
        "available",
    },
    "repos": {"done", "known", "eta", "categories", "segment", "segment_bytes", "hosts", "blocked"},
    "polling": {"targets", "late", "accelerated", "next", "recent", "settings", "followers"},
    "events": {
        *("batches", "posts", "errors", "categories", "codes", "sentiments", "minutes", "queue", "dead", "modes"),
        *("outbox", "recent"),
    },
}


@pytest.mark.parametrize("name", ALL)
def test_every_system_has_its_facts(tmp_path: Path, name: str) -> None:
    facts = msgspec.to_builtins(shown(ALL[name], tmp_path).facts)

    assert FACTS[name] <= set(facts)


def test_the_facts_are_those_of_the_status(tmp_path: Path) -> None:
    facts = {name: msgspec.to_builtins(shown(status, tmp_path).facts) for name, status in ALL.items()}

    assert facts["pages"]["counts"]["fetched"] == 60
    assert facts["repos"] | {"done": 550, "eta": 100.0, "known": 1000} == facts["repos"]
    assert facts["sequence"]["decisions"][-1]["wall"] == SEQUENCE.facts.decisions[-1].wall
    assert (
        facts["polling"]["accelerated"][0] | {"kind": "race", "id": "be0e8021", "interval": 0.2}
        == (facts["polling"]["accelerated"][0])
    )
    assert facts["polling"]["late"]["accelerated"] == {"p50": 0.002, "p99": 0.011, "runs": 50}
    assert [each["seq"] for each in facts["polling"]["recent"]] == [1067, 1068]
    assert facts["events"]["queue"] == {"ready": 40, "taken": 3, "delayed": 7, "dead": 2}
    assert facts["events"]["modes"] == {"new": True, "legacy": True, "inline": False, "canary": 0.1}
    assert facts["events"]["recent"][0]["code"] == "RATE_LIMITED"


def test_what_flows_is_counted_between_two_looks(tmp_path: Path) -> None:
    track = Track()
    later = changed(
        PAGES,
        counts={**PAGES.facts.counts, "fetched": 80, "failed": 6},
        hosts=(host("a.example", 0, requests=130, rejected=9), PAGES.hosts[1]),
        waiting=12,
    )

    first = track.take(found(PAGES, tmp_path, WALL), 0.0, WALL)
    second = track.take(found(later, tmp_path, WALL + 2), 2.0, WALL + 2)

    assert msgspec.to_builtins(first.flow) == {"asked": 0, "allowed": 0, "waiting": 30, "kept": 0, "failed": 0}
    assert msgspec.to_builtins(second.flow) == {"asked": 30, "allowed": 27, "waiting": 12, "kept": 10, "failed": 1}
    history = track.history(WALL + 2)
    assert history["asked"] == [None, None, 30.0]
    assert history["waiting"] == [30, None, 12]


def test_series_of_their_own_are_rates_or_values(tmp_path: Path) -> None:
    points: dict[str, Any] = {}
    for name, more in (
        ("repos", {"categories": {"archived": 410}}),
        ("events", {"errors": 320}),
        ("sequence", {"lag": 9.0}),
    ):
        track = Track()
        track.take(found(ALL[name], tmp_path, WALL), 0.0, WALL)
        points |= track.take(found(changed(ALL[name], **more), tmp_path, WALL + 2), 2.0, WALL + 2).points  # type: ignore[arg-type]

    assert points["archived"] == 5.0
    assert (points["errors"], points["posts"]) == (5.0, 0.0)
    assert (points["lag"], points["workers"]) == (9.0, 50)


def test_a_system_that_ended_has_no_flow(tmp_path: Path) -> None:
    track = Track()
    for second in range(3):
        track.take(found(changed(POLLING, newest=second), tmp_path, WALL + second), second, WALL + second)

    ended = track.take(found(changed(POLLING, running=False), tmp_path, WALL + 3), 3, WALL + 3)

    assert (ended.running, ended.flow.asked) == (False, 0.0)
    assert (ended.ended, ended.silent) == (WALL + 3, False)
    assert ended.doing == "ended after 492 runs"
    assert ended.points == dict.fromkeys(("asked", "kept", "failed", "waiting", "late_p99"))


def test_what_ended_has_no_figures_of_the_moment(tmp_path: Path) -> None:
    left = {label for status in ALL.values() for label, _ in shown(status, tmp_path, running=False).numbers}

    assert not {label for label in left if "a second" in label or label.startswith(("time", "late", "in flight"))}
    assert {"archived", "pages", "records", "failed"} <= left


def test_a_system_that_fell_silent_is_in_trouble(tmp_path: Path) -> None:
    each = found(POLLING, tmp_path, WALL)

    silent = Track().take(each, 0.0, WALL + 40)

    assert (silent.running, silent.age) == (False, 40.0)
    assert (silent.ended, silent.silent) == (WALL, True)
    assert silent.doing.startswith("silent; it was: race be0e8021 is live")
    assert silent.troubles[0] == "it has said nothing for 40 s, and did not say that it ended"


@pytest.mark.parametrize(
    ("status", "changes", "paused"),
    [
        (PAGES, {"paused": True}, True),
        (REPOS, {"paused": True}, True),
        (SEQUENCE, {"paused": True}, True),
        (POLLING, {"paused": True}, True),
        (POLLING, {}, False),
    ],
)
def test_whether_it_is_paused(tmp_path: Path, status: AnyReport, changes: dict[str, bool], *, paused: bool) -> None:
    system = shown(status, tmp_path, **changes)

    assert system.paused is paused
    assert system.doing.startswith("paused") is paused


def test_troubles_are_said_in_words(tmp_path: Path) -> None:
    troubles = {name: shown(status, tmp_path).troubles for name, status in ALL.items()}

    assert troubles == {
        "events": ("2 messages given up",),
        "jobs": ("7 requests wait for the reader detail, which the job has not; add it, or begin anew",),
        "pages": ("b.example: TIMEOUT",),
        "polling": (
            "scheduler.burst is 'many', expected a whole number from 1 up",
            "webhook is 8 changes behind: https://hook.example: status 503",
        ),
        "repos": ("pds.example: timeout",),
        "sequence": (),
    }


@pytest.mark.parametrize("name", ALL)
def test_a_disk_without_room_is_the_first_error_of_whoever_runs(name: str) -> None:
    full, ended = ({"disk_trouble": "no room", "running": running} for running in (True, False))

    assert changed(ALL[name], **full).troubles[0] == Trouble(Severity.ERROR, "no room")
    assert "no room" not in changed(ALL[name], **ended).texts()


def test_many_troubles_are_cut(tmp_path: Path) -> None:
    hosts = tuple(host(each.host, 0, "x" * 1000, state="open") for each in many_hosts(50).hosts)

    troubles = shown(PAGES, tmp_path, hosts=hosts).troubles

    assert len(troubles) == MOST_TROUBLES
    assert troubles[-1] == f"and {50 - MOST_TROUBLES + 1} more"
    assert all(len(each) <= LONGEST for each in troubles)


def test_what_is_asked_for_now_and_then_is_among_the_facts(tmp_path: Path) -> None:
    setting = SettingView(key="scheduler.burst", value="20", default="10", meaning="How many.", set=True)
    dead = DeadShown(key="k", why="no JSON", at=WALL, tries=3)
    extra = Extra(settings=(setting,), dead=(dead,))

    polling = Track().take(found(POLLING, tmp_path), 0.0, WALL, extra)
    events = Track().take(found(EVENTS, tmp_path), 0.0, WALL, extra)
    pages = Track().take(found(PAGES, tmp_path), 0.0, WALL, extra)

    assert msgspec.to_builtins(polling.facts)["settings"][0]["value"] == "20"
    assert msgspec.to_builtins(events.facts)["dead"] == ({"key": "k", "why": "no JSON", "at": WALL, "tries": 3},)
    assert "settings" not in msgspec.to_builtins(pages.facts)


def test_names_of_strangers_come_through_unharmed(tmp_path: Path) -> None:
    recent = (msgspec.structs.replace(POLLING.facts.recent[0], key=HOSTILE, fields=(HOSTILE,)),)

    facts = msgspec.to_builtins(shown(POLLING, tmp_path, recent=recent).facts)

    assert facts["recent"][0]["key"] == HOSTILE
    assert facts["recent"][0]["fields"] == (HOSTILE,)


def test_a_status_that_cannot_be_read_is_shown_with_its_trouble() -> None:
    broken = Found(
        "x", Path("x"), "status.json", "unknown", Stamp(0, 0, 0), trouble="status.json makes no sense: it is empty"
    )

    system = Track().take(broken, 0.0, WALL)

    assert (system.system, system.running, system.doing) == ("unknown", False, "its status cannot be read")
    assert system.troubles == ("status.json makes no sense: it is empty",)
    assert msgspec.to_builtins(system.facts) == {}


HUGE = st.sampled_from([0, 1, 10**6, 10**18])
AMOUNTS = st.floats(min_value=-1e308, max_value=1e308) | st.sampled_from([0.0, 1e308, -1e308])
NAMES = st.text(max_size=20) | st.just("x" * 2000)


@settings(max_examples=40)
@given(counts=st.dictionaries(NAMES, HUGE, max_size=5), number=HUGE, amount=AMOUNTS, text=NAMES)
def test_no_report_is_too_odd_to_be_shown(counts: dict[str, int], number: int, amount: float, text: str) -> None:
    odd: list[AnyReport] = [
        changed(PAGES, counts=counts, waiting=number, started=amount, hosts_known=number, bytes=number),
        changed(REPOS, categories=counts, known=number, eta=amount, segment_bytes=number),
        changed(
            SEQUENCE,
            answers=counts,
            missed=counts,
            queue=counts,
            lag=amount,
            cursor=number,
            store_trouble=text,
            api=text,
        ),
        changed(POLLING, runs=counts, failed=number, changes=number, rate=amount, ready=number),
        changed(EVENTS, codes=counts, categories=counts, posts=number, errors=number, trouble=text),
    ]
    for report in odd:
        stamp = Stamp(int(WALL * 1e9), 1, 1)
        each = Found(text or "x", Path("x"), "status.json", report.system, stamp, report.process, report)
        track = Track()
        for second in range(2):
            system = track.take(each, second, WALL + second)
            assert len(msgspec.json.encode(system)) < MOST_SENT
            assert all(rate >= 0 for rate in (system.flow.asked, system.flow.allowed, system.flow.kept))
            assert len(msgspec.json.encode(track.history(WALL))) < MOST_SENT


def test_what_is_sent_is_bounded_whatever_a_report_has(tmp_path: Path) -> None:
    counts = {f"{number:05}{'x' * 2000}": number for number in range(5000)}

    system = shown(EVENTS, tmp_path, codes=counts)

    assert (system.system, len(msgspec.json.encode(system)) < 10_000) == ("unknown", True)
    assert "expected at most 1,000,000" in system.troubles[0]


# Hosts.


def unknown(_host: str) -> None:
    """How often a host is asked, after one look."""


def test_how_often_a_host_is_asked_is_counted_and_not_what_is_allowed(tmp_path: Path) -> None:
    rates = Rates()
    for second in range(20):
        late = (host("late.example", requests=1000, rate=100.0),) if second == 19 else ()
        asked = host("a.example", requests=1000 + 3 * second, rate=100.0)
        each = found(changed(PAGES, hosts=(asked, *late)), tmp_path, WALL + second)
        rates.take(Run(1, WALL), WALL + second, requests_of(each))

    rows = rows_of(each, rates.rate)

    assert [(row.asked, row.rate) for row in rows] == [(3.0, 100.0), (None, 100.0)]
    rates.take(Run(2, WALL + 30), WALL + 31, {"a.example": 5})
    assert rates.rate("a.example") is None, "another process counts from 0"


def test_whatever_asks_counts_its_requests(tmp_path: Path) -> None:
    for name, status in ALL.items():
        each = found(status, tmp_path)
        assert list(requests_of(each)) == [row.host for row in rows_of(each, unknown)], name


def test_every_system_with_hosts_has_rows(tmp_path: Path) -> None:
    rows = {name: rows_of(found(status, tmp_path), unknown) for name, status in ALL.items()}

    assert {name: [row.host for row in several] for name, several in rows.items()} == {
        "events": [],
        "jobs": ["api.example"],
        "pages": ["a.example", "b.example"],
        "polling": ["race.example"],
        "repos": ["pds.example"],
        "sequence": ["stats.example"],
    }
    assert (rows["repos"][0].state, rows["repos"][0].failures, rows["repos"][0].queued) == ("set aside", 7, 500)
    assert (rows["pages"][1].trouble, rows["pages"][1].queued) == ("TIMEOUT", 10)


def test_hosts_that_are_left_alone_are_marked(tmp_path: Path) -> None:
    each = replace(found(PAGES, tmp_path), control=Control(hosts=frozenset({"b.example"})))

    assert [row.paused for row in rows_of(each, unknown)] == [False, True]


def test_hosts_are_searched_sorted_and_paged(tmp_path: Path) -> None:
    rows = rows_of(found(many_hosts(500), tmp_path), unknown)

    found_ = page(rows, HostsQuery(search=" HOST-0001 ", sort="requests", descending=False, offset=2, limit=3))

    assert (found_.total, found_.matching) == (500, 10)
    assert [row.host for row in found_.hosts] == [f"host-0001{each}.example" for each in (2, 3, 4)]


@pytest.mark.parametrize("column", HostRow.__struct_fields__)
@pytest.mark.parametrize("descending", [True, False])
def test_every_column_sorts_and_what_is_not_known_comes_last(
    tmp_path: Path,
    column: Any,  # noqa: ANN401 - one of these names
    *,
    descending: bool,
) -> None:
    rows = rows_of(found(many_hosts(100), tmp_path), unknown) + rows_of(found(SEQUENCE, tmp_path), unknown)

    hosts = page(rows, HostsQuery(sort=column, descending=descending, limit=1000)).hosts

    values = [getattr(row, column) for row in hosts]
    known = [value for value in values if value is not None]
    assert len(hosts) == 101
    assert known == sorted(known, reverse=descending)
    assert values == known + [None] * (len(values) - len(known))
