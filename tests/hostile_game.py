"""A simulated game with reports that are not what they should be: each kind breaks one thing a reader might rely on."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from sanderling.worlds.chance import scatter
from sanderling.worlds.game import BEGAN, Game, GameRules
from sanderling.worlds.game_answers import GameAnswer, GameKind, answer_with
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


@dataclass(frozen=True, slots=True)
class HostileRules(GameRules):
    """What a game is like, and which of its ids are hostile."""

    hostile: Mapping[int, Hostile] = field(default_factory=dict)


class HostileGame(Game):
    """A game in which some ids are hostile."""

    rules: HostileRules

    def __init__(self, rules: HostileRules, seed: int, began: float = BEGAN) -> None:
        super().__init__(rules, seed, began)
        self._changing: Counter[int] = Counter()  # how often each was asked for, of those that change every time
        assert all(self.exists(number) for number in rules.hostile)

    def _found(self, number: int, now: float) -> GameAnswer:
        kind = self.rules.hostile.get(number)
        if kind is None or self.visible(number) > now:
            return super()._found(number, now)
        if kind is Hostile.CHANGING:
            self._changing[number] += 1
            bits = scatter(number + self._changing[number], self._other_salt)
            return answer_with(GameKind.HOSTILE, self._reports.body(number, bits, self.born(number)))
        written = number + 1 if kind is Hostile.WRONG_ID else number
        body = self._reports.body(written, scatter(number, self._report_salt), self.born(number))
        spoilt = SPOIL[kind](body) if kind in SPOIL else body
        return answer_with(GameKind.HOSTILE, spoilt, times=HUGE if kind is Hostile.HUGE else 1)
