"""The map of all hosts and scopes, the least recently used first, and what outlives their eviction."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from math import inf, isnan
from random import Random

import msgspec

from sanderling.ids import HostError, normalise_host
from sanderling.limit.aimd import Aimd
from sanderling.limit.breaker import Breaker
from sanderling.limit.governor import Governor
from sanderling.limit.pace import Fixed, Pace, Unpaced
from sanderling.limit.rules import LONGEST_WAIT, LimitOptions, patterns_of
from sanderling.limit.scope import KINDS, Saved, Scope

SCOPE_EXAMPLES = ("key/maps", "domain/example.org", "domain/*", "address/203.0.113.7")
POLICIES = ("governor", "aimd", "none", "fixed")
LOOKED_AT = 3  # hosts that are looked at for eviction whenever a new one comes: more than come, so that it catches up
FORMAT = 1


class SavedLimiter(msgspec.Struct):
    """What `Limiter.dump` returns: instants, and when it was saved, are of the wall clock."""

    format: int
    at: float
    hosts: dict[str, Saved]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SavedLimiter).decode


class Memory:
    """Finds or makes the state of a host. At most `most` hosts that nobody uses are kept, none for longer than its TTL.

    Of those that are evicted it keeps what must not be forgotten: a Retry-After, an open circuit, a learned limit, a
    cap. That is bounded too: those that are owed the longest silence are kept the longest.
    """

    def __init__(
        self,
        limits: LimitOptions,
        policy: str,
        hosts: Mapping[str, LimitOptions],
        scopes: Mapping[str, LimitOptions],
        now: Callable[[], float],
        random: Random,
    ) -> None:
        self.scopes: OrderedDict[str, Scope] = OrderedDict()
        self._limits = limits
        self._policy = policy
        self._hosts = hosts
        self._shared = scopes
        self._now = now
        self._random = random
        self._evicted: dict[str, Saved] = {}

    def find(self, name: str) -> Scope:
        """The state of a host, or of a scope such as `key/maps`. Raises HostError or ValueError for what is neither."""
        scope = self.scopes.get(name)
        if scope is not None:
            return scope
        name = self._normalise(name)
        scope = self.scopes.get(name)
        if scope is not None:
            return scope
        now = self._now()
        self._evict_idle(now)
        scope = self.scopes[name] = self._make(name, now)
        saved = self._evicted.pop(name, None)
        if saved is not None:
            scope.restore(saved, now)
        return scope

    def evict(self) -> int:
        """Evict every host that nobody has used for its time to live; how many they were."""
        now, before = self._now(), len(self.scopes)
        for scope in list(self.scopes.values()):
            if scope.is_idle(now, scope.options.domain_state_ttl):
                self._evict(scope, now)
        return before - len(self.scopes)

    def dump(self, wall: float, host: str | None = None) -> bytes | None:
        """What must not be forgotten, of hosts in memory and of evicted ones, or of one; None if that is nothing."""
        now = self._now()
        names = [*self._evicted, *self.scopes] if host is None else [self._normalise(host)]
        saved = {}
        for name in names:
            each = self.scopes[name].save(now) if name in self.scopes else self._evicted.get(name)
            if each is not None:
                saved[name] = _move(each, wall - now)
        return _encode(SavedLimiter(FORMAT, wall, saved)) if saved or host is None else None

    def restore(self, data: bytes, wall: float, host: str | None = None) -> None:
        """Take up what `dump` returned; the time since then counts. Raises ValueError for anything else."""
        try:
            saved = _decode(data)
        except msgspec.DecodeError as error:
            raise ValueError(f"this is not what a limiter has saved: {error}") from None
        if saved.format != FORMAT:
            raise ValueError(f"what a limiter has saved has format {saved.format}; expected {FORMAT}")
        if host is not None and list(saved.hosts) != [self._normalise(host)]:
            raise ValueError(f"what a limiter has saved is of {', '.join(saved.hosts)[:100]}; expected {host}")
        for name, each in saved.hosts.items():
            rate = 1.0 if each.cap is None else each.cap[0]
            if any(map(isnan, (saved.at, each.not_before, each.open_until))) or not 0 < rate < inf:
                raise ValueError(f"what a limiter has saved of {name} has a number that cannot be: {each}")
        now = self._now()
        for name, each in saved.hosts.items():
            # A clock that was set back must not make a silence longer than it was.
            moved = _move(each, now - max(wall, saved.at), now + LONGEST_WAIT)
            if name in self.scopes:
                self.scopes[name].restore(moved, now)
            else:
                self._keep(name, moved, now)

    def _normalise(self, name: str) -> str:
        kind, slash, rest = name.partition("/")
        if not slash:
            # Seed 003 drops both ports, whatever the scheme: here is none.
            return normalise_host(name).removesuffix(":80")
        if kind not in KINDS or not rest or len(rest) > 100:
            raise HostError(
                f"{name[:60]!r} is neither a host nor a scope; expected one like example.org or {SCOPE_EXAMPLES[0]}"
            )
        if name not in self._shared and f"{kind}/*" not in self._shared:
            raise HostError(f"the scope {name[:60]} has no limits; name it in scopes=")
        return name

    def _make(self, name: str, now: float) -> Scope:
        if "/" in name:
            options = self._shared.get(name) or self._shared[f"{name.partition('/')[0]}/*"]
            policy = "fixed"
        else:
            found = (self._hosts[pattern] for pattern in patterns_of(name) if pattern in self._hosts)
            options = next(found, self._limits)
            policy = self._policy if options.enabled else "none"
        pace: Pace
        match policy:
            case "governor":
                pace = Governor(options, now)
            case "aimd":
                pace = Aimd(options, now)
            case "fixed":
                pace = Fixed(options, now)
            case _:
                pace = Unpaced()
        return Scope(name, options, pace, Breaker(options, self._random, careful=policy != "aimd"))

    def _evict_idle(self, now: float) -> None:
        """Make room for one more host, and for those that could not be evicted before."""
        for _ in range(min(LOOKED_AT, len(self.scopes))):
            scope = next(iter(self.scopes.values()))
            full = len(self.scopes) >= self._limits.max_hosts
            if scope.is_idle(now, 0.0 if full else scope.options.domain_state_ttl):
                self._evict(scope, now)
            elif full or not scope.is_idle(now, 0.0):
                self.scopes.move_to_end(scope.name)  # in use: it must not hide those behind it
            else:
                return

    def _evict(self, scope: Scope, now: float) -> None:
        del self.scopes[scope.name]
        saved = scope.save(now)
        if saved is not None:
            self._keep(scope.name, saved, now)

    def _keep(self, name: str, saved: Saved, now: float) -> None:
        self._evicted[name] = saved
        if len(self._evicted) > self._limits.max_hosts:
            # A quarter at once, so that the sorting is spread over many hosts.
            by_silence = sorted(self._evicted, key=lambda each: max(now, self._evicted[each].silent_until))
            for each in by_silence[: max(1, len(by_silence) // 4)]:
                del self._evicted[each]

    def __iter__(self) -> Iterator[Scope]:
        return iter(self.scopes.values())


def _move(saved: Saved, seconds: float, latest: float = inf) -> Saved:
    """The same on another clock, which is `seconds` ahead; no silence lasts beyond `latest` there."""
    instants = {name: min(latest, getattr(saved, name) + seconds) for name in ("not_before", "open_until")}
    return msgspec.structs.replace(saved, **instants)
