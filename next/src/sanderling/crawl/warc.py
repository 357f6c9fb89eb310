"""Records of web archives (WARC 1.1, a gzip member each) and their index in CDXJ, as pywb reads it.

A record holds a response as it was read: unpacked, in one piece, and without headers that hold secrets. What the host
said of length and packing is in `X-Archive-Orig-…`.
"""

import gzip
import io
from base64 import b32encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha1
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from sanderling.fetch.messages import Headers
from sanderling.files import FolderError, disk_errors

LARGEST_RECORD = 256 << 20  # bytes of a record that is read; a larger one is passed over
MOST_HEADERS = 1000
_SECRETS = frozenset("authorization cookie set-cookie proxy-authorization www-authenticate proxy-authenticate".split())
_FRAMING = frozenset("content-encoding transfer-encoding content-length".split())


@dataclass(frozen=True, slots=True)
class Capture:
    """A response that is kept, to a plain GET."""

    url: str
    status: int
    headers: Headers
    body: bytes
    time: str  # as rows have it


def kept_headers(headers: Headers) -> Headers:
    """Those that may be kept; those of packing and length get other names, since the body is unpacked."""
    return tuple(
        (f"X-Archive-Orig-{name}" if name.lower() in _FRAMING else name, value)
        for name, value in headers
        if name.lower() not in _SECRETS
    )


def info_record(file: str) -> bytes:
    """The first record of a file."""
    record = WarcRecord()
    record.init_headers(record_type=WarcRecordType.warcinfo)
    record.headers.set("WARC-Filename", file)
    record.headers.set("Content-Type", "application/warc-fields")
    record.set_bytes_content(
        f"software: sanderling/{version('sanderling')}\r\nformat: WARC File Format 1.1\r\n".encode()
    )
    return _packed(record)


def response_record(capture: Capture) -> bytes:
    """The record of a response."""
    try:
        reason = HTTPStatus(capture.status).phrase
    except ValueError:
        reason = ""
    lines = [f"HTTP/1.1 {capture.status} {reason}".rstrip()]
    lines += [f"{name}: {value}" for name, value in kept_headers(capture.headers)]
    lines += [f"Content-Length: {len(capture.body)}", "", ""]
    record = WarcRecord()
    record.init_headers(record_type=WarcRecordType.response)
    record.headers.set("WARC-Date", capture.time)
    record.headers.set("WARC-Target-URI", capture.url)
    record.headers.set("Content-Type", "application/http; msgtype=response")
    record.headers.set("WARC-Payload-Digest", digest_of(capture.body))
    record.set_bytes_content("\r\n".join(lines).encode() + capture.body)
    return _packed(record)


def _packed(record: WarcRecord) -> bytes:
    plain = io.BytesIO()
    record.write(plain, checksum_data=True)
    return gzip.compress(plain.getvalue(), 6, mtime=0)


def digest_of(body: bytes) -> str:
    """As archives write it."""
    return f"sha1:{b32encode(sha1(body, usedforsecurity=False).digest()).decode()}"


class IndexEntry(msgspec.Struct, omit_defaults=True):
    """A line of an index (CDXJ): where a response is kept, in a WARC file or, without an offset, in its own file."""

    url: str
    mime: str = ""
    status: str = ""
    digest: str = ""
    length: str = ""
    offset: str = ""
    filename: str = ""
    headers: Headers = ()  # of a body in a file of its own
    time: str = ""


def record_entry(capture: Capture, file: str, offset: int, length: int) -> IndexEntry:
    """Where a record is."""
    said = next((value for name, value in capture.headers if name.lower() == "content-type"), "")
    mime = said.partition(";")[0].strip().lower() or "unk"
    return IndexEntry(capture.url, mime, str(capture.status), digest_of(capture.body), str(length), str(offset), file)


def index_line(capture: Capture, entry: IndexEntry) -> bytes:
    """The line of an entry."""
    digits = "".join(filter(str.isdecimal, capture.time))
    return f"{sort_key(capture.url)} {digits[:14]} ".encode() + msgspec.json.encode(entry) + b"\n"


