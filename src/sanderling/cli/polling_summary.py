"""What came of a run of `sanderling polling`, in words and as JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from sanderling.cli.pages_summary import count, duration
from sanderling.cli.polling_run import Given, Ran
from sanderling.cli.polling_words import lateness, targets, troubles
from sanderling.cli.sequence_place import flags_of
from sanderling.polling.control import Ingested
from sanderling.polling.measures import ACCELERATED, USUAL


def summarise(given: Given, ran: Ran) -> dict[str, Any]:
    """What `--json` prints."""
    last = ran.last
    return {
        "seconds": round(last.seconds, 3),
        "source": last.source,
        "host": last.host,
        "event": last.event,
        "targets": last.targets.all,
        "runs": last.ran,
        "failed": last.failed,
        "missed": sum(last.missed.values()),
        "changes": last.changed,
        "newest": last.newest,
        "late": {pace: {"p50": late.p50, "p99": late.p99} for pace, late in last.late.items()},
        "trouble": list(troubles(last)),
        "out": str(given.place.out),
    }


def again(given: Given) -> str:
    """The command that goes on with this."""
    return f"sanderling polling run{flags_of(given.place, given.upstream, given.telling)}"


def words(given: Given, ran: Ran) -> Iterator[str]:
    """The summary as lines; those that are indented must not be broken."""
    last = ran.last
    yield ""
    yield (
        f"Polled {targets(last)} for {duration(last.seconds)}: {count(last.ran, 'run')}, {last.failed:,} failed, "
        f"{sum(last.missed.values()):,} missed, {count(last.changed, 'change')}."
    )
    for pace, what in ((ACCELERATED, "What was live"), (USUAL, "Everything else")):
        if pace in last.late:
            yield f"{what} was {lateness(last.late[pace])}."
    yield from troubles(last)
    yield ""
    yield "Go on with, and look at what is due:"
    yield ""
    yield f"    {again(given)}"
    yield f"    sanderling polling targets{flags_of(given.place)}"
    yield ""


def fetched(done: Iterable[Ingested]) -> tuple[list[str], dict[str, Any]]:
    """What a full fetch brought, in words and as JSON."""
    all_of_it = list(done)
    kinds = Counter(each.kind for each in all_of_it)
    failed = [each for each in all_of_it if not each.ok]
    changes = sum(each.changes for each in all_of_it)
    listed = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    lines = ["", f"Fetched {count(len(all_of_it), 'document')} ({listed}): {count(changes, 'change')}."]
    lines += [f"    {each.kind} {each.source_id}: {each.status}" for each in failed[:20]]
    document = {
        "documents": dict(kinds),
        "changes": changes,
        "failed": [{"kind": each.kind, "id": each.source_id, "status": each.status} for each in failed],
    }
    return lines, document
