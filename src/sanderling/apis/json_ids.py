"""Any JSON API with an id in its address, described by a few settings and no code.

    name = "news"
    url = "https://news.example/v0/item/{id}.json"
    id = "id"                        # where a record has its own id, to be compared with the one asked for
    record_if = "type"               # what is true of records only
    missing = "error.code = 404"     # how it says that there is nothing under an id
    timestamp = "time"               # when the record came to be, in any form that `moments.py` reads
    keep_if = 'type != "job"'        # which records are wanted; without it, all
    headers = { Accept = "application/json" }

`timestamp` and `id` are paths (`json_paths.py`), the others are conditions about the document (`conditions.py`).

Many APIs answer an error with a 200, so `id` or `record_if` is required: a 200 that has not that id, or for which the
rule does not hold, is no record but a failure of that id, and proves nothing about whether there is one.

Without `missing`, a 404, a 410 and a record that is null mean that there is nothing. With it, nothing else does: a 404
for which it does not hold is an error, since a proxy on the way may say 404 to everything.

A record whose timestamp cannot be read is kept without one, with a remark: it is a record, and of its age nothing is
known. The head is reckoned from those whose timestamps can be read.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeVar

import msgspec

from sanderling.apis.conditions import Condition
from sanderling.apis.json_paths import UNREADABLE, Path, is_number, show_value
from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.formats.instance import Instance, Message, encode
from sanderling.ids import host_of
from sanderling.moments import moment
from sanderling.outcome import Code, Outcome
from sanderling.task import Headers, Reply, Task

LATEST = 2**32  # Unix seconds, in 2106: no table holds a later date
# What 404 and 410 mean to people, so also here, unless there is a rule for it.
GONE = frozenset({404, 410})
CODES = {
    Status.SUCCESS: Code.OK,
    Status.SKIPPED: Code.SKIPPED,
    Status.NOT_FOUND: Code.CONTENT_NOT_FOUND,
    Status.RATE_LIMITED: Code.RATE_LIMITED,
}
LONGEST_DETAIL = 200
LONGEST_SHOWN = 60  # characters of what came instead of a record
NO_RECORD = "no_record"  # the name of such an answer in metrics

_API_NAME = re.compile(r"[a-z0-9_-]{1,40}")
_DOCUMENT = msgspec.json.Decoder()
T = TypeVar("T")


class _Settings(msgspec.Struct):
    name: str
    url: str
    headers: dict[str, str] = {}
    id: str | None = None
    record_if: str | None = None
    missing: str | None = None
    timestamp: str | None = None
    keep_if: str | None = None


KEYS = _Settings.__struct_fields__


@dataclass(frozen=True, slots=True)
class JsonIds:
    """One such API. Of headers and address only what cannot be a secret is ever shown."""

    name: str
    url: str = field(repr=False)
    headers: Headers = field(default=(), repr=False)
    missing: Condition | None = None
    timestamp: Path | None = None
    keep_if: Condition | None = None
    record_id: Path | None = None
    record_if: Condition | None = None

    def __post_init__(self) -> None:
        if not _API_NAME.fullmatch(self.name):
            raise ValueError(f"name is {self.name[:60]!r}, expected up to 40 of a-z, 0-9, _ and -")
        # The messages do not show the address: a key may be part of it.
        if not re.match("https?://", self.url, re.IGNORECASE):
            raise ValueError(f"url of {self.name} does not start with http:// or https://")
        if "{id}" not in self.url or re.search("[{}]", self.url.replace("{id}", "")):
            raise ValueError(f"url of {self.name}: expected {{id}} where the id goes, and no other braces")
        if host_of(self.url.replace("{id}", "1")) != host_of(self.url.replace("{id}", "2")):
            raise ValueError(f"url of {self.name}: expected {{id}} behind the host, which is the same for all ids")
        self.task(1, 1)  # raises for what cannot be sent
        if self.record_id is None and self.record_if is None:
            raise ValueError(
                f"nothing tells a record of {self.name} from an error that comes with a 200; expected id, where a "
                'record has its own id, as in id = "id", or record_if, what is true of records only, as in '
                'record_if = "created_at"; record_if = "." takes every 200 for a record'
            )

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> Self:
        """The API that a section of a configuration describes. Raises ValueError."""
        for key in settings:
            if key not in KEYS:
                close = difflib.get_close_matches(key, KEYS, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"expected some of {', '.join(KEYS)}"
                raise ValueError(f"unknown setting {key[:60]!r}; {hint}")
        try:
            read = msgspec.convert(settings, _Settings)
        except msgspec.ValidationError as error:  # which shows no values
            raise ValueError(f"settings of an API: {error}") from None
        return cls(
            name=read.name,
            url=read.url,
            headers=tuple(read.headers.items()),
            missing=_parse("missing", read.missing, Condition.parse),
            timestamp=_parse("timestamp", read.timestamp, Path.parse),
            keep_if=_parse("keep_if", read.keep_if, Condition.parse),
            record_id=_parse("id", read.id, Path.parse),
            record_if=_parse("record_if", read.record_if, Condition.parse),
        )

    def task(self, number: int, attempt: int) -> Task:  # noqa: ARG002 - who serves these knows no way to ask otherwise
        """The question for an id."""
        return Task(self.url.replace("{id}", str(number)), headers=self.headers)

    def read(self, number: int, reply: Reply, general: Outcome, wall: float) -> NumberedAnswer:
        """What a reply means. Never raises."""
        if general.code is Code.RATE_LIMITED:
            return _answer(Status.RATE_LIMITED, general)
        served = general.code is Code.OK
        if self.missing is None and not served:
            return _answer(Status.NOT_FOUND, general) if general.status in GONE else _failure(general)
        try:
            document = _DOCUMENT.decode(reply.body)
        except UNREADABLE as error:
            return _no_record(general, f"not JSON: {error}", reply.body) if served else _failure(general)
        nothing = document is None if self.missing is None else self.missing.holds(document)
        if nothing:
            return _answer(Status.NOT_FOUND, general)
        if not served:
            return _failure(general)
        why = self._not_a_record(number, document)
        return (
            _no_record(general, why, reply.body) if why else self._record(number, document, reply.body, general, wall)
        )

    def _not_a_record(self, number: int, document: object) -> str:
        """Why a document is not the record of that id; empty if it is."""
        if self.record_id is not None and not _is_id(own := self.record_id.find(document), number):
            return f"{self.record_id} is {show_value(own)}, expected {number}"
        if self.record_if is not None and not self.record_if.holds(document):
            return self.record_if.explain(document)
        return ""

    def _record(self, number: int, document: object, body: bytes, general: Outcome, wall: float) -> NumberedAnswer:
        stamp = self.timestamp.find(document) if self.timestamp else None
        created = moment(stamp)
        if created is not None and created > LATEST:
            created = None
        lag = None if created is None else wall - created
        if self.keep_if is not None and not self.keep_if.holds(document):
            return _answer(Status.SKIPPED, general, lag=lag)
        unread = stamp is not None and created is None
        remark = (
            f"{self.timestamp} is {show_value(stamp)}, expected a date or Unix time before 2106; kept without it"
            if unread
            else ""
        )
        instance = Instance(str(number), date_completed=created)
        message = encode(Message(str(number), self.name, wall, instance, msgspec.Raw(body)))
        return _answer(Status.SUCCESS, general, remark, lag=lag, message=message)

    def availability(self) -> None:
        """It cannot be asked."""

    def available(self, reply: Reply) -> None:
        """It does not say."""


def _parse(key: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise ValueError(f"setting {key!r}: {error}") from None


def _answer(
    status: Status, general: Outcome, detail: str = "", *, lag: float | None = None, message: bytes = b""
) -> NumberedAnswer:
    outcome = Outcome(CODES[status], general.status, detail[:LONGEST_DETAIL], general.retry_after, lag)
    return NumberedAnswer(status, outcome, message=message)


def _failure(general: Outcome) -> NumberedAnswer:
    """No failure says that an id is done with, so codes that do are replaced."""
    code = Code.HTTP_ERROR if general.final else general.code
    detail = general.detail or f"HTTP {general.status}"
    return NumberedAnswer(Status.ERROR, Outcome(code, general.status, detail, general.retry_after), code.value)


def _no_record(general: Outcome, why: str, body: bytes) -> NumberedAnswer:
    """A 200 without a record in it. Twenty such in a row, and nothing else, are the host's fault, as 500s would be."""
    came = body[:LONGEST_SHOWN].decode(errors="replace")
    detail = f"no record: {why}; the answer begins {came!r}"[:LONGEST_DETAIL]
    return NumberedAnswer(
        Status.ERROR, Outcome(Code.HOST_UNAVAILABLE, general.status, detail, general.retry_after), NO_RECORD
    )


def _is_id(value: object, number: int) -> bool:
    """Whether a number, or a text of its digits, is that id."""
    return value == str(number) or (isinstance(value, int) and is_number(value) and value == number)
