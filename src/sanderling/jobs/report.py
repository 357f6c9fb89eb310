"""What a job does, as the one report."""

from collections.abc import Sequence
from functools import partial

import msgspec

from sanderling.engine.host_report import EngineStanding, backlog_host, join_standings, standing_of
from sanderling.jobs.job import Job
from sanderling.jobs.run import JobRun
from sanderling.jobs.source import reaches
from sanderling.observe.metric import counter, gauge
from sanderling.observe.report import (
    Process,
    Progress,
    Report,
    Severity,
    Trouble,
    WorkCounts,
    add_up,
    bound_troubles,
    largest,
    paced_by,
    throttled,
)
from sanderling.stores.frontier_rows import End
from sanderling.words import count, duration, size


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a job has. Counts are those of all its runs, bytes those of this one."""

    name: str
    counts: dict[str, int]  # requests by end, in lower case
    requests: int  # that were sent
    records: int
    known: int  # requests
    waiting: int  # requests
    set_aside: int = 0  # of those that wait, the ones that are left to the next run
    inflight: int  # requests
    bytes: int  # of replies
    hosts: int
    gone: dict[str, int]  # requests that wait for a reader that the job has not any more, by its name
    over_budget: bool  # as much was asked for as may be
    spent: tuple[str, ...] = ()  # the limits that are reached
    passed_over: int = 0  # links that lead to no page of the job, in this run

    def explain_gone(self) -> tuple[str, ...]:
        """Say which readers are gone, and how many requests wait for each."""
        return tuple(
            f"{count(number, 'request')} wait for the reader {name}, which the job has not; add it, or begin anew"
            for name, number in self.gone.items()
        )


def report_run(run: JobRun, seconds: float, top: int = 1000, *, running: bool = True) -> Report[JobFacts]:
    """Report a run after so many seconds; `top` hosts at most, those asked most first."""
    decided = {end.name.lower(): run.counts[end] for end in (End.FETCHED, End.FAILED, End.LEFT_OUT, End.REFUSED)}
    source, job = run.source, run.job
    spent = spent_limits(job, run.requests, run.records, source.answered)
    facts = JobFacts(
        name=job.name,
        counts=decided,
        requests=run.requests,
        records=run.records,
        known=sum(decided.values()) + source.waiting,
        waiting=source.waiting,
        set_aside=source.set_aside,
        inflight=run.engine.inflight,
        bytes=source.bytes,
        hosts=run.folder.ledger.hosts_known,
        gone=largest(source.gone),
        over_budget=bool(spent),
        spent=spent,
        passed_over=run.functions.passed_over.total(),
    )
    hosts = partial(backlog_host, source.hosts)
    return report_job(facts, standing_of(run.engine, run.limiter, seconds, hosts, top=top, running=running))


def spent_limits(job: Job, requests: int, records: int, answered: int = 0) -> tuple[str, ...]:
    """The limits of the job that are reached."""
    limits = {"max_requests": requests, "max_records": records, "max_answers": answered}
    return tuple(name for name, number in limits.items() if reaches(number, getattr(job, name)))


def join_jobs(job: Job, reports: Sequence[Report[JobFacts]], process: Process) -> Report[JobFacts]:
    """Make the report of a job from those of its parts."""
    start = JobFacts(
        name=job.name,
        counts={},
        requests=0,
        records=0,
        known=0,
        waiting=0,
        inflight=0,
        bytes=0,
        hosts=0,
        gone={},
        over_budget=False,
    )
    joined = add_up(start, (each.facts for each in reports))
    answered = joined.counts.get("fetched", 0) + joined.counts.get("failed", 0)
    spent = spent_limits(job, joined.requests, joined.records, answered)
    joined = msgspec.structs.replace(joined, spent=spent, over_budget=bool(spent), gone=largest(joined.gone))
    return report_job(joined, join_standings(reports, process))


def report_job(facts: JobFacts, at: EngineStanding) -> Report[JobFacts]:
    """Make the report of a job from what is known of it. Pure."""
    failed = facts.counts.get("failed", 0)
    # Nothing that a run does brings a reader back: somebody has to.
    gone = [Trouble(Severity.ERROR, text) for text in facts.explain_gone()]
    return Report(
        system="jobs",
        doing=f"{facts.name}: {_doing(facts, at)}",
        process=at.process,
        troubles=bound_troubles([*at.troubles, *gone]),
        progress=Progress(
            done=max(0, facts.known - facts.waiting), whole=facts.known, what="known requests", failed=failed
        ),
        work=WorkCounts(
            asked=facts.requests,
            refused=at.refused,
            kept=facts.records,
            failed=failed,
            waiting=facts.waiting,
        ),
        set_aside=facts.set_aside,
        hosts=at.hosts,
        hosts_known=facts.hosts,
        shared=at.shared,
        pace=at.pace,
        classes=at.classes,
        numbers=(
            ("records", f"{facts.records:,}"),
            ("requests", f"{facts.requests:,}"),
            ("waiting", f"{facts.waiting:,}"),
            ("failed", f"{failed:,}"),
            ("in flight", f"{facts.inflight:,}"),
            ("read", size(facts.bytes)),
            ("told to wait", throttled(at.hosts)),
            ("running for", duration(at.process.seconds)),
        ),
        lines=at.lines,
        metrics=(
            counter("decided", "Requests that are decided, by their end.", facts.counts, "end"),
            counter("requests", "Requests that were sent.", facts.requests),
            counter("records", "Records that were kept.", facts.records),
            counter("bytes", "Bytes of replies, once unpacked.", facts.bytes),
            gauge("waiting", "Requests that are not decided yet.", facts.waiting),
            gauge("set_aside", "Requests that are left to the next run.", facts.set_aside),
            gauge("inflight", "Requests under way.", facts.inflight),
        ),
        facts=facts,
    )


def _doing(facts: JobFacts, at: EngineStanding) -> str:
    left = count(facts.waiting, "request")
    if facts.over_budget and facts.waiting:
        return f"the budget is spent with {count(facts.records, 'record')}; {left} wait"
    if not at.process.running:
        return f"ended with {count(facts.records, 'record')}, {left} left{paced_by(at.pace)}"
    if at.process.paused:
        return f"paused; {left} wait, {count(facts.inflight, 'request')} in flight"
    if not facts.waiting:
        return "nothing is left to ask for"
    return f"asking {count(facts.hosts, 'host')}{paced_by(at.pace)}; {left} wait"
