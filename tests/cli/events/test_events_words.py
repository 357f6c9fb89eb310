"""`events` in words: what is counted, what waits, and what is wrong."""

from typing import Any

import pytest
from fake_events import STATUS, status

from sanderling.cli.events.words import (
    categories,
    codes,
    done,
    error,
    errors,
    line,
    listed,
    messages,
    modes,
    pace,
    queue,
    sent,
    sentiments,
    troubles,
)
from sanderling.events.modes import Modes
from sanderling.events.status import QueueStatus


def test_all_of_it_fits_one_line() -> None:
    assert line(STATUS) == (
        "106 batches: 4,290 posts, 310 errors; 46 items a second, in 1.1 batches; "
        "40 waiting, 3 in hand, 7 for later, 2 given up"
    )


def test_one_of_a_thing_is_not_several() -> None:
    assert done(status(batches=1, posts=1, errors=0)) == "1 batch: 1 post, 0 errors"


def test_what_is_nothing_is_not_said() -> None:
    assert messages(status(duplicates=0, postponed=0, failed=0)) == "110 done"
    assert messages(STATUS) == "110 done, 4 seen before, 5 put off, 2 given up"
    assert queue(status(queue=QueueStatus(ready=0, taken=0, delayed=0, dead=0))) == "0 waiting"


def test_a_queue_that_does_not_answer_is_said_so() -> None:
    assert queue(status(queue=None)) == "does not say how many messages wait"
    assert list(troubles(status(queue=None))) == ["the queue is not to be had"]


def test_posts_that_nobody_judged_are_not_neutral() -> None:
    assert sentiments(STATUS) == "900 positive, 2,000 neutral, 70 negative, 412 not read"
    assert sentiments(status(sentiments={}, skipped={})) == "0 positive, 0 neutral, 0 negative"


def test_errors_have_their_share_and_the_most_frequent_come_first() -> None:
    assert errors(STATUS) == (
        "6.7%: rate_limiting 250, parsing 50, generic 10; RATE_LIMITED 250, PARSE_ERROR 50, other 10"
    )
    assert codes(status(codes={name: place for place, name in enumerate("ABCDEF", 1)})) == "F 6, E 5, D 4, C 3"
    assert {errors(status(errors=0)), categories(status(errors=0)), codes(status(codes={}))} == {"none"}


def test_what_is_as_frequent_keeps_its_place() -> None:
    """Otherwise it would jump from frame to frame."""
    assert listed({"b": 2, "a": 2, "c": 3}) == listed({"a": 2, "c": 3, "b": 2}) == "c 3, a 2, b 2"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (Modes(), "new, legacy, inline"),
        (Modes(canary=0.1), "new, legacy, inline, of the new ones 10%"),
        (Modes(new=False, canary=0.1), "legacy, inline"),
        (Modes(new=False, legacy=False, inline=False), "none"),
    ],
)
def test_modes_are_those_that_are_on(changed: Modes, says: str) -> None:
    assert modes(status(modes=changed)) == says


def test_what_went_out_is_said_with_what_waits_to() -> None:
    assert sent(STATUS) == "analyze.result 106, crawl.retry 18; 11 messages in the outbox"
    assert sent(status(sent={}, outbox=0)) == "nothing yet"


def test_an_error_is_said_as_far_as_it_is_known() -> None:
    (found,) = STATUS.recent

    assert error(found) == "tiktok 7441234567890123456: RATE_LIMITED: 429 Too Many Requests"
    assert error(type(found)(at=0.0, platform="", code="E", category="", content_id="", message="")) == "unknown ?: E"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"trouble": "no disk"}, "no disk"),
        ({"modes_trouble": "modes.json: no JSON"}, "the modes are as before, for modes.json: no JSON"),
        ({"outbox_trouble": "nobody listens"}, "nobody listens"),
    ],
)
def test_what_is_wrong_is_said(changed: dict[str, Any], says: str) -> None:
    assert list(troubles(STATUS)) == []
    assert list(troubles(status(**changed))) == [says]


def test_a_pace_is_that_of_the_last_seconds() -> None:
    assert pace(STATUS) == "46 items a second, in 1.1 batches"
