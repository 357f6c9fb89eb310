"""What the headers of a response say about pace: when to come back, and how much is left until when.

`retry_after` is an order and goes before everything else; `quota` is advice, and what remains is no promise. What
cannot be read is None, as both standards ask: a malformed field is ignored, it is not an error.

Sources: RFC 9110 (Retry-After, HTTP-date), draft-ietf-httpapi-ratelimit-headers from 03 to 11 (its fields changed shape
twice), RFC 9651 (structured fields), and what GitHub, Discord and Twitter send as X-RateLimit-*.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# Who is told to wait longer than this parks the work, and never sends early; the cap only keeps arithmetic sane.
LONGEST = 366 * 86400.0

# Kept back from a quota: others may share it, and the server counts by its own clock.
RESERVE = 0.05

# A Reset above the first is an instant in seconds, above the second in milliseconds: both mean 9 September 2001, which
# is past, while no window lasts the 31 years that the first would be as a delay.
EPOCH_SECONDS = 1e9
EPOCH_MILLISECONDS = 1e12


@dataclass(frozen=True, slots=True)
class Quota:
    """How many requests are left, and in how many seconds the count starts anew."""

    remaining: float
    resets_in: float
    limit: float | None = None
    window: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.remaining < float("inf"):
            raise ValueError(f"remaining is {self.remaining}, expected a number of requests from 0 up")
        if not 0 < self.resets_in <= LONGEST:
            raise ValueError(f"resets_in is {self.resets_in}, expected seconds above 0 and at most {LONGEST}")
        if self.limit is not None and not self.remaining <= self.limit < float("inf"):
            raise ValueError(f"limit is {self.limit}, expected at least remaining ({self.remaining})")
        if self.window is not None and not 0 < self.window < float("inf"):
            raise ValueError(f"window is {self.window}, expected seconds above 0")

    def pace(self) -> float:
        """Requests per second that spread what remains over the time to the reset, less the reserve."""
        return self.remaining * (1 - RESERVE) / self.resets_in


def retry_after(value: str | None, *, date: str | None, now: float) -> float | None:
    """Seconds to wait, by a Retry-After header; `date` is that response's Date header, `now` the wall clock."""
    if value is None:
        return None  # nearly every answer; not worth three patterns
    text = value.strip(" \t")
    # RFC 9110 knows whole seconds only. Some servers send decimals, whose meaning nobody could mistake.
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return min(float(text), LONGEST)
    due = http_date(text, now=now)
    if due is None:
        return None
    # An instant in the past means: allowed now.
    return min(max(0.0, due - _said(date, now)), LONGEST)


def quota(headers: Mapping[str, str], *, now: float) -> Quota | None:
    """The tightest quota that `headers` state in any of the forms in use; `now` is the wall clock."""
    if "rate" not in "\n".join(headers).lower():
        return None  # most answers; not worth reading their Date for
    fields = {name.lower(): value for name, value in headers.items()}
    said = _said(fields.get("date"), now)
    stated = [*_structured(fields, said), *_separate(fields, said)]
    # Of two that allow nothing, the one that does so for longer.
    return min(stated, key=lambda each: (each.pace(), -each.resets_in), default=None)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_WHOLE_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
