"""A record of a described API is told from an error that comes with a 200, and from what only looks odd."""

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest
from described_crawl import URL, follow

from sanderling.cli.sequence.flags import SequenceUpstream

NONE = b'{"error": "no such item"}'
BROKEN = b'{"error": "internal", "code": 17}'
BY_ID = SequenceUpstream(url=URL, id_path="id", missing='error = "no such item"')
BY_RULE = SequenceUpstream(url=URL, record_if="name", missing='error = "no such item"')


def item(number: int, **more: object) -> bytes:
    return json.dumps({"id": number, "name": "some", **more}).encode()


@pytest.mark.parametrize("given", [BY_ID, BY_RULE])
def test_an_error_that_comes_with_a_200_is_an_error_of_that_id(tmp_path: Path, given: SequenceUpstream) -> None:
    def says(number: int, _: float) -> tuple[int, bytes]:
        return 200, NONE if number > 65 else BROKEN if number % 10 == 0 else item(number)

    followed = follow(tmp_path, says, 120.0, given)

    assert list(followed.records) == [number for number in range(1, 66) if number % 10]
    failed = {number: reason for number, reason in followed.missed.items() if number <= 65}
    assert failed == dict.fromkeys(range(10, 61, 10), "error")
    remark = followed.report.facts.remarks["error"]
    expected = {BY_ID: "id is null, expected ", BY_RULE: "name is null, expected name"}[given]
    assert f"no record: {expected}" in remark
    assert 'the answer begins \'{"error": "internal"' in remark


def test_a_host_that_says_200_and_no_record_to_everything_is_not_run_through(tmp_path: Path) -> None:
    """Ten minutes of errors cost no id its turn: they are the host's; when it is well again, all are stored."""

    def says(number: int, now: float) -> tuple[int, bytes]:
        page = b"<html>down for maintenance" if number % 2 else BROKEN
        return 200, page if now > 2 else NONE if number > 100 else item(number)

    during = follow(tmp_path, says, 600.0, BY_ID)

    assert len(during.records) < 50
    assert during.missed == {}

    later = follow(tmp_path, lambda number, _: says(number, 0.0), 900.0, BY_ID)

    assert sorted(later.records) == list(range(1, 101))


WHEN = datetime(2026, 11, 16, 10, 0, tzinfo=UTC)
STAMPS = (
    *("2026-11-16 10:00:00", "2026-11-16T10:00:00.0Z", "2026-11-16T12:00:00+02:00", format_datetime(WHEN, usegmt=True)),
    *(f"{WHEN.timestamp():.0f}", WHEN.timestamp(), 1000 * int(WHEN.timestamp()), f"{WHEN.timestamp():.0f}000000000"),
)


def test_a_record_is_kept_whatever_its_timestamp_looks_like(tmp_path: Path) -> None:
    odd, never = len(STAMPS) + 1, len(STAMPS) + 2
    stamps = (*STAMPS, "a while ago", "9999-12-31T23:59:59Z")

    def says(number: int, _: float) -> tuple[int, bytes]:
        return (200, item(number, at=stamps[number - 1])) if number <= never else (404, b"")

    followed = follow(tmp_path, says, 60.0, SequenceUpstream(url=URL, id_path="id", timestamp="at"))

    times = {number: message.instance.date_completed for number, message in followed.records.items()}
    assert times == dict.fromkeys(range(1, odd), WHEN.timestamp()) | {odd: None, never: None}
    assert all(number > never for number in followed.missed)
    assert "expected a date or Unix time before 2106; kept without it" in followed.report.facts.remarks["success"]
