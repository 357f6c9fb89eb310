"""A record that is wrong is lost alone: the others of its page and its links are kept, and a retry brings it, once."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_api import API, api, run

from sanderling import Job, JobReply
from sanderling.jobs.verify import verify_job
from sanderling.stores.frontier_rows import End

EACH = 5


def brought(reply: JobReply) -> Iterator[object]:
    """What a page brings: numbers, and the next page."""
    page = int(reply.url.rpartition("/")[2])
    yield from ({"n": EACH * (page - 1) + each} for each in range(EACH))
    if page < 3:
        yield reply.follow(f"/{page + 1}")


def listed(reply: JobReply) -> list[object]:
    """The same at once."""
    return list(brought(reply))


async def waited_for(reply: JobReply) -> AsyncIterator[object]:
    """The same, async."""
    for each in brought(reply):
        yield each


READERS = (brought, listed, waited_for)


def number_job(bad: set[int], reader: Callable[[JobReply], Any] = brought) -> Job:
    """Pages of numbers, of which some are refused; each leads to the next."""
    job = Job("numbers", start=f"{API}/1")
    job.read(reader)

    @job.each
    def check(record: dict[str, Any]) -> None:
        if record["n"] in bad:
            raise ValueError("it is bad")

    return job


PAGES: dict[str, Any] = {"/1": {}, "/2": {}, "/3": {}}


@pytest.mark.parametrize("reader", READERS)
def test_one_bad_record_loses_neither_the_others_nor_the_links_of_its_page(
    tmp_path: Path, reader: Callable[[JobReply], Any]
) -> None:
    ran = run(number_job({6, 8}, reader), tmp_path / "out", api(PAGES))

    assert [each["n"] for each in ran.records] == [n for n in range(15) if n not in {6, 8}]
    (failed,) = ran.failed
    assert (failed["url"], failed["end"], failed["outcome"]) == (f"{API}/2", "failed", "PARSE_ERROR")
    assert failed["detail"].startswith("record 2: ValueError: it is bad (test_bad_records.py:")
    assert failed["detail"].endswith("; also records 4")
    assert ran.run.counts[End.FAILED] == 1
    assert ran.complete
    proof = verify_job(tmp_path / "out")
    assert proof.ok, proof.problems
    assert (proof.counts[End.FETCHED], proof.counts[End.FAILED], proof.rows) == (3, 1, 13)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(st.integers(0, 3 * EACH - 1)), min_size=1, max_size=4), st.sampled_from(READERS))
def test_retries_bring_each_record_once_whatever_is_mended_first(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[set[int]], reader: Callable[[JobReply], Any]
) -> None:
    folder = tmp_path_factory.mktemp("job")
    for at, bad in enumerate([*rounds, set()]):
        ran = run(number_job(bad, reader), folder, api(PAGES), retry=at > 0)
        kept = [each["n"] for each in ran.records]
        assert len(kept) == len(set(kept))
        assert set(range(3 * EACH)) - set(kept) <= bad
        proof = verify_job(folder)
        assert proof.ok, proof.problems

    assert sorted(kept) == list(range(3 * EACH))
    assert ran.failed == []


def test_a_record_that_is_gone_when_it_is_asked_for_again_is_said_to_be(tmp_path: Path) -> None:
    def counting(number: int, bad: int | None = None) -> Job:
        job = Job("counting", start=f"{API}/1")
        job.read(lambda _: [{"n": each} for each in range(number)])
        job.each(lambda record: 1 / 0 if record["n"] == bad else None)
        return job

    run(counting(3, bad=2), tmp_path, api(PAGES))
    ran = run(counting(2), tmp_path, api(PAGES), retry=True)

    assert ran.records == [{"n": 0}, {"n": 1}]
    assert [each["detail"] for each in ran.failed] == ["record 3 is not there any more"]


def test_a_page_of_which_nothing_is_kept_has_failed_itself(tmp_path: Path) -> None:
    job = Job("none", start=f"{API}/1")
    job.read(lambda _: [{"n": 1}, {"n": 2}])
    job.each(lambda _: "text")

    ran = run(job, tmp_path, api(PAGES))

    (failed,) = ran.failed
    assert failed["requests"] == 1
    said = "record 1: <lambda> returned 'text', expected a record, job.drop, or None for the record as it is"
    assert failed["detail"].startswith(f"{said} (test_bad_records.py:")
