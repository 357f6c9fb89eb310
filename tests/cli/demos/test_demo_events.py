"""The demo proves what it says; only the length of its day is made for tests."""

import sqlite3
import xml.etree.ElementTree as ET
from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from command_line import called
from demo_runs import DemoRun, run_small

from sanderling.cli.demos import events as demo_events
from sanderling.cli.demos.events import EventsProof, ExpectedRows, compare, small_day
from sanderling.worlds.social import Social, SocialDelivery
from sanderling.worlds.social_truth import BatchFate

PROOF = EventsProof(
    complete=True,
    items=12,
    posts=8,
    errors=3,
    lost=0,
    strangers=0,
    twice=0,
    again=1,
    unreadable=2,
    buried=2,
    buried_wrongly=0,
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo, of a day with fewer batches."""
    # A third of a second for an hour: what is processed late, on a machine that is busy, is still of its hour.
    return run_small("events", tmp_path_factory.mktemp("demo") / "out", SECONDS=8.0, BATCHES=90)


def test_it_consumes_a_day_and_proves_it(ran: DemoRun) -> None:
    found = ran.document

    assert (found["ok"], found["out"]) == (True, str(ran.out))
    proof = found["proof"]
    assert proof == {**proof, "complete": True, "lost": 0, "strangers": 0, "twice": 0, "buried_wrongly": 0}
    assert proof["buried"] == proof["unreadable"] > 0, "some messages are none"
    assert (proof["posts"], proof["errors"]) == (found["posts"], found["errors"])
    assert found["duplicates"] > 0
    assert f"The plots as a picture: {ran.out}/report.svg" in ran.lines
    assert ran.done.err == "A simulated day of social media on this machine; nothing leaves it.\n"


def test_what_is_proved_is_so(ran: DemoRun) -> None:
    """Counted once more, in another way."""
    out, found = ran.out, ran.document
    with closing(sqlite3.connect(out / "events.db")) as db:
        ((posts,),) = db.execute("SELECT count(*) FROM post_analytics")
        errors = dict(db.execute("SELECT error_category, count(*) FROM crawl_errors GROUP BY 1"))
        ((events,),) = db.execute("SELECT count(*) FROM processed_events")

    totals = Social(demo_events.SEED, replace(small_day(), batches=90)).totals(0, 90)
    assert (posts, sum(errors.values())) == (totals.posts, totals.errors) == (found["posts"], found["errors"])
    assert found["categories"] == errors
    assert events == found["batches"] == totals.fates[BatchFate.READ]
    status = called("status", str(out))
    assert ("which ended" in status.out, status.code) == (True, 0)
    listed = called("dead", "list", str(out), "--json")
    assert len(listed.out.splitlines()) == found["proof"]["unreadable"]


def test_the_report_tells_all_of_the_day(ran: DemoRun) -> None:
    out, found = ran.out, ran.document

    assert len(found["hours"]) == 24
    assert sum(each["errors"] for each in found["hours"]) == found["errors"]
    judged = sum(each[label] for each in found["hours"] for label in ("positive", "neutral", "negative"))
    assert judged + found["not_read"] == found["posts"] == sum(each["posts"] for each in found["projects"])
    # The throttling is from nine to twelve, the crisis from three to eight in the afternoon. A busy machine is late.

    def errors(hours: range) -> float:
        return float(sum(found["hours"][hour]["errors"] for hour in hours)) / len(hours)

    assert errors(range(9, 14)) > 1.5 * errors(range(9))

    def anger(hours: range) -> float:
        counts: Counter[str] = sum((Counter(found["hours"][hour]) for hour in hours), Counter())
        return counts["negative"] / (counts["positive"] + counts["neutral"] + counts["negative"])

    assert anger(range(15, 20)) > 1.5 * anger(range(8))
    picture = (out / "report.svg").read_text()
    assert found["report"] == str(out / "report.svg")
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - ours
    assert f"{found['posts']:,}&#160;posts,&#160;{found['errors']:,}&#160;errors." in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "").replace("https://www.textualize.io", "")


def test_the_day_is_long_enough_to_be_seen_and_short_enough_to_be_watched() -> None:
    totals = Social(demo_events.SEED, small_day()).totals(0, demo_events.BATCHES)

    assert 200 <= totals.batches <= 300
    assert 6_000 <= totals.items <= 9_000
    assert totals.fates[BatchFate.REFUSED] > 0
    assert not totals.fates[BatchFate.MISSING], "which would be waited for"
    assert 15 <= demo_events.SECONDS <= 25
    assert min(totals.platforms.values()) > 1_000


@pytest.mark.parametrize("change", [{"lost": 1}, {"strangers": 1}, {"twice": 1}, {"buried": 1}, {"buried_wrongly": 1}])
def test_what_is_not_right_is_not_called_right(change: dict[str, Any]) -> None:
    assert PROOF.ok
    assert not replace(PROOF, **change).ok


def test_what_was_ended_early_lacks_nothing_and_must_have_nothing_else() -> None:
    assert replace(PROOF, complete=False, lost=5, buried=0).ok
    assert not replace(PROOF, complete=False, strangers=1).ok


def test_rows_are_compared_by_their_keys() -> None:
    social = Social(demo_events.SEED, small_day())
    truth, deliveries = ExpectedRows(), list(social.deliveries(24))
    for delivery in deliveries:
        truth.add(social, delivery)
    posts, errors, dead = sorted(truth.posts, key=str), sorted(truth.errors), truth.unreadable

    assert compare(truth, posts, errors, dead, complete=True).ok
    assert compare(truth, posts[1:], errors, dead, complete=True).lost == 1
    assert compare(truth, posts, [*errors[1:], (*errors[0][:2], "OTHER")], dead, complete=True).strangers == 1
    assert compare(truth, [*posts, posts[0]], errors, dead, complete=True).twice == 1
    assert compare(truth, posts, errors, dead + Counter([b"?"]), complete=True).buried_wrongly == 1
    totals = social.totals(0, 24)
    assert (truth.items, len(posts), len(errors)) == (totals.items, totals.posts, totals.errors)


def test_a_message_that_came_twice_is_twice_among_the_dead_and_its_items_count_once() -> None:
    social = Social(demo_events.SEED, small_day())
    bad = next(number for number in range(280) if social.truth(number).fate is not BatchFate.READ)
    truth = ExpectedRows()
    for number in (0, bad):
        for again in (False, True):
            truth.add(social, SocialDelivery(number, social.envelope(number), again))

    assert truth.again == 2
    assert truth.items == len(social.truth(0).items) > 0
    assert truth.unreadable == {social.envelope(bad): 2}
