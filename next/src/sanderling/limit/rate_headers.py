# ruff: noqa: E501
"""What a response's headers say is left: `RateLimit` of every draft, `RateLimit-*` and `X-RateLimit-*`.

Drafts 03 to 06 of draft-ietf-httpapi-ratelimit-headers have three fields, 07 one dictionary, 08 to 11 a list of
policies beside `RateLimit-Policy`. GitHub, Discord and others send the three fields as `X-RateLimit-*`. As the drafts ask, a
field that cannot be read is ignored. No pattern here can be made slow, and no field is read beyond 1,000 characters.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf

from sanderling.limit.retry_after import http_date
from sanderling.limit.rules import LONGEST_WAIT

RESERVE = 0.05  # of what is left: others may share it, and the host counts by its own clock
# A reset above the first is an instant in seconds, above the second in milliseconds: both mean September 2001.
EPOCH_SECONDS, EPOCH_MILLISECONDS = 1e9, 1e12
LONGEST_SILENCE = 3600.0  # seconds for which "none left" is believed; then one request asks again
LONGEST_FIELD = 1000  # characters
FAMILIES = ("ratelimit-", "x-ratelimit-", "x-rate-limit-")

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,20})?")
_ISO_DATE = re.compile(r"[0-9-]{10}[Tt ][0-9:]{8}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})")
# RFC 9651's list members, as far as these fields use them: `"name";r=50;t=30`, `100;w=60`, `remaining=50`.
_MEMBER = re.compile(
    r'[ \t]*(?:"(?P<quoted>[^"\\]*)"|(?P<bare>[A-Za-z0-9*][A-Za-z0-9_.:/*-]*))(?:=(?P<value>[0-9]{1,15}))?'
    r'(?P<parameters>(?:[ \t]*;[ \t]*[a-z*][a-z0-9_*.-]*(?:=(?:"[^"\\]*"|[^ \t;,"]+))?)*)[ \t]*(?:,|$)'
)
_PARAMETER = re.compile(r';[ \t]*([a-z*][a-z0-9_*.-]*)=(?:"([^"\\]*)"|([^ \t;,"]+))')


@dataclass(frozen=True, slots=True)
class Quota:
    """How many requests a host says are left, and in how many seconds it counts anew."""

    left: float
    seconds: float

    @property
    def rate(self) -> float:
        """Requests a second that spread what is left over the time to the reset."""
        return self.left * (1 - RESERVE) / self.seconds


class Spread:
    """Spreads what a host says is left over the time to the reset, and spends nothing at once."""

    __slots__ = ("rate", "ready", "until")

    def __init__(self) -> None:
        self.rate = inf  # requests a second
        self.until = -inf  # when the host counts anew
        self.ready = -inf  # when the next request may leave

    def heed(self, now: float, quota: Quota, inflight: int, sent_at: float) -> None:
        """Take in a newer quota, of which what is in flight is not counted yet; the last request left at `sent_at`."""
        left = quota.left - inflight
        if left < 1:
            self.rate = 0.0
            self.until = self.ready = now + min(quota.seconds, LONGEST_SILENCE)
        else:
            self.rate = left * (1 - RESERVE) / quota.seconds
            self.until = now + quota.seconds
            self.ready = min(self.until, sent_at + 1 / self.rate)

    def take(self, now: float) -> None:
        """A request leaves."""
        if now < self.until:
            self.ready = self.until if not self.rate else min(self.until, now + 1 / self.rate)


def stated_quota(headers: Mapping[str, str] | Iterable[tuple[str, str]], wall: float) -> Quota | None:
    """The tightest quota that the headers state; `wall`, Unix seconds, counts only where they have no Date."""
    fields = dict[str, str]()
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        lower = name.lower()
        if "rate" in lower or lower == "date":
            fields[lower] = f"{fields[lower]}, {value}" if lower in fields else value
    if not fields.keys() - {"date"}:
        return None
    sent = http_date(fields.get("date", ""))
    stated = [
        *_listed(fields.get("ratelimit", ""), fields.get("ratelimit-policy", ""), wall if sent is None else sent),
        *_separate(fields, wall if sent is None else sent),
    ]
    # Of two that leave nothing, the one that does so for longer.
    return min(stated, key=lambda quota: (quota.rate, -quota.seconds), default=None)


def _separate(fields: Mapping[str, str], sent: float) -> Iterator[Quota]:
    """`RateLimit-Limit`, `-Remaining` and `-Reset`, and their X- relatives."""
    for family in FAMILIES:
        # Reset-After is always a delay; it needs no guess and no clock.
        delay = _number(fields.get(family + "reset-after", ""))
        seconds = _seconds_until(fields.get(family + "reset", ""), sent) if delay is None else delay
        limit, *_ = fields.get(family + "limit", "").split(",")  # drafts 03 to 06 add policies: `100, 100;w=60`
        yield from _quota(_number(fields.get(family + "remaining", "")), seconds, _number(limit))


def _listed(field: str, policy: str, sent: float) -> Iterator[Quota]:
    """`RateLimit`: a dictionary in draft 07, a list of policies from 08 on."""
    policies = {name: parameters for name, _, parameters in _members(policy)}
    members = list(_members(field))
    keyed = {name: value for name, value, _ in members if value}
    if keyed:
        yield from _quota(
            _number(keyed.get("remaining", "")),
            _seconds_until(keyed.get("reset", ""), sent),
            _number(keyed.get("limit", "")),
        )
        return
    for name, _, parameters in members:
        known = policies.get(name, {})
        # Draft 11 also counts bytes or requests in flight: neither is a number of requests to spread.
        if known.get("qu", "requests") == "requests":
            # Without t the window of the policy: no reset is further away than that.
            seconds = _number(parameters.get("t") or known.get("w", ""))
            yield from _quota(_number(parameters.get("r", "")), seconds, _number(known.get("q", "")))


def _quota(left: float | None, seconds: float | None, limit: float | None) -> Iterator[Quota]:
    """A quota, unless a part is missing or cannot be true: a reset that is past, now, or years away."""
    if left is not None and seconds is not None and 0 < seconds <= LONGEST_WAIT:
        # More left than it ever grants: one of the two is wrong, and the smaller one is safe.
        yield Quota(left if limit is None else min(left, limit), seconds)


def _members(field: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name, value and parameters of each member; none if any part of the field cannot be read."""
    text, at, members = field[:LONGEST_FIELD].strip(" \t"), 0, list[tuple[str, str, dict[str, str]]]()
    while at < len(text):
        found = _MEMBER.match(text, at)
        if found is None:
            return iter(())
        parameters = {key: quoted or bare for key, quoted, bare in _PARAMETER.findall(found["parameters"])}
        members.append(
            (found["bare"] if found["quoted"] is None else found["quoted"], found["value"] or "", parameters)
        )
        at = found.end()
    return iter(members)


def _number(text: str) -> float | None:
    stripped = text.strip(" \t")
    return float(stripped) if _NUMBER.fullmatch(stripped) else None


def _seconds_until(text: str, sent: float) -> float | None:
    """Seconds to a reset, which is a delay or an instant, depending on who sends it; `sent` is the sender's time."""
    number = _number(text)
    if number is None:
        stripped = text.strip(" \t")
        instant = http_date(stripped)
        if instant is None and _ISO_DATE.fullmatch(stripped):
            try:
                instant = datetime.fromisoformat(stripped.upper()).timestamp()
            except ValueError:
                return None
        return None if instant is None else instant - sent
    if number > EPOCH_MILLISECONDS:
        return number / 1000 - sent
    return number - sent if number > EPOCH_SECONDS else number
