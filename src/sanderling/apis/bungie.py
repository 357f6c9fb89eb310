"""Bungie: post game carnage reports of Destiny 2, under ids that grow by one with every activity played.

Every answer, errors too, is an envelope with an ErrorCode. The code goes before the HTTP status: "not found" may come
with a 500, "slow down" with a 200. A status counts only where there is no envelope, or one whose code says little.

A 404 without the code 1653 is an error. A proxy on the way that has lost its route says 404 to everything, and to
believe it would be to pass over every record behind it.
"""

import re
from dataclasses import dataclass, field

import msgspec

from sanderling.apis.bungie_report import Malformed, read_report
from sanderling.apis.json_paths import UNREADABLE
from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.formats.instance import Message, encode
from sanderling.limit.hints import LONGEST
from sanderling.outcome import Code, Outcome
from sanderling.task import Headers, Reply, Task

RAID = 4  # the activity mode
SYSTEM = "Destiny2"
SUCCESS = 1

# The API is switched off for minutes to hours; a look every so often is enough, and no failure.
DISABLED_FOR = 45.0

# The names of the enumeration PlatformErrorCodes that may come, for metrics: any other is "other".
NAMES = {
    3: "UnhandledException",
    5: "SystemDisabled",
    8: "ParameterInvalidRange",
    12: "InsufficientPrivileges",
    18: "InvalidParameters",
    31: "ThrottleLimitExceeded",
    35: "ThrottleLimitExceededMinutes",
    36: "ThrottleLimitExceededMomentarily",
    37: "ThrottleLimitExceededSeconds",
    51: "PerEndpointRequestThrottleExceeded",
    54: "PerApplicationThrottleExceeded",
    55: "PerApplicationAnonymousThrottleExceeded",
    56: "PerApplicationAuthenticatedThrottleExceeded",
    57: "PerUserThrottleExceeded",
    1601: "DestinyAccountNotFound",
    1618: "DestinyUnexpectedError",
    1620: "DestinyCharacterNotFound",
    1626: "DestinyInternalError",
    1653: "DestinyPGCRNotFound",
    1665: "DestinyPrivacyRestriction",
    1672: "DestinyThrottledByGameServer",
    2101: "ApiInvalidOrExpiredKey",
    2102: "ApiKeyMissingFromRequest",
    2103: "OriginHeaderDoesNotMatchKey",
}
THROTTLES = frozenset({31, 35, 36, 37, 51, 54, 55, 56, 57, 1672})
BAD_KEYS = frozenset({2101, 2102, 2103})
BY_ERROR = {
    **dict.fromkeys(THROTTLES, Status.RATE_LIMITED),
    1653: Status.NOT_FOUND,
    5: Status.DISABLED,
    12: Status.HIDDEN,
    # Single ids fail like this for a while, and their neighbours do not: no word on the rate, whatever the status.
    **dict.fromkeys((3, 1618, 1626), Status.ERROR),
    # By its 403 a wrong key would be taken for "slow down", and for ever.
    **dict.fromkeys(BAD_KEYS, Status.ERROR),
}
# Who is too fast is shut out by what stands before the API, without an envelope.
SHUT_OUT = frozenset({403, 429, 503})

CODES = {
    Status.SUCCESS: Code.OK,
    Status.SKIPPED: Code.SKIPPED,
    Status.NOT_FOUND: Code.CONTENT_NOT_FOUND,
    Status.DISABLED: Code.DEFERRED,
    Status.HIDDEN: Code.ACCESS_DENIED,
    Status.BAD_FORMAT: Code.INVALID_RESPONSE,
    Status.RATE_LIMITED: Code.RATE_LIMITED,
}

LONGEST_DETAIL = 200
_TITLE = re.compile(rb"<title[^>]{0,200}>([^<]{0,400})", re.IGNORECASE)
_BASE = re.compile(r"https?://[^?#]+\Z", re.IGNORECASE)
# What a key is made of. Anything else in it is a slip of the hand: a line break, a space.
_KEY = re.compile(r"[!-~]*")
_NULL = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, frozen=True):
    # Whatever is not needed to tell what happened may be of any shape: it must not hide the code.
    ErrorCode: int
    Response: msgspec.Raw = _NULL
    ThrottleSeconds: object = 0


class _System(msgspec.Struct):
    enabled: bool


class _Settings(msgspec.Struct):
    systems: dict[str, _System]


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_SETTINGS = msgspec.json.Decoder(_Settings)


