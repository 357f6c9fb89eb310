"""`sanderling sequence status`: how a crawl of ids stands, beside it or after it."""

import json as jsonlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec
from cyclopts import Parameter

from sanderling.cli.pages_summary import clock_face, count, duration, printable
from sanderling.cli.sequence_place import USUAL, Place, begun, known_state
from sanderling.cli.sequence_words import age, answers, kept, missed, position
from sanderling.clock import SystemClock
from sanderling.sequence.state import Saved
from sanderling.sequence.status import DecisionStatus, SequenceStatus, published

SILENT = 10.0  # seconds after which a crawl that should say something every second has ended, or hangs
SHOWN = 5  # decisions
NAME = 10  # columns of what a line is about


class Known(NamedTuple):
    """All that a folder tells of its crawl."""

    saved: Saved | None  # None before its first write
    missed: dict[str, int]
    status: SequenceStatus | None  # as it last said; None if it never did
    age: float | None  # seconds since then

    @property
    def running(self) -> bool:
        """Whether somebody crawls there, as far as can be told."""
        return self.status is not None and self.status.running and self.age is not None and self.age < SILENT

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        saved = self.saved
        return {
            "running": self.running,
            "age": None if self.age is None else round(self.age, 1),
            "api": saved.api if saved else None,
            "cursor": saved.position.low if saved else None,
            "next": saved.position.next if saved else None,
            "open": len(saved.position.open) if saved else None,
            "newest": saved.newest if saved else None,
            "missed": self.missed,
            "status": None if self.status is None else msgspec.to_builtins(self.status),
        }


def status(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON, and nothing else.")] = False,
    place: Place = USUAL,
) -> None:
    """Say how the crawl of a folder stands."""
    if not begun(place) and not json:
        print(f"No crawl of ids has begun in {printable(str(place.out))}.")
        return
    known = look(place, SystemClock().wall())
    if json:
        print(jsonlib.dumps(known.as_json()))
        return
    for line in words(known, str(place.out)):
        print(printable(line))


def look(place: Place, wall: float) -> Known:
    """What is known of the crawl in a folder. Raises CommandError."""
    if not begun(place):
        return Known(None, {}, None, None)
    with known_state(place) as state:
        saved, counts = state.load(), {reason.value: ids for reason, ids in state.counts().items()}
    said = published(place.out)
    # What was said by a clock that is ahead of ours was said just now, as far as we know.
    return Known(saved, counts, said, None if said is None else max(0.0, wall - said.wall))


def words(known: Known, where: str) -> Iterator[str]:
    """The same as lines."""
    yield f"The crawl in {where}{_state(known)}:"
    yield ""
    now = known.status
    if known.saved is not None:
        # What is on disk counts, and not what a crawl that was killed has said before.
        low = known.saved.position.low
        yield _line("ids", position(now) if now and now.cursor == low else f"all below {low:,} have their fate")
    if now is not None:
        yield from _numbers(msgspec.structs.replace(now, missed=known.missed))
        yield from _decisions(now.decisions)
    elif known.missed:
        yield _line("missed", missed(known.missed))


def _state(known: Known) -> str:
    now = known.status
    if now is None or known.age is None:
        return ""
    ago = "now" if known.age < 2 else f"{duration(known.age)} ago"
    if known.running:
        return f", running for {clock_face(now.seconds)} as process {now.pid}, {ago}"
    return f", which ended {ago}" if not now.running else f", which has said nothing since {ago} and is not running"


def _numbers(now: SequenceStatus) -> Iterator[str]:
    yield _line("doing", f"{now.doing}: {now.api} at {now.host}" if now.running else f"was {now.doing}")
    p20 = "" if now.p20 is None else f"; P20 of the last period {age(now.p20)}"
    yield _line("lag", f"{age(now.lag)}{p20}")
    yield _line("rate", f"{now.rate:,.1f} records/s")
    yield _line("workers", f"{now.plan.workers}, {now.inflight} busy, {now.waiting:,} ids wait for another try")
    yield _line("why", f"{now.plan.strategy}: {now.plan.why}")
    yield _line("answers", ", ".join(answers(now)))
    yield _line("missed", missed(now.missed))
    if now.gaps:
        yield _line("gaps", f"{now.gaps:,} skipped, {count(now.skipped, 'id')}")
    yield _line("kept", kept(now))
    if now.limiter is not None:
        yield _line("host", f"{now.limiter.rate:,.1f} requests/s: {now.limiter.why}")
    store = now.store.trouble if now.store else ""
    for name, trouble in (("queue", now.trouble), ("store", store)):
        if trouble:
            yield _line(name, f"takes nothing: {trouble}")


def _decisions(decisions: tuple[DecisionStatus, ...]) -> Iterator[str]:
    if not decisions:
        return
    yield ""
    yield "The last decisions about workers:"
    yield ""
    for each in decisions[-SHOWN:]:
        at = datetime.fromtimestamp(each.wall, UTC).strftime("%H:%M:%S")
        yield f"  {at}  {each.before:>4} -> {each.workers:<4} {each.strategy:<9} {each.why}"


def _line(name: str, text: str) -> str:
    return f"{name:>{NAME}}  {text}"
