"""What a simulated game says when it has no report to show, word for word, and what all its answers are like."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

import msgspec

from sanderling.task import Headers
from sanderling.worlds.game_reports import envelope
from sanderling.worlds.game_weather import GameRefusal, WeatherRules
from sanderling.worlds.weather import TransportFault, WorldAnswer

JSON, HTML = "application/json; charset=utf-8", "text/html; charset=utf-8"
SYSTEMS = ("Destiny2", "D2Profiles", "Activities", "Groups", "Clans", "D2Characters")


class GameKind(StrEnum):
    """What an answer is, as the game itself knows it."""

    REPORT = "report"
    MISSING = "missing"  # there is no such id, or not yet
    HIDDEN = "hidden"
    TROUBLED = "troubled"
    HOSTILE = "hostile"
    SETTINGS = "settings"
    INVALID = "invalid"  # nothing that can be asked
    DISABLED = "disabled"
    REFUSED = "refused"  # over the quota
    BAD_GATEWAY = "bad_gateway"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class GameAnswer(WorldAnswer):
    """What comes back, and how."""

    kind: GameKind = GameKind.REPORT
    code: int = 0  # the API's own, as the body has it; 0 where it has none
    number: int | None = None  # the id that was asked for
    times: int = 1  # that the body is sent: so a large one takes no memory

    def pieces(self) -> Iterator[tuple[float, bytes]]:
        """What arrives of the body: seconds to wait, and then bytes."""
        for _ in range(self.times):
            yield 0.0, self.body

    def after(self, latency: float, number: int | None) -> "GameAnswer":
        """The same, as an answer to a question."""
        # Not `replace`, which takes longer than all the rest of a question about a missing id.
        return GameAnswer(
            self.status, self.headers, self.body, latency, self.fault, 0.0, self.kind, self.code, number, self.times
        )


def answer_with(kind: GameKind, body: bytes, *, code: int = 1, times: int = 1) -> GameAnswer:
    """A success, or what passes for one."""
    headers = (("Content-Type", JSON), ("Content-Length", str(len(body) * times)))
    return GameAnswer(200, headers, body, 0.0, kind=kind, code=code, times=times)


def _error(kind: GameKind, status: int, code: int, name: str, message: str, *, throttle: int = 0) -> GameAnswer:
    body = msgspec.json.encode(
        {"ErrorCode": code, "ThrottleSeconds": throttle, "ErrorStatus": name, "Message": message, "MessageData": {}}
    )
    headers = (("Content-Type", JSON), ("Content-Length", str(len(body))))
    return GameAnswer(status, headers, body, 0.0, kind=kind, code=code)


def _page(kind: GameKind, status: int, title: str) -> GameAnswer:
    """What something in front of the API says, which knows nothing of its envelope."""
    body = f"<html>\n<head><title>{title}</title></head>\n<body><h1>{title}</h1></body>\n</html>\n".encode()
    headers = (("Content-Type", HTML), ("Content-Length", str(len(body))))
    return GameAnswer(status, headers, body, 0.0, kind=kind)


def _settings(*, enabled: bool) -> GameAnswer:
    systems = {name: {"enabled": enabled, "parameters": {}} for name in SYSTEMS}
    return answer_with(GameKind.SETTINGS, msgspec.json.encode(envelope({"environment": "live", "systems": systems})))


MISSING = _error(GameKind.MISSING, 404, 1653, "DestinyPGCRNotFound", "The activity you were looking for was not found.")
# Not a status by which it could be told from a refusal: only the code tells.
HIDDEN = _error(GameKind.HIDDEN, 403, 12, "InsufficientPrivileges", "This report is not to be seen at this time.")
TROUBLED = _error(GameKind.TROUBLED, 500, 1618, "DestinyUnexpectedError", "Something unexpected has happened.")
DISABLED = _error(GameKind.DISABLED, 503, 5, "SystemDisabled", "This system is switched off for maintenance.")
INVALID = _error(GameKind.INVALID, 400, 18, "InvalidParameters", "The parameters are not valid.")
NOWHERE = _page(GameKind.INVALID, 404, "404 Not Found")
BAD_GATEWAY = _page(GameKind.BAD_GATEWAY, 502, "502 Bad Gateway")
RESET = GameAnswer(0, (), b"", 0.0, TransportFault.RESET, kind=GameKind.RESET)
SETTINGS = {enabled: _settings(enabled=enabled) for enabled in (True, False)}


def refusals(rules: WeatherRules) -> dict[GameRefusal, GameAnswer]:
    """What each kind of refusal says."""
    wait: Headers = () if rules.retry_after is None else (("Retry-After", str(ceil(rules.retry_after))),)
    throttled = _error(
        GameKind.REFUSED,
        503,
        1672,
        "DestinyThrottledByGameServer",
        "The game's servers are asked too much.",
        throttle=rules.throttle_seconds,
    )
    all_of_them = {
        GameRefusal.THROTTLED: throttled,
        GameRefusal.FORBIDDEN: _page(GameKind.REFUSED, 403, "403 Forbidden"),
        GameRefusal.UNAVAILABLE: _page(GameKind.REFUSED, 503, "503 Service Unavailable"),
    }
    return {
        refusal: GameAnswer(said.status, said.headers + wait, said.body, 0.0, kind=said.kind, code=said.code)
        for refusal, said in all_of_them.items()
    }
