"""What is shown of an archive."""

from collections import Counter
from math import inf
from typing import TYPE_CHECKING

import msgspec

from sanderling.fetch.facts import limiter_facts
from sanderling.observe.report import Fact, Hint, HostReport, Report, count, gauge, size, text
from sanderling.repos.sink import ARCHIVED, FAILED, GONE_END, ParkedNote

if TYPE_CHECKING:
    from sanderling.repos.run import ReposRun

MOST = 100  # hosts that were requested last, of which some are shown
SHOWN = 20


def make_report(run: "ReposRun", *, running: bool) -> Report:
    """The report of a run."""
    parts, counts = run.parts, run.counts
    engine, figures, readers = parts.engine.facts(), parts.figures, parts.readers.report()
    ends = Counter[str]()
    by_code: dict[str, dict[str, int]] = {GONE_END: {}, FAILED: {}}
    for (end, code), number in counts.ends.items():
        ends[end] += number
        if end in by_code and number:
            by_code[end][code] = number
    facts: list[Fact] = [
        count("archived", ends[ARCHIVED], "Repos archived."),
        count("records", figures.stored_records, "Records archived by this process."),
        size("written", figures.bytes, "Bytes of repos written by this process."),
        count("gone", by_code[GONE_END], "Accounts that are deleted, taken down or deactivated.", by="code"),
        count("failed", by_code[FAILED], "Repos that failed, by category.", by="code"),
        count("moved", ends["moved"], "Accounts that were found at another host."),
        count("unchanged", ends["unchanged"], "Repos that have not changed since they were archived."),
        count("left_out", ends["left_out"] + figures.left_out, "Accounts that a list names."),
        gauge("waiting", counts.waiting, "Accounts that wait, for their turn, their host or another run."),
        count("dropped_records", figures.dropped, "Records that nobody can read.", more=True),
        gauge("readers", readers.alive, "Reader processes.", more=True),
        count(
            "reader_failures", dict(readers.failed), "Repos that cost their reader too much.", by="reason", more=True
        ),
        text(
            "unreachable",
            parts.servers.why or parts.ledger.away,
            "Why ledger, directory or Redis cannot be reached.",
            more=True,
        ),
        *figures.facts(
            hosts=len(parts.paces),
            active=max(0, engine.hosts - len(engine.parked)),
            dispatched=engine.sent,
            waiting=counts.waiting,
        ),
        *limiter_facts(parts.limiter.snapshot(0)),
        *parts.alerts.facts(),
    ]
    done = counts.known - counts.waiting
    return Report(
        system="repos",
        doing=f"archiving repos of {engine.hosts:,} host{'' if engine.hosts == 1 else 's'}" if running else "",
        facts=tuple(facts),
        progress=(done, counts.known),
        hosts=_hosts(run),
        troubles=tuple(_troubles(run)),
        hints=() if running else tuple(_hints(run, ends)),
    )


def _hosts(run: "ReposRun") -> tuple[HostReport, ...]:
    """The hosts for which most waits."""
    parts = run.parts
    snapshot = {each.host: each for each in parts.limiter.snapshot(MOST).hosts}
    engine = parts.engine.facts()
    waiting = {each.host: each for each in run.hosts}
    found = []
    for host in list(dict.fromkeys([*waiting, *snapshot]))[:SHOWN]:
        known = snapshot.get(host)
        state, why = "ok", known.why if known is not None else ""
        if host in parts.paces.blocked:
            state, why = "blocked", f"ten failures in a row ({parts.paces.blocked[host]}); it waits for another run"
        elif host in engine.parked:
            outcome = engine.parked[host]
            state, why = "set aside", (outcome.detail or outcome.code) if outcome is not None else "no answer"
        elif host in engine.elsewhere:
            state, why = "elsewhere", "another crawl of this machine requests it"
        elif host in engine.blocked:
            state, why = "blocked", "somebody asked for it"
        elif known is None and host in waiting and waiting[host].note:
            note = msgspec.msgpack.decode(waiting[host].note, type=ParkedNote)
            state, why = "set aside", note.detail or note.code
        found.append(
            HostReport(
                host=host,
                allowed=known.fill_rate if known is not None and known.fill_rate < inf else None,
                refused=known.refused if known is not None else 0,
                in_flight=known.in_flight if known is not None else 0,
                latency=known.p95_latency if known is not None else None,
                waiting=waiting[host].waiting if host in waiting else 0,
                requests=known.requests if known is not None else 0,
                state=state,
                why=why,
            )
        )
    return tuple(found)


def _troubles(run: "ReposRun") -> list[str]:
    said = []
    parts = run.parts
    if parts.figures.refused:
        said.append(f"{parts.figures.refused:,} accounts name no host that can be requested")
    for host in run.hosts:
        if host.host in parts.paces.blocked:
            why = parts.paces.blocked[host.host].value
            said.append(f"{host.host} is blocked with {host.waiting:,} waiting: {why}")
        elif host.note:
            note = msgspec.msgpack.decode(host.note, type=ParkedNote)
            said.append(f"{host.host} is set aside with {host.waiting:,} waiting: {note.detail or note.code}")
    return said[:10]


def _hints(run: "ReposRun", ends: Counter[str]) -> list[Hint]:
    folder = str(run.parts.folder)
    hints = []
    if ends[FAILED]:
        hints.append(Hint("see what failed", ("tasks", folder, "failed")))
    if ends[ARCHIVED]:
        hints.append(Hint("look into it", ("repos", "inspect", folder)))
        hints.append(Hint("load it", ("repos", "replay", "--input-dir", folder, "--to", "parquet:records")))
    return hints
