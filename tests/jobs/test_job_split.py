"""A job that one process began goes on in parts: with its records, the answers that it kept, and its budgets."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from frontier_urls import fresh
from small_api import api as by_url
from small_api import run as run_alone
from small_shop import html
from split_steps import assert_own, each_kill, records, take_apart
from test_job_parts import EVERY, HOSTS, JobParts, host, job_of_lists, lists

from sanderling import Job, Page
from sanderling.crawls.kept import Keep
from sanderling.crawls.parts import folders_of
from sanderling.crawls.verify import CrawlProof, verify_parts
from sanderling.jobs.split import JobSplit
from sanderling.jobs.verify import verify_job
from sanderling.jobs.watchdog import Stuck, read_stuck, write_stuck
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_requests import RequestFrontier
from sanderling.stores.frontier_rows import End


def proof(out: Path) -> CrawlProof:
    return verify_parts(out, verify_job)


def job_of_pages() -> Job:
    job = Job("pages", start=[f"{host(number)}/page/0" for number in range(HOSTS)], rps=10)

    @job.page("/page/{number}")
    def any_page(page: Page, number: str) -> Iterator[object]:
        yield {"url": page.url, "number": number}
        yield from page.follow_all("a")

    return job


def pages() -> dict[str, object]:
    """Three pages of each host, of which the text is the same everywhere, and a link to what is not there."""
    return {
        f"{host(number)}/page/{each}": html(f'<h1>Page</h1><a href="/page/{each + 1}">on</a>')
        for number in range(HOSTS)
        for each in range(3)
    }


@pytest.mark.parametrize("keep", [None, "html", "warc"])
def test_parts_read_as_one_say_what_the_folder_said_whenever_it_was_killed(keep: Keep | None) -> None:
    with fresh() as place:
        out = place / "out"
        run_alone(job_of_pages(), out, by_url(pages()), keep=keep, stop_after=0.2)
        write_stuck(out, {f"3 {host(2)}/page/0": Stuck(1, 0.0, 1.0, "here", ()), "start": Stuck(1, 0.0, 1.0, "x", ())})
        before, counts = records(out), proof(out)
        assert counts.ok, counts.problems
        assert before
        assert counts.counts[End.WAITING]

        for split in each_kill(out, JobSplit()):
            after = proof(split)
            assert after.ok, after.problems
            assert (after.counts, after.rows, after.kept) == (counts.counts, counts.rows, counts.kept)
            assert records(split) == before
            assert_own(split, "records.jsonl")
            stuck = [key for part in folders_of(split) for key in read_stuck(part)]
            assert sorted(stuck) == sorted(read_stuck(out))
            left = {path.name for path in split.iterdir()}
            assert left <= {"parts", "parts.json", "lock", "status.json"}, left


def test_what_was_taken_apart_goes_on_and_has_every_record_once(tmp_path: Path) -> None:
    world = lists()
    first = run_alone(job_of_lists(max_requests=40), tmp_path / "out", world)
    assert 0 < len(first.records) < len(EVERY)
    take_apart(tmp_path / "out", JobSplit())
    parts = JobParts(tmp_path / "out", job_of_lists(max_requests=60), world)
    parts.run()
    assert len(world.urls) == 60, "what one process has sent counts"
    parts.job = job_of_lists()
    parts.run()

    assert sorted(parts.records, key=str) == EVERY
    assert sorted(world.urls) == sorted(set(world.urls))
    assert proof(tmp_path / "out").ok


def test_records_of_an_earlier_release_are_not_taken_apart(tmp_path: Path) -> None:
    run_alone(job_of_lists(), tmp_path / "out", lists())
    ledger = RequestFrontier(tmp_path / "out" / "frontier.db", ())
    ledger._db.execute("DELETE FROM wrote WHERE start = 0")
    ledger.close()

    with pytest.raises(FolderError, match="which did not note which request they came of"):
        take_apart(tmp_path / "out", JobSplit())
    assert proof(tmp_path / "out").ok
