"""Tasks that stand and fall together, and whether more may be begun.

A task group refuses new tasks from the moment one has failed, with an error of its own. Whoever gives out work on a
timer goes on for a while then, until all that is under way has been cut off: it asks `open` before.
"""

import asyncio
from types import TracebackType
from typing import Any


class Workers(asyncio.TaskGroup):
    """A task group that says whether it takes more."""

    def __init__(self) -> None:
        super().__init__()
        self.open = True

    def create_task(self, *args: Any, **kwargs: Any) -> asyncio.Task[Any]:  # noqa: ANN401 - as any group does
        """Begin it, if the group is open."""
        task = super().create_task(*args, **kwargs)
        task.add_done_callback(self._ended)
        return task

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open = self.open and kind is None
        await super().__aexit__(kind, error, trace)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.open = False
