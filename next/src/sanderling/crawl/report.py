"""What is shown of a crawl."""

from collections import Counter
from math import inf
from typing import TYPE_CHECKING

import msgspec

from sanderling.crawl.sink import HostState
from sanderling.crawl.source import CUT
from sanderling.fetch.facts import limiter_facts
from sanderling.observe.render import show_seconds
from sanderling.observe.report import Fact, Hint, HostReport, Report, count, gauge, text

if TYPE_CHECKING:
    from sanderling.crawl.run import CrawlStanding, Parts

MOST = 100  # hosts that were requested last, of which some are shown
SHOWN = 20


def make_report(parts: "Parts", standing: "CrawlStanding", *, running: bool) -> Report:
    """The report of a crawl, from what its parts know."""
    counts, engine = standing.counts, parts.engine.facts()
    ends = Counter[str]()
    failed: dict[str, int] = {}
    cut: dict[str, int] = {}
    for (end, code), number in counts.ends.items():
        if end == CUT:
            cut[code] = number
            continue
        ends[end] += number
        if end == "failed":
            failed[code] = number
    unit = "Pages" if parts.name == "pages" else "Requests"
    facts: list[Fact] = [
        count("fetched", ends["fetched"], f"{unit} that were fetched and read."),
        count("unchanged", ends["unchanged"], "Pages that are as they were in an earlier run."),
        count("moved", ends["moved"], "Redirects."),
        count("failed", failed, "What failed, by code.", by="code"),
        count("refused", ends["refused"], "What robots.txt or our own rules forbid."),
        count("left_out", ends["left_out"], "What --leave-out names."),
        gauge("waiting", counts.waiting, "What waits, for its turn, its host or another run."),
        gauge(
            "cut_off",
            {option: number for option, number in cut.items() if number},
            "Waiting, as a bound cut it off.",
            by="bound",
        ),
        count("at_depth", parts.handler.deep, "Links that lead deeper than --depth allows, of this process."),
        count("records", parts.progress.records, "Records stored.", more=parts.name == "pages"),
        count("rendered", parts.handler.rendered, "Pages that a browser rendered, of this process.", more=True),
        count("sent", engine.sent, "Items requested by this process.", more=True),
        gauge("in_flight", engine.inflight, "Requests in flight.", more=True),
        gauge("readers", parts.readers.report().alive, "Reader processes.", more=True),
        count(
            "reader_failures",
            dict(parts.readers.report().failed),
            "Responses that cost their reader too much.",
            by="reason",
            more=True,
        ),
        *limiter_facts(parts.limiter.snapshot(0)),
        text("unreachable", parts.ledger.away, "Why the ledger cannot be reached.", more=True),
    ]
    done = counts.known - counts.waiting
    hosts = _hosts(parts, standing)
    doing = f"{unit.lower()} of {engine.hosts:,} host{'' if engine.hosts == 1 else 's'}" if running else ""
    return Report(
        system=parts.name, doing=doing, facts=tuple(facts), progress=(done, counts.known), hosts=hosts,
        troubles=tuple(_troubles(parts, standing, cut)), hints=tuple(_hints(parts, ends, cut, counts.waiting)),
    )  # fmt: skip


def _hosts(parts: "Parts", standing: "CrawlStanding") -> tuple[HostReport, ...]:
    """The hosts for which most waits."""
    snapshot = {each.host: each for each in parts.limiter.snapshot(MOST).hosts}
    engine = parts.engine.facts()
    found = []
    waiting = {each.host: each for each in standing.hosts}
    for host in list(dict.fromkeys([*waiting, *snapshot]))[:SHOWN]:
        known = snapshot.get(host)
        state, why = "ok", known.why if known is not None else ""
        rate, most = standing.rates.get(host, 0.0), parts.engine.rules.per_host
        if known is not None and rate < 0.8 * known.fill_rate and rate * (known.p95_latency or 0) > 0.7 * most:
            why = f"{most} requests in flight, and responses take {show_seconds(known.p95_latency or 0)}"
        if host in engine.parked:
            outcome = engine.parked[host]
            state, why = "set aside", (outcome.detail or outcome.code) if outcome is not None else "no answer"
        elif host in engine.elsewhere:
            state, why = "elsewhere", "another crawl of this machine requests it"
        elif host in engine.blocked:
            state, why = "blocked", "somebody asked for it"
        elif known is None and host in waiting and waiting[host].note:
            note = msgspec.msgpack.decode(waiting[host].note, type=HostState)
            state, why = "set aside", note.detail or note.code
        found.append(
            HostReport(
                host=host,
                rate=rate,
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


def _troubles(parts: "Parts", standing: "CrawlStanding", cut: dict[str, int]) -> list[str]:
    said = [parts.room.said] if parts.room is not None and parts.room.is_full else []
    said += [parts.sink.handover.trouble] if parts.sink.handover and parts.sink.handover.trouble else []
    said += [parts.ledger.away] if parts.ledger.away else []
    said += [
        f"{number:,} addresses were cut off by {bound_words(parts, option)}; they wait"
        for option, number in cut.items()
        if number
    ]
    elsewhere = parts.engine.facts().elsewhere
    if elsewhere:
        named = ", ".join(list(elsewhere)[:3])
        said.append(f"another crawl beside this one requests {named}; it waits until that has ended")
    for host in standing.hosts:
        if host.note:
            note = msgspec.msgpack.decode(host.note, type=HostState)
            said.append(f"{host.host} is set aside with {host.waiting:,} waiting: {note.detail or note.code}")
    return said[:10]


def bound_words(parts: "Parts", option: str) -> str:
    """An option with its value."""
    return f"--{option} {parts.bounds.get(option)}"


def _hints(parts: "Parts", ends: Counter[str], cut: dict[str, int], waiting: int) -> list[Hint]:
    folder = str(parts.folder)
    again = ("pages", "crawl", "--out", folder)
    hints = []
    if ends["failed"]:
        hints.append(Hint("see what failed", ("tasks", folder, "failed")))
    elif ends["fetched"]:
        hints.append(Hint("export it", ("export", folder, "--to", f"{parts.folder.name}.csv")))
    for option, number in cut.items():
        if number:
            larger = str(4 * (parts.bounds.get(option) or 1))
            hints.append(Hint(f"fetch what --{option} cut off", (*again, f"--{option}", larger)))
    if waiting and parts.progress.most is not None and parts.progress.enough(0):
        hints.append(Hint("fetch more", (*again, "--max-pages", str(2 * parts.progress.most))))
    return hints
