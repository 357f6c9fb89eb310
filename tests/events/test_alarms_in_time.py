"""Alarms as the consumer uses them, under virtual time, up to the chat that hears them."""

import asyncio
import random

from fake_events import batch, fields

from sanderling.events.alarms import EVERY, AlarmRules, EventAlarms
from sanderling.observe.alerts import Alert, Alerts, Fate, Receipt
from sanderling.testing import FakeClock, LoopClock, run_virtual

RULES = AlarmRules()


def test_the_consumer_is_heard_at_once() -> None:
    said: list[Alert] = []
    alarms = EventAlarms(said.append, FakeClock())

    alarms.buried("evt_1", "why")
    alarms.processed(batch(0, 200))

    assert [alert.kind for alert in said] == ["message_buried", "error_rate_critical"]


def test_what_was_held_back_is_said_in_time() -> None:
    async def main() -> list[tuple[float, str]]:
        clock, said = LoopClock(), list[tuple[float, str]]()
        alarms = EventAlarms(lambda alert: said.append((clock.now(), fields(alert)["Count"])), clock)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(alarms.run())
            for _ in range(30):
                alarms.buried("evt", "why")
                await clock.sleep(1.0)
            await clock.sleep(RULES.every)
            task.cancel()
        return said

    (first, held) = run_virtual(main())

    assert first == (0.0, "1")
    assert held[1] == "29"
    assert RULES.every <= held[0] <= RULES.every + EVERY


class Chat:
    """Takes every alert, and knows when."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.heard: list[tuple[float, str]] = []

    async def send(self, alert: Alert, at: float) -> Receipt:
        del at
        self.heard.append((self._clock.now(), alert.kind))
        return Receipt(Fate.SENT)


def test_a_night_of_trouble_is_no_flood_in_a_chat() -> None:
    async def main() -> list[tuple[float, str]]:
        clock = LoopClock()
        chat = Chat(clock)
        async with Alerts(chat, clock, random.Random(1)) as alerts, asyncio.TaskGroup() as group:
            alarms = EventAlarms(alerts.say, clock)
            task = group.create_task(alarms.run())
            for number in range(6 * 60):
                alarms.processed(batch(20, 30, ("PARSE_ERROR", "STORAGE_ERROR")[number % 2]))
                alarms.buried(f"evt_{number}", "why")
                await clock.sleep(60.0)
            task.cancel()
        return chat.heard

    heard = run_virtual(main())

    counts = {kind: sum(each == kind for _, each in heard) for _, kind in heard}
    assert counts == {
        "items_unreadable": 6 * 6,
        "message_buried": 6 * 6,
        "storage_errors": 1,
        "error_rate_critical": 1,
    }