# The weekday must be one but need not be right: to ignore a Retry-After for that would be to call early.
_HTTP_DATES = (
    re.compile(f"{_DAY}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(f"{_WHOLE_DAY}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(f"{_DAY} {_MONTH} (?P<day>[0-9]{{2}}| [0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)
# A zone is required: a local time is wrong by hours and does not say so.
_ISO_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_FIFTY_YEARS = 50 * 365.25 * 86400


def http_date(text: str, *, now: float) -> float | None:
    """Epoch seconds of an HTTP-date in any of the three formats of RFC 9110; `now` settles years of two digits."""
    for shape in _HTTP_DATES:
        if found := shape.fullmatch(text):
            return _instant(found, int(found["year"])) if len(found["year"]) == 4 else _near(found, now)
    return None


def _near(found: re.Match[str], now: float) -> float | None:
    """RFC 9110, 5.6.7: two digits mean the year that is not more than 50 years ahead."""
    latest = datetime.fromtimestamp(now, UTC).year + 50
    year = latest - (latest - int(found["year"])) % 100
    instant = _instant(found, year)
    return _instant(found, year - 100) if instant is not None and instant > now + _FIFTY_YEARS else instant


def _instant(found: re.Match[str], year: int) -> float | None:
    month, day = _MONTHS.index(found["month"]) + 1, int(found["day"])
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"])
    # RFC 9110 allows the leap second, which datetime does not know.
    leap = second == 60
    try:
        moment = datetime(year, month, day, hour, minute, second - leap, tzinfo=UTC) + timedelta(seconds=leap)
    except (ValueError, OverflowError):
        return None
    return moment.timestamp()


def _iso_date(text: str) -> float | None:
    if not _ISO_DATE.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError:
        return None


def _said(date: str | None, now: float) -> float:
    """The instant by the clock of the server, which is the one its own instants are measured by."""
    instant = http_date((date or "").strip(" \t"), now=now)
    return now if instant is None else instant


# Bounded like the integers of RFC 9651: more digits count nothing real, and no quotient of two such numbers overflows.
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,20})?")
_FIRST_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,20})?(?=[ \t]*([,;]|\Z))")


def _number(text: str | None) -> float | None:
    stripped = (text or "").strip(" \t")
    return float(stripped) if _NUMBER.fullmatch(stripped) else None


def seconds_until(text: str, said: float) -> float | None:
    """Seconds to a Reset, which is a delay or an instant depending on who sends it; `said` is the sender's clock."""
    number = _number(text)
    if number is None:
        stripped = text.strip(" \t")
        instant = http_date(stripped, now=said)
        instant = _iso_date(stripped) if instant is None else instant
        return None if instant is None else instant - said
    if number > EPOCH_MILLISECONDS:
        return number / 1000 - said
    return number - said if number > EPOCH_SECONDS else number


def _stated(
    remaining: float | None, resets_in: float | None, limit: float | None, window: float | None
) -> Iterator[Quota]:
    """A quota, unless a part is missing or cannot be true: a reset that is past, now, or years away."""
    if remaining is None or resets_in is None or not 0 < resets_in <= LONGEST:
        return
    # A server that has more left than it ever grants is lying about one of the two; the smaller one is safe.
    yield Quota(remaining if limit is None else min(remaining, limit), resets_in, limit, window)


_FAMILIES = ("ratelimit-", "x-ratelimit-", "x-rate-limit-")


def _separate(fields: Mapping[str, str], said: float) -> Iterator[Quota]:
    """`RateLimit-Limit`, `-Remaining` and `-Reset` of the drafts before 07, and their X- relatives."""
    policies = _policies(fields.get("ratelimit-policy", ""))
    # Most responses have none of these headers, and every response passes here.
    for family in (family for family in _FAMILIES if family + "remaining" in fields):
        parts = {part: fields.get(family + part, "") for part in ("limit", "remaining", "reset", "reset-after")}
        yield from _triple(parts, said, _policies(parts["limit"]) | policies)


def _triple(parts: Mapping[str, str], said: float, policies: Mapping[str, "_Policy"]) -> Iterator[Quota]:
    # Drafts 03 to 06 let the policies follow: `100, 100;w=60`.
    first = _FIRST_NUMBER.match(parts.get("limit", "").strip(" \t"))
    limit = first.group() if first else ""
    # Reset-After is always a delay, so where it is sent it needs neither a guess nor a clock.
    delay = _number(parts.get("reset-after"))
    resets_in = seconds_until(parts.get("reset", ""), said) if delay is None else delay
    window = policies.get(limit, _UNKNOWN).window
    yield from _stated(_number(parts.get("remaining")), resets_in, _number(limit), window)


