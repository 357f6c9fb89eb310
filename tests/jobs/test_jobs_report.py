"""The report of a job, made of a run, whatever state it is in."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from known_reports import standing
from small_api import API, answer, api, run

from sanderling import Job, JobReply, Request
from sanderling.jobs.report import JobFacts, report_job
from sanderling.observe.report import HostCondition, Report, Severity


def make(**options: object) -> Job:
    job = Job("told", start=f"{API}/list", hosts=("api.example", "dead.example"), **options)  # type: ignore[arg-type]

    @job.read
    def listing(_: JobReply) -> Iterator[object]:
        yield from (Request(f"/{each}", read="leaf") for each in range(6))
        yield Request("https://dead.example/", read="leaf")

    @job.read
    def leaf(reply: JobReply) -> object:
        return {"url": reply.url}

    return job


def test_a_report_says_what_was_kept_what_waits_and_why(tmp_path: Path) -> None:
    answers = {"/list": {}, **{f"/{each}": {} for each in range(5)}, "/5": answer({}, 404)}
    ran = run(make(), tmp_path, api({**answers, "https://dead.example/": ConnectionRefusedError()}))
    told = ran.report

    assert msgspec.json.decode(msgspec.json.encode(told), type=Report[JobFacts]) == told
    assert (told.system, told.work.kept, told.work.failed, told.work.waiting, told.set_aside) == ("jobs", 5, 1, 1, 1)
    assert told.work.asked == told.facts.requests >= 8
    assert told.doing == "told: ended with 5 records, 1 request left"
    assert {host.host: host.state for host in told.hosts}["dead.example"] is HostCondition.SET_ASIDE
    assert told.troubles[0].text.startswith("dead.example: CONNECTION_REFUSED")


def test_a_report_names_readers_that_are_gone_and_a_budget_that_is_spent(tmp_path: Path) -> None:
    ran = run(make(max_requests=1), tmp_path, api({"/list": {}}))
    told = ran.report

    assert told.doing == "told: the budget is spent with 0 records; 7 requests wait"
    assert told.facts.over_budget
    facts = msgspec.structs.replace(told.facts, over_budget=False, gone={"leaf": 7})
    gone = report_job(facts, standing(process={"paused": True}))
    assert gone.texts(Severity.ERROR) == (
        "7 requests wait for the reader leaf, which the job has not; add it, or begin anew",
    )
    assert gone.doing == "told: paused; 7 requests wait, 0 requests in flight"
