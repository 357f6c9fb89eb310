"""What is shown of a sequence."""

from typing import TYPE_CHECKING

from sanderling.fetch.facts import limiter_facts
from sanderling.observe.report import Fact, Hint, HostReport, Report, count, gauge, seconds, text
from sanderling.redact import redact
from sanderling.sequence.description import Meaning
from sanderling.sequence.readings import BUCKETS, LAG, STATUS

if TYPE_CHECKING:
    from sanderling.sequence.crawl import SequenceRun


def make_report(run: "SequenceRun", *, running: bool) -> Report:
    """The report of a run."""
    figures, follower, parts = run.figures, run.follower, run.parts
    now = parts.clock.now()
    missed: dict[str, int] = {}
    for (reason, retried), number in run.missed_counts.items():
        name = "retried" if retried else reason
        missed[name] = missed.get(name, 0) + number
    rows = sum(each.rows for each in run.state.files if each.file.endswith(".jsonl"))
    snapshot = parts.limiter.snapshot(1)
    facts: list[Fact] = [
        count("stored", rows, "Records stored, those of earlier runs among them."),
        gauge("newest", follower.newest, "The newest id that is known to exist."),
        gauge("next", follower.next, "The next new id."),
        gauge("open", follower.open, "Ids that are requested now, or again soon."),
        gauge("missed", missed, "Ids without a record that are asked again, by reason.", by="reason"),
        count("skipped", figures.skipped, "Records that are not of the kind that is kept."),
        seconds("lag", figures.lag, "Age of the newest record when it came."),
        gauge("head_rate", round(follower.rate or 0.0, 3), "Ids a second that come to be."),
        gauge("workers", run.workers, "Requests in flight at most."),
        count("requests", figures.requests, "Requests sent by this process."),
        count(
            "answers",
            {each.name.lower(): figures.answers[each] for each in Meaning if figures.answers[each]},
            "Answers, by what they mean.",
            by="meaning",
            more=True,
        ),
        count("probes", figures.probes, "Requests that looked for the end of a gap.", more=True),
        count("checks", figures.checks, "Requests for a known record while the API failed.", more=True),
        count("gaps", run.walk.passed, "Gaps that were passed over.", more=True),
        count("visited", figures.visited, "Records requested again to see what has changed.", more=True),
        count("changed", figures.changed, "Records whose newest state was stored.", more=True),
        count("deleted", figures.deleted, "Records that were deleted since.", more=True),
        seconds("latency", round(figures.latency, 3), "Latency of most requests.", more=True),
        text("api", run.state.api, "What is followed.", more=True),
        # Both are counters; as gauges they keep the seed's names, to which a counter would add _total.
        gauge(
            STATUS.removeprefix("pgcr_crawl_"),
            {str(int(each)): run.parts.metrics.meter.answers[each] for each in Meaning},
            "Answers by seed 000's codes.",
            by="status",
            metric=STATUS,
            more=True,
        ),
        gauge(
            LAG.removeprefix("pgcr_crawl_"),
            dict(zip([*(f"{bound:g}" for bound in BUCKETS[:-1]), "+Inf"], run.parts.metrics.meter.lags, strict=True)),
            "Records by their age in seconds when they came.",
            by="le",
            metric=LAG,
            more=True,
        ),
        *limiter_facts(snapshot),
        *parts.alerts.facts(),
    ]
    quiet = run.health.quiet_why if now < run.health.quiet_until or run.health.away_since is not None else ""
    troubles = tuple(filter(None, (quiet, run.health.shape_trouble, parts.metrics.trouble, parts.storing.trouble)))
    hosts = tuple(
        HostReport(
            host=each.host, allowed=each.fill_rate, in_flight=each.in_flight, requests=each.requests,
            refused=each.refused, latency=each.avg_latency, why=each.why,
            state="down" if run.health.away_since is not None else "ok",
        )
        for each in snapshot.hosts
    )  # fmt: skip
    return Report(
        system="sequence",
        doing=_doing(run, now) if running else "",
        facts=tuple(facts),
        hosts=hosts,
        troubles=troubles,
        hints=() if running else _hints(run, rows, missed),
    )


def _doing(run: "SequenceRun", now: float) -> str:
    follower = run.follower
    if run.wanted.paused:
        return "paused"
    if run.health.away_since is not None:
        return f"the API has failed for {now - run.health.away_since:.0f} s"
    if now < run.health.quiet_until:
        return "waiting"
    if follower.done:
        return "asking again what was missing"
    if not follower.at_head:
        return "catching up"
    if follower.suspects_gap:
        return "at the head, where nothing comes"
    return "at the head"


def _hints(run: "SequenceRun", rows: int, missed: dict[str, int]) -> tuple[Hint, ...]:
    folder = str(run.parts.options.out)
    hints = []
    if rows:
        hints.append(Hint("export it", ("export", folder, "--to", f"{run.parts.options.out.name}.csv")))
    if missed:
        hints.append(Hint("see what is missing", ("tasks", folder, "missed")))
    if not run.follower.done:
        options = run.parts.options
        given = ["--private"] if options.private else []
        for name in ("database", "raw", "queue"):
            value = getattr(options, name)
            given += [f"--{name}", value] if value and redact(value) == value else []  # no password is shown
        hints.append(Hint("go on", ("sequence", "crawl", "--out", folder, *given)))
    return tuple(hints)
