"""What came of a run of `sanderling polling`, in words and as JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

from sanderling.cli import command_line
from sanderling.cli.options import Options
from sanderling.cli.polling.flags import PollFlags
from sanderling.observe.report import Report
from sanderling.polling.control import Ingested
from sanderling.polling.measures import ACCELERATED, USUAL, Late
from sanderling.polling.report import PollingFacts, describe_targets
from sanderling.words import count, duration

MOST_FAILED = 20  # documents that are named


def summarise(flags: PollFlags, last: Report[PollingFacts], late: Mapping[str, Late]) -> dict[str, Any]:
    """What `--json` prints."""
    facts = last.facts
    return {
        "seconds": round(last.process.seconds, 3),
        "source": facts.source,
        "host": facts.host,
        "event": facts.event,
        "targets": facts.targets["all"],
        "runs": facts.ran,
        "failed": facts.failed,
        "missed": facts.missed,
        "changes": facts.changes,
        "newest": facts.newest,
        "late": {pace: _late(each) for pace, each in late.items()},
        "trouble": list(last.texts()),
        "out": str(flags.place.out),
    }


def _late(late: Late) -> dict[str, float | None]:
    """Seconds within which half of the runs began, and 99 of 100; None if that took longer than is measured."""
    return {
        "runs": late.runs,
        **{name: None if of == inf else of for name, of in (("p50", late.p50), ("p99", late.p99))},
    }


def again(flags: PollFlags, options: Options, verb: str = "run") -> str:
    """The command that goes on with this. What was set is in the database, and is not said again."""
    groups = flags.place, flags.upstream, flags.turns, flags.serving, flags.telling, options
    return command_line.again(f"polling {verb}", *groups)


def words(flags: PollFlags, last: Report[PollingFacts], late: Mapping[str, Late], onward: str) -> Iterator[str]:
    """The summary as lines, with the command to go on with; those that are indented must not be broken."""
    facts = last.facts
    yield ""
    yield (
        f"Polled {describe_targets(facts)} for {duration(last.process.seconds)}: {count(facts.ran, 'run')}, "
        f"{facts.failed:,} failed, {facts.missed:,} missed, {count(facts.changes, 'change')}."
    )
    yield from punctuality(late)
    yield from last.texts()
    yield ""
    yield "Go on with, and look at what is due:"
    yield ""
    yield f"    {onward}"
    yield f"    {command_line.again('polling targets', flags.place)}"
    yield ""


def punctuality(lateness_of: Mapping[str, Late]) -> Iterator[str]:
    """How late runs began, a sentence for each pace."""
    for pace, what in ((ACCELERATED, "live run"), (USUAL, "other run")):
        if late := lateness_of.get(pace):
            half, most = (f"within {duration(each)}" if each < inf else "at any time" for each in (late.p50, late.p99))
            yield f"Of {count(late.runs, what)} half began {half} of their time, 99 of 100 {most}."


def fetched(last: Report[PollingFacts], done: Iterable[Ingested]) -> tuple[list[str], dict[str, Any]]:
    """What a full fetch brought, in words and as JSON."""
    all_of_it = {(each.kind, each.source_id): each for each in done}.values()
    kinds = Counter(each.kind for each in all_of_it)
    failed = [each for each in all_of_it if not each.ok]
    listed = ", ".join(f"{kind} {number:,}" for kind, number in kinds.items())
    changes = last.facts.changes  # also those of what was due just then and ran by itself
    lines = ["", f"Fetched {count(len(all_of_it), 'document')} ({listed}): {count(changes, 'row')} changed."]
    if failed:
        lines += [f"{count(len(failed), 'document')} could not be had:", ""]
    lines += [f"    {each.kind} {each.source_id}: {each.status}" for each in failed[:MOST_FAILED]]
    if len(failed) > MOST_FAILED:
        lines.append(f"    and {len(failed) - MOST_FAILED:,} more")
    document = {
        "documents": dict(kinds),
        "changes": changes,
        "failed": [{"kind": each.kind, "id": each.source_id, "status": each.status} for each in failed],
    }
    return lines, document
