"""Settings that are in force as soon as somebody writes them, whoever it is.

They are in the database, but for one: whether anything is polled is a view of control.json in the folder of whoever
polls. Those who reach the database and not the folder write it to the database, and whoever polls moves it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from sanderling.apis.polled import PolledKind
from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.polling.settings import ENABLED, Keys, PollingSetting, PollingSettings, SettingError
from sanderling.stores.control_file import change_control, read_control
from sanderling.stores.durable import FolderError
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_store import PollingStore

EVERY = 1.0  # seconds between looks

log = logs.get(__name__)


class LiveSettings:
    """The settings of a database, and of the folder of whoever polls. `changed` is called with those that are new."""

    def __init__(
        self, store: PollingStore, kinds: Sequence[PolledKind], clock: Clock, folder: Path | None = None
    ) -> None:
        self.keys = Keys(kinds)
        self.now: PollingSettings | None = None
        self.problems: tuple[str, ...] = ()
        self.changed: list[Callable[[PollingSettings], object]] = []
        self._store = store
        self._clock = clock
        self._folder = folder

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            try:
                await self.adopt()
                await self.read()
            except PollingStoreError as error:
                log.debug("settings_not_read", why=str(error))  # the others say so louder
            await self._clock.sleep(EVERY)

    async def read(self) -> PollingSettings:
        """Look now. A text that makes no sense leaves its setting as it was. Raises PollingStoreError."""
        settings, problems = self.keys.read(await self._texts(), self.now)
        for problem in problems:
            if problem not in self.problems:
                log.warning("setting_not_used", why=problem)
        self.problems = problems
        if settings != self.now:
            self.now = settings
            for tell in self.changed:
                tell(settings)
        return settings

    async def adopt(self) -> None:
        """Move to control.json what the database says of being switched on. For whoever polls.

        An earlier release kept it in the database. Raises PollingStoreError.
        """
        text = (await self._store.settings()).get(ENABLED)
        if self._folder is None or text is None:
            return
        try:
            await self.set(ENABLED, text)
        except SettingError as error:
            log.warning("setting_not_used", why=str(error))
            await self._store.set(ENABLED, None)

    async def _texts(self) -> dict[str, str]:
        """What the database says, and control.json; one that makes no sense leaves what was in force."""
        texts = dict(await self._store.settings())
        if self._folder is not None and ENABLED not in texts:
            try:
                paused = read_control(self._folder).paused
            except ValueError:  # who looks at the file for all else says so
                paused = self.now is None or not self.now.enabled
            texts |= {ENABLED: "false"} if paused else {}
        return texts

    async def listed(self) -> tuple[PollingSetting, ...]:
        """All settings as they are now. Raises PollingStoreError."""
        return self.keys.listed(await self._texts(), self.now)

    async def set(self, key: str, text: str | None) -> PollingSetting:
        """Write one; None goes back to the default. Raises SettingError or PollingStoreError."""
        spellings = self.keys.spellings(key)
        canonical = spellings[0] if text is None else self.keys.checked(key, text)[0]
        for other in spellings:
            if other != canonical or text is None:
                await self._store.set(other, None)
        if canonical == ENABLED and self._folder is not None:
            self._switch(self._folder, on=text is None or self.keys.checked(key, text)[1] == "true")
            await self._store.set(ENABLED, None)
        elif text is not None:
            await self._store.set(canonical, self.keys.checked(key, text)[1])
        await self.read()
        return next(each for each in await self.listed() if each.key == canonical)

    def _switch(self, folder: Path, *, on: bool) -> None:
        try:
            change_control(folder, lambda control: control.after("resume" if on else "pause"))
        except ValueError as error:
            raise SettingError(f"{error}; repair the file, or: sanderling control FOLDER resume --replace") from None
        except FolderError as error:
            raise PollingStoreError(str(error), transient=True) from None
