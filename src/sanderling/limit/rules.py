"""All the numbers of a limiter, and the names one can choose from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import Literal

from sanderling.limit.aimd import Aimd
from sanderling.limit.backoff import BackoffRules
from sanderling.limit.breaker import BreakerRules
from sanderling.limit.budget import BudgetRules
from sanderling.limit.contract import Contract
from sanderling.limit.governor import Governor
from sanderling.limit.pace import Cap, PaceRules
from sanderling.limit.sharing import SCOPES, Scope, Shared, Sharing, patterns_of
from sanderling.limit.strategy import MakeStrategy

STRATEGIES: Mapping[str, MakeStrategy] = MappingProxyType({"aimd": Aimd, "contract": Contract, "governor": Governor})


@dataclass(frozen=True, slots=True)
class LimiterRules:
    """All the numbers. The defaults suit a web host that nothing is known about."""

    pace: PaceRules = field(default_factory=PaceRules)
    breaker: BreakerRules = field(default_factory=BreakerRules)
    backoff: BackoffRules = field(default_factory=BackoffRules)
    budget: BudgetRules = field(default_factory=BudgetRules)
    strategy: Literal["governor", "aimd", "contract"] = "governor"
    # The pace of a kind of scope, if not the hosts'; of one by its name ("credential/key 1"), which is kept to like a
    # contract; or of each of a kind ("ip/*").
    scopes: Mapping[str, PaceRules] = field(default_factory=dict)
    shared: tuple[Shared, ...] = ()  # what hosts share, so that every request to them draws on it
    costs: Mapping[str, float] = field(default_factory=dict)  # requests that one counts for: {"a.example/search": 2}
    caps: Mapping[str, float] = field(default_factory=dict)  # requests a second at most: {"*.example.org": 0.5}
    idle: float = 120.0  # seconds after which a host that nobody asks is let go
    hosts: int = 100_000  # at most; idle ones go earlier when it gets tight
    lease: float = 11.0  # seconds a probe may take: a client waits for its answer for 10, and a little

    @classmethod
    def contract(cls, rps: float) -> "LimiterRules":
        """The rules for hosts that are asked on a schedule which somebody has set, and up to `rps` times a second.

        They begin at the full rate, and only refusals lower it. A host that is down is asked about once a second, also
        while an earlier request hangs, so its return is seen at once. Failures with answers in between close nothing.
        """
        return cls(
            PaceRules.contract(rps),
            BreakerRules(consecutive=10, unreached=10, open_for=0.8, longest=0.8, jitter=0.25),
            strategy="contract",
            lease=0.8,
        )

    def with_logins(self, hosts: Iterable[str]) -> "LimiterRules":
        """The same where limiters that share quotas all ask these hosts: to log in, or for a token.

        Each host is a quota of its own, at the pace of a host; a refusal that one of them meets is heeded by all.
        """
        shared, scopes = list(self.shared), dict(self.scopes)
        for host in sorted(set(hosts)):
            name = f"log-in at {host}"[:60]
            shared.append(Shared("credential", name, (host,)))
            if (cap := next((self.caps[each] for each in patterns_of(host) if each in self.caps), None)) is not None:
                scopes[Scope("credential", name).key] = self.pace.capped(cap)
        return replace(self, shared=tuple(shared), scopes=scopes)

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"strategy is {self.strategy!r}; there are {', '.join(STRATEGIES)}")
        for name in ("idle", "lease"):
            if not (isfinite(value := getattr(self, name)) and value > 0):
                raise ValueError(f"{name} is {value}; it must be a positive number of seconds")
        if self.hosts < 1:
            raise ValueError(f"hosts is {self.hosts}; there must be room for at least one")
        if unknown := {key for key in self.scopes if key.partition("/")[0] not in SCOPES}:
            raise ValueError(f"rules for scopes {sorted(unknown)}; there are {', '.join(SCOPES)}")
        for pattern, rps in self.caps.items():
            Cap(rps, pattern)  # which says what is wrong with it
        Sharing(self.shared, self.costs, 1)  # which says what is wrong with them
