"""From bytes to text, as browsers read them: by mark, by what the server says, by what the page says, by detection.

The labels are those of the WHATWG Encoding Standard (`webencodings`). What a page says of itself is looked for as the
HTML Standard does in its prescan, with two differences: we look further than 1,024 bytes, as browsers do in effect by
loading a page again, and what is inside scripts and styles is no tag. What nothing says is detected by chardetng, the
detector of Firefox.
"""

import codecs
import re
from urllib.parse import quote

import webencodings  # type: ignore[import-untyped]  # ships neither stubs nor a marker
from chardetng_py import EncodingDetector  # type: ignore[import-untyped]  # the same

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))
# What the standard's decoders read beyond the encodings of these names in Python.
_CODECS = {"gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "euc-kr": "cp949"}
_LOOK = 2**16  # bytes in which a page must have said what it is in
_DETECT = 2**16  # bytes that are enough for a guess
FOR_EACH_FLAW = 4  # characters of several bytes that stand against a byte that is no UTF-8

_FOREIGN = re.compile(r"[^\0-\x7f]+")
_S = rb"\t\n\f\r "
_ATTRIBUTES = (
    rb"(?:[" + _S + rb"/]++|[^" + _S + rb"/>][^" + _S + rb"/>=]*+"
    rb"(?:[" + _S + rb"]*+=[" + _S + rb"]*+(?:\"[^\"]*+\"?|'[^']*+'?|[^" + _S + rb">\"'][^" + _S + rb">]*+|(?=>)))?+)*+"
)
_TAG = re.compile(
    rb"<(?:!--(?:-?>|.*?(?:-->|\Z))"
    rb"|meta(?=[" + _S + rb"/])(" + _ATTRIBUTES + rb")>"
    rb"|(script|style)(?=[" + _S + rb"/>])" + _ATTRIBUTES + rb">.*?(?:</\2|\Z)"
    rb"|/?[a-z]" + _ATTRIBUTES + rb">?"
    rb"|[!/?][^>]*+>?)",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    rb"([^" + _S + rb"/>][^" + _S + rb"/>=]*+)"
    rb"(?:[" + _S + rb"]*+=[" + _S + rb"]*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^" + _S + rb">]*+)))?+"
)
_CHARSET = re.compile(
    rb"charset[" + _S + rb"]*+=[" + _S + rb"]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\"'" + _S + rb";][^" + _S + rb";]*+))",
    re.IGNORECASE,
)


def named(label: str | None) -> str | None:
    """The encoding that `label` means on the web; None for no such."""
    found = webencodings.lookup(label.strip("\"' \t\n\r\f")) if label else None
    return None if found is None else found.name


def decode(body: bytes, charset_hint: str | None) -> tuple[str, str]:
    """The text of `body`, and the encoding it was read in; `charset_hint` is what Content-Type says.

    A charset that the bytes contradict is not believed if they are clean UTF-8; else what it cannot read becomes the
    replacement character. Any label and any bytes will do.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace"), name
    declared = named(charset_hint) or _declared_inside(body)
    for tried in (declared, "utf-8"):
        if tried:
            try:
                return _read(body, tried), tried
            except UnicodeDecodeError:
                continue
    if declared is None and (text := _flawed_utf8(body)):
        return text, "utf-8"
    last = declared or _detect(body)
    return _read(body, last, "replace"), last


def _flawed_utf8(body: bytes) -> str:
    """The text of what is UTF-8 but for a byte here and there, else nothing: other encodings hardly ever look so."""
    text = body.decode("utf-8", "replace")
    foreign = sum(map(len, _FOREIGN.findall(text)))
    flaws = text.count("\ufffd")
    return text if foreign - flaws >= FOR_EACH_FLAW * flaws else ""


def escape_in(text: str, name: str) -> str:
    """`text` percent-encoded in an encoding; what that does not have is written as HTML has it, `&#1078;`."""
    known = webencodings.lookup(name)
    if known is None or name.startswith("utf-16"):
        return quote(text)
    codec = _CODECS.get(name)
    data = text.encode(codec, "xmlcharrefreplace") if codec else known.codec_info.encode(text, "xmlcharrefreplace")[0]
    return quote(data, safe="")


def _read(body: bytes, name: str, errors: str = "strict") -> str:
    codec = _CODECS.get(name)
    if codec is not None:
        return body.decode(codec, errors)
    known = webencodings.lookup(name)
    text: str = known.codec_info.decode(body, errors)[0]
    return text


def _detect(body: bytes) -> str:
    detector = EncodingDetector()
    detector.feed(body[:_DETECT], last=len(body) <= _DETECT)
    return named(detector.guess(tld=None, allow_utf8=False)) or "windows-1252"


def _declared_inside(body: bytes) -> str | None:
    for found in _TAG.finditer(body, 0, _LOOK):
        name = None if found[1] is None else _declared_by(found[1])
        if name:
            # A page whose tag could be read is not in UTF-16, whatever it says.
            return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}.get(name, name)
    return None


def _declared_by(attributes: bytes) -> str | None:
    """The encoding that a meta tag names."""
    said: dict[bytes, bytes] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(attributes):
        said.setdefault(name.lower(), double or single or bare)
    label = said.get(b"charset")
    if label is None and said.get(b"http-equiv", b"").lower() == b"content-type":
        found = _CHARSET.search(said.get(b"content", b""))
        label = found and (found[1] or found[2] or found[3])
    known = webencodings.lookup(label.decode("latin-1")) if label else None
    return None if known is None else known.name
