"""How a crawl of pages goes about it."""

from dataclasses import dataclass, field
from typing import Protocol

from sanderling.crawls.session import HostPatterns
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import WriterRules
from sanderling.pages.extract import READ_RULES, ReadRules
from sanderling.pages.files import FileRules
from sanderling.pages.leave_out import ExcludedUrls
from sanderling.pages.revisits import VisitRules
from sanderling.pages.robots import LONGEST_DELAY


class DomainCounts(Protocol):
    """How many pages of each registered domain were fetched."""

    def add(self, name: str, number: int = 1) -> None:
        """So many more."""

    def of(self, name: str) -> int:
        """How many there are."""


@dataclass(frozen=True, slots=True)
class CrawlRules(EngineRules):
    """The engine's numbers, and those that only a crawl of pages has."""

    longest_pace: float = LONGEST_DELAY
    max_pages: int | None = None
    files: FileRules = field(default_factory=FileRules)  # which documents and media are kept
    max_per_host: int | None = None  # pages; what is in flight then is still fetched
    max_per_domain: int | None = None  # the same of all hosts that somebody has registered with one name
    domains: DomainCounts | None = None  # those of all parts, in this run and those before, where there are others
    # Pages with a known text at addresses of a host that differ in digits, until those like them are cut off, if few
    # were new: `pages/budgets.py`. 0: all may come.
    max_same_text: int = 200
    retry_cut: bool = False  # ask for what budgets have cut off
    leave_out: ExcludedUrls | None = None  # decides anew, if there is one, what an earlier run has left out
    visits: VisitRules | None = None  # pages are visited again, until somebody stops it
    reading: ReadRules = READ_RULES
    writing: WriterRules | None = None  # when a batch is written, if not as usual
    hosts: HostPatterns = field(default_factory=dict)  # where to log in; the client has the rest of what is set
    robots_held: int = 64 * 2**20  # bytes of rules in memory; those of six thousand hosts, if they are usual ones

    @property
    def has_budgets(self) -> bool:
        """Whether pages of hosts or domains are counted."""
        return bool(self.max_per_host or self.max_per_domain)
