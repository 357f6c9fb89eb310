"""Which documents wait for others: those of a kind whose rows refer to what a needed kind brings.

It spares requests at the beginning, when everything is new. What was stored once never waits again, and nothing waits
for long: a needed document may be paused, switched off or broken, and then the rows themselves decide.
"""

from collections.abc import Iterable

from sanderling.apis.polled import Kind

PATIENCE = 10.0  # seconds that a target waits for others at most


class Needs:
    """What has been had, of which event and kind."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._needs = {kind.name: kind.needs for kind in kinds}
        self._had: set[tuple[str, str]] = set()
        self._since: dict[int, float] = {}
        self._waiting: dict[str, dict[int, None]] = {}  # targets by event

    def load(self, had: Iterable[tuple[str, str]]) -> None:
        """Take up what was had before, by event and kind."""
        self._had.update(had)

    def lacking(self, target: int, event: str, kind: str, now: float) -> tuple[str, ...]:
        """The kinds that this one, which was never had, waits for; none once it has waited long enough."""
        lacking = tuple(need for need in self._needs.get(kind, ()) if (event, need) not in self._had)
        if not lacking:
            self._since.pop(target, None)
            return ()
        if now - self._since.setdefault(target, now) >= PATIENCE:
            return ()
        self._waiting.setdefault(event, {})[target] = None
        return lacking

    def had(self, event: str, kind: str) -> tuple[int, ...]:
        """Note that one of these went well; the targets that may have waited for it, if it is the first."""
        if (event, kind) in self._had:
            return ()
        self._had.add((event, kind))
        return tuple(self._waiting.pop(event, ()))

    def forget(self) -> None:
        """Everything is gone."""
        self._had.clear()
        self._since.clear()
        self._waiting.clear()
