"""What the replies of an API mean, declared: an error, nothing there, a refusal."""

import math

import msgspec

from sanderling.apis.conditions import JsonReply, check_setting, find_value, parse_subject, reply_condition
from sanderling.apis.json_paths import is_number, show_value
from sanderling.limit.hints import LONGEST, seconds_until
from sanderling.outcome import Code, Outcome
from sanderling.redact import redact

LONGEST_DETAIL = 200


class Answers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions about a reply, each of which may be left out. They are looked at in this order, and the first counts.

    Conditions about the body do not hold for a body that is no JSON: a proxy's page proves nothing. Where `error` is
    such a condition, a body of a 2xx that is no JSON is an error.
    """

    refused: str = ""  # the host limits us: the item has not failed, and the limiter learns
    missing: str = ""  # there is nothing, and there will be nothing: final, as a 404 is
    error: str = ""  # the item has failed, whatever the status; blame decides when it is asked again
    seconds: str = ""  # where a refusal says how long: a path or header.x-name; seconds, an instant or a date
    message: str = ""  # where a reply says why: a path or header.x-name

    def __post_init__(self) -> None:
        """Raise ValueError for what is no condition, or no path."""
        for name in ("refused", "missing", "error"):
            check_setting(name, getattr(self, name) or ".", reply_condition)
        for name in ("seconds", "message"):
            check_setting(name, getattr(self, name) or ".", parse_subject)
        if self.seconds and not self.refused:
            raise ValueError("seconds is there without refused, expected both: it says how long a refusal lasts")

    def read(self, reply: JsonReply, general: Outcome, wall: float) -> Outcome:
        """What a reply means; `general` is what its status and headers mean, `wall` the wall clock. Never raises."""
        if self._holds(self.refused, reply):
            return Outcome(
                Code.RATE_LIMITED, general.status, self._why(reply, self.refused), self._wait(reply, general, wall)
            )
        if self._holds(self.missing, reply):
            return Outcome(Code.CONTENT_NOT_FOUND, general.status, self._why(reply, self.missing))
        if self._holds(self.error, reply):
            return self._failed(general, self._why(reply, self.error))
        if self.error and general.ok and reply_condition(self.error).reads_body and not reply.is_json:
            return self._failed(general, f"the body {reply.error}")
        return general

    def _holds(self, text: str, reply: JsonReply) -> bool:
        condition = reply_condition(text) if text else None
        if condition is None or (condition.reads_body and not reply.is_json):
            return False
        return condition.holds(reply)

    def _failed(self, general: Outcome, detail: str) -> Outcome:
        # The code of a 500: the item is to blame first, and many different ones in a row are the host's fault.
        return Outcome(Code.HOST_UNAVAILABLE, general.status, detail[:LONGEST_DETAIL], general.retry_after)

    def _why(self, reply: JsonReply, condition: str) -> str:
        said = find_value(self.message, reply) if self.message else None
        found = f"{said[:LONGEST_DETAIL]} ({condition})" if isinstance(said, str) and said else condition
        return redact(found)[:LONGEST_DETAIL]

    def _wait(self, reply: JsonReply, general: Outcome, wall: float) -> float | None:
        """Seconds to stay away; what Retry-After says counts where nothing else can be read."""
        value = find_value(self.seconds, reply) if self.seconds else None
        text = show_value(value) if is_number(value) else value
        seconds = seconds_until(text, wall) if isinstance(text, str) else None
        if seconds is None or not math.isfinite(seconds):
            return general.retry_after
        return min(max(0.0, seconds), LONGEST)
