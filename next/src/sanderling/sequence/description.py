"""What an API of growing ids looks like: where a record, its id and its time are, and what its answers mean.

A description is a file of TOML (or a Python file with a `description`), or an address with {id} in it. Conditions and
paths are JMESPath; a condition sees `status`, `headers` (in lower case), `body`, and `record` once that is found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import IntEnum
from math import isfinite
from typing import Any

import jmespath
import jmespath.exceptions
import msgspec

from sanderling.fetch.messages import HttpResponse, in_utf8
from sanderling.options import OptionError
from sanderling.outcome import Code, Outcome

LONGEST_DETAIL = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_encode = msgspec.json.Encoder(decimal_format="number").encode
# A date in seconds, milliseconds or microseconds since 1970 is told by its size; all begin in 1973.
_EARLIEST = 1e8


class Meaning(IntEnum):
    """What an answer says about an id; the numbers are the status codes of seed 000's metrics."""

    FOUND = 1
    UNWANTED = 2  # there is a record, and not of the kind that is kept
    MISSING = 3
    DISABLED = 4  # the API is switched off
    HIDDEN = 5  # there is a record, and we are not shown it
    BAD_FORMAT = 6
    ERROR = 9
    REFUSED = 10

    @property
    def exists(self) -> bool:
        """Whether it proves that there is a record."""
        return self in (Meaning.FOUND, Meaning.UNWANTED, Meaning.HIDDEN)

    @property
    def fails(self) -> bool:
        """Whether it may be the doing of a host that is not well."""
        return self in (Meaning.BAD_FORMAT, Meaning.ERROR)


@dataclass(frozen=True, slots=True)
class IdAnswer:
    """What was said about one id."""

    number: int
    meaning: Meaning
    line: bytes = b""  # the record, as one line of JSON
    time: float | None = None  # when it came to be, in seconds since 1970
    detail: str = ""


class HeadAddress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address that says what the newest id is."""

    url: str
    path: str = "@"


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An API. Paths and conditions that are empty say nothing."""

    url: str  # with {id}, or {ids} where several are asked for at once
    name: str = ""
    record: str = "@"  # in the body
    id: str = ""  # in the record
    time: str = ""  # in the record
    lasts: str = ""  # in the record: seconds from its time to its end, which counts as when it came to be
    missing: str = ""
    disabled: str = ""
    hidden: str = ""
    refused: str = ""
    error: str = ""
    bad: str = ""  # a record that is not whole
    unwanted: str = ""
    head: HeadAddress | None = None
    base: int = 10  # in which ids are written
    prefix: str = ""  # before an id in the record, as in "t3_"
    batch: int = 1  # ids in one request
    stride: int = 1  # from one id to the next
    game: bool = False  # a record is a report of seed 000's game: it has rows in `instance` and `instance_player`
    key_header: str = ""  # the header that carries the key
    key_variable: str = ""  # the variable of the environment that holds it

    def check(self, origin: str) -> None:
        """Raise OptionError for what cannot work; `origin` is the file, for the message."""
        several = "{ids}" in self.url
        if several == ("{id}" in self.url):
            raise OptionError(f"{origin}: url is {self.url[:100]!r}; expected one with {{id}}, or with {{ids}}")
        if not self.url.startswith(("https://", "http://")):
            raise OptionError(f"{origin}: url is {self.url[:100]!r}; expected https://…")
        if self.batch > 1 and not several:
            raise OptionError(f"{origin}: batch is {self.batch} and url has no {{ids}}; expected both or none")
        if several and not self.id:
            raise OptionError(f"{origin}: id is missing; with {{ids}} it tells whose a record is")
        for name, low, high in (("base", 2, 36), ("batch", 1, 1000), ("stride", 1, 10**9)):
            if not low <= getattr(self, name) <= high:
                raise OptionError(f"{origin}: {name} is {getattr(self, name)}; expected {low} to {high}")
        for name in (*_CONDITIONS, "record", "id", "time", "lasts", "bad", "unwanted"):
            if text := getattr(self, name):
                _compiled(text, f"{origin}: {name}")
        if self.head is not None:
            if not self.head.url.startswith(("https://", "http://")):
                raise OptionError(f"{origin}: head.url is {self.head.url[:100]!r}; expected https://…")
            _compiled(self.head.path, f"{origin}: head.path")


