"""What no status says, asked for while somebody looks: the settings of polling, and the messages events gave up."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec

from sanderling.apis.polled import PolledKind
from sanderling.clock import Clock
from sanderling.events.report import DeadShown
from sanderling.polling.live_settings import LiveSettings
from sanderling.stores.durable import FolderError
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.queue import QueueError
from sanderling.web.house import UNSOUND, Found
from sanderling.web.house_facts import NO_EXTRA, Extra
from sanderling.web.house_reach import ElsewhereError, Reach
from sanderling.web.polling_types import setting_view

KINDS = "source.kinds"  # a setting of ours: which kinds the source has, as whoever polls wrote them
EVERY = {"polling": 5.0, "events": 10.0}  # seconds
PATIENCE = 5.0  # seconds that an answer may take
MOST_DEAD = 20
MOST_SETTINGS = 200

UNREACHABLE = (PollingStoreError, QueueError, FolderError, TimeoutError, *UNSOUND)


async def kinds_of(store: PollingStore) -> tuple[PolledKind, ...]:
    """The kinds of the source that is polled into a database; none if it does not say. Raises PollingStoreError."""
    try:
        return tuple(msgspec.json.decode((await store.settings()).get(KINDS, "[]"), type=list[PolledKind]))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ()


async def settings_in(store: PollingStore, clock: Clock, folder: Path) -> LiveSettings:
    """The settings of a database and its folder, to look at or to change. Raises PollingStoreError."""
    kinds = await kinds_of(store)
    try:
        return LiveSettings(store, kinds, clock, folder)
    except ValueError:  # kinds that no source can have
        return LiveSettings(store, (), clock, folder)


class Asking:
    """Asks, and remembers the answers."""

    def __init__(self, reach: Reach, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock
        self._known: dict[str, tuple[float, Extra]] = {}

    def known(self, name: str) -> Extra:
        """What was last answered about a system."""
        return self._known.get(name, (0.0, NO_EXTRA))[1]

    def forget(self, name: str) -> None:
        """Ask again soon: somebody changed something."""
        if name in self._known:
            self._known[name] = (float("-inf"), self._known[name][1])

    async def ask(self, systems: Iterable[Found]) -> None:
        """Ask whatever has not been asked for a while; one after the other, so that a slow one holds up only these."""
        every = [each for each in systems if each.system in EVERY]
        self._known = {each.name: self._known[each.name] for each in every if each.name in self._known}
        for found in every:
            asked, before = self._known.get(found.name, (float("-inf"), NO_EXTRA))
            if self._clock.now() - asked >= EVERY[found.system]:
                answer = await self._answer(found, before)
                self._known[found.name] = (self._clock.now(), answer)

    async def _answer(self, found: Found, before: Extra) -> Extra:
        try:
            async with asyncio.timeout(PATIENCE):
                return await (self._settings(found) if found.system == "polling" else self._dead(found))
        except ElsewhereError as error:
            return Extra(elsewhere=str(error))
        except UNREACHABLE as error:
            return before._replace(elsewhere=str(error) or f"there was no answer within {PATIENCE:.0f} s")

    async def _settings(self, found: Found) -> Extra:
        async with self._reach.open_polling(found) as store:
            listed = await (await settings_in(store, self._clock, found.folder)).listed()
        return Extra(settings=tuple(setting_view(each) for each in listed[:MOST_SETTINGS]))

    async def _dead(self, found: Found) -> Extra:
        async with self._reach.open_queue(found) as queue:
            dead = await queue.dead(MOST_DEAD)
        return Extra(dead=tuple(DeadShown.of(each) for each in dead))
