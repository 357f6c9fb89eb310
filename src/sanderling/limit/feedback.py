"""What a caller reports about one request."""

from math import inf

import msgspec

from sanderling.limit.hints import Quota
from sanderling.task import Blame

REFUSALS = frozenset({429, 503, 529})  # "not now" in HTTP; 529 is what several APIs say for overloaded


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
