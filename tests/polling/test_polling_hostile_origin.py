"""An upstream that does what HTTP lets it do, and what it does not: what is stored is what it last said."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_origin import Origin
from live_polling import Live, during, saying

from sanderling.stores.polling_store import PollingStore


class Kept(Live):
    """Polls an origin, and says what was stored when the time was over."""

    def __init__(self, folder: Path, live: int = 1) -> None:
        super().__init__(folder, live)
        self.upstream: Origin = Origin(self.clock, live)
        self.versions: list[int] = []  # of the first document that were stored, in order

    async def after(self, store: PollingStore) -> None:
        """Read the changes."""
        records = [change.values["record"] for change in await store.changes(0, 1000) if change.key.endswith("live0")]
        self.versions = [json.loads(str(record))["version"] for record in records]


@pytest.mark.parametrize("second", [0.05, 0.35, 0.61])
def test_a_date_says_nothing_of_what_changes_twice_in_its_second(tmp_path: Path, second: float) -> None:
    """RFC 9110, 8.8.2.2: only a date that is clearly older than the answer tells one version from another."""
    polling = Kept(tmp_path)
    polling.upstream.dated = True
    polling.upstream.changes_at = (20.0 + second, 20.0 + second + 0.3)

    polling.poll(30.0)

    assert polling.versions[-1] == 2
    assert polling.upstream.unchanged > 20, "a date that is older is asked with"


@pytest.mark.parametrize(
    "tag",
    [
        lambda version: f'"v{version}"',
        lambda version: f'W/"v{version}"',
        lambda version: f"v{version}",
        lambda _: "*",
        lambda _: '"a", *',
        lambda _: "",
        lambda version: f'"{version}' + "x" * 5000 + '"',
    ],
)
def test_no_tag_hides_what_changes(tmp_path: Path, tag: Callable[[int], str]) -> None:
    """RFC 9110, 13.1.2: a condition of "*" is never true of what exists, so it must not be made of a tag."""
    polling = Kept(tmp_path)
    polling.upstream.tag = tag
    polling.upstream.changes_at = (20.0, 22.0, 24.0)

    polling.poll(30.0)

    assert polling.versions == [0, 1, 2, 3]


def test_an_answer_that_was_overtaken_is_not_kept(tmp_path: Path) -> None:
    """Nothing promises that answers on two connections come in the order of the requests: the later may be older."""
    polling = Kept(tmp_path)
    polling.upstream.from_then = True
    polling.upstream.changes_at = tuple(20.0 + 0.5 * number for number in range(20))
    polling.upstream.latency = lambda now: 2.7 if now >= 20.0 and now % 3.0 < 0.2 else 0.01

    polling.poll(40.0)

    assert polling.versions == sorted(polling.versions)
    assert polling.versions[-1] == 20


def test_what_is_not_modified_though_nobody_asked_if_it_was_is_no_answer(tmp_path: Path) -> None:
    """RFC 9110, 15.4.5: a 304 is for conditions that were made."""
    polling = Kept(tmp_path)
    polling.upstream.outage = during(0.0, 1000.0, saying(304), "match")

    polling.poll(20.0)

    assert not polling.versions
    assert {code for kind, code in polling.system.measures.runs if kind == "match"} == {"INVALID_RESPONSE"}


@pytest.mark.parametrize("seconds", [3.0, 25.0])
def test_a_live_document_that_is_not_listed_for_a_moment_is_soon_polled_again(tmp_path: Path, seconds: float) -> None:
    """A server that has just come up may not know what it has."""
    polling = Kept(tmp_path, live=2)
    polling.upstream.listed = lambda now: not 20.0 <= now < 20.0 + seconds

    polling.poll(20.0 + seconds + 20.0)

    back = 20.0 + seconds
    assert polling.upstream.first_live(back) <= 2.0
    assert min(polling.upstream.rates(back + 3.0, back + 20.0)) >= 4.9


@pytest.mark.parametrize("after", ["0", "Wed, 21 Oct 2015 07:28:00 GMT", "-5", "soon", "1e3", "0.5"])
@pytest.mark.parametrize("status", [503, 500])
def test_an_outage_page_with_an_odd_retry_after_is_an_outage(tmp_path: Path, status: int, after: str) -> None:
    """RFC 9110, 10.2.3: a date or whole seconds. What has passed, or is none, asks for nothing."""
    polling = Kept(tmp_path)
    polling.upstream.outage = during(20.0, 90.0, saying(status, Retry_After=after))

    polling.poll(130.0)

    assert polling.upstream.first_live(110.0) <= 2.0
    assert polling.upstream.rate(113.0, 130.0) >= 4.9
    assert polling.upstream.rate(40.0, 110.0) <= 1.3


def test_a_host_that_comes_and_goes_is_asked_when_it_is_there(tmp_path: Path) -> None:
    polling = Kept(tmp_path)
    polling.upstream.outage = lambda _path, now: saying(503) if now >= 20.0 and now % 10.0 < 5.0 else None

    polling.poll(120.0)

    for back in range(25, 115, 10):
        assert polling.upstream.first_live(float(back)) <= 2.0
        assert polling.upstream.rate(back + 2.0, back + 5.0) >= 4.6
