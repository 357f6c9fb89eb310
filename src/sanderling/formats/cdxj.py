"""CDXJ: an index of captures, a line each: key, time, JSON. Sorted by bytes, so it is looked up by halving."""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

# What tells a visit and not a page, as replay software leaves it out of its keys.
_SESSION_PATH = re.compile(r"/(\([0-9a-z]{24}\)|\(([a-z]\([0-9a-z]{24}\))+\))(?=/[^?]+\.aspx)")
_SESSION_QUERY = re.compile(
    r"jsessionid=[0-9a-z$]{10,}|(phpsess|s)id=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cf(id|token)=[^&]*"
)
_WWW = re.compile(r"^www\d*\.")
PORTS = {"http": 80, "https": 443}


class CdxEntry(msgspec.Struct, frozen=True):
    """What a line says of a capture; every value is text."""

    url: str
    mime: str
    status: str
    digest: str
    length: str
    offset: str
    filename: str


def surt(url: str) -> str:
    """The key of a URL: its host backwards, path and sorted query in lower case, as replay software writes it."""
    parts = urlsplit(url)
    host = ",".join(reversed(_WWW.sub("", parts.hostname or "", count=1).split(".")))
    port = f":{parts.port}" if parts.port not in (None, PORTS.get(parts.scheme)) else ""
    path = _SESSION_PATH.sub("", _respelled(parts.path))
    path = normpath(f"/{path.lstrip('/')}")
    pairs = [each for each in _respelled(parts.query).split("&") if not _SESSION_QUERY.fullmatch(each)]
    query = "&".join(sorted(pairs, key=lambda each: each.split("=", 1)))
    return f"{host}{port}){path}" + (f"?{query}" if query else "")


def _respelled(part: str) -> str:
    """In lower case, with no more escapes than it needs."""
    plain = unquote_to_bytes(part.encode("utf-8", "surrogateescape"))
    return "".join(chr(byte) if 32 < byte < 127 and byte not in b"#%" else f"%{byte:02x}" for byte in plain).lower()


def cdx_line(date: str, entry: CdxEntry) -> bytes:
    """A line for what was captured at a date like that of a WARC."""
    return f"{surt(entry.url)} {stamp(date)} ".encode() + msgspec.json.encode(entry) + b"\n"


def stamp(date: str) -> str:
    """2026-11-18T06:30:00Z as 20261118063000."""
    return re.sub(r"\D", "", date)[:14]


def date_of(stamped: str) -> str:
    """The other way round."""
    day = f"{stamped[:4]}-{stamped[4:6]}-{stamped[6:8]}"
    return f"{day}T{stamped[8:10]}:{stamped[10:12]}:{stamped[12:14]}Z"


def find_captures(path: Path, url: str) -> Iterator[tuple[str, CdxEntry]]:
    """The captures of this very URL in an index, the earliest first, each with its date."""
    key = f"{surt(url)} ".encode()
    with path.open("rb") as file:
        low, high = 0, file.seek(0, 2)
        while low < high:  # the first byte from which on no line is below the key
            middle = (low + high) // 2
            file.seek(middle)
            if middle:
                file.readline()
            line = file.readline()
            if line and line < key:
                low = middle + 1
            else:
                high = middle
        file.seek(low)
        if low:
            file.readline()
        for line in file:
            if not line.startswith(key):
                return
            _, stamped, entry = line.split(b" ", 2)
            found = msgspec.json.decode(entry, type=CdxEntry)
            if found.url == url:
                yield date_of(stamped.decode()), found
