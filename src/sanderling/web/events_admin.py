"""The routes that say how `events` stands, switch its modes, and take up again what was given up."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import UNSET

from sanderling.events.lately import in_short
from sanderling.events.modes import Modes
from sanderling.events.report import EventsFacts
from sanderling.observe import logs
from sanderling.observe.report import Report
from sanderling.stores.queue import DeadLetters, QueueError
from sanderling.web.events_envelope import WRONG, Answer, answer, refused
from sanderling.web.events_types import DeadQuery, ModesGiven, Replay
from sanderling.web.events_views import Alive, DeadPage, Parts, Replayed, dead_view
from sanderling.web.parsing import Nothing
from sanderling.web.problems import problem
from sanderling.web.routes import Asked

log = logs.get(__name__)

OK = "ok"


class Controlled(Protocol):
    """What there must be behind the routes of health, status and modes."""

    async def health(self) -> Mapping[str, str]:
        """Of each thing that is needed (`database`, `objects`, `queue`): "ok", or why not. Within seconds."""

    async def status(self) -> Report[EventsFacts] | None:
        """How it stands; None if nothing has run here yet."""

    async def modes(self) -> Modes:
        """Those in force. Raises ValueError if they were written so that they make no sense."""

    async def set_modes(self, modes: Modes) -> None:
        """Make these the modes from now on. Raises FolderError."""


class HealthRoutes:
    """They answer."""

    def __init__(self, control: Controlled) -> None:
        self._control = control

    async def analytics_health(self, asked: Asked[Nothing, Nothing, Nothing]) -> Answer[Alive]:
        """Whether it answers."""
        return answer(asked, Alive())

    async def ready(self, asked: Asked[Nothing, Nothing, Nothing]) -> Answer[Alive]:
        """Whether the database, the object store and the queue answer."""
        if any(said != OK for said in (await self._control.health()).values()):
            raise problem(503, "not ready", {"Retry-After": "5"})  # everyone may ask this, so it says no more
        return answer(asked, Alive())

    async def detailed_health(self, asked: Asked[Nothing, Nothing, Nothing]) -> Answer[Parts]:
        """How it stands with the database, the object store and the queue.

        Status 200 whatever it says: `status` is `ok` or `degraded`.
        """
        parts = {name: in_short(said) for name, said in (await self._control.health()).items()}
        well = all(said == OK for said in parts.values())
        return answer(asked, Parts(status=OK if well else "degraded", parts=parts))


class AdminRoutes:
    """They answer. Times are Unix seconds, as in status.json."""

    def __init__(self, control: Controlled) -> None:
        self._control = control

    async def status(self, asked: Asked[Nothing, Nothing, Nothing]) -> Answer[Report[EventsFacts]]:
        """How the processing of events stands."""
        found = await self._control.status()
        if found is None:
            raise problem(404, "there is no status: nothing has processed events here yet")
        return answer(asked, found)

    async def modes(self, asked: Asked[Nothing, Nothing, Nothing]) -> Answer[Modes]:
        """Which formats of messages are processed."""
        try:
            found = await self._control.modes()
        except ValueError as error:
            raise problem(503, f"the modes cannot be read: {error}", {"Retry-After": "60"}) from error
        return answer(asked, found)

    async def change_modes(self, asked: Asked[Nothing, Nothing, ModesGiven]) -> Answer[Modes]:
        """Process these formats from now on. Messages of the others wait in the queue."""
        told = asked.body
        modes = Modes(new=told.new, legacy=told.legacy, inline=told.inline, canary=told.canary)
        await self._control.set_modes(modes)
        return answer(asked, modes)


class DeadRoutes:
    """They answer."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    async def dead(self, asked: Asked[Nothing, DeadQuery, Nothing]) -> Answer[DeadPage]:
        """Messages that were given up, the first buried first. Their bodies are cut after 500 characters.

        Status 410 if `after` is a message that is no longer among them: then begin with the first page.
        """
        after = asked.query.after
        try:
            found = await self._letters.dead(asked.query.limit, after)
        except QueueError as error:
            if not after:
                raise
            await self._letters.dead(1)  # raises as well if it is the queue's fault, and not that of `after`
            raise problem(410, str(error)) from None
        page = DeadPage(letters=tuple(dead_view(each) for each in found), next=found[-1].key if found else None)
        return answer(asked, page)

    async def replay(self, asked: Asked[Nothing, Nothing, Replay]) -> Answer[Replayed]:
        """Process messages again that were given up, as if they had never failed. Unknown keys are passed over."""
        which = asked.body
        if (which.keys is UNSET) == (which.all is UNSET) or which.all is False:
            raise refused(WRONG, "body: expected either keys or all, which is true, and not both")
        replayed = await self._letters.replay(None if which.keys is UNSET else set(which.keys))
        log.info("dead_letters_replayed", letters=replayed)
        return answer(asked, Replayed(replayed=replayed))
