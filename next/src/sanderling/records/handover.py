"""Hands what a crawl collects on to `events`: published with confirmation before the crawl's own commit.

A crawl that is killed between both publishes it again, and `events` knows each item by its id.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sanderling.clock import Clock
from sanderling.files import Exit, FolderError, ServiceAway
from sanderling.formats.envelope import EXCHANGE, KEY, QUEUE
from sanderling.formats.handed import messages_of
from sanderling.forms import SecretOrText
from sanderling.options import OptionError, Options, option
from sanderling.redact import Secret
from sanderling.stores.queue_file import QueueFile

if TYPE_CHECKING:
    from sanderling.stores.rabbitmq import QueuePublisher

LONGEST_AWAY = 3600.0  # seconds that a broker is waited for
_LONGEST_PAUSE = 30.0


class HandoverOptions(Options, table=""):
    """Whether what is found goes on to `events`, too."""

    events_job: str | None = option(None, "Hand what is found on to events, as results of this job (proj-brand-0).")
    events_broker: SecretOrText | None = option(
        None, "Where to: RabbitMQ (amqp://…), or the folder of an events consume."
    )


class EventHandover:
    """Publishes items. `trouble` says why it waits."""

    def __init__(self, job: str, place: str, clock: Clock) -> None:
        self.trouble = ""
        self._job, self._clock = job, clock
        is_broker = place.startswith(("amqp://", "amqps://"))
        self._broker = _publisher(place) if is_broker else None
        self._file = None if is_broker else QueueFile(Path(place))

    async def __aenter__(self) -> Self:
        if self._file is not None:
            await self._file.__aenter__()
        elif self._broker is not None:
            await self._broker.__aenter__()
            await self._broker.make(QUEUE, EXCHANGE, KEY)
        return self

    async def __aexit__(self, *error: object) -> None:
        for each in (self._file, self._broker):
            if each is not None:
                await each.__aexit__(*error)

    async def publish(self, items: Sequence[dict[str, Any]]) -> None:
        """Return when all are confirmed; while the broker is away this waits. Raises FolderError after an hour."""
        until, pause = self._clock.now() + LONGEST_AWAY, 0.5
        while True:
            try:
                await self.offer(items)
            except ServiceAway as away:
                if self._clock.now() > until:
                    raise FolderError(str(away), "the same command goes on once it is back", Exit.LATER) from None
                self.trouble = f"what was found cannot be handed on to events, so nothing new is taken: {away}"
                await self._clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self.trouble = ""
                return

    async def offer(self, items: Sequence[dict[str, Any]]) -> None:
        """Publish them now. Raises ServiceAway."""
        bodies = list(messages_of(items, self._job, self._clock.wall()))
        if not bodies:
            return
        if self._file is not None:
            try:
                await self._file.put(QUEUE, bodies)
            except FolderError as error:
                if error.code is Exit.LATER:  # a full disk, a file that somebody holds
                    raise ServiceAway(str(error)) from None
                raise
        elif self._broker is not None:
            from sanderling.stores.rabbitmq import OutgoingMessage  # noqa: PLC0415 - an extra

            await self._broker.publish(QUEUE, [OutgoingMessage(body) for body in bodies])


def _publisher(url: str) -> "QueuePublisher":
    from sanderling.stores.rabbitmq import QueuePublisher  # noqa: PLC0415 - an extra

    return QueuePublisher(url)


def open_handover(options: HandoverOptions, clock: Clock) -> EventHandover | None:
    """What the options name; it is to be entered. Raises OptionError."""
    if (options.events_job is None) != (options.events_broker is None):
        raise OptionError("--events-job and --events-broker go together")
    if options.events_job is None or options.events_broker is None:
        return None
    place = options.events_broker
    return EventHandover(options.events_job, place.reveal() if isinstance(place, Secret) else place, clock)
