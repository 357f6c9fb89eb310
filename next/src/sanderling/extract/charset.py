"""From bytes to text, as browsers do it: byte order mark, what the server says, what the page says, detection."""

import codecs

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5
from selectolax.lexbor import LexborHTMLParser

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# What the decoders of the Encoding Standard read beyond Python's codecs of these names.
_CODECS = {
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-11": "cp874",
    "iso8859-9": "cp1254",
}
_SINGLE_BYTE = ("cp", "iso8859", "koi8", "mac")
# The standard looks at 1,024 bytes and then reloads the page when a later tag names another charset.
_PRESCAN = 8192
# Characters of several bytes for each byte that is no UTF-8: other encodings hardly ever look so.
_FOR_EACH_FLAW = 4


# Where the Encoding Standard's names differ from those of Python's codecs by more than their signs.
_NAMES = {"cp866": "ibm866", "mac-roman": "macintosh", "iso8859-11": "windows-874", "iso2022_jp": "iso-2022-jp"}


def decode(body: bytes, label: str | None) -> tuple[str, str]:
    """The text of a page and its charset by the Encoding Standard's name; `label` is that of Content-Type."""
    text, codec = _decode(body, label)
    if codec.startswith("cp125"):
        return text, codec.replace("cp", "windows-")
    plain = codec.replace("utf-16-", "utf-16").replace("iso8859-", "iso-8859-").replace("euc_", "euc-")
    return text, _NAMES.get(codec, plain)


def _decode(body: bytes, label: str | None) -> tuple[str, str]:
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace"), name
    declared = charset_named(label) or _charset_in_page(body)
    if declared is not None and declared.startswith(_SINGLE_BYTE) and body.isascii():
        return body.decode("ascii"), declared
    # A server's default is often Latin-1 for pages in UTF-8; a text in Latin-1 that is valid UTF-8 hardly exists.
    tried = ["utf-8", declared] if declared is None or declared.startswith(_SINGLE_BYTE) else [declared, "utf-8"]
    for name in filter(None, tried):
        try:
            return body.decode(_CODECS.get(name, name)), name
        except UnicodeDecodeError:
            continue
    if declared is None:
        text = body.decode("utf-8", "replace")
        flaws = text.count("\ufffd")
        foreign = len(text) - len(text.encode("ascii", "ignore")) - flaws
        if foreign >= _FOR_EACH_FLAW * flaws:
            return text, "utf-8"
    name = declared or _detected(body)
    return body.decode(_CODECS.get(name, name), "replace"), name


def _detected(body: bytes) -> str:
    # Asked for names of the web, it says utf-8 for Korean.
    if detect_encoding(body, html5_compatible=False) == "cp949":
        return "euc_kr"
    return detect_encoding(body) or "cp1252"


def charset_named(label: str | None) -> str | None:
    """Python's name of the charset that `label` means on the web; None for an unknown one."""
    return map_encoding_to_html5(label.strip("\"' \t\r\n"), fallback_utf8=False) if label else None


def charset_of(content_type: str | None) -> str | None:
    """The charset that a Content-Type names; what stands in quotes is no parameter."""
    quoted = (content_type or "")[:1000].split('"')
    plain = '"'.join(part.replace(";", ",") if at % 2 else part for at, part in enumerate(quoted))
    for part in plain.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value
    return None


def _charset_in_page(body: bytes) -> str | None:
    for meta in LexborHTMLParser(body[:_PRESCAN]).css("meta[charset],meta[http-equiv][content]"):
        said = meta.attributes
        label = said.get("charset")
        if label is None and (said.get("http-equiv") or "").lower() == "content-type":
            label = charset_of(said.get("content"))
        name = charset_named(label)
        if name:
            # A page whose tag could be read is not in UTF-16, whatever it says.
            return "utf-8" if name.startswith("utf-16") else name
    return None
