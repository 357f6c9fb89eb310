"""Reports that are not what they should be: each kind breaks one thing that a reader might take for granted."""

import re
from collections.abc import Callable
from enum import StrEnum

import msgspec

from sanderling.worlds.game_reports import envelope

PIECE = b" " * 2**16
HUGE = 3200  # pieces: 200 MiB of blanks, with which JSON may well begin


class Hostile(StrEnum):
    """What is wrong with the answers for an id."""

    NOT_JSON = "not_json"
    CUT = "cut"  # JSON that ends early, under a length that is right
    NULL = "null"  # a success without a response
    NO_ENTRIES = "no_entries"
    NEGATIVE = "negative"  # durations below 0
    GIANT_IDS = "giant_ids"  # ids of players of 2^63, which no signed number of 64 bits holds
    WRONG_ID = "wrong_id"  # another id's report
    DEEP = "deep"  # brackets within brackets
    HUGE = "huge"  # 200 MiB, which are never in memory at once
    CHANGING = "changing"  # another activity each time it is asked for


def _without_entries(body: bytes) -> bytes:
    report = msgspec.json.decode(body)
    report["Response"]["entries"] = []
    return msgspec.json.encode(report)


# What becomes of the body. Those that are not here are no matter of the body alone.
SPOIL: dict[Hostile, Callable[[bytes], bytes]] = {
    Hostile.NOT_JSON: lambda _body: b"the report is not available\n",
    Hostile.CUT: lambda body: body[: len(body) // 2],
    Hostile.NULL: lambda _body: msgspec.json.encode(envelope(None)),
    Hostile.NO_ENTRIES: _without_entries,
    Hostile.NEGATIVE: lambda body: re.sub(rb'(DurationSeconds":\{"basic":\{"value":)', rb"\1-", body),
    Hostile.GIANT_IDS: lambda body: re.sub(rb'(membershipId":")\d+', rb"\g<1>%d" % 2**63, body),
    Hostile.DEEP: lambda _body: b'{"Response":' + b"[" * 200_000,
    Hostile.HUGE: lambda _body: PIECE,
}
