"""`sanderling why HOST`: why is this host as slow as it is, right now, in words."""

import json as jsonlib
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Annotated, Protocol

import msgspec
from cyclopts import Parameter

from sanderling import ids
from sanderling.cli.command_error import CommandError
from sanderling.cli.pages.summary import meaning, reasons
from sanderling.cli.polling.why import polled_in
from sanderling.cli.repos.why import repos_in
from sanderling.clock import SystemClock
from sanderling.engine.host_report import HostStatus, report_host
from sanderling.jobs import status as jobs_status
from sanderling.jobs.folder import FRONTIER
from sanderling.jobs.status import JobStatus
from sanderling.limit import explain
from sanderling.limit.sharing import SCOPES
from sanderling.pages.earlier import LEDGER
from sanderling.pages.status import FILE, Status, published
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.control_file import read_control
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_reading import HostWaits
from sanderling.stores.status_file import age, is_running
from sanderling.web.house import Reader
from sanderling.words import count, duration, printable

NEAREST = 5  # names offered for one that is not known


class Knows(Protocol):
    """Whoever asks hosts, and says how each is: a crawl of pages or repos, or polling."""

    @property
    def folder(self) -> Path:
        """Where it was found."""

    @property
    def wall(self) -> float:
        """When it last said so."""

    @property
    def hosts(self) -> Collection[str]:
        """The hosts it knows."""

    def words(self, host: str, wall: float) -> Iterator[str]:
        """How one of them is, in sentences."""

    def document(self, host: str, wall: float) -> dict[str, object]:
        """The same for machines."""


@dataclass(frozen=True, slots=True)
class Published:
    """The status of a crawl or a job, and where it was found."""

    folder: Path
    status: Status | JobStatus

    @property
    def wall(self) -> float:
        """When it was written."""
        return self.status.wall

    @property
    def hosts(self) -> dict[str, HostStatus]:
        """What it says of each host, and of what hosts share."""
        shared = (HostStatus(view, 0, None) for view in self.status.shared)
        return {host.view.host: host for host in (*self.status.hosts, *shared)}

    def words(self, host: str, wall: float) -> Iterator[str]:
        """How a host is, in sentences."""
        yield from _words(self, self.hosts[host], age(self.status, wall), running=is_running(self.status, wall))
        yield from _faults(waits_in(self.folder, host), wall)

    def document(self, host: str, wall: float) -> dict[str, object]:
        """The same for machines."""
        found, waits = self.hosts[host], waits_in(self.folder, host)
        return {
            "host": host,
            "state": report_host(found).state.value,
            "why": explain(found.view),
            "pace": self.status.pace,
            "queued": found.queued,
            "trouble": found.trouble,
            "set_aside": None if waits.aside is None else waits.aside._asdict(),
            "again_by": waits.again,
            "age": round(age(self.status, wall), 3),
            "running": is_running(self.status, wall),
            "pid": self.status.pid,
            "out": str(self.folder),
            "view": msgspec.to_builtins(found.view),
        }


def why(
    host: Annotated[
        str, Parameter(help="As in example.org, 127.0.0.1:8080 or https://example.org/; or credential/NAME.")
    ],
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(
            help="The folder of a crawl or of polling; by default this one, or of those directly in it the freshest."
        ),
    ] = None,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object, and nothing else.")] = False,
) -> None:
    """Find who knows the host, and say what they say."""
    found: list[Knows] = [*crawls_in(out), *repos_in(out), *polled_in(out)]
    if not found:
        where = f"in {out}" if out else "here or in the folders directly below; say --out DIR"
        raise CommandError(printable(f"nothing was crawled or polled {where}: {_instead(out)}"), code=2)
    name = _spelled(host)
    knowing = [each for each in found if name in each.hosts]
    if not knowing:
        raise CommandError(_unknown(name, found))
    freshest, wall = max(knowing, key=lambda each: each.wall), SystemClock().wall()
    alone = _is_left_alone(freshest.folder, name)
    if json:
        print(jsonlib.dumps(freshest.document(name, wall) | {"left_alone": alone}))
        return
    for line in freshest.words(name, wall):
        print(printable(line))
    if alone:
        command = f"sanderling control {quote(str(freshest.folder))} let-go {name}"
        print(printable(f"It is left alone, and not even probed, until somebody says: {command}"))


