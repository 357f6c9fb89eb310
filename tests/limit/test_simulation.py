"""The simulation that the limiter is measured by: its figures are right, and what it asks for can be reached."""

import subprocess
import sys
from dataclasses import replace
from math import inf
from random import Random
from typing import Any
from xml.etree import ElementTree as ET

import limiter_sim
import pytest
from hostile_hosts import OutageHost
from limiter_cases import Case, Plan, Row, always, run, together
from limiter_plots import file_name, nice, picture
from limiter_rows import ROWS, TABLE
from limiter_rows_others import OTHER_ROWS
from simulation import Ours, OursNamed, Result, Together, simulate

from sanderling.limit import Permit
from sanderling.task import Blame
from sanderling.worlds.hosts import BucketQuota, Host, HostAnswer, SimulatedHost, steady

SHARED = ("delivered", "refused", "median", "at first")  # the bars that even pacing alone decides


class Told:
    """A controller that knows what is allowed, and asks for a little less of it, evenly."""

    def __init__(self, plan: Plan, share: float = 0.985) -> None:
        self._plan, self._share, self._next = plan, share, 0.0

    def ready_at(self, now: float) -> float:
        return max(now, self._next)

    def send(self, now: float) -> object:
        rate = next(rate for start, rate in reversed(self._plan) if now >= start)
        self._next = max(self._next, now - 1 / rate) + 1 / (self._share * rate)
        return None

    def done(self, token: object, now: float, answer: HostAnswer) -> None:
        pass


class Eager:
    """As many as there are workers."""

    def __init__(self) -> None:
        self.errors = list[str | None]()

    def ready_at(self, now: float) -> float:
        return now

    def send(self, now: float) -> object:
        return now

    def done(self, token: object, now: float, answer: HostAnswer) -> None:
        assert now == pytest.approx(token + answer.latency)  # type: ignore[operator]
        self.errors.append(answer.error)


def every_case() -> list[Any]:
    return [
        pytest.param(row, case, id=f"{name}: {row.name}: {case.name}")
        for name, rows in (("rows", ROWS), ("others", OTHER_ROWS))
        for row in rows
        for case in row.cases
        if set(row.need) & set(SHARED)
    ]


@pytest.mark.parametrize(("row", "case"), every_case())
def test_whoever_knows_what_is_allowed_clears_the_bars(row: Row, case: Case) -> None:
    # Where there are many requests two minutes are enough, which is less than the windows that count hours.
    short = row if case.allows(1, row.seconds) < 8_000 else replace(row, seconds=120.0, more=lambda *_: {})

    figures, _ = run(short, case, lambda _seed: Told(case.plan(1), 0.985 / case.clients), 1)

    for name in set(row.need) & set(SHARED) & set(figures):
        sign, number = row.need[name]
        assert figures[name] >= number if sign == ">=" else figures[name] <= number, (name, figures)


def test_each_row_has_two_hosts_or_more_in_both_sets() -> None:
    for rows in (ROWS, OTHER_ROWS):
        assert [row.name for row in rows] == [row.name for row in TABLE]
        assert all(len({case.name for case in row.cases}) == len(row.cases) >= 2 for row in rows)
    assert len({file_name(row) for row in ROWS}) == len(ROWS)


def test_what_is_allowed_is_the_sum_of_the_plan() -> None:
    case = Case("", lambda seed: SimulatedHost(Random(seed)), lambda _: [(0.0, 20), (200.0, 6), (400.0, 20)])

    assert [case.allows(0, seconds) for seconds in (100, 200, 300, 600)] == [2000, 4000, 4600, 9200]
    assert Case("", case.host, 1.5).allows(0, 600) == 900


def test_a_client_does_not_wait_for_ever_for_a_host_that_is_silent() -> None:
    host = OutageHost(SimulatedHost(Random(1)), 0, inf, "silence")
    eager = Eager()

    result = simulate(host, eager, always, 65)

    assert len(result.sent_at) == 3 * 32
    assert eager.errors == ["timed out"] * 64
    assert (result.served, result.failed) == (0, 64)


@pytest.mark.parametrize("kind", [Ours, OursNamed])
def test_a_probe_is_given_up_earlier(kind: type[Ours]) -> None:
    host = OutageHost(SimulatedHost(Random(1)), 0, inf, "silence")
    asked, latencies = kind("governor", 1), set[float]()
    report = asked.report

    def noted(permit: Permit, now: float, answer: HostAnswer, blame: Blame | None = None) -> None:
        latencies.add(answer.latency)
        assert answer.latency == (10 if permit.probe else 30)
        report(permit, now, answer, blame)

    asked.report = noted  # type: ignore[method-assign]
    simulate(host, asked, always, 200)

    assert latencies == {10, 30}


