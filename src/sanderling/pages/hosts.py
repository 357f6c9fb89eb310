"""What waits for each host, and whether its robots.txt is known."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

from sanderling.engine.backlog import BacklogHost, Q
from sanderling.engine.rules import EngineRules
from sanderling.outcome import Outcome
from sanderling.stores.frontier_rows import QueuedUrl


class RobotsWork(NamedTuple):
    """The robots.txt of an origin, to be asked for before anything else of it."""

    key: str  # the origin

    @property
    def url(self) -> str:
        """Where it is."""
        return f"{self.key}/robots.txt"


class Shut(NamedTuple):
    """An origin whose robots.txt is unavailable: since when, until when it is left alone, or for this whole run."""

    since: float
    until: float
    for_good: bool


@dataclass(slots=True, eq=False)
class RobotsHost(BacklogHost[Q]):
    """What waits for one host; `withheld` are items whose origin's robots.txt was unavailable for too long."""

    learning: bool = False  # whether its robots.txt is being asked for: nothing else is meanwhile
    heeded: tuple[str, ...] = ()  # schemes whose robots.txt was taken notice of: its delay, and its sitemaps
    shut: dict[str, Shut] | None = None  # by origin
    forbidden: Outcome | None = None  # why our own guard lets nothing be asked there

    def shut_out(self, origin: str, now: float, rules: EngineRules) -> bool:
        """The origin's robots.txt is unavailable, so nothing of it may be asked for; whether that is for good.

        The longer it lasts, the later it is asked for again. The same host may be well under its other scheme.
        """
        self.shut = self.shut or {}
        since = self.shut[origin].since if origin in self.shut else now
        known = origin.partition("://")[0] in self.heeded
        patience = rules.patience if known else min(rules.patience, rules.first_patience)
        self.shut[origin] = Shut(since, now + max(rules.again[0], (now - since) / 2), now - since > patience)
        return self.shut[origin].for_good

    def wait_for(self, origin: str, until: float, now: float) -> None:
        """Ask for the origin's robots.txt again then."""
        if until > now:
            since = self.shut[origin].since if self.shut and origin in self.shut else now
            self.shut = {**(self.shut or {}), origin: Shut(since, until, for_good=False)}

    def let_in(self, origin: str) -> None:
        """The origin's robots.txt is known."""
        if self.shut:
            self.shut.pop(origin, None)

    def shut_until(self, origin: str, now: float) -> Shut | None:
        """How long the URLs of an origin must wait, if they must."""
        shut = None if self.shut is None else self.shut.get(origin)
        return None if shut is None or (now >= shut.until and not shut.for_good) else shut


@dataclass(slots=True, eq=False)
class PageHost(RobotsHost[QueuedUrl]):
    """What waits for one host of a crawl of pages."""

    domain: str = ""  # that somebody has registered, once it was asked for
    texts: OrderedDict[str, Any] | None = None  # how much of what it gives is new: `pages/budgets.py`
