"""What a request draws on besides its host: a key, a domain or an address that several hosts share; and how much.

Terms. *Shared*: one quota of several hosts. *Drawn*: what one request takes, from which scopes. *Located*: an address
is known of a host once a reply has come from there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from math import isfinite
from typing import NamedTuple

from sanderling.ids import Host, HostError, domain_of, normalise
from sanderling.limit.shelves import Shelves

# Further scopes, in the order they are passed: what is shared by most comes last.
SCOPES = ("domain", "ip", "credential")
EACH = "*"  # instead of a name: every domain, or every address, has such a quota
REMEMBERED = 65_536  # hosts of which it is remembered what they share
DEAREST = 10_000.0  # requests that one may count for


class Scope(NamedTuple):
    """Something shared that a request also draws on: Scope("credential", "key 1", cost=2)."""

    kind: str
    name: str
    cost: float = 1.0

    @property
    def key(self) -> str:
        """Under which its gate is kept. No host contains a slash."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Shared:
    """A quota of several hosts.

    Of a credential, those that `hosts` names: `api.example.org`, or `*.example.org` for that and all below it. Of a
    domain, it and all below it. Of an address, all that live there. `*` as a name is each domain, or each address.
    """

    kind: str
    name: str
    hosts: tuple[str, ...] = ()
    refusals: bool = True  # whether a 429, a Retry-After with it, or rate headers speak of it, and not of the host

    def __post_init__(self) -> None:
        if self.kind not in SCOPES:
            raise ValueError(f"found a scope {self.kind!r}, expected one of {', '.join(SCOPES)}")
        if bool(self.hosts) is not (self.kind == "credential"):
            expected = "hosts, as in api.example.org" if self.kind == "credential" else "none: its name says which"
            raise ValueError(f"found {'no ' * (not self.hosts)}hosts of {self.kind} {self.name}, expected {expected}")
        object.__setattr__(self, "hosts", tuple(host_pattern(host) for host in self.hosts))
        object.__setattr__(self, "name", _name(self.kind, self.name))


class Drawn(NamedTuple):
    """What one request draws on, besides its host."""

    scopes: tuple[Scope, ...] = ()
    speaks_of: str | None = None  # the kind of scope that a refusal of the host is about


class Sharing:
    """Says what each request draws on: `of` its host, and what it `costs`."""

    def __init__(self, shared: Sequence[Shared], costs: Mapping[str, float], most: int) -> None:
        self.any = bool(shared)
        self._credentials = [each for each in shared if each.kind == "credential"]
        self._named = {(each.kind, each.name): each for each in shared if each.kind != "credential"}
        self._by_address = any(kind == "ip" for kind, _ in self._named)
        self._addresses: Shelves[str] = Shelves(most)  # of hosts, where they are known
        # The longest first: it says most exactly what is meant, as in robots.txt.
        ordered = sorted(costs.items(), key=lambda pair: len(pair[0]), reverse=True)
        self._costs = [(*_target(pattern), _cost(pattern, cost)) for pattern, cost in ordered]
        self._known = lru_cache(REMEMBERED)(self._found)

    def of(self, host: str) -> Drawn:
        """What a request to `host`, in its one spelling, draws on."""
        return self._known(host, (self._addresses.get(host) or "") if self._by_address else "")

    def cost(self, host: str, url: str) -> float:
        """For how many requests one for this URL of `host` counts, with the host and with all that it draws on."""
        if self._costs:
            _, slash, path = url.partition("://")[2].partition("/")
            for pattern, target, cost in self._costs:
                if matches(host, (pattern,)) and target.match((slash or "/") + path):
                    return cost
        return 1.0

    def locate(self, host: str, address: str) -> bool:
        """The host lives at `address`; whether anybody wants to know."""
        if self._by_address:
            self._addresses.put(host, address)
        return self._by_address

    def _found(self, host: str, address: str) -> Drawn:
        shared = [each for each in self._credentials if matches(host, each.hosts)]
        scopes = [Scope(each.kind, each.name) for each in shared]
        for kind, name in (("domain", self._domain(host)), ("ip", address or _literal(host))):
            each = self._named.get((kind, name)) or (self._named.get((kind, EACH)) if name else None)
            if each is not None:
                shared.append(each)
                scopes.append(Scope(kind, name))
        return Drawn(tuple(scopes), next((each.kind for each in shared if each.refusals), None))

    def _domain(self, host: str) -> str:
        """The domain of a quota that the host is below, else the one somebody registered."""
        above = host.partition(":")[0]
        while above:
            if ("domain", above) in self._named:
                return above
            above = above.partition(".")[2]
        return domain_of(Host(host)) if ("domain", EACH) in self._named else ""


def _literal(host: str) -> str:
    """The address that a host is, if it is one."""
    name = host.partition("]")[0].strip("[") if host.startswith("[") else host.partition(":")[0]
    try:
        return str(ip_address(name))
    except ValueError:
        return ""


def patterns_of(host: str) -> list[str]:
    """All patterns that name a host, the one that names fewest hosts first, and `*` last."""
    found, above = [host], host
    while above:
        found.append(f"*.{above}")
        above = above.partition(".")[2]
    return [*found, EACH]


def matches(host: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns, such as `*.example.org`, names the host."""
    if host in patterns:
        return True
    above = host
    while above:
        if f"*.{above}" in patterns:
            return True
        above = above.partition(".")[2]
    return False


def host_pattern(text: str) -> str:
    """A host, or `*.` and one, in its one spelling. Raises ValueError."""
    star, name = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    try:
        return star + normalise(name, scheme="http")
    except HostError as error:
        raise ValueError(f"{error}; expected a host like api.example.org, or *.example.org for all below it") from None


def _name(kind: str, name: str) -> str:
    if name == EACH and kind != "credential":
        return name
    if kind == "domain":
        return host_pattern(name.removeprefix("*.")).partition(":")[0]
    if kind == "ip":
        try:
            return str(ip_address(name))
        except ValueError:
            raise ValueError(f"found the address {name!r}, expected one like 203.0.113.7, or {EACH} for each") from None
    if not (name and len(name) <= 60 and name.isprintable() and "/" not in name):
        # It is not shown: somebody may have put the key there.
        raise ValueError(
            f"found a credential of {len(name)} characters, expected a short name without a slash; never the key"
        )
    return name


def _target(pattern: str) -> tuple[str, re.Pattern[str]]:
    """Host and path of a pattern like `api.example.org/search`; a path matches as in robots.txt."""
    host, slash, path = pattern.partition("/")
    parts = (slash + path).removesuffix("$").split("*")
    end = r"\Z" if pattern.endswith("$") else ""
    return host_pattern(host), re.compile(".*?".join(map(re.escape, parts)) + end, re.DOTALL)


def _cost(pattern: str, cost: float) -> float:
    if not (isfinite(cost) and 1 <= cost <= DEAREST):
        raise ValueError(f"found a cost of {cost} for {pattern[:80]}, expected a number from 1 to {DEAREST:,.0f}")
    return float(cost)
