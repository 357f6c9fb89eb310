"""What a body is: HTML, JSON, text or something else. Servers say, and are not always right."""

import re
from enum import Enum
from functools import lru_cache


class ContentKind(Enum):
    """What a body is, as far as we are concerned."""

    HTML = "html"
    JSON = "json"
    TEXT = "text"
    OTHER = "other"


_MEDIA_TYPE = re.compile(r"\s*([\w!#$&^.+-]+/[\w!#$&^.+-]+)\s*(?:;|$)")
_HTML_TYPES = frozenset(("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"))
_TEXT_TYPES = frozenset(("application/xml", "application/javascript", "application/x-javascript", "application/yaml"))
# What servers say when they do not know.
_UNKNOWN_TYPES = frozenset(
    ("application/octet-stream", "application/unknown", "unknown/unknown", "binary/octet-stream")
)
_BINARY = (
    *(b"%PDF-", b"\x89PNG\r\n", b"GIF87a", b"GIF89a", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b\x08", b"Rar!\x1a"),
    *(b"RIFF", b"OggS", b"ID3", b"\x7fELF", b"\0asm", b"\0\0\x01\0", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf", b"wOFF"),
    *(b"wOF2", b"\xd0\xcf\x11\xe0", b"SQLite format 3\0", b"\x28\xb5\x2f\xfd"),
)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*|<\?xml[^>]*>\s*)*<(?:!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL
)
_TAG_START = re.compile(
    rb"\s*<(?:head|body|title|meta|link|script|style|div|p|h[1-6]|table|a|br|b|font|iframe)[\s/>]", re.IGNORECASE
)
_JSON_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*(?:\"|\}\s*$)|\[\s*(?:[\[{\"\]]|-?[0-9]+\s*[,\]]|true|false|null))"
)
SNIFFED = 512  # bytes that it is told by


def kind_of(content_type: str | None, body: bytes) -> ContentKind:
    """What `body` is: by its media type, unless there is none or the first bytes say that it is wrong."""
    declared, start = _declared(content_type or ""), body[:SNIFFED]
    if declared is None:
        return _sniffed(start)
    if declared is ContentKind.OTHER or start.startswith(_BINARY):
        return ContentKind.OTHER
    # Errors come as HTML from JSON endpoints, and JSON as text/html from servers nobody configured. Plain text stays
    # what it is: the source of a page may be shown on purpose.
    if declared is ContentKind.JSON and _HTML_START.match(start):
        return ContentKind.HTML
    if declared is ContentKind.HTML and _JSON_START.match(start):
        return ContentKind.JSON
    return declared


def says_nothing(content_type: str | None) -> bool:
    """Whether only the bytes can tell what a body is."""
    return _declared(content_type or "") is None


# There are few that servers say, and each is said again and again.
@lru_cache(maxsize=256)
def _declared(content_type: str) -> ContentKind | None:
    """What a server says that it is; None if it does not know."""
    found = _MEDIA_TYPE.match(content_type)
    media = found[1].lower() if found else ""
    return None if not media or media in _UNKNOWN_TYPES else _kind_of_media(media)


def _kind_of_media(media: str) -> ContentKind:
    if media in _HTML_TYPES:
        return ContentKind.HTML
    if media.startswith(("image/", "audio/", "video/", "font/")):
        return ContentKind.OTHER
    if media.endswith(("/json", "+json", "/x-ndjson", "/json-seq")):
        return ContentKind.JSON
    if media.startswith("text/") or media in _TEXT_TYPES or media.endswith("+xml"):
        return ContentKind.TEXT
    return ContentKind.OTHER


def _sniffed(start: bytes) -> ContentKind:
    if start.startswith(_BINARY):
        return ContentKind.OTHER
    if _HTML_START.match(start) or _TAG_START.match(start):
        return ContentKind.HTML
    if _JSON_START.match(start):
        return ContentKind.JSON
    return ContentKind.TEXT if start.startswith(_UTF16_MARKS) or b"\0" not in start else ContentKind.OTHER