@dataclass(frozen=True, slots=True)
class Bungie:
    """The API at `base`, which may be a reverse proxy of it. Reports whose mode is not `keep` are skipped."""

    base: str
    key: str = field(default="", repr=False)
    keep: int = RAID
    name: str = field(default="bungie", init=False)

    def __post_init__(self) -> None:
        if not _BASE.match(self.base):
            raise ValueError("base of bungie: expected http://host or https://host, perhaps with a path, and no query")
        if not _KEY.fullmatch(self.key):
            # The message is without the key: it is a secret.
            raise ValueError("key of bungie has a space, a line break or a character beyond ASCII in it")
        object.__setattr__(self, "base", self.base.rstrip("/"))
        self.availability()  # raises for a host that cannot be one

    def task(self, number: int, attempt: int) -> Task:
        """The question for a report; after a malformed answer in other words, so that no cache gives it again."""
        again = f"?malformed_retry={attempt - 1}" if attempt > 1 else ""
        path = f"Platform/Destiny2/Stats/PostGameCarnageReport/{number}/{again}"
        return Task(f"{self.base}/{path}", headers=self._headers)

    @property
    def _headers(self) -> Headers:
        return (("X-API-KEY", self.key),) if self.key else ()

    def read(self, number: int, reply: Reply, general: Outcome, wall: float) -> NumberedAnswer:
        """What a reply means. Never raises."""
        try:
            envelope = _ENVELOPE.decode(reply.body)
        except UNREADABLE:
            return _by_http(general, _no_envelope(reply))
        if envelope.ErrorCode == SUCCESS and reply.status == 200:
            return self._read_report(number, envelope.Response, general, wall)
        return _by_code(envelope, general)

    def _read_report(self, number: int, raw: msgspec.Raw, general: Outcome, wall: float) -> NumberedAnswer:
        try:
            report = read_report(raw, number, self.keep, wall)
        except Malformed as malformed:
            found = "Response is null" if bytes(raw) == b"null" else str(malformed)
            return _answer(Status.BAD_FORMAT, general, detail=found[:LONGEST_DETAIL])
        lag = None if report.completed is None else wall - report.completed
        if report.instance is None:
            return _answer(Status.SKIPPED, general, lag=lag)
        message = Message(str(number), self.name, wall, report.instance, raw)
        return _answer(Status.SUCCESS, general, lag=lag, message=encode(message))

    def availability(self) -> Task:
        """The question for the settings, which say which systems are switched on."""
        return Task(f"{self.base}/Platform/Settings/", headers=self._headers)

    def available(self, reply: Reply) -> bool | None:
        """Whether the settings say that the game is on; a system they do not list is off. None if they say nothing."""
        try:
            envelope = _ENVELOPE.decode(reply.body)
            if reply.status != 200 or envelope.ErrorCode != SUCCESS:
                return None
            systems = _SETTINGS.decode(envelope.Response).systems
        except UNREADABLE:
            return None
        return SYSTEM in systems and systems[SYSTEM].enabled


def _answer(
    status: Status, general: Outcome, *, detail: str = "", lag: float | None = None, message: bytes = b""
) -> NumberedAnswer:
    outcome = Outcome(CODES[status], general.status, detail, general.retry_after, lag)
    return NumberedAnswer(status, outcome, message=message)


def _by_code(envelope: _Envelope, general: Outcome) -> NumberedAnswer:
    """What an envelope without a report means."""
    code = envelope.ErrorCode
    error = NAMES.get(code, "other")
    detail = f"HTTP {general.status}, ErrorCode {code} ({error})"[:LONGEST_DETAIL]
    status = BY_ERROR.get(code)
    if status is None:
        return _by_http(general, detail, error)
    if status is Status.ERROR:
        return NumberedAnswer(status, _failure(general, detail, rejected=code in BAD_KEYS), error)
    asked = DISABLED_FOR if status is Status.DISABLED else _seconds(envelope.ThrottleSeconds)
    waits = [wait for wait in (asked, general.retry_after) if wait is not None]
    return NumberedAnswer(status, Outcome(CODES[status], general.status, detail, max(waits, default=None)), error)


def _by_http(general: Outcome, detail: str, error: str = "") -> NumberedAnswer:
    """What the status means, where the code is not there or says little."""
    outcome, status = _failure(general, detail), Status.ERROR
    if general.code is Code.RATE_LIMITED or general.status in SHUT_OUT:
        status = Status.RATE_LIMITED
        outcome = Outcome(Code.RATE_LIMITED, general.status, detail, general.retry_after)
    return NumberedAnswer(status, outcome, error or outcome.code.value)


def _failure(general: Outcome, detail: str, *, rejected: bool = False) -> Outcome:
    """The general outcome, unless that says the id is done with: no failure says so."""
    code = Code.AUTH_FAILED if rejected else general.code
    if code.final:
        code = Code.UNKNOWN_ERROR if code is Code.OK else Code.HTTP_ERROR
    return Outcome(code, general.status, detail, general.retry_after)


def _seconds(throttle: object) -> float | None:
    """How long ThrottleSeconds asks us to stay away; None if it does not. Some throttles come with 0."""
    if isinstance(throttle, bool) or not isinstance(throttle, int | float) or not throttle > 0:
        return None
    return float(min(throttle, LONGEST))


def _no_envelope(reply: Reply) -> str:
    """What came instead, in a few words; of a page its title."""
    title = _TITLE.search(reply.body, 0, 8192)
    words = title[1].decode("utf-8", "replace").split() if title else []
    shown = "".join(letter for letter in " ".join(words) if letter.isprintable())[:80]
    page = f', a page titled "{shown}"' if shown else ""
    return f"HTTP {reply.status}, {len(reply.body)} bytes that are no envelope{page}"
