"""What the readers of `bench/readers.py` do with an item: a page's facts, or the records of a reply in JSON."""

import os
from collections.abc import Callable

import msgspec

from sanderling.extract.html import read_page

URL = "https://a.example/x/"


class Found(msgspec.Struct, array_like=True):
    """What goes back: finished lines, and addresses to go on with."""

    lines: list[bytes]
    urls: list[str]


def open_work(_argument: bytes) -> Callable[[bytes, bytes], bytes]:
    return lambda head, body: WORK[head](body)


def page(body: bytes) -> bytes:
    facts = read_page(body, "text/html", URL)
    record = {"url": URL, "title": facts.title, "language": facts.language, "text": facts.text}
    return msgspec.msgpack.encode(Found([msgspec.json.encode(record)], [link.url for link in facts.links]))


def records(body: bytes) -> bytes:
    """As a reply function would: each item of the list is a record, and the next page is a request."""
    reply = msgspec.json.decode(body)
    lines = [msgspec.json.encode({"id": item["id"], "name": item["name"].strip()}) for item in reply["items"]]
    return msgspec.msgpack.encode(Found(lines, [f"{URL}?after={reply['after']}"]))


WORK: dict[bytes, Callable[[bytes], bytes]] = {
    b"page": page,
    b"json": records,
    b"pid": lambda _body: str(os.getpid()).encode(),
}
