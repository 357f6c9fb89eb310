r"""JSON as it should not be, read as far as that makes sense: one bad item must not cost the other 49.

What is not strictly JSON, or not within our bounds, is read again with more patience:

- Half of a pair of surrogates (`"\ud83d"`, an emoji cut in two) becomes U+FFFD, as do bytes that are no UTF-8.
- NaN, Infinity, and numbers that are too large for a float or have more than 1,000 digits become null.
- Control characters within texts are taken as they are.

Members of a list are read one by one then, and those that still cannot be are `Unreadable`: malformed, or nested a
thousand deep. To find where they begin and end takes only texts and brackets, and no recursion. Where these do not
match, or end too early, whoever asks for it has the members before that, and an `Unreadable` for all the rest.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

# What msgspec raises for bytes that are not JSON, not UTF-8, or nested too deep.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
MOST_MEMBERS = 10_000  # of a list; 50 are usual
# Brackets, commas and quotes of a document: 10 MB of comments have as many. As values they take 100 MB at the worst
# (`[[],[],…]`), and to find the members of a list among them takes three seconds.
MOST_MARKS = 2_000_000
MARKS = (b"[", b"{", b",", b'"')
STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
LONGEST_NUMBER = 1000  # digits; from 4,300 on Python refuses them, and takes its time before that

BOM = b"\xef\xbb\xbf"
REPAIRED = "not strictly JSON, read as far as possible"

_DECODER = msgspec.json.Decoder()
# A text that does not end is a token as well, so that the search stops there and does not begin anew behind it.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},]', re.DOTALL)
_ITEMS = re.compile(rb'\s*"(items|count)"\s*:')
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
# Pairs and other escapes are matched so that they are passed over.
_SURROGATES = re.compile(rf"{_PAIR}|({_HALF})|\\.", re.DOTALL)


class JsonError(ValueError):
    """Bytes are no JSON. `truncated` says that they only end too early."""

    def __init__(self, message: str, *, truncated: bool = False) -> None:
        super().__init__(message)
        self.truncated = truncated


class DamagedError(JsonError):
    """A list or an object does not end, or not as it began: there may be members before that which are whole."""


class Unreadable(msgspec.Struct, frozen=True):
    """A member of a list that could not be read."""

    reason: str


class JsonReading(NamedTuple):
    """What there was, and what is odd about it."""

    value: object
    notes: tuple[str, ...] = ()


def read_json(data: bytes | bytearray) -> JsonReading:
    """The value that these bytes are. Raises JsonError."""
    plain = _check_size(data)
    try:
        return JsonReading(_DECODER.decode(plain))
    except UNREADABLE as error:
        return JsonReading(_parse_leniently(plain, error), (REPAIRED,))


def read_list(data: bytes | bytearray, *, salvage: bool = False) -> JsonReading:
    """The same; members of a list, or of the list `items` in an object, are `Unreadable` where they cannot be read.

    Raises DamagedError, too. To `salvage` is to take the members before the damage, if an object is among them.
    """
    plain = _check_size(data)
    try:
        return JsonReading(_DECODER.decode(plain))
    except UNREADABLE as error:
        strict = error
    match plain.lstrip()[:1]:
        case b"[":
            return _members(plain, salvage=salvage)
        case b"{":
            return _read_object(plain, strict, salvage=salvage)
    return JsonReading(_parse_leniently(plain, strict), (REPAIRED,))


def _check_size(data: bytes | bytearray) -> bytes | bytearray:
    """The bytes without their BOM. Raises JsonError if as values they would fill the memory."""
    # Fewer bytes than that cannot have more, and most bodies have fewer: these need not be counted.
    if len(data) > MOST_MARKS and (found := sum(map(data.count, MARKS))) > MOST_MARKS:
        raise JsonError(f"found {found:,} brackets, commas and quotes, expected at most {MOST_MARKS:,}")
    return data[len(BOM) :] if data.startswith(BOM) else data  # noqa: FURB188 - that copies a bytearray each time


def _parse_leniently(data: bytes | bytearray, strict: Exception) -> object:
    """What the bytes are if one is not strict; `strict` says why one cannot be. Raises JsonError."""
    text = _SURROGATES.sub(_replace_half, data.decode("utf-8", "replace"))
    try:
        return json.loads(text, strict=False, parse_constant=_nothing, parse_int=_integer, parse_float=_fraction)
    except (ValueError, RecursionError):
        raise JsonError(f"{len(data):,} bytes that are no JSON: {strict}") from None


def _replace_half(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape[1] else escape[0]


def _nothing(_name: str) -> None:
    return None


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= LONGEST_NUMBER else None


def _fraction(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _read_object(data: bytes | bytearray, strict: Exception, *, salvage: bool) -> JsonReading:
    """An object: if it has a list of items, these are read one by one."""
    found: dict[str, object] = {}
    notes: tuple[str, ...] = ()
    for start, end in _pieces_until_damage(data) if salvage else _pieces(data):
        named = _ITEMS.match(data, start, end)
        if not named:
            continue
        value = data[named.end() : end].strip()
        name = named[1].decode()
        found[name], notes = _members(value, salvage=salvage) if value.startswith(b"[") else (_member(value), notes)
    return (
        JsonReading(found, notes)
        if isinstance(found.get("items"), list)
        else JsonReading(_parse_leniently(data, strict), (REPAIRED,))
    )


def _pieces_until_damage(data: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """The same as `_pieces`, and what begins before the damage and does not end."""
    rest = _inside(data)
    try:
        for start, end in _pieces(data):
            yield start, end
            rest = end + 1
    except DamagedError:
        yield rest, len(data)


def _members(data: bytes | bytearray, *, salvage: bool = False) -> JsonReading:
    read: list[object] = []
    rest = _inside(data)
    try:
        for start, end in _pieces(data):
            read.append(_member(data[start:end]))
            rest = end + 1
    except DamagedError as error:
        if not salvage:
            raise
        # The last one may be whole: only what would come behind it is missing.
        if error.truncated and isinstance(last := _member(data[rest:]), dict):
            read.append(last)
        if not any(isinstance(each, dict) for each in read):
            raise
        read.append(Unreadable(str(error)))
    bad = [(place, value.reason) for place, value in enumerate(read) if isinstance(value, Unreadable)]
    if not bad:
        return JsonReading(read, (REPAIRED,))
    if len(bad) == len(read):
        raise JsonError(f"none of {len(read)} members can be read, the first is {bad[0][1]}")
    return JsonReading(read, (f"{len(bad)} of {len(read)} members cannot be read, the first is number {bad[0][0]}",))


def _member(data: bytes | bytearray) -> object:
    try:
        return _DECODER.decode(data)
    except UNREADABLE as error:
        strict = error
    try:
        return _parse_leniently(data, strict)
    except JsonError as error:
        return Unreadable(str(error))


def _inside(data: bytes | bytearray) -> int:
    """Where the first member of a list or an object begins."""
    return len(data) - len(data.lstrip()) + 1


def _check_end(data: bytes | bytearray, end: int) -> None:
    """Raises DamagedError if the value that ends there does not end as it began, or is not alone."""
    pair = data.lstrip()[:1] + data[end - 1 : end]
    if pair not in (b"[]", b"{}"):
        found = bytes(pair[1:])
        raise DamagedError(f"the value ends at byte {end:,} with {found!r}, which does not match its beginning")
    if data[end:].strip():
        raise DamagedError(f"the value ends at byte {end:,} of {len(data):,}, expected nothing behind it")


def _pieces(data: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Where the members of the list or object begin and end. Raises JsonError."""
    depth, count, start = 0, 0, _inside(data)
    for token in _TOKEN.finditer(data):
        mark = token[0]
        if mark == b'"':
            break
        depth += STEPS.get(mark, 0)
        if depth > 1 or (depth == 1 and mark != b","):
            continue
        count += 1
        if count > MOST_MEMBERS:
            raise JsonError(f"found more than {MOST_MEMBERS:,} members, expected at most that many")
        # A comma behind the last is forgiven, and so is an empty list.
        if depth or data[start : token.start()].strip():
            yield start, token.start()
        start = token.end()
        if depth == 0:
            return _check_end(data, start)
    raise DamagedError(f"{len(data):,} bytes of JSON that end too early", truncated=True)
