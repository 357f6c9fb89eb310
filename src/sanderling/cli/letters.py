"""The queue of a system: the flags that say which it is, and how it is opened. `dead_letters.py` has the dead ones."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.flags import SETTING
from sanderling.cli.reach import Say, reached
from sanderling.clock import Clock
from sanderling.redact import redact_url
from sanderling.stores.queue import Binding, QueueError, WholeQueue, open_queue
from sanderling.words import printable


class InFolder(Protocol):
    """The flag for the folder, of any system."""

    @property
    def out(self) -> Path:
        """The folder for all that is kept on this machine."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFlags:
    """Which queue. Every system that has one names its own."""

    queue: str | None = None
    """Where the queue is: sqlite:FOLDER or amqp://…; by default a file in the folder."""

    queue_name: Annotated[str, SETTING] = ""
    """What it is called there."""

    @property
    def binding(self) -> Binding | None:
        """What else is put into it, at a server."""
        return None

    def url(self, folder: InFolder) -> str:
        """Its URL."""
        return self.queue or f"sqlite:{folder.out}"

    def where(self, folder: InFolder) -> str:
        """The place, as it may be shown."""
        return redact_url(self.queue) if self.queue else str(folder.out)

    def there(self, folder: InFolder) -> bool:
        """Whether there is one, as far as that can be known without making it: a broker may have it."""
        kind, _, path = self.url(folder).partition(":")
        # One without a path is nothing that could be there, and is refused when it is opened.
        return kind != "sqlite" or not path or Path(path.removeprefix("//"), f"{self.queue_name}.db").is_file()

    def open_queue(self, folder: InFolder, clock: Clock, prefetch: int | None = None) -> WholeQueue:
        """The queue; one at a server is reached with the first call. Raises CommandError."""
        try:
            return open_queue(self.url(folder), self.queue_name, clock, binding=self.binding, prefetch=prefetch)
        except ValueError as error:
            raise CommandError(printable(f"exchange or routing-key: {error}"), code=2) from None
        except QueueError as error:
            raise CommandError(printable(f"--queue: {error}" if self.queue else str(error)), code=2) from None

    @asynccontextmanager
    async def opened(
        self, folder: InFolder, clock: Clock, say: Say | None = None, prefetch: int | None = None
    ) -> AsyncIterator[WholeQueue]:
        """The queue, which answers. Raises CommandError."""
        queue = self.open_queue(folder, clock, prefetch)
        try:
            await reached("--queue", self.queue, queue.depth, say)
            yield queue
        finally:
            await queue.close()
