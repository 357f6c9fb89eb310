"""A crawl of ids in words: how it stands, and what happened."""

from collections.abc import Iterator, Mapping

from sanderling.apis.numbered import Status
from sanderling.observe.alerts import Alert
from sanderling.sequence.status import DecisionStatus, SequenceStatus
from sanderling.words import count, duration, printable

# How an answer with something odd about it is called, by its status.
ODD = {"success": "an odd record", "bad_format": "a malformed record", "error": "a failure"}
FAILED = (Status.BAD_FORMAT, Status.ERROR)
# What the reasons for which ids are missed mean to whoever looks at them.
MEANINGS = {
    "not_found": "not found",
    "bad_format": "malformed",
    "error": "failed",
    "hidden": "hidden for now",
    "rate_limited": "refused over and over",
    "gap": "in gaps",
    "alive": "in a gap that was none",
    "imported": "imported",
}


def position(status: SequenceStatus) -> str:
    """Where it is, and where the head is."""
    if status.head is None or status.behind is None:
        return f"all below {status.cursor:,} have their fate"
    return f"all below {status.cursor:,} have their fate; the head is {count(status.behind, 'id')} ahead"


def age(seconds: float | None) -> str:
    """How old records are, as people say it, and to the second as long as that is worth seeing."""
    if seconds is None:
        return "unknown"
    if not 100 <= seconds < 3600:
        return duration(seconds)
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def answers(status: SequenceStatus) -> list[str]:
    """What was answered, in words."""
    found, asked = status.answered(Status.SUCCESS, Status.SKIPPED), max(1, status.asked)
    absent, failed = status.answered(Status.NOT_FOUND), status.answered(*FAILED)
    refused, hidden = status.answered(Status.RATE_LIMITED), status.answered(Status.HIDDEN)
    return [
        f"{count(found, 'record')}",
        f"{status.answered(Status.SUCCESS):,} wanted",
        f"{100 * absent / asked:.1f} % not found",
        *([f"{failed:,} failed"] if failed else []),
        *([f"{refused:,} refused"] if refused else []),
        *([f"{hidden:,} hidden"] if hidden else []),
    ]


def missed(ids: Mapping[str, int], gaps: int = 0) -> str:
    """What is asked again later, and how many gaps were skipped."""
    told = f"{count(sum(ids.values()), 'id')} to be asked again" if ids else "nothing"
    skipped = f"; {count(gaps, 'gap')} skipped" if gaps else ""
    return f"{told}: {reasons(ids)}{skipped}" if ids else f"{told}{skipped}"


def reasons(ids: Mapping[str, int]) -> str:
    """Why ids are missed, the most first."""
    ordered = sorted(ids.items(), key=lambda each: -each[1])
    return ", ".join(f"{number:,} {MEANINGS.get(name, name)}" for name, number in ordered)


def remark(status: str, found: str) -> str:
    """An answer with something odd about it."""
    return printable(f"{ODD.get(status, status)}, {found}")


def kept(status: SequenceStatus) -> str:
    """What became of the records that are wanted."""
    parts = [f"{status.published:,} queued"]
    if status.queue is not None:
        parts.append(f"{status.queue['ready'] + status.queue['taken'] + status.queue['delayed']:,} wait there")
    if status.store is not None:
        parts.append(f"{status.store.stored:,} stored")
    dead = (status.queue or {}).get("dead", 0)
    return ", ".join([*parts, *([f"{dead:,} dead"] if dead else [])])


def counters(status: SequenceStatus) -> list[str]:
    """The totals, in one line."""
    return [
        status.doing,
        f"at {status.cursor}",
        *([] if status.behind is None else [f"{count(status.behind, 'id')} behind"]),
        *([] if status.lag is None else [f"lag {age(status.lag)}"]),
        f"{status.rate:,.1f} records/s",
        f"{status.plan.workers} workers",
        *answers(status)[1:],
        f"{sum(status.missed.values()):,} missed",
        *([] if status.store is None else [f"{status.store.stored:,} stored"]),
    ]


class News:
    """Makes lines of what happened, from alerts and from how the crawl stood before."""

    def __init__(self) -> None:
        self._before: SequenceStatus | None = None

    def of_status(self, now: SequenceStatus) -> Iterator[str]:
        """What is different from the time before."""
        before, self._before = self._before, now
        if before is None:
            return
        last = before.decisions[-1].wall if before.decisions else before.started
        for each in now.decisions:
            if each.wall > last and each.workers != each.before:
                yield f"{each.before} workers become {each.workers}: {_reason(each)}"
        for status in now.remarks.keys() - before.remarks.keys():
            yield f"the first time: {remark(status, now.remarks[status])}"
        yield from _ahead(before, now)
        yield from _turned(before.trouble, now.trouble, f"the queue takes nothing: {now.trouble}", "the queue is back")
        if before.store and now.store:
            old, new = before.store.trouble, now.store.trouble
            yield from _turned(old, new, f"the store takes nothing: {new}", "the store is back")

    def of_alert(self, alert: Alert) -> str | None:
        """An alert in words, if it is one for whoever looks on."""
        fields = {field.name: field.value.strip("`") for field in alert.fields}
        match alert.kind:
            case "gap_skipped":
                size, first = int(fields["Minimum Block Size"]), fields["New Starting Id"]
                return f"gap: {count(size, 'id')} behind {fields['Previous Id']} do not exist; going on at {first}"
            case "api_disabled":
                return "the API says that it is switched off: waiting until it is back"
            case "api_back":
                return f"the API is back after {fields['Time Elapsed']}"
            case "high_404_rate":
                return f"{fields['Rate']} of the last {fields['Count']} were not found: looking for what is ahead"
            case "runaway":
                return f"nothing exists behind {fields['Last Instance Id']}, for {fields['Time Waited']} now"
        return None


def _ahead(before: SequenceStatus, now: SequenceStatus) -> Iterator[str]:
    """What is known of what is ahead; that there was a gap is an alert."""
    if now.looking and not before.looking:
        yield f"nothing is found behind {now.newest}: a gap, or the head?"
    if now.at_head and not before.at_head:
        yield "it is the head: waiting for new ids"
    if before.looking and not now.looking and now.gaps == before.gaps:
        yield "ids are there again: going on"


def _turned(before: object, now: object, began: str, ended: str) -> Iterator[str]:
    """What to say when something begins or ends."""
    if bool(before) != bool(now):
        yield began if now else ended


def _reason(made: DecisionStatus) -> str:
    """What a decision went by: the readings, and the names of the rules that held it back."""
    rules = ", ".join(dict.fromkeys(held.partition(":")[0] for held in made.held))
    missing = "" if made.missing is None else f", {100 * made.missing:.1f} % not found"
    behind = "how far behind is not known yet" if made.lag is None else f"{age(made.lag)} behind"
    return f"{behind}{missing}{f' ({rules})' if rules else ''}"
