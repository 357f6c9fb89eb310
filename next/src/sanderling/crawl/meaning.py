"""What the responses of an API mean, declared: JMESPath expressions about their `status`, `headers` and `body`."""

import re
from functools import lru_cache
from typing import Any

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError

from sanderling.limit.retry_after import retry_after
from sanderling.outcome import Code, Outcome
from sanderling.redact import redact

LONGEST_DETAIL = 200
EARLIEST = 1_000_000_000  # a larger number of seconds is a Unix time

_NEGATED = re.compile(r"!(\w+)((?:\.\w+)+)")

Headers = tuple[tuple[str, str], ...]


class Seen:
    """A response as expressions see it: header names in lower case, and the body if it is JSON."""

    def __init__(self, url: str, status: int, headers: Headers, document: object, error: str = "") -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self.error = error  # why the body is no JSON
        first = {name.lower(): value for name, value in reversed(headers)}
        self.value = {"status": status, "headers": first, "body": document}

    def find(self, expression: str) -> Any:  # noqa: ANN401 - any JSON
        """What an expression finds; None for nothing. Raises ValueError where a function in it does not fit."""
        try:
            return _compiled(expression).search(self.value)
        except JMESPathError as error:
            raise ValueError(f"{expression}: {error}"[:LONGEST_DETAIL]) from None

    def get(self, expression: str) -> Any:  # noqa: ANN401 - any JSON
        """What an expression finds; None for nothing, for no expression, and for one that does not fit."""
        try:
            return self.find(expression) if expression else None
        except ValueError:
            return None

    def holds(self, expression: str) -> bool:
        """Whether an expression finds something that is neither null, false nor empty.

        One about the body holds for no body that is no JSON: the page of a proxy proves nothing.
        """
        if not expression or (self.error and "body" in expression):
            return False
        found = self.get(expression)
        return found is not None and found is not False and found not in ("", [], {})


class Answers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions about a response, each of which may be left out. The first that holds, in this order, counts."""

    refused: str = ""  # the host limits us: the item has not failed, and the limiter learns
    missing: str = ""  # there is nothing, and there will be nothing: final, as a 404 is
    error: str = ""  # the request has failed, whatever its status
    seconds: str = ""  # where a refusal says how long: seconds, a Unix time or a date
    message: str = ""  # where a response says why

    def __post_init__(self) -> None:
        """Raise ValueError for what is no expression."""
        for name in self.__struct_fields__:
            check_expression(name, getattr(self, name))
        if self.seconds and not self.refused:
            raise ValueError("seconds is there without refused; expected both: it says how long a refusal lasts")

    def read(self, seen: Seen, wall: float) -> Outcome | None:
        """What a response means beyond its status; None if nothing holds. Never raises."""
        status = seen.status
        if seen.holds(self.refused):
            return Outcome(Code.RATE_LIMITED, status, self._why(seen, self.refused), self._wait(seen, wall))
        if seen.holds(self.missing):
            return Outcome(Code.CONTENT_NOT_FOUND, status, self._why(seen, self.missing))
        if seen.holds(self.error):
            # The code of a 500: the item is to blame first, and many different ones in a row are the host's fault.
            return Outcome(Code.HOST_UNAVAILABLE, status, self._why(seen, self.error))
        if "body" in self.error and seen.error and 200 <= status < 300:
            return Outcome(Code.HOST_UNAVAILABLE, status, f"the body is no JSON: {seen.error}"[:LONGEST_DETAIL])
        return None

    def _why(self, seen: Seen, condition: str) -> str:
        said = seen.get(self.message)
        return redact(f"{said[:LONGEST_DETAIL]} ({condition})" if isinstance(said, str) and said else condition)[:200]

    def _wait(self, seen: Seen, wall: float) -> float | None:
        value = seen.get(self.seconds)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(max(0.0, value - wall if value > EARLIEST else value))
        return retry_after(value, None, wall) if isinstance(value, str) else None


def check_expression(name: str, expression: str) -> None:
    """Raise ValueError for what is no JMESPath expression about a response, with the place; an empty one is fine."""
    if not expression:
        return
    try:
        _compiled(expression)
    except JMESPathError as error:
        raise ValueError(f"{name} is {expression!r:.200}: {' '.join(str(error).split())[:200]}") from None
    if negated := _NEGATED.search(expression):
        raise ValueError(
            f"{name} has {negated[0]!r}, which JMESPath reads as (!{negated[1]}){negated[2]}; type !({negated[0][1:]})"
        )
    if not any(word in expression for word in ("status", "headers", "body")):
        raise ValueError(
            f"{name} is {expression!r:.200}; expected something of status, headers or body: body.{expression}"
        )


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:  # noqa: ANN401 - jmespath has no types
    return jmespath.compile(expression)
