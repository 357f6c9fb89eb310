"""What changed, for people: a line for each document, however many of its rows came, changed or went."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sanderling.stores.documents import Value
from sanderling.stores.polling import Change, Op

TOGETHER = 5.0  # seconds: what one document says within them is one line, or nobody could read so fast
MOST = 12  # lines that are remembered
MOST_NOTABLE = 4  # things of a line that are told one by one
LONGEST_TEXT = 24
PURGED = "", Op.PURGE
MARKS = {Op.INSERT: "+", Op.UPDATE: "~", Op.DELETE: "-"}


@dataclass(slots=True)
class Told:
    """What one document said lately."""

    since: float  # in seconds, on the clock of the screen
    kind: str
    source_id: str
    counts: Counter[tuple[str, Op]] = field(default_factory=Counter)  # rows, by table and what became of them
    notable: dict[str, list[str]] = field(default_factory=dict)  # by table

    def add(self, change: Change) -> None:
        """One more row."""
        self.counts[change.table, change.op] += 1
        said = notable(change)
        if said:
            self.notable.setdefault(change.table, []).append(said)

    def words(self) -> str:
        """All of it on one line: what can be told in a word comes first."""
        tables, known = dict.fromkeys(table for table, _ in self.counts), list(NOTABLE)
        place = {table: known.index(table) for table in self.notable if table in known}
        return ", ".join(self._rows(table) for table in sorted(tables, key=lambda table: place.get(table, len(known))))

    def _rows(self, table: str) -> str:
        if not table:
            return "everything was removed"
        numbers = " ".join(f"{MARKS[op]}{self.counts[table, op]:,}" for op in MARKS if self.counts[table, op])
        said = self.notable.get(table, [])
        more = ", …" if len(said) > MOST_NOTABLE else ""
        return f"{table.replace('_', ' ')} {numbers}" + (f" ({', '.join(said[:MOST_NOTABLE])}{more})" if said else "")


class News:
    """The last documents that changed, oldest first."""

    def __init__(self) -> None:
        self.told: deque[Told] = deque(maxlen=MOST)

    def add(self, changes: Iterable[Change], began: float) -> None:
        """Take in what changed; `began` is the time at which the clock of the screen stood at 0."""
        for change in changes:
            self._fitting(change, change.at - began).add(change)

    def _fitting(self, change: Change, now: float) -> Told:
        """The line that it belongs to."""
        for told in reversed(self.told):
            # What was said before a purge is over.
            if now - told.since >= TOGETHER or PURGED in (*told.counts, (change.table, change.op)):
                break
            if (told.kind, told.source_id) == (change.kind, change.source_id):
                return told
        self.told.append(Told(now, change.kind, change.source_id))
        return self.told[-1]


def notable(change: Change) -> str:
    """What is worth telling of a row, in a word or two; empty for most."""
    if change.op is Op.DELETE:
        return ""
    said = NOTABLE.get(change.table, _activity)(change.values, change.fields if change.op is Op.UPDATE else ())
    return said if len(said) <= LONGEST_TEXT else f"{said[: LONGEST_TEXT - 1]}…"


def _lap(values: Mapping[str, Value], fields: tuple[str, ...]) -> str:
    seconds = values.get("length_seconds")
    if "counts" in fields:
        return "struck out" if values.get("counts") is False else "counts again"
    # The first is no lap, but the way from the start to the gate.
    return f"{seconds:.2f} s" if isinstance(seconds, float) and not values.get("is_holeshot") else ""


def _race(values: Mapping[str, Value], fields: tuple[str, ...]) -> str:
    for field_, said in (("end_local", "ended"), ("start_local", "started")):
        if field_ in fields:
            return said if values.get(field_) else f"not {said} after all"
    return ""


def _name(values: Mapping[str, Value], _: tuple[str, ...]) -> str:
    return str(values.get("name") or "")


def _activity(values: Mapping[str, Value], fields: tuple[str, ...]) -> str:
    """Of any other source: whether a record has become live."""
    if "active" not in fields:
        return ""
    return "live" if values.get("active") is True else "over"


# In the order in which they are told.
NOTABLE: Mapping[str, Callable[[Mapping[str, Value], tuple[str, ...]], str]] = {
    "races": _race,
    "laps": _lap,
    "pilots": _name,
    "rounds": _name,
}


def lines(news: News) -> Iterator[tuple[float, str]]:
    """When each document began to change, and what it said."""
    for told in news.told:
        about = f"{told.kind} {told.source_id[:8]}: " if told.kind else ""
        yield told.since, f"{about}{told.words()}"