def read_index_line(line: bytes) -> IndexEntry:
    """The entry of a line."""
    return msgspec.json.decode(line.split(b" ", 2)[2], type=IndexEntry)


def sort_key(url: str) -> str:
    """A URL as indexes sort it: `org,example)/path?a=1&b=2`."""
    parts = urlsplit(url.lower())
    first, _, rest = (parts.hostname or "").partition(".")
    name = rest if first.rstrip("0123456789") == "www" else parts.hostname or ""
    host = ",".join(reversed(name.split(".")))
    port = parts.port
    query = "&".join(sorted(parts.query.split("&")))
    path = parts.path if parts.path == "/" else parts.path.rstrip("/")
    return f"{host}{f':{port}' if port else ''}){path or '/'}{f'?{query}' if query else ''}"


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record of a file that answers requests: a response, or a revisit of one that came before."""

    url: str
    time: float
    offset: int
    payload: str  # its digest, where the file says it
    is_revisit: bool
    block: bytes


def read_records(path: Path, offset: int = 0) -> Iterator[FoundRecord]:
    """The responses of a file of any writer, from a byte on; a record that was cut off ends it.

    Raises FolderError for what is no WARC, and for one that has several records in a gzip member.
    """
    wanted = WarcRecordType.response | WarcRecordType.revisit | WarcRecordType.resource
    with disk_errors(path), path.open("rb") as file, path.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
        file.seek(offset)
        try:
            for record in ArchiveIterator(file, wanted, parse_http=False, max_content_length=LARGEST_RECORD):
                place = record.stream_pos
                raw.seek(place)
                if is_packed and raw.read(2) != b"\x1f\x8b":
                    raise FolderError(f"{path} has several records in a gzip member", "pack each record by itself")
                block = record.reader.read()
                if len(block) < record.content_length:
                    return
                headers = record.headers
                url = (headers.get("WARC-Target-URI") or "").strip("<> ")
                if record.record_type == WarcRecordType.resource:
                    kind = headers.get("Content-Type") or ""
                    block = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode() + block
                yield FoundRecord(
                    url, seconds_of(headers.get("WARC-Date") or ""), place, headers.get("WARC-Payload-Digest") or "",
                    record.record_type == WarcRecordType.revisit, block,
                )  # fmt: skip
        except (OSError, ValueError, EOFError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            if not offset and file.tell() < 1 << 17 and "nvalid" in str(error):
                raise FolderError(f"{path} is no WARC file: {error}", "choose another file") from None


def seconds_of(text: str) -> float:
    """A time of a record in seconds since 1970; 0 for what is none."""
    try:
        # Half a millisecond more: a time that is written again is the same then.
        return datetime.fromisoformat(text).timestamp() + 0.0005
    except ValueError:
        return 0.0


def read_block(block: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and body of a response as it is in a record; the body may be packed. Raises ValueError."""
    head, gap, body = block.partition(b"\r\n\r\n")
    if not gap:
        head, gap, body = block.partition(b"\n\n")
    first, *lines = head.splitlines()[: MOST_HEADERS + 1] or [b""]
    protocol, _, status = first.partition(b" ")
    if not protocol.startswith(b"HTTP/") or not status[:3].isdigit() or len(status) < 3:
        raise ValueError("the record holds no response of HTTP")
    pairs = [line.decode(errors="replace").partition(":") for line in lines if b":" in line]
    headers = tuple((name.strip(), value.strip()) for name, _, value in pairs)
    if any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in headers):
        body = _joined(body)
    return int(status[:3]), headers, body


def _joined(body: bytes) -> bytes:
    """A body without the marks of its chunks; as it is, if it has none although its headers say so."""
    pieces, at = list[bytes](), 0
    while (end := body.find(b"\n", at, at + 1000)) > 0:
        try:
            length = int(body[at:end].partition(b";")[0].strip()[:9], 16)
        except ValueError:
            break
        if length <= 0:
            return b"".join(pieces)
        pieces.append(body[end + 1 : end + 1 + length])
        at = end + 1 + length
        at += 2 if body[at : at + 2] == b"\r\n" else 1
    return body
