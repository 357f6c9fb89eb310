"""What a caller reports about one request."""

from math import inf

import msgspec

from sanderling.limit.hints import Quota
from sanderling.task import Blame

REFUSALS = frozenset({429, 503, 529})  # "not now" in HTTP; 529 is what several APIs say for overloaded
TOO_MANY = 429  # of those, the one that is never about how the host is


class Feedback(msgspec.Struct, frozen=True):
    """How a request went. Leave out what is not known; a status of 0 without an error teaches nothing."""

    status: int = 0
    latency: float = 0.0  # seconds to the answer
    error: BaseException | str | None = None  # no answer at all: timeout, reset, refused connection
    retry_after: float | None = None  # seconds, from the header of that name
    quota: Quota | None = None  # what rate headers said
    scope: str | None = None  # the kind of scope a refusal speaks of ("credential"), if not of the host
    blame: Blame | None = None  # whose fault a failure is; without it, that of an item that was never asked for before
    unsent: bool = False  # nothing was sent (DNS, connect, TLS): a failure is the host's, whatever the item

    @property
    def is_plain(self) -> bool:
        """Whether it is a success and nothing more."""
        good = 200 <= self.status < 400 and 0 < self.latency < inf
        blameless = self.blame is None or not self.blame.failures
        return good and blameless and self.error is None and self.retry_after is None and self.quota is None

    @property
    def blames_host(self) -> bool:
        """Whether a failure is the host's, whatever the item."""
        return self.unsent or (self.blame is not None and self.blame.of_host)

    @property
    def is_repeated(self) -> bool:
        """Whether a failure is one more of an item that failed already, which says nothing new of the host."""
        return self.blame is not None and self.blame.failures > 0 and not self.blames_host

    @property
    def limits(self) -> bool:
        """Whether it speaks of how much may be asked, and of nothing that is wrong with the host."""
        if self.error is not None or (self.status >= 500 and self.status not in REFUSALS):
            return False
        return self.status == TOO_MANY or self.retry_after is not None or (self.quota is not None and self.status < 500)

    def share(self, kind: str | None, about: str | None) -> "Feedback":
        """What a gate of this kind is told, a host's having none: all of it if it speaks `about` that kind.

        Else how it went, if it was served: what is asked of one, such as a Retry-After, is not asked of others.
        """
        if kind == about:
            return self
        if self.error is not None or not self.status:
            return NOTHING
        if kind is None and self.status < 500 and self.status not in REFUSALS:
            return msgspec.structs.replace(self, retry_after=None, quota=None)
        return Feedback(self.status, self.latency) if 200 <= self.status < 400 else SERVED


SERVED = Feedback(status=200)  # what a gate is told about an answer that does not speak of it
NOTHING = Feedback()  # and where there was no answer
