"""How much of a crawl one host, one registered domain or one text may take up.

An endless calendar, a session in every path, one text at ever new addresses: no rule knows them all, so what each may
take up is bounded. What is beyond is cut off: it ends left out, is counted, and can be asked for later.
"""

import re
from collections import Counter
from collections.abc import Mapping

from sanderling.ids import Host, domain_of
from sanderling.outcome import Code, Outcome
from sanderling.pages.hosts import PageHost
from sanderling.pages.rules import CrawlRules

TEXTS = 64  # of a host that are counted: those that came last, so one that comes again and again is among them
# What tells the addresses of a trap from each other, and has a digit in it: dates, numbers, sessions.
_VARIES = re.compile(r"[^/?&=]*[0-9][^/?&=]*")


class TrapBudgets:
    """Counts pages. `fetched` are those of earlier runs, by host."""

    def __init__(self, rules: CrawlRules, fetched: Mapping[str, int]) -> None:
        self._rules = rules
        self._hosts = Counter(fetched if rules.max_per_host else {})
        self._domains: Counter[str] = Counter()
        if rules.max_per_domain:
            for host, number in fetched.items():
                self._domains[domain_of(Host(host))] += number

    def spent(self, host: PageHost, url: str) -> Outcome | None:
        """Why the URL is cut off; None if it may be asked for."""
        rules, why = self._rules, ""
        if rules.max_per_host and self._hosts[host.name] >= rules.max_per_host:
            why = f"max-per-host: {rules.max_per_host} pages of {host.name}"
        elif rules.max_per_domain and self._domains[domain_of(Host(host.name))] >= rules.max_per_domain:
            why = f"max-per-domain: {rules.max_per_domain} pages of {domain_of(Host(host.name))}"
        elif host.cut and (shape := shape_of(url)) in host.cut:
            why = f"max-same-text: one text at {rules.max_same_text} addresses like {shape}"
        return Outcome(Code.CANCELLED, detail=why[:200]) if why else None

    def count(self, host: PageHost, url: str, text: int | None) -> None:
        """A page was fetched, with a text that is known by this number if it has one worth comparing."""
        rules = self._rules
        if rules.max_per_host:
            self._hosts[host.name] += 1
        if rules.max_per_domain:
            self._domains[domain_of(Host(host.name))] += 1
        if text is None or not rules.max_same_text:
            return
        host.texts = host.texts or {}
        key = text, shape_of(url)
        host.texts[key] = number = host.texts.pop(key, 0) + 1
        if len(host.texts) > TEXTS:
            del host.texts[next(iter(host.texts))]
        if number >= rules.max_same_text:
            host.cut = {*(host.cut or ()), key[1]}


def shape_of(url: str) -> str:
    """Path and query of the URL, with a star for each part that has a digit in it."""
    return "/" + _VARIES.sub("*", url.split("/", 3)[-1])
