"""From bytes to text, as browsers read them: by mark, by what the server says, by what the page says, by trying."""

import codecs
import re

# The encodings of the WHATWG standard with the labels in use, ours first where two would do. The names are the
# standard's; what Python calls the same is beside them where it differs. `latin1` is windows-1252 on the web.
_LABELS = {
    "utf-8": "utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "windows-1252": "latin1 iso-8859-1 iso8859-1 iso88591 iso_8859-1 iso-ir-100 l1 ascii us-ascii ansi_x3.4-1968"
    " cp1252 cp819 ibm819 x-cp1252 csisolatin1",
    "iso-8859-2": "latin2 iso8859-2 iso88592 iso_8859-2 l2 csisolatin2",
    "iso-8859-3": "latin3 iso8859-3 iso88593 iso_8859-3 l3",
    "iso-8859-4": "latin4 iso8859-4 iso88594 iso_8859-4 l4",
    "iso-8859-5": "cyrillic iso8859-5 iso88595 iso_8859-5",
    "iso-8859-6": "arabic iso8859-6 iso88596 iso_8859-6 asmo-708 ecma-114 iso-8859-6-e iso-8859-6-i",
    "iso-8859-7": "greek greek8 iso8859-7 iso88597 iso_8859-7 ecma-118 elot_928 sun_eu_greek",
    "iso-8859-8": "hebrew visual iso8859-8 iso88598 iso_8859-8 iso-8859-8-e logical iso-8859-8-i",
    "iso-8859-10": "latin6 iso8859-10 iso885910 l6",
    "iso-8859-13": "iso8859-13 iso885913",
    "iso-8859-14": "iso8859-14 iso885914",
    "iso-8859-15": "iso8859-15 iso885915 iso_8859-15 l9 latin9",
    "iso-8859-16": "",
    "koi8-r": "koi koi8 koi8_r cskoi8r",
    "koi8-u": "koi8-ru",
    "macintosh": "mac csmacintosh x-mac-roman",
    "x-mac-cyrillic": "x-mac-ukrainian",
    "ibm866": "866 cp866 csibm866",
    "windows-874": "dos-874 tis-620 iso-8859-11 iso8859-11 iso885911",
    "windows-1250": "cp1250 x-cp1250",
    "windows-1251": "cp1251 x-cp1251",
    "windows-1253": "cp1253 x-cp1253",
    "windows-1254": "cp1254 x-cp1254 latin5 iso-8859-9 iso8859-9 iso88599 iso_8859-9 l5 csisolatin5",
    "windows-1255": "cp1255 x-cp1255",
    "windows-1256": "cp1256 x-cp1256",
    "windows-1257": "cp1257 x-cp1257",
    "windows-1258": "cp1258 x-cp1258",
    "gbk": "gb2312 chinese gb_2312 gb_2312-80 x-gbk csgb2312",
    "gb18030": "",
    "big5": "big5-hkscs cn-big5 x-x-big5 csbig5",
    "euc-jp": "x-euc-jp cseucpkdfmtjapanese",
    "iso-2022-jp": "csiso2022jp",
    "shift_jis": "shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis",
    "euc-kr": "korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949 cseuckr",
    "utf-16le": "utf-16 ucs-2 unicode iso-10646-ucs-2 csunicode unicodefeff",
    "utf-16be": "unicodefffe",
}
_CODECS = {
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "windows-874": "cp874",
    "macintosh": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
}
_NAMES = {label: name for name, labels in _LABELS.items() for label in (name, *labels.split())}

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))
# Where the standard stops looking.
_LOOK = 1024
_META = re.compile(rb"<meta[^>]*?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.+-]{2,40})", re.IGNORECASE)


def named(label: str | None) -> str | None:
    """The encoding that `label` means on the web; None for no such."""
    return _NAMES.get(label.strip("\"' \t\n\r\f").lower()) if label else None


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
                return body.decode(_CODECS.get(tried, tried)), tried
            except UnicodeDecodeError:
                continue
    last = declared or "windows-1252"
    return body.decode(_CODECS.get(last, last), "replace"), last


def _declared_inside(body: bytes) -> str | None:
    found = _META.search(body[:_LOOK])
    name = named(found[1].decode("ascii")) if found else None
    # A page whose tag could be read is not in UTF-16, whatever it says.
    return "utf-8" if name and name.startswith("utf-16") else name
