"""A body is read in the charset that it has; of one that cannot be read it is said why, and where."""

import json

import pytest

from sanderling.apis.conditions import JsonReply
from sanderling.apis.json_bodies import BOM
from sanderling.task import Reply


def parsed(body: bytes, content_type: str = "application/json") -> JsonReply:
    return JsonReply(Reply(200, (("Content-Type", content_type),), body, "https://a.example/", 0.1))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "is empty"),
        (BOM + b" \n", "is empty"),
        (rb'{"a":"\ud800"}', r"has half of a surrogate pair, \ud800 (byte 6)"),
        (rb'["\ud83d\ude00","\udc00"]', r"has half of a surrogate pair, \udc00 (byte 17)"),
        (rb'["\ud800\u0041x", 1]', r"has half of a surrogate pair, \ud800 (byte 2)"),
        (b'{"a": [1, 2', "is no JSON: it ends too early (byte 11)"),
        (rb'["\ud83d\ude00', "is no JSON: it ends too early (byte 14)"),
        (b'{"a": 1, oops}', "is no JSON: object keys must be strings (byte 9)"),
        (BOM + b'{"a": 1, oops}', "is no JSON: object keys must be strings (byte 12)"),
        (b'{"a": NaN}', "is no JSON: invalid character (byte 6)"),
        ('{"aaaa": "é"}'.encode("latin-1"), "is no UTF-8: it has 0xe9 (byte 10)"),
        (b'{"a": 1e999}', "has a number beyond those of 64-bit floats, like 1e999"),
        (b"9" * 5000, "has an integer of more than 4,300 digits"),
        (b"[" * 5000, "is nested too deeply"),
    ],
)
def test_why_a_body_cannot_be_read(body: bytes, why: str) -> None:
    reply = parsed(body)

    assert (reply.is_json, reply.document, reply.error) == (False, None, why)


@pytest.mark.parametrize("charset", ["iso-8859-1", "windows-1252", "utf-16", "UTF-8", "utf-32-be", "no-such-charset"])
def test_a_document_is_read_in_the_charset_that_it_is_said_to_have(charset: str) -> None:
    document = {"name": "Zoë", "text": "été"}
    known = charset != "no-such-charset"
    body = json.dumps(document, ensure_ascii=False).encode(charset if known else "latin-1")

    reply = parsed(body, f'application/json; charset="{charset}"')

    assert reply.document == (document if known else None)
    assert reply.error == ("" if known else "is no UTF-8: it has 0xeb (byte 12)")
