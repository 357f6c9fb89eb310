"""What a job does, as the one report, made from its status. Pure."""

import msgspec

from sanderling.engine.host_report import report_host, shared_lines
from sanderling.jobs.status import JobStatus
from sanderling.observe.report import (
    Progress,
    Report,
    Severity,
    Trouble,
    WorkCounts,
    bound_troubles,
    disk_troubles,
    host_troubles,
    join_names,
    largest,
    paced_by,
    process_of,
)
from sanderling.words import count, duration, size


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a job has. Counts are those of all its runs, bytes those of this one."""

    name: str
    counts: dict[str, int]  # requests by end
    requests: int  # that were sent
    records: int
    known: int  # requests
    waiting: int  # requests
    inflight: int  # requests
    bytes: int  # of replies
    hosts: int
    gone: dict[str, int]  # requests that wait for a reader that the job has not any more, by its name
    over_budget: bool  # as much was asked for as may be


def report(status: JobStatus) -> Report[JobFacts]:
    """Make the report of a job."""
    hosts = tuple(map(report_host, status.hosts))
    # Nothing that a run does brings a reader back: somebody has to.
    gone = [Trouble(Severity.ERROR, text) for text in explain_gone(status)]
    return Report(
        system=status.system,
        doing=_doing(status),
        process=process_of(status, paused=status.paused),
        troubles=bound_troubles([*disk_troubles(status), *gone, *host_troubles(hosts)]),
        progress=Progress(
            done=max(0, status.known - status.waiting),
            whole=status.known,
            what="known requests",
            failed=status.counts.get("failed", 0),
        ),
        work=WorkCounts(
            asked=status.requests,
            refused=sum(host.view.rejected for host in status.hosts),
            kept=status.records,
            failed=status.counts.get("failed", 0),
            waiting=status.waiting,
        ),
        set_aside=status.set_aside,
        hosts=hosts,
        hosts_known=status.hosts_known,
        classes=status.classes,
        numbers=_numbers(status),
        lines=shared_lines(status.shared),
        facts=JobFacts(
            name=status.name,
            counts=largest(status.counts),
            requests=status.requests,
            records=status.records,
            known=status.known,
            waiting=status.waiting,
            inflight=status.inflight,
            bytes=status.bytes,
            hosts=status.hosts_known,
            gone=largest(status.gone),
            over_budget=status.is_over_budget,
        ),
    )


def explain_gone(status: JobStatus) -> list[str]:
    """Say which readers are gone, and how many requests wait for each."""
    return [
        f"{count(number, 'request')} wait for the reader {name}, which the job has not; add it, or begin anew"
        for name, number in status.gone.items()
    ]


def _numbers(status: JobStatus) -> tuple[tuple[str, str], ...]:
    throttled = [host.view.host for host in status.hosts if host.view.state == "closed" and host.view.not_before > 0]
    return (
        ("records", f"{status.records:,}"),
        ("requests", f"{status.requests:,}"),
        ("waiting", f"{status.waiting:,}"),
        ("failed", f"{status.counts.get('failed', 0):,}"),
        ("in flight", f"{status.inflight:,}"),
        ("read", size(status.bytes)),
        ("told to wait", join_names(throttled, 2) or "no host"),
        ("for", duration(status.seconds)),
    )


def _doing(status: JobStatus) -> str:
    left = count(status.waiting, "request")
    if status.is_over_budget and status.waiting:
        return f"{status.name}: the budget is spent with {count(status.records, 'record')}; {left} wait"
    if not status.running:
        return f"{status.name}: ended with {count(status.records, 'record')}, {left} left{paced_by(status.pace)}"
    if status.paused:
        return f"{status.name}: paused; {left} wait, {count(status.inflight, 'request')} in flight"
    if not status.waiting:
        return f"{status.name}: nothing is left to ask for"
    return f"{status.name}: asking {count(status.hosts_known, 'host')}{paced_by(status.pace)}; {left} wait"
