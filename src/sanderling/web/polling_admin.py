"""The routes that run things at once or for good: settings, ingestion, purge, and how it stands."""

from collections.abc import Sequence
from typing import Protocol

from sanderling.observe.report import Report
from sanderling.polling.control import Ingested
from sanderling.polling.report import PollingFacts
from sanderling.polling.settings import Setting
from sanderling.stores.polling import PollingTarget
from sanderling.web.parsing import Nothing
from sanderling.web.polling_types import (
    Confirmation,
    EventKindPath,
    EventPath,
    EventTargetPath,
    KeyPath,
    SettingValue,
)
from sanderling.web.polling_views import (
    IngestedList,
    Purged,
    Ready,
    SettingList,
    SettingView,
    ingested_list,
    setting_view,
)
from sanderling.web.problems import problem
from sanderling.web.routes import Asked


class SettingsControl(Protocol):
    """What there must be behind the routes of settings."""

    async def settings(self) -> tuple[Setting, ...]:
        """All of them."""

    async def set(self, key: str, text: str | None) -> Setting:
        """Write one; None goes back to the default. Raises SettingError."""


class IngestControl(Protocol):
    """What there must be behind the routes of ingestion. Everything raises PollingStoreError."""

    async def target(self, kind: str, source_id: str) -> PollingTarget | None:
        """The one of that name."""

    async def ingest(self, kind: str, source_id: str) -> Ingested | None:
        """Run a target now and wait for it; None if there is no such target."""

    async def ingest_event(self, event: str, kinds: Sequence[str] | None = None) -> list[Ingested]:
        """The same for the targets of an event."""

    async def full(self) -> list[Ingested]:
        """Find out what there is to poll, and run all of it once. Raises DiscoveryError."""

    async def purge(self) -> dict[str, int]:
        """Remove all rows and targets. How many there were."""


class StatusControl(Protocol):
    """What there must be behind the routes that say how it stands."""

    def status(self) -> Report[PollingFacts]:
        """How it stands."""


class SettingsRoutes:
    """They answer."""

    def __init__(self, control: SettingsControl) -> None:
        self._control = control

    async def settings(self, asked: Asked[Nothing, Nothing, Nothing]) -> SettingList:  # noqa: ARG002 - as all routes
        """All settings."""
        return SettingList(settings=tuple(setting_view(each) for each in await self._control.settings()))

    async def change_setting(self, asked: Asked[KeyPath, Nothing, SettingValue]) -> SettingView:
        """Change a setting; it is in force at once. Status 422 if it cannot be set to that."""
        return setting_view(await self._control.set(asked.path.key, asked.body.value))

    async def reset_setting(self, asked: Asked[KeyPath, Nothing, Nothing]) -> SettingView:
        """Go back to the default of a setting."""
        return setting_view(await self._control.set(asked.path.key, None))


class IngestRoutes:
    """They answer when what they were asked to run has run. `snapshot`: the kinds that are never live."""

    def __init__(self, control: IngestControl, snapshot: Sequence[str]) -> None:
        self._control = control
        self._snapshot = tuple(snapshot)

    async def ingest_snapshot(self, asked: Asked[EventPath, Nothing, Nothing]) -> IngestedList:
        """Run all targets of an event now that are never live by themselves."""
        return await self._event(asked.path.event, self._snapshot)

    async def ingest_kind(self, asked: Asked[EventKindPath, Nothing, Nothing]) -> IngestedList:
        """Run all targets of a kind of an event now."""
        return await self._event(asked.path.event, (asked.path.kind,))

    async def ingest_target(self, asked: Asked[EventTargetPath, Nothing, Nothing]) -> IngestedList:
        """Run a target of an event now, paused or not."""
        path = asked.path
        target = await self._control.target(path.kind, path.id)
        done = await self._control.ingest(path.kind, path.id) if target and target.event == path.event else None
        if done is None:
            where = f"in the event {path.event!a:.100}"
            raise problem(404, f"there is no target of kind {path.kind!a:.100} with the id {path.id!a:.100} {where}")
        return ingested_list([done])

    async def ingest_event(self, asked: Asked[EventPath, Nothing, Nothing]) -> IngestedList:
        """Run all targets of an event now."""
        return await self._event(asked.path.event, None)

    async def ingest_all(self, asked: Asked[Nothing, Nothing, Nothing]) -> IngestedList:  # noqa: ARG002 - as all routes
        """Find out what there is to poll, and run all of it once."""
        return ingested_list(await self._control.full())

    async def purge(self, asked: Asked[Nothing, Nothing, Confirmation]) -> Purged:
        """Remove all rows and all targets. Settings stay; what there is to poll is found anew."""
        if not asked.body.confirm:
            raise problem(400, "body: confirm is false, expected true")
        return Purged(removed=await self._control.purge())

    async def _event(self, event: str, kinds: Sequence[str] | None) -> IngestedList:
        done = await self._control.ingest_event(event, kinds)
        if not done:
            which = "" if kinds is None else f" of {', '.join(kinds)}"
            raise problem(404, f"the event {event!a:.100} has no targets{which:.200}")
        return ingested_list(done)


class StatusRoutes:
    """They answer."""

    def __init__(self, control: StatusControl) -> None:
        self._control = control

    async def ready(self, asked: Asked[Nothing, Nothing, Nothing]) -> Ready:  # noqa: ARG002 - as all routes
        """Whether it polls, and has its database."""
        status = self._control.status()
        if not status.process.running or status.facts.store_trouble:
            raise problem(503, "not ready", {"Retry-After": "5"})  # everyone may ask this, so it says no more
        return Ready()

    async def status(self, asked: Asked[Nothing, Nothing, Nothing]) -> Report[PollingFacts]:  # noqa: ARG002 - as all routes
        """How polling stands."""
        return self._control.status()
