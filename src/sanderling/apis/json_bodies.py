"""The JSON of a reply's body, in whatever charset, or why there is none: in words that go on after `the body`."""

import re

import msgspec

from sanderling.task import Reply

BOM = b"\xef\xbb\xbf"
LONGEST_ERROR = 200
TRUNCATED = "Input data was truncated"  # says msgspec, also of a text that ends with half of a surrogate pair

_DOCUMENT = msgspec.json.Decoder()
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
_BYTE = re.compile(r" \(byte (\d+)\)")
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(rb"%b(?!%b)|(?<!%b)%b" % (_HIGH, _LOW, _HIGH, _LOW))
# What msgspec says of numbers that JSON allows and Python has not.
_NUMBERS = {
    "Number out of range": "has a number beyond those of 64-bit floats, like 1e999",
    "Integer value out of range": "has an integer of more than 4,300 digits",
}


def charset_of(reply: Reply) -> str:
    """The charset that a reply says it is in; UTF-8 where it says nothing."""
    named = _CHARSET.search(reply.header("Content-Type") or "")
    return named[1] if named else "utf-8"


def decode_body(reply: Reply) -> object:
    """The document in the body: in UTF-8, as JSON is, or in the charset that it is said to have. Raises ValueError."""
    try:
        return _DOCUMENT.decode(reply.body.removeprefix(BOM))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        why = _explain(reply.body, error)
    try:
        return _DOCUMENT.decode(reply.body.decode(charset_of(reply)).encode())
    except (msgspec.MsgspecError, ValueError, LookupError, RecursionError):
        raise ValueError(why) from None


def _explain(body: bytes, error: Exception) -> str:
    if not body.removeprefix(BOM).strip():
        return "is empty"
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, UnicodeError):
        return _explain_bytes(body)
    said = str(error).removeprefix("JSON is malformed: ").partition(" - at ")[0]
    if said in _NUMBERS:
        return _NUMBERS[said]
    if (said == TRUNCATED or "surrogate" in said) and (half := _HALF.search(body)):
        return f"has half of a surrogate pair, {half[0].decode()} (byte {half.start()})"
    skipped = len(body) - len(body.removeprefix(BOM))
    said = said if said != TRUNCATED else f"it ends too early (byte {len(body) - skipped})"
    said = _BYTE.sub(lambda found: f" (byte {int(found[1]) + skipped})", said)
    return f"is no JSON: {said}"[:LONGEST_ERROR]


def _explain_bytes(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f"is no UTF-8: it has 0x{body[error.start]:02x} (byte {error.start})"
    return "is no UTF-8"
