"""Settings that are in force as soon as somebody writes them, whoever it is."""

from collections.abc import Callable, Sequence

from sanderling.apis.polled import Kind
from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.polling.settings import Keys, PollingSettings, Setting
from sanderling.stores.polling import PollingStoreError, Settings

EVERY = 1.0  # seconds between looks

log = logs.get(__name__)


class LiveSettings:
    """The settings of a database. `changed` is called with those that are new."""

    def __init__(self, store: Settings, kinds: Sequence[Kind], clock: Clock) -> None:
        self.keys = Keys(kinds)
        self.now: PollingSettings | None = None
        self.problems: tuple[str, ...] = ()
        self.changed: list[Callable[[PollingSettings], object]] = []
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            try:
                await self.read()
            except PollingStoreError as error:
                log.debug("settings_not_read", why=str(error))  # the others say so louder
            await self._clock.sleep(EVERY)

    async def read(self) -> PollingSettings:
        """Look now. A text that makes no sense leaves its setting as it was. Raises PollingStoreError."""
        settings, problems = self.keys.read(await self._store.settings(), self.now)
        for problem in problems:
            if problem not in self.problems:
                log.warning("setting_not_used", why=problem)
        self.problems = problems
        if settings != self.now:
            self.now = settings
            for tell in self.changed:
                tell(settings)
        return settings

    async def listed(self) -> tuple[Setting, ...]:
        """All settings as they are now. Raises PollingStoreError."""
        return self.keys.listed(await self._store.settings(), self.now)

    async def set(self, key: str, text: str | None) -> Setting:
        """Write one; None goes back to the default. Raises SettingError or PollingStoreError."""
        spellings = self.keys.spellings(key)
        canonical = spellings[0] if text is None else self.keys.checked(key, text)[0]
        for other in spellings:
            if other != canonical or text is None:
                await self._store.set(other, None)
        if text is not None:
            await self._store.set(canonical, self.keys.checked(key, text)[1])
        await self.read()
        return next(each for each in await self.listed() if each.key == canonical)