_CONDITIONS = {
    "disabled": Meaning.DISABLED,
    "hidden": Meaning.HIDDEN,
    "refused": Meaning.REFUSED,
    "missing": Meaning.MISSING,
    "error": Meaning.ERROR,
}
Compiled = Any  # a parsed expression of jmespath, which names no type for it


def _compiled(text: str, origin: str) -> Compiled:
    try:
        return jmespath.compile(text)
    except jmespath.exceptions.JMESPathError as error:
        raise OptionError(f"{origin}: found {text[:100]!r}, expected JMESPath: {str(error).splitlines()[0]}") from None


def described(content: Mapping[str, object] | Description, origin: str, base: str = "") -> Description:
    """A description, from a table of TOML too, with {base} in its addresses replaced by where the API is.

    Raises OptionError with the field, what was found and what was expected.
    """
    try:
        found = msgspec.convert(content, Description) if isinstance(content, Mapping) else content
    except msgspec.ValidationError as error:
        raise OptionError(f"{origin}: {error}") from None
    if "{base}" in found.url and not base:
        raise OptionError(f"--base is missing; {origin} needs to know where the API is, as in https://api.example.org")
    base = base.rstrip("/")
    head = found.head and msgspec.structs.replace(found.head, url=found.head.url.replace("{base}", base))
    found = msgspec.structs.replace(found, url=found.url.replace("{base}", base), head=head)
    found.check(origin)
    return found


