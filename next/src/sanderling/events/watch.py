"""Beside the loop: the counts of queues, and alerts to people.

Alerts, after seed 002: more than 20 % errors, or less than 80 % success, in ten minutes with at least 100 items; errors
of parsing; errors of storage that persist; a service that is away for a minute.
"""

from contextlib import suppress

from sanderling.clock import Clock
from sanderling.events.consume import WINDOW, Consumer
from sanderling.events.queues import DEAD, PARKED
from sanderling.observe.alerts import Alert, Alerts, Level
from sanderling.stores.broker import BrokerAway

MOST_ERRORS, LEAST_SUCCESS, LEAST_ITEMS = 20.0, 80.0, 100  # percent, percent, items
AWAY_SECONDS = 60.0
_LOOK_SECONDS = 2.0


class Watch:
    """Looks every two seconds."""

    def __init__(self, consumer: Consumer, alerts: Alerts, clock: Clock) -> None:
        self._consumer, self._alerts, self._clock = consumer, alerts, clock
        self._told: dict[str, float] = {}  # what was told, and when
        self._storage_since: float | None = None

    async def work(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            self.alert()
            await self._clock.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Count the messages of each queue."""
        for each in self._consumer.feedings:
            with suppress(BrokerAway):
                each.counts = {suffix: await each.queue.count(suffix) for suffix in ("", PARKED, DEAD)}

    def alert(self) -> None:
        """Tell people what they have to know, each at most once in ten minutes."""
        consumer, now = self._consumer, self._clock.now()
        for platform, (good, bad) in consumer.figures.rates(now).items():
            share = 100 * bad / (good + bad) if good + bad else 0.0
            if good + bad >= LEAST_ITEMS and (share > MOST_ERRORS or 100 - share < LEAST_SUCCESS):
                fields = (("platform", platform), ("errors", f"{share:.0f} %"), ("items", f"{good + bad:,}"))
                self._tell(f"errors {platform}", "Too many items fail",
                           "To go back: set NEW_MODE_ENABLED=false and restart.", fields)  # fmt: skip
        lately = consumer.figures.lately
        if parsing := sum(each[4] for each in lately):
            self._tell("parsing", "Items or messages cannot be read", "A crawler or we must be repaired.",
                       (("batches in ten minutes", f"{parsing:,}"),))  # fmt: skip
        storage = [each[0] for each in lately if each[5]]
        self._storage_since = (
            None if not storage else storage[0] if self._storage_since is None else self._storage_since
        )
        if self._storage_since is not None and storage and storage[-1] - self._storage_since >= WINDOW / 2:
            self._tell("storage", "Errors of storage persist", "Crawlers cannot store what they fetch.", ())
        for service, since in consumer.away_since.items():
            if now - since >= AWAY_SECONDS:
                self._tell(f"away {service}", f"{service} is away", consumer.troubles.get(service, ""), ())

    def _tell(self, what: str, title: str, text: str, fields: tuple[tuple[str, str], ...]) -> None:
        now = self._clock.now()
        if what not in self._told or now - self._told[what] >= WINDOW:
            self._told[what] = now
            self._alerts.post(Alert(title, text, Level.ERROR, fields, ping=True))
