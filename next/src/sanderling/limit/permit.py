"""Leave to send one request, and what is reported about it."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from sanderling.limit.retry_after import retry_after as read_retry_after
from sanderling.limit.scope import Scope
from sanderling.outcome import Code, Outcome

if TYPE_CHECKING:
    from sanderling.limit.limiter import BaseLimiter

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
# What one scope was taken from for a permit: its state, the number of the request there, its circuit's generation.
Part = tuple[Scope, int, int]


class Permit:
    """Leave to send one request to `host`. It counts until `report` or `release`, whichever comes first."""

    __slots__ = ("_limiter", "host", "live", "parts", "probe", "sent_at")

    def __init__(self, limiter: "BaseLimiter", parts: tuple[Part, ...], sent_at: float, *, probe: bool) -> None:
        self._limiter = limiter
        self.host = parts[0][0].name
        self.parts = parts
        self.sent_at = sent_at
        self.probe = probe  # whether it shows if the host is well again: a client should not wait for long
        self.live = True

    def __repr__(self) -> str:
        return f"<Permit {self.host}{', a probe' * self.probe}{'' if self.live else ', used'}>"

    def report(
        self,
        outcome: Outcome,
        *,
        latency: float = 0.0,
        headers: Headers = (),
        item: Hashable | None = None,
        of_host: bool = False,
    ) -> None:
        """Say how the request went; only the first report counts.

        `latency` in seconds, 0 if it is not known. `item` is what was requested: failures of one item again and again
        do not open the circuit of its host, unless the failure is `of_host` whatever the item.
        """
        if self.live:
            self.live = False
            self._limiter.finish(self, outcome, latency, headers, item, of_host=of_host)

    def release(self) -> None:
        """The request is over; without a report nothing is learned, and it counts as sent."""
        if self.live:
            self.live = False
            self._limiter.finish(self, None, 0.0, (), None, of_host=False)


class Attempt:
    """One request: `async with limiter.attempt(host) as attempt`, in threads without `async`.

    An OSError or TimeoutError that leaves the body counts as a failure of the host. Any other exception and a
    cancellation teach nothing.
    """

    __slots__ = ("_limiter", "_names", "permit")
    permit: Permit

    def __init__(self, limiter: "BaseLimiter", names: tuple[str, ...]) -> None:
        self._limiter = limiter
        self._names = names

    def report(
        self,
        status: int = 0,
        headers: Headers = (),
        *,
        latency: float | None = None,
        error: BaseException | str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Say how it went, once. Without a latency the time until now is taken."""
        self._limiter.report(self.permit, status, headers, latency, error, retry_after)

    def end(self, error: BaseException | None) -> None:
        """The body has ended."""
        if isinstance(error, OSError):  # TimeoutError is one
            self.report(error=error)
        self.permit.release()


def outcome_of(
    status: int, headers: Headers, error: BaseException | str | None, retry_after: float | None, wall: float
) -> Outcome:
    """What a response means for a limiter. Raises ValueError for a status or a time that is none."""
    if error is not None:
        code = Code.TIMEOUT if isinstance(error, TimeoutError) else Code.NETWORK_ERROR
        return Outcome(code, status, str(error))
    if retry_after is None and headers:
        fields = fields_of(headers)
        retry_after = read_retry_after(fields.get("retry-after"), fields.get("date"), wall)
    if status == 429 or (status in (503, 529) and retry_after):
        code = Code.RATE_LIMITED
    elif status >= 500:
        code = Code.HOST_UNAVAILABLE
    elif status >= 400:
        code = Code.HTTP_ERROR
    else:
        code = Code.OK if status else Code.CANCELLED
    return Outcome(code, status, retry_after=retry_after)


def fields_of(headers: Headers) -> dict[str, str]:
    """Headers by their names in lower case. HTTP/2 spells them so, and a plain dict would not find others."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return {name.lower(): value for name, value in pairs}
