"""What `sanderling why HOST` says of a host of repos."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.cli.repos.progress import PROGRESS, describe, when_host_due
from sanderling.limit import explain
from sanderling.repos.report import report_one
from sanderling.repos.status import HostStatus, RepoStatus, published
from sanderling.stores.ports import HostAside, ProgressError
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.stores.status_file import FILE, age, is_running
from sanderling.words import count, duration


class RepoHosts(NamedTuple):
    """A crawl of repos, and where it was found."""

    folder: Path
    status: RepoStatus

    @property
    def wall(self) -> float:
        """When it said so."""
        return self.status.wall

    @property
    def hosts(self) -> dict[str, HostStatus]:
        """What it says of each host."""
        return {host.view.host: host for host in self.status.hosts}

    def words(self, host: str, wall: float) -> Iterator[str]:
        """How a host is, in sentences."""
        found, then, where = self.hosts[host], f"{duration(age(self.status, wall))} ago", self.folder.absolute()
        state = report_one(found).state.value
        if is_running(self.status, wall):
            yield f"{host} is {state}: {then}, in the crawl in {where} (process {self.status.pid})."
        else:
            yield f"{host} was {state} {then}, in the crawl in {where}, which does not run any more."
        yield explain(found.view)
        if found.waiting:
            yield f"{count(found.waiting, 'repo')} of it still to be asked for."
        if (aside := self._aside(host)) is not None:
            due = when_host_due(aside, wall)
            yield f"It was set aside, by no fault of its repos: {describe(aside.category)}{due}."
        elif found.trouble:
            yield f"The last thing it said instead of a good answer: {describe(found.trouble)}."

    def document(self, host: str, wall: float) -> dict[str, object]:
        """The same for machines."""
        found, aside = self.hosts[host], self._aside(host)
        return {
            "host": host,
            "state": report_one(found).state.value,
            "why": explain(found.view),
            "pace": self.status.pace,
            "queued": found.waiting,
            "trouble": found.trouble,
            "set_aside": None if aside is None else aside._asdict(),
            "age": round(age(self.status, wall), 3),
            "running": is_running(self.status, wall),
            "pid": self.status.pid,
            "out": str(self.folder),
            "view": msgspec.to_builtins(found.view),
        }

    def _aside(self, host: str) -> HostAside | None:
        """What the progress notes of the host; what the status says where the progress is in a Redis."""
        path, found = self.folder / PROGRESS, self.hosts[host]
        if path.is_file():
            try:
                with closing(SqliteProgress(path)) as progress:
                    return progress.aside_of(host)
            except ProgressError:
                pass  # what the crawl said itself is left
        return HostAside(host, found.trouble, int(found.due)) if found.blocked else None


def repos_in(out: Path | None) -> Iterator[RepoHosts]:
    """What to look at: the folder that is named, or the one here, or those one folder down."""
    here = out or Path()
    if (found := published(here)) is not None:
        yield RepoHosts(here, found)
    elif out is None:
        for path in sorted(here.glob(f"*/{FILE}")):
            if (below := published(path.parent)) is not None:
                yield RepoHosts(path.parent, below)