class Counting(Told):
    """Knows how many of its requests are out."""

    sent = heard = 0

    def send(self, now: float) -> object:
        self.sent += 1
        return super().send(now)

    def done(self, token: object, now: float, answer: HostAnswer) -> None:
        self.heard += 1
        super().done(token, now, answer)


def test_several_clients_ask_in_turn_and_hear_their_own_answers() -> None:
    fast, slow = Counting([(0.0, 20)]), Counting([(0.0, 5)])

    result = simulate(SimulatedHost(Random(1)), Together([fast, slow]), always, 100)

    assert [fast.sent, slow.sent] == pytest.approx([1970, 493], abs=2)
    assert 0 <= fast.sent - fast.heard < 10
    assert 0 <= slow.sent - slow.heard < 5
    assert fast.heard + slow.heard == result.served


def results(**times: list[float]) -> Result:
    return Result(**times)  # type: ignore[arg-type]


def test_the_figures_of_a_run() -> None:
    result = results(sent_at=[0, 1, 1.2, 1.9, 2.5, 9], served_at=[1, 2, 3, 4], refused_at=[5], latencies=[4, 1, 3, 2])

    assert (result.peak, result.rejects, result.percentile(0.5)) == (3, 20, 2)
    assert result.served_between(2, 4) == 2
    assert [result.first_at_rate(rate) for rate in (1, 2, 3, 4)] == [0, 1, 1.9, inf]
    assert result.longest_gap(0, 9) == 6.5
    assert result.longest_gap(10, 30) == 20, "nothing was sent at all"


def test_a_rate_is_back_when_a_whole_window_was_served_at_it() -> None:
    result = results(served_at=[100.0, *(float(at) for at in range(130, 190, 2))])

    assert result.back_after(100, rate=0.5, window=10) == 38, "five in ten seconds: 130 to 138"
    assert result.back_after(100, rate=1.0, window=10) == inf


def test_shares_are_means_and_all_else_the_worst_seed() -> None:
    runs = [{"delivered": 90.0, "gap": 10.0, "before": 20.0}, {"delivered": 100.0, "gap": 30.0, "before": 25.0}]

    got = together(runs, {"gap": ("<=", 30), "before": (">=", 18)})

    assert got == {"delivered": 95, "gap": 30, "before": 20}


@pytest.mark.parametrize(("delivered", "said"), [(91.0, "SHORT: delivered >= 92"), (92.0, "ok")])
def test_a_row_says_whether_its_bars_are_met(delivered: float, said: str) -> None:
    row, case = ROWS[0], ROWS[0].cases[0]

    bars = limiter_sim.judged(row, case, dict.fromkeys(row.need, 100.0) | {"delivered": delivered, "refused": 0.6})

    assert limiter_sim.verdict(row, bars).strip() == said
    assert [bar.got for bar in limiter_sim.worst([*bars, *bars])] == [delivered, 0.6, 100, 100]


def test_each_of_several_clients_may_be_refused_as_often() -> None:
    row = ROWS[0]
    case = next(each for each in row.cases if each.clients == 2)

    needs = {bar.what: bar.need for bar in limiter_sim.judged(row, case, dict.fromkeys(row.need, 1.0))}

    assert needs[f"{row.name}, refused"] == "<= 1.2"
    assert needs[f"{row.name}, delivered"] == ">= 92"


def test_the_table_and_the_bars_are_printed() -> None:
    options = ("--only", "fixed, min 0.25", "--seeds", "1")

    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, limiter_sim.__file__, *options], stdout=subprocess.PIPE, text=True, check=False
    )

    said = done.stdout.splitlines()
    assert [line.split("fixed, min 0.25")[1].split()[0] for line in said[1:4]] == ["plain", "AWS", "our"]
    bars = [line for line in said if "12 a minute, min_rps above, " in line and "need" in line]
    assert len(bars) == 2
    assert done.returncode == any("SHORT" in line for line in bars)


def limited(seed: int) -> Host:
    return SimulatedHost(Random(seed), BucketQuota(steady(20), 20))


def test_a_picture_is_small_and_whole() -> None:
    row, case = Row("a < b", {}, 120.0), Case("case", limited, 20)
    _, result = run(row, case, lambda _seed: Told(case.plan(1)), 1)

    text = picture(row, case, 1, result, result)

    assert len(text) < 15_000
    root = ET.fromstring(text)  # noqa: S314 - our own file
    line = next(each for each in root.iter() if each.get("class") == "ours" and " " in each.get("d", ""))
    points = [point.split(",") for point in line.attrib["d"].removeprefix("M").split()]
    assert len(points) == 120
    assert all(40 <= float(x) <= 632 for x, _ in points)
    assert all(60 < float(y) < 90 for _, y in points[1:]), "about 20 of 30, on the 112 pixels from 146 up to 34"


def test_axes_end_at_round_numbers() -> None:
    assert [nice(number) for number in (0.23, 1, 1.6, 23, 46, 575)] == [0.3, 1, 2, 30, 50, 600]
