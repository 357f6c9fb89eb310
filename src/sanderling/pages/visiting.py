"""Second visits: which pages are due, and what becomes of each visit."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from sanderling.moments import moment
from sanderling.pages.revisits import (
    DAY,
    UNKNOWN,
    ChangeRate,
    VisitPlan,
    VisitRules,
    learn_age,
    learn_visit,
    plan_visits,
)
from sanderling.stores.frontier_rows import KEPT, End, Ended
from sanderling.stores.frontier_visits import DueVisit, UrlVisits, VisitedFrontier

REPLAN = 3600.0  # seconds after which the plan is made anew from what was learned meanwhile
AT_ONCE = 500  # pages that are taken at a time
LOOK, LONGEST_LOOK = 10.0, 3600.0  # seconds after which it is looked again at what is due
CONTENT = 8  # bytes that tell one text of a page from another


class RowContent(msgspec.Struct):
    """When a page was fetched, and what is its own: two visits that brought the same have found no change."""

    fetched_at: str = ""
    title: str | None = None
    description: str | None = None
    text: str | None = None
    json: msgspec.Raw = msgspec.Raw(b"null")
    sha256: str | None = None
    moved_to: str | None = None
    links: tuple[str, ...] = ()


class SettledVisits(NamedTuple):
    """What ended with something to keep in the rows, and what the visits have taught."""

    kept: list[Ended]
    visits: list[UrlVisits]


class Visiting:
    """The second visits to the pages of one ledger."""

    def __init__(self, ledger: VisitedFrontier, rules: VisitRules, wall: float) -> None:
        self.made = self.changed = 0  # visits in this run, and those that found a change
        self._ledger = ledger
        self._rules = rules
        self._plan = VisitPlan(rules, 0.0)
        self._planned = self._asof = wall
        self._allowed = 0.0  # visits that the budget has room for
        self._replan(wall)
        rate = UNKNOWN
        seen = ledger.meta.ended or ledger.meta.started or wall
        ledger.begin_visits(UrlVisits(0, seen + self._plan.interval(rate.rate), seen, *rate, 1, 0, 1, None))
        self._replan(wall)

    def _replan(self, wall: float) -> None:
        rates = self._ledger.rates()
        self._plan, self._planned = plan_visits(self._rules, rates), wall
        self._a_second = self._rules.budget(sum(number for _, number in rates)) / DAY

    def pause(self, wall: float) -> float:
        """The seconds after which something may be due; what is visited meanwhile is not due any sooner."""
        longest = min(LONGEST_LOOK, self._rules.shortest / 4)
        room = (1 - self._allowed) / self._a_second if self._a_second else longest
        return max(LOOK, min(max(self._ledger.next_due() - wall, room), longest))

    def take(self, wall: float) -> list[DueVisit]:
        """What is due, as far as the budget goes: what an hour of it may be spent at once."""
        if wall - self._planned >= REPLAN:
            self._replan(wall)
        elapsed, self._asof = max(0.0, wall - self._asof), wall
        if self._a_second == math.inf:
            return self._ledger.take_due(wall, AT_ONCE)
        self._allowed = min(self._allowed + elapsed * self._a_second, max(1.0, 3600 * self._a_second), float(AT_ONCE))
        most = int(self._allowed)
        taken = self._ledger.take_due(wall, most) if most else []
        self._allowed -= len(taken)
        return taken

    def settle(self, ended: Sequence[Ended]) -> SettledVisits:
        """What is to be kept of what ended now: all that is new, or has changed."""
        known = self._ledger.visits(each.id for each in ended)
        kept, visits = [], []
        for each in ended:
            before = known.get(each.id)
            if each.end not in KEPT:
                # It failed, which says nothing of how often it changes.
                if before is not None:
                    due = self._asof + self._plan.interval(before.shape / before.exposure)
                    visits.append(before._replace(due=due, visits=before.visits + 1))
                    self.made += 1
                continue
            settled = self._visit(each, before)
            visits.append(settled)
            if before is None or settled.rows > before.rows:
                kept.append(each)
        return SettledVisits(kept, visits)

    def _visit(self, ended: Ended, before: UrlVisits | None) -> UrlVisits:
        row = msgspec.json.decode(ended.row or b"{}", type=RowContent)
        wall = moment(row.fetched_at) or self._asof
        modified = moment(ended.modified) if ended.modified else None
        age = wall - modified if modified is not None and modified <= wall else None
        same = ended.end is End.UNCHANGED
        content = None if same else content_of(row)
        if before is None:
            rate = UNKNOWN if age is None else learn_age(UNKNOWN, age)
            return self._due(UrlVisits(ended.id, 0.0, wall, *rate, 1, 0, 1, content))
        rate, visits = ChangeRate(before.shape, before.exposure), before.visits + 1
        self.made += 1
        if not same and before.content is None:
            # Of earlier visits the rows are there, and not what tells their text from another: it is kept again.
            return self._due(UrlVisits(ended.id, 0.0, wall, *rate, visits, before.changes, before.rows + 1, content))
        changed = not same and content != before.content
        self.changed += changed
        rate = learn_visit(rate, wall - before.seen, changed=changed, age=age)
        counts = visits, before.changes + changed, before.rows + changed
        return self._due(UrlVisits(ended.id, 0.0, wall, *rate, *counts, content if changed else before.content))

    def _due(self, visits: UrlVisits) -> UrlVisits:
        """The same, with the time of the next visit."""
        return visits._replace(due=visits.seen + self._plan.interval(visits.shape / visits.exposure))

    def words(self) -> tuple[str, ...]:
        """What this run's visits came to, for people."""
        return (f"{self.made:,} second visits, {self.changed:,} of which found a change.",) if self.made else ()


def content_of(row: RowContent) -> bytes:
    """What stands for what a page says. Its links count only if it says nothing else: many rotate."""
    says: Iterable[object] = (row.title, row.description, row.text, bytes(row.json), row.sha256, row.moved_to)
    if row.text is None and row.sha256 is None and bytes(row.json) == b"null":
        says = (*says, row.links)
    return hashlib.blake2b(repr(says).encode(errors="surrogatepass"), digest_size=CONTENT).digest()
