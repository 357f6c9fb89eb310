"""How often to look for a higher limit: as often as limits change at this host, and as it pays."""

from math import sqrt

SETTLED = 50.0  # seconds between two tests at most
SPARED = 300.0  # requests between two tests of a host so slow that SETTLED would be fewer
PRICE = 40.0  # requests served that one refusal is worth
LASTING = 100.0  # seconds that a limit holds, before anything is known of how this host's changes
SAME_CHANGE = 15.0  # seconds in which a ceiling that goes on moving is still finding its new place
MEETING = 60.0  # seconds in which a ceiling that moves is still being found
CHANGED = 1.35  # a ceiling that moved this far is another limit
KEPT = 0.97  # of the best ceiling, at each test: what was allowed an hour ago is forgotten
LIKELY = 0.3  # of a level: what a rise may bring if nothing better was ever seen


class Tempo:
    """One host's."""

    __slots__ = ("_best", "_changed_at", "_first", "_lasting", "_moved", "cost", "known", "lost")

    def __init__(self, began: float, ceiling: float) -> None:
        self.known = ceiling  # the ceiling when it last became another
        self.cost, self.lost = 1, 0.0  # requests refused by the last closure, and its seconds
        self._best = 0.0  # the highest ceiling of late
        self._first = self._changed_at = began
        self._lasting = LASTING  # seconds that a ceiling holds, about
        self._moved = False  # whether it was ever seen to change

    def rest(self, level: float, now: float) -> float:
        """Seconds to the next test, where nothing calls for one.

        The square root is where what refusals cost and what is lost by missing a rise are least in sum.
        """
        lasting = max(self._lasting, now - self._changed_at)
        price = PRICE * min(1.0, lasting / LASTING) ** 2  # where limits change all the time, one expects refusals
        cost = price * max(1, self.cost) + level * self.lost
        return min(max(SETTLED, SPARED / level), sqrt(2 * cost * lasting / self.gain(level)))

    def gain(self, level: float) -> float:
        """What a rise may bring: up to the best of late, or a part more than now."""
        return max(LIKELY * level, self._best - level)

    def held(self, level: float) -> None:
        """`level` has held for as long as we rested."""
        self._best = max(level, KEPT * self._best)

    def note(self, ceiling: float, now: float) -> None:
        """The ceiling is this from now on: has the limit changed, and after how long?"""
        if max(ceiling, self.known) < CHANGED * min(ceiling, self.known):
            return
        lasted = now - self._changed_at
        if lasted > SAME_CHANGE and now - self._first > MEETING:
            self._lasting = (self._lasting + lasted) / 2 if self._moved else lasted
            self._moved = True
        self.known, self._changed_at = ceiling, now
