"""Whether a host's refusals depend on how much we ask.

Some hosts refuse a few requests in a hundred whatever the rate: a faulty node, a quota that others use up, a filter
that guesses. To slow down for those would never end, as it does not help. Two sequential tests tell them apart, Wald's
and then Page's. Until noise is shown: do refusals at rates that the ceiling allows come more often than a quota
explains? From then on: do they come more often than the noise does?
"""

from dataclasses import dataclass
from math import log

BY_QUOTA = 0.002  # of the answers at a rate that is allowed: the share a quota refuses all the same, by jitter
FEWEST = 10  # served between two refusals; closer together they are one event, such as a quota that fell
SUSPECT, ENOUGH = 2.9, 5  # refusals at rates that are allowed, before anything is made of them
CERTAIN = 6.0  # how much likelier noise must be than a quota, as a logarithm: 400 times
ALARM = 4.5  # how much likelier a limit must be than noise, of late, as a logarithm
MOST = 0.2  # of the answers: more than that is no noise, or none that one could work with
EXCESS = 0.03  # a limit refuses this share of the answers on top of the noise, or as many again
LEAST = 0.003  # a smaller share of noise is none
KEPT = 0.98  # of the counts, at each refusal: what noise there was an hour ago is forgotten


@dataclass(slots=True, eq=False, repr=False)
class Noise:
    """One host's."""

    share: float = 0.0  # of all answers that are refusals whatever we ask; 0 while nothing shows that there are any
    _shown: float = 0.0  # as it was when it was shown
    _certain: float = CERTAIN
    _seen: int = 0  # served at the last refusal
    _refused: float = 0.0  # at rates that the ceiling allows,
    _served: float = 0.0  # and served there
    _score: float = 0.0

    @property
    def suspected(self) -> bool:
        """Whether there may be noise: a few more answers at the same rate would tell."""
        return not self.share and self._refused >= SUSPECT and self._refused > 2 * BY_QUOTA * self._served

    def explains(self, served: int, *, allowed: bool) -> bool:
        """Whether this refusal is noise, `served` being all that was. `allowed`: the ceiling allows the rate."""
        since, self._seen = served - self._seen, served
        counts = allowed and since >= FEWEST
        self._refused = KEPT * self._refused + 1 if counts else self._refused
        self._served = KEPT * self._served + since if counts else self._served + since
        if not self.share:
            return counts and self._is_shown()
        if counts:
            self.share = min(1.5 * self._shown, self._refused / (self._refused + self._served))
        if self.share < LEAST:
            self.forget()
            return False
        more = self.share + max(EXCESS, self.share)
        self._score = max(0.0, self._score + since * log((1 - more) / (1 - self.share))) + log(more / self.share)
        if self._score <= ALARM:
            return True
        self._score = 0.0
        return False

    def forget(self) -> None:
        """It was none. Next time more is needed to believe it."""
        self.share = self._score = self._refused = self._served = 0.0
        self._certain *= 2

    def _is_shown(self) -> bool:
        """Whether refusals come too often for a quota that we keep to."""
        share = self._refused / (self._refused + self._served)
        likelier = self._refused * log(share / BY_QUOTA) + self._served * log((1 - share) / (1 - BY_QUOTA))
        if BY_QUOTA < share < MOST and self._refused > ENOUGH - 1 and likelier > self._certain:
            self.share = self._shown = share
        return self.share > 0