class IdApi:
    """An API as its description says: the addresses of ids, and the meaning of answers."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self.several = "{ids}" in description.url
        names = ("record", "id", "time", "lasts", "bad", "unwanted")
        self._paths = {
            name: _compiled(text, name) for name in (*names, *_CONDITIONS) if (text := getattr(description, name))
        }
        self._head = _compiled(description.head.path, "head") if description.head is not None else None

    def spelled(self, number: int) -> str:
        """An id as the API writes it in addresses."""
        if self.description.base == 10:
            return f"{self.description.prefix}{number}"
        digits = ""
        while number or not digits:
            number, digit = divmod(number, self.description.base)
            digits = _DIGITS[digit] + digits
        return self.description.prefix + digits

    def number(self, value: object) -> int | None:
        """The number that an id of the API stands for; None if it is none."""
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, int):
            return value
        text = str(value).strip().lower().removeprefix(self.description.prefix.lower())
        try:
            return int(text, self.description.base) if text.isascii() and text.isalnum() else None
        except ValueError:
            return None

    def url(self, numbers: Sequence[int]) -> str:
        """The address of an id, or of several."""
        if self.several:
            return self.description.url.replace("{ids}", ",".join(map(self.spelled, numbers)))
        return self.description.url.replace("{id}", self.spelled(numbers[0]))

    def head_of(self, response: HttpResponse) -> int | None:
        """The newest id, as the head address says; None if it does not."""
        if response.status != 200 or self._head is None:
            return None
        try:
            return self.number(self._head.search(response.json()))
        except (ValueError, jmespath.exceptions.JMESPathError):
            return None

    def read(self, numbers: Sequence[int], response: HttpResponse) -> list[IdAnswer]:
        """What a response says about the ids that were asked for. Never raises."""
        try:
            return self._read(numbers, response)
        except (ValueError, RecursionError, jmespath.exceptions.JMESPathError) as error:
            detail = f"HTTP {response.status}: {error}"[:LONGEST_DETAIL]
            return [IdAnswer(number, Meaning.BAD_FORMAT, detail=detail) for number in numbers]

    def _read(self, numbers: Sequence[int], response: HttpResponse) -> list[IdAnswer]:
        body: Any = None
        fault = ""
        if response.status:
            try:
                body = msgspec.json.decode(in_utf8(response.body, response.header("content-type") or ""))
            except ValueError as error:
                fault = str(error)
        seen = {"status": response.status, "headers": _headers(response), "body": body}
        meaning = self._by_condition(seen) or self._by_status(response, body, fault)
        if meaning is not None:
            detail = response.outcome.detail or f"HTTP {response.status}"
            return [IdAnswer(number, meaning, detail=detail[:LONGEST_DETAIL]) for number in numbers]
        if fault:
            raise ValueError(fault)
        if self.several:
            return self._each(numbers, self._paths["record"].search(body), seen)
        whole = self.description.record == "@"
        record = body if whole else self._paths["record"].search(body)
        return [self._record(numbers[0], record, seen, response.body if whole else None)]

    def _by_condition(self, seen: dict[str, Any]) -> Meaning | None:
        for name, meaning in _CONDITIONS.items():
            if name in self._paths and self._paths[name].search(seen):
                return meaning
        return None

    def _by_status(self, response: HttpResponse, body: object, fault: str) -> Meaning | None:
        """What HTTP says, where the description says nothing; None for a good response."""
        if response.outcome.code is Code.RATE_LIMITED:
            return Meaning.REFUSED
        if "missing" not in self._paths and (
            response.status in (404, 410) or (response.status == 200 and body is None and not fault)
        ):
            return Meaning.MISSING
        return None if response.status == 200 and response.outcome.ok else Meaning.ERROR

    def _each(self, numbers: Sequence[int], records: object, seen: dict[str, Any]) -> list[IdAnswer]:
        """What a response says of each of several ids: it may be in any order, and leave out what is missing."""
        if not isinstance(records, list):
            raise ValueError(f"record is {_kind(records)}, expected a list")  # noqa: TRY004 - as all that is wrong in it
        found: dict[int, object] = {}
        for record in records:
            number = self.number(self._paths["id"].search(record))
            if number is not None:
                found[number] = record
        return [
            self._record(number, found[number], seen, None) if number in found else IdAnswer(number, Meaning.MISSING)
            for number in numbers
        ]

    def _record(self, number: int, record: object, seen: dict[str, Any], raw: bytes | None) -> IdAnswer:
        if not isinstance(record, dict):
            return IdAnswer(number, Meaning.BAD_FORMAT, detail=f"the record is {_kind(record)}, expected an object")
        if "id" in self._paths:
            said = self._paths["id"].search(record)
            if self.number(said) != number:
                return IdAnswer(number, Meaning.BAD_FORMAT, detail=f"its id is {str(said)[:60]!r}, expected {number}")
        seen = {**seen, "record": record}
        if "bad" in self._paths and self._paths["bad"].search(seen):
            return IdAnswer(number, Meaning.BAD_FORMAT, detail="the record is not whole")
        made = read_time(self._paths["time"].search(record)) if "time" in self._paths else None
        lasts = self._paths["lasts"].search(record) if "lasts" in self._paths else 0
        if made is not None and isinstance(lasts, int | float):
            made += lasts
        if "unwanted" in self._paths and self._paths["unwanted"].search(seen):
            return IdAnswer(number, Meaning.UNWANTED, time=made)
        line = msgspec.json.format(raw, indent=-1) if raw is not None else _encode(record)
        return IdAnswer(number, Meaning.FOUND, line, made)


def _headers(response: HttpResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers}


def _kind(value: object) -> str:
    return {type(None): "null", list: "a list", dict: "an object", str: "a text", bool: "true or false"}.get(
        type(value), "a number"
    )


def outcome_of(answers: Sequence[IdAnswer], response: HttpResponse) -> Outcome:
    """What the limiter learns from a response."""
    general = response.outcome
    meanings = {answer.meaning for answer in answers}
    if meanings == {Meaning.REFUSED}:
        return Outcome(Code.RATE_LIMITED, general.status, retry_after=general.retry_after)
    if meanings <= {Meaning.MISSING, Meaning.HIDDEN}:
        return Outcome(Code.CONTENT_NOT_FOUND, general.status)
    if meanings == {Meaning.DISABLED}:
        return Outcome(Code.OK, general.status)  # it answers; that its game is switched off is no word on our pace
    if general.ok and meanings == {Meaning.ERROR}:
        return Outcome(Code.HOST_UNAVAILABLE, general.status, answers[0].detail)
    if general.ok and meanings == {Meaning.BAD_FORMAT}:
        return Outcome(Code.INVALID_RESPONSE, general.status, answers[0].detail)
    return general


def read_time(value: object) -> float | None:
    """Seconds since 1970 of what APIs write as a time; None if it is none that can be believed.

    ISO 8601 with T or a space, with or without a zone (UTC then), a date, RFC 2822; seconds, milliseconds or
    microseconds since 1970, as a number or as text.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()[:64]
        if not text.replace(".", "", 1).isdecimal() or len(text.partition(".")[0]) < 9:
            return _written(text)
        value = float(text)
    if not isinstance(value, int | float) or not isfinite(value) or value < _EARLIEST:
        return None
    for unit in (1.0, 1e3, 1e6):
        if value / unit < 1e11 / 10:
            return value / unit
    return None


def _written(text: str) -> float | None:
    try:
        by_mail = "," in text or text[:1].isalpha()
        moment = parsedate_to_datetime(text) if by_mail else datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
