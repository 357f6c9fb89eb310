"""`sanderling status` of a crawl of ids: how a crawl of ids stands, beside it or after it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from sanderling.cli.published_words import line, tell
from sanderling.cli.sequence.place import Place, known_state
from sanderling.cli.sequence.words import age, answers, kept, missed, position, remark
from sanderling.clock import SystemClock
from sanderling.observe.report import paced_by
from sanderling.sequence.status import DecisionStatus, SequenceStatus, published
from sanderling.stores.status_file import is_running
from sanderling.words import count

SHOWN = 5  # decisions


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is on disk. It counts, and not what a crawl that was killed has said before. None before its first write."""

    api: str | None = None
    cursor: int | None = None  # every id below has its fate
    next: int | None = None
    open: int | None = None  # ids from the cursor to the next that have no fate yet
    newest: int | None = None
    missed: dict[str, int]  # ids, by reason


def show_ids(folder: Path, *, as_json: bool) -> None:
    """Print how the crawl of a folder stands. Raises CommandError."""
    place = Place(out=folder)
    there, found = kept_in(place), published(place.out)
    wall = SystemClock().wall()
    tell(f"The crawl in {place.out}", found, wall, words(there, found, wall), as_json=as_json, kept=there)


def kept_in(place: Place) -> Kept:
    """What a crawl has on disk. Raises CommandError."""
    with known_state(place) as state:
        saved, counts = state.load(), {reason.value: ids for reason, ids in state.counts().items()}
    if saved is None:
        return Kept(missed=counts)
    at = saved.position
    return Kept(api=saved.api, cursor=at.low, next=at.next, open=len(at.open), newest=saved.newest, missed=counts)


def words(there: Kept, found: SequenceStatus | None, wall: float) -> Iterator[str]:
    """The same as lines."""
    low = there.cursor
    if low is not None:
        yield line("ids", position(found) if found and found.cursor == low else f"all below {low:,} have their fate")
    if found is not None:
        yield from _numbers(msgspec.structs.replace(found, missed=there.missed), running=is_running(found, wall))
        yield from _decisions(found.decisions)
    elif there.missed:
        yield line("missed", missed(there.missed))


def _numbers(now: SequenceStatus, *, running: bool) -> Iterator[str]:
    yield line("api", f"{now.api} at {now.host}")
    yield line("now" if running else "at the end", f"{now.doing}; {now.rate:,.1f} records a second")
    p20 = "" if now.p20 is None else f"; P20 of the last period {age(now.p20)}"
    yield line("lag", f"{age(now.lag)}{p20}")
    yield line("workers", f"{now.plan.workers}, {now.inflight} busy, {now.waiting:,} ids wait for another try")
    yield line("why", f"{now.plan.strategy}: {now.plan.why}")
    yield line("answers", ", ".join(answers(now)))
    for kind, found in sorted(now.remarks.items()):
        yield line("lately", remark(kind, found))
    yield line("missed", missed(now.missed))
    if now.gaps:
        yield line("gaps", f"{now.gaps:,} skipped, {count(now.skipped, 'id')}")
    yield line("kept", kept(now))
    if now.limiter is not None:
        yield line("host", f"{now.limiter.rate:,.1f} requests a second{paced_by(now.pace)}: {now.limiter.why}")
    for name, trouble in (("queue", now.trouble), ("store", now.store.trouble if now.store else "")):
        if trouble:
            yield line("trouble", f"the {name} takes nothing: {trouble}")


def _decisions(decisions: tuple[DecisionStatus, ...]) -> Iterator[str]:
    if not decisions:
        return
    yield ""
    yield "The last decisions about workers:"
    yield ""
    for each in decisions[-SHOWN:]:
        at = datetime.fromtimestamp(each.wall, UTC).strftime("%H:%M:%S")
        yield f"  {at}  {each.before:>4} -> {each.workers:<4} {each.strategy:<9} {each.why}"