def _is_left_alone(folder: Path, host: str) -> bool:
    """Whether somebody wants the host left alone; a control that makes no sense wants nothing."""
    with suppress(ValueError):
        return host in read_control(folder).hosts
    return False


def _instead(out: Path | None) -> str:
    """What there is in a folder that asks no hosts, or none that are told of here."""
    there = None if out is None else Reader(out.absolute().parent).system(out.absolute())
    if there is None:
        return f"there is no {FILE}"
    return there.trouble or f"its {FILE} is of {there.system}, which has no hosts to tell of"


def crawls_in(out: Path | None) -> Iterator[Published]:
    """The crawls and jobs to look at: the one that is named, or the one here, or those one folder down."""
    here = out or Path()
    found = _status_in(here)
    if found is not None:
        yield Published(here, found)
    elif out is None:
        for path in sorted(here.glob(f"*/{FILE}")):
            below = _status_in(path.parent)
            if below is not None:
                yield Published(path.parent, below)


def _status_in(folder: Path) -> Status | JobStatus | None:
    """What a crawl of pages or a job last said; None if there is none."""
    return jobs_status.published(folder) or published(folder)


def _spelled(host: str) -> str:
    """The host as crawls spell it, whether a name or a whole address was given; or what hosts share."""
    if host.partition("/")[0] in SCOPES:
        return host
    try:
        return ids.host_of(host) if "://" in host else ids.normalise(host, scheme="http")
    except ids.HostError as error:
        raise CommandError(str(error), code=2) from None


def _unknown(name: str, found: list[Knows]) -> str:
    known = sorted({host for each in found for host in each.hosts})
    nearest = get_close_matches(name, known, NEAREST, cutoff=0.0)
    if not nearest:
        return f"no host {name} is known, and no other: nothing was asked yet"
    return f"no host {name} is known; of the {count(len(known), 'host')} that are, nearest: {', '.join(nearest)}"


def waits_in(folder: Path, host: str) -> HostWaits:
    """Why what waits for the host waits, as the ledger says; nothing if that cannot be read."""
    path = folder / (LEDGER if (folder / LEDGER).exists() else FRONTIER)
    with suppress(FolderError), plainly(path), closing(frontier_file.connect_to_read(path)) as db:
        return frontier_reading.waits_of(db, host)
    return HostWaits(None, {})


def _faults(waits: HostWaits, wall: float) -> Iterator[str]:
    """Whose fault it is that URLs wait."""
    if waits.aside is not None:
        due = waits.aside.due - wall
        when = f"; it is next asked in {duration(due)}" if due > 0 else ""
        yield f"It was set aside, by no fault of its pages: {meaning(waits.aside.code)}{when}."
    if waits.again:
        number = count(sum(waits.again.values()), "URL")
        yield f"{number} of it failed and will be asked for once more: {reasons(waits.again)}."


def _words(crawl: Published, host: HostStatus, since: float, *, running: bool) -> Iterator[str]:
    where, then, state = crawl.folder.absolute(), f"{duration(since)} ago", report_host(host).state
    if running:
        yield f"{host.view.host} is {state}: {then}, in the crawl in {where} (process {crawl.status.pid})."
    else:
        yield f"{host.view.host} was {state} {then}, in the crawl in {where}, which does not run any more."
    yield explain(host.view) + ("" if crawl.status.pace == "governor" else f" Paced by {crawl.status.pace}.")
    if host.queued:
        when = ": the host is set aside and only probed, and the next run asks for them first" if host.given_up else ""
        yield f"{count(host.queued, 'URL')} of it still to be asked for{when}."
    if host.trouble is not None:
        yield f"The last thing it said instead of a good answer: {host.trouble}"