_KEY = r"[a-z*][a-z0-9_.*-]*"
_BARE = (
    r'"(?:[ !#-\[\]-~]|\\["\\])*"'  # string
    r"|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*"  # token
    r"|-?[0-9]{1,12}\.[0-9]{1,3}"  # decimal
    r"|-?[0-9]{1,15}"  # integer
    r"|:[A-Za-z0-9+/=]*:"  # bytes
    r"|\?[01]"  # boolean
    r"|@-?[0-9]{1,15}"  # date
    r'|%"(?:[ !#$&-~]|%[0-9a-f]{2})*"'  # display string
)
_PARAMETER = re.compile(rf"; *(?P<key>{_KEY})(?:=(?P<bare>{_BARE}))?")
# A member of a list, or, with a key, of a dictionary. Inner lists are left out: no rate limit field has one.
_MEMBER = re.compile(rf"(?:(?P<key>{_KEY})=)?(?P<bare>{_BARE})(?P<parameters>(?:; *{_KEY}(?:=(?:{_BARE}))?)*)")
_COMMA = re.compile(r"[ \t]*,[ \t]*")
_INTEGER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class _Member:
    key: str | None
    bare: str
    parameters: Mapping[str, str]

    @property
    def name(self) -> str:
        """The policy it is about; drafts 08 to 10 wrote a token where 11 writes a string."""
        return self.bare[1:-1] if self.bare.startswith('"') else self.bare

    def integer(self, parameter: str) -> float | None:
        text = self.parameters.get(parameter, "")
        return float(text) if _INTEGER.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class _Policy:
    limit: float | None = None
    window: float | None = None
    counts_requests: bool = True


_UNKNOWN = _Policy()


def _members(field: str) -> list[_Member]:
    """The members of a list or a dictionary of RFC 9651; none if any part of the field is malformed."""
    text, at, members = field.strip(" "), 0, list[_Member]()
    while found := _MEMBER.match(text, at):
        parameters = {each["key"]: each["bare"] or "" for each in _PARAMETER.finditer(found["parameters"])}
        members.append(_Member(found["key"], found["bare"], parameters))
        if found.end() == len(text):
            return members
        comma = _COMMA.match(text, found.end())
        if not comma:
            break
        at = comma.end()
    return []


def _structured(fields: Mapping[str, str], said: float) -> Iterator[Quota]:
    """`RateLimit`: a dictionary in draft 07, a list of policies from 08 on."""
    members = _members(fields.get("ratelimit", ""))
    policies = _policies(fields.get("ratelimit-policy", ""))
    keyed = {member.key: member.bare for member in members if member.key is not None}
    if not keyed:
        for member in members:
            yield from _listed(member, policies.get(member.name, _UNKNOWN))
    # Among members with a key, one without is a key that means true; any other makes the field neither kind.
    elif all(member.key or re.fullmatch(_KEY, member.bare) for member in members):
        yield from _triple(keyed, said, policies)


def _listed(member: _Member, policy: _Policy) -> Iterator[Quota]:
    """`"p";r=50;t=30`. Without t, the window of the policy: no reset is further away than that."""
    resets_in = member.integer("t") if "t" in member.parameters else policy.window
    if policy.counts_requests:
        yield from _stated(member.integer("r"), resets_in, policy.limit, policy.window)


def _policies(field: str) -> dict[str, _Policy]:
    """`"p";q=100;w=60` by name, and `100;w=60`, as it was before draft 08, by its limit."""
    return {member.name: _policy(member) for member in _members(field) if member.key is None}


def _policy(member: _Member) -> _Policy:
    # Draft 11 can also count bytes or requests in flight; neither is a number of requests to spread.
    counts_requests = member.parameters.get("qu", '"requests"').strip('"') == "requests"
    # A window of no length is none.
    return _Policy(member.integer("q"), member.integer("w") or None, counts_requests)
