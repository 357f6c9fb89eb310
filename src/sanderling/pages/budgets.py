"""How much of a crawl one host, one registered domain or one text may take up.

An endless calendar, a session in every path, one text at ever new addresses, a farm of subdomains: what they share is
that they say nothing new. So what addresses of one shape, one host or one domain may take up grows with what they give
that is new. What is beyond is cut off: it ends left out, is counted, and can be asked for later.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from sanderling.ids import Host, domain_of
from sanderling.outcome import Code, Outcome
from sanderling.pages.hosts import PageHost
from sanderling.pages.rules import CrawlRules, DomainCounts
from sanderling.pages.same_text import SeenTexts, TextMark

SHAPES = 64  # of the addresses of a host that are counted: those that came last
DOMAINS = 100_000  # the same
# Pages with a known text that one page with a new one makes up for. Of a whole host or domain more is known to be lost
# if it is cut off, so that takes more.
OF_SHAPE, OF_ALL = 4, 9
ALL = 5  # times as many pages with a known text as addresses of one shape may have, before the ratio counts
GOOD = 5  # pages with a new text, from which on addresses of a shape are worth finding

PER_HOST, PER_DOMAIN, SAME_TEXT = "max-per-host:", "max-per-domain:", "max-same-text:"
LIKE, OF_HOST = "known text at addresses like ", "known text at most pages of "
UNDER = "known text at most pages under "
# What tells the addresses of a trap from each other, and has a digit in it: dates, numbers, sessions.
_VARIES = re.compile(r"[^/?&=]*[0-9][^/?&=]*")


@dataclass(slots=True)
class TextShare:
    """Pages with a text that was new, and with one that was known."""

    new: float = 0.0
    known: float = 0.0

    def add(self, weight: float, *, known: bool) -> None:
        """A page more."""
        if known:
            self.known += weight
        else:
            self.new += 1

    def is_spent(self, most: int, ratio: int) -> bool:
        """Whether too many were known, for what was new."""
        return self.known >= most + ratio * self.new

    @property
    def is_good(self) -> bool:
        """Whether most were new."""
        return self.new >= GOOD and self.new >= self.known


class OwnCounts:
    """The same where nobody else fetches any."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str, number: int = 1) -> None:
        """So many more."""
        self._counts[name] += number

    def of(self, name: str) -> int:
        """How many there are."""
        return self._counts[name]


def count_domains(counts: DomainCounts, fetched: Mapping[str, int]) -> None:
    """Count pages that are fetched, by host, with their domains."""
    for host, number in fetched.items():
        counts.add(domain_of(Host(host)), number)


class TrapBudgets:
    """Counts pages. `fetched` are those of earlier runs, by host, and `cut` what they cut off: host and reason."""

    def __init__(self, rules: CrawlRules, fetched: Mapping[str, int], cut: Iterable[tuple[str, str]] = ()) -> None:
        self._rules = rules
        self._hosts = Counter(fetched if rules.max_per_host else {})
        self._domains = rules.domains or OwnCounts()
        if rules.max_per_domain and rules.domains is None:
            count_domains(self._domains, fetched)
        self._seen = SeenTexts()
        self._shares: OrderedDict[str, TextShare] = OrderedDict()  # by domain, the last that came
        self._cut = set[tuple[str, str]]()  # host and shape of addresses, or a host or a domain and nothing
        for host, why in cut if rules.max_same_text else ():
            self._recall(host, why.removeprefix(f"{SAME_TEXT} "))

    def _recall(self, host: str, why: str) -> None:
        if why.startswith(LIKE):
            self._cut.add((host, why.removeprefix(LIKE)))
        elif why.startswith((OF_HOST, UNDER)):
            self._cut.add((why.removeprefix(OF_HOST).removeprefix(UNDER), ""))

    def spent(self, host: PageHost, url: str) -> Outcome | None:
        """Why the URL is cut off; None if it may be asked for."""
        rules, why = self._rules, ""
        if rules.max_per_host and self._hosts[host.name] >= rules.max_per_host:
            why = f"{PER_HOST} {rules.max_per_host} pages of {host.name}"
        elif rules.max_per_domain and self._domains.of(self._domain(host)) >= rules.max_per_domain:
            why = f"{PER_DOMAIN} {rules.max_per_domain} pages of {self._domain(host)}"
        elif self._cut:
            why = self._known_text(host, url)
        return Outcome(Code.CANCELLED, detail=why[:200]) if why else None

    def _known_text(self, host: PageHost, url: str) -> str:
        if (self._domain(host), "") in self._cut:
            return f"{SAME_TEXT} {UNDER}{self._domain(host)}"
        if (host.name, "") in self._cut:
            return f"{SAME_TEXT} {OF_HOST}{host.name}"
        shape = shape_of(url)
        return f"{SAME_TEXT} {LIKE}{shape}" if (host.name, shape) in self._cut else ""

    def count(
        self, host: PageHost, url: str, text: TextMark | None, leads_to: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """A page was fetched, which leads to these URLs that were not found before."""
        rules = self._rules
        if rules.max_per_host:
            self._hosts[host.name] += 1
        if rules.max_per_domain:
            self._domains.add(self._domain(host))
        if text is None or not rules.max_same_text:
            return
        domain, most = self._domain(host), rules.max_same_text
        known = self._seen.add(hash((domain, text.key)))
        shares = host.texts = host.texts or OrderedDict()
        if self._add(self._shares, domain, text.weight, DOMAINS, known=known).is_spent(ALL * most, OF_ALL):
            self._cut.add((domain, ""))
        whole = self._add(shares, "", text.weight, SHAPES, known=known)  # the host itself
        if whole.is_spent(ALL * most, OF_ALL):
            self._cut.add((host.name, ""))
        # A list whose own text is always the same is not idle while it leads to pages that are new.
        leads_on = known and whole.new >= whole.known
        if leads_on and any(shares[shape].is_good for shape in map(shape_of, leads_to()) if shape in shares):
            return
        shape = shape_of(url)
        if self._add(shares, shape, text.weight, SHAPES, known=known).is_spent(most, OF_SHAPE):
            self._cut.add((host.name, shape))

    @staticmethod
    def _add(shares: OrderedDict[str, TextShare], of: str, weight: float, most: int, *, known: bool) -> TextShare:
        share = shares.setdefault(of, TextShare())
        share.add(weight, known=known)
        shares.move_to_end(of)
        if len(shares) > most:
            shares.popitem(last=False)
        return share

    @staticmethod
    def _domain(host: PageHost) -> str:
        host.domain = host.domain or domain_of(Host(host.name))
        return host.domain


def shape_of(url: str) -> str:
    """Path and query of the URL, with a star for each part that has a digit in it."""
    return "/" + _VARIES.sub("*", url.split("/", 3)[-1])


def budgets_of(rules: CrawlRules) -> dict[str, float]:
    """The bounds in force, by the first word of the reason they give."""
    bounds = {PER_HOST: rules.max_per_host, PER_DOMAIN: rules.max_per_domain, SAME_TEXT: rules.max_same_text}
    return {name: bound or inf for name, bound in bounds.items()}
