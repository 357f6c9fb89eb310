"""What `sanderling why HOST` says of a host that is polled."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.engine.host_report import HostStatus, report_host
from sanderling.limit import HostView, explain
from sanderling.polling.report import report
from sanderling.polling.status import PollingStatus, published
from sanderling.stores.status_file import FILE, age, is_running
from sanderling.words import duration


class Polled(NamedTuple):
    """Polling, where it was found, and what its limiter knows of the host."""

    folder: Path
    status: PollingStatus
    view: HostView

    @property
    def wall(self) -> float:
        """When it said so."""
        return self.status.wall

    @property
    def hosts(self) -> tuple[str, ...]:
        """The one that is polled."""
        return (self.view.host,)

    @property
    def _state(self) -> str:
        return report_host(HostStatus(self.view, self.status.ready, None), lasting=True).state.value

    def words(self, host: str, wall: float) -> Iterator[str]:
        """How the host is, in sentences."""
        then, where = f"{duration(age(self.status, wall))} ago", self.folder.absolute()
        if is_running(self.status, wall):
            yield f"{host} is {self._state}: {then}, polled into {where} (process {self.status.pid})."
        else:
            yield f"{host} was {self._state} {then}, polled into {where}, which does not run any more."
        yield explain(self.view)
        made = report(self.status)
        for said in (made.doing, *made.texts()):
            yield f"{said[0].upper()}{said[1:]}."

    def document(self, host: str, wall: float) -> dict[str, object]:
        """The same for machines."""
        return {
            "host": host,
            "state": self._state,
            "why": explain(self.view),
            "queued": self.status.ready,
            "age": round(age(self.status, wall), 3),
            "running": is_running(self.status, wall),
            "pid": self.status.pid,
            "out": str(self.folder),
            "view": msgspec.to_builtins(self.view),
        }


def polled_in(out: Path | None) -> Iterator[Polled]:
    """What to look at: the folder that is named, or the one here, or those one folder down."""
    here = out or Path()
    if (found := _polled(here)) is not None:
        yield found
    elif out is None:
        below = (_polled(path.parent) for path in sorted(here.glob(f"*/{FILE}")))
        yield from (each for each in below if each is not None)


def _polled(folder: Path) -> Polled | None:
    status = published(folder)
    return None if status is None or status.limiter is None else Polled(folder, status, status.limiter)
