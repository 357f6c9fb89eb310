"""`sanderling why HOST`: why is this host as slow as it is, right now, in words."""

import json as jsonlib
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec
from cyclopts import Parameter

from sanderling import ids
from sanderling.cli.command_error import CommandError
from sanderling.cli.pages.summary import meaning, reasons
from sanderling.cli.repos.progress import PROGRESS, describe, when_host_due
from sanderling.clock import SystemClock
from sanderling.engine.host_report import HostStatus, report_host
from sanderling.jobs.folder import FRONTIER
from sanderling.jobs.status import JobStatus
from sanderling.limit import HostView, explain
from sanderling.limit.sharing import SCOPES
from sanderling.pages.earlier import LEDGER
from sanderling.pages.status import Status as PagesStatus
from sanderling.polling.report import report as polling_report
from sanderling.polling.status import PollingStatus
from sanderling.repos.report import report_one
from sanderling.repos.status import HostStatus as RepoHostStatus
from sanderling.repos.status import RepoStatus
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_reading import HostWaits
from sanderling.stores.ports import HostAside, ProgressError
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.stores.status_file import FILE
from sanderling.web.house import Found, Reader
from sanderling.words import count, duration, printable

NEAREST = 5  # names offered for one that is not known


class KnownHost(NamedTuple):
    """What one system says of one host: sentences for people, facts for machines."""

    system: Found
    view: HostView
    state: str
    pid: int
    polled: bool = False
    pace: str = "governor"
    sentences: tuple[str, ...] = ()
    facts: Mapping[str, Any] = MappingProxyType({})

    def lines(self, wall: float) -> Iterator[str]:
        """How the host is, in sentences."""
        host, then, folder = self.view.host, f"{duration(self.system.age(wall))} ago", self.system.folder
        where = f"{'polled into' if self.polled else 'in the crawl in'} {folder}"
        if self.system.running(wall):
            yield f"{host} is {self.state}: {then}, {where} (process {self.pid})."
        else:
            yield f"{host} was {self.state} {then}, {where}, which does not run any more."
        yield explain(self.view) + ("" if self.pace == "governor" else f" Paced by {self.pace}.")
        yield from self.sentences
        if self.is_left_alone:
            command = f"sanderling control {quote(str(folder))} let-go {host}"
            yield f"It is left alone, and not even probed, until somebody says: {command}"

    @property
    def is_left_alone(self) -> bool:
        """Whether somebody wants it so."""
        return self.view.host in self.system.control.hosts

    def document(self, out: Path, wall: float) -> dict[str, object]:
        """The same for machines."""
        return {
            "host": self.view.host,
            "state": self.state,
            "why": explain(self.view),
            **self.facts,
            "age": round(self.system.age(wall), 3),
            "running": self.system.running(wall),
            "pid": self.pid,
            "out": str(out),
            "view": msgspec.to_builtins(self.view),
            "left_alone": self.is_left_alone,
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
    name, wall, here = _spelled(host), SystemClock().wall(), out or Path()
    found = {here: system} if (system := _read(here)) is not None else {}
    if out is None and not _views(system):
        below = {path.parent: _read(path.parent) for path in sorted(here.glob(f"*/{FILE}"))}
        found = {folder: system for folder, system in below.items() if system is not None}
    known = {folder: views for folder, system in found.items() if (views := _views(system)) is not None}
    if not known:
        where = f"in {out}" if out else "here or in the folders directly below; say --out DIR"
        raise CommandError(printable(f"nothing was crawled or polled {where}: {_instead(system)}"), code=2)
    knowing = [folder for folder, views in known.items() if name in views]
    if not knowing:
        raise CommandError(_unknown(name, sorted({each for views in known.values() for each in views})))
    freshest = min(knowing, key=lambda folder: found[folder].age(wall))
    told = _known_host(found[freshest], known[freshest][name], wall)
    if json:
        print(jsonlib.dumps(told.document(freshest, wall)))
        return
    for line in told.lines(wall):
        print(printable(line))


def _read(folder: Path) -> Found | None:
    whole = folder.absolute()
    return Reader(whole.parent).system(whole)


def _instead(system: Found | None) -> str:
    """What there is in a folder that asks no hosts, or none that are told of here."""
    if system is None:
        return f"there is no {FILE}"
    return system.trouble or f"its {FILE} is of {system.system}, which has no hosts to tell of"


AnyHost = HostStatus | RepoHostStatus


def _views(system: Found | None) -> dict[str, AnyHost] | None:
    """What a system says of each host, and of what hosts share; None if it asks none."""
    match None if system is None else system.status:
        case PagesStatus() | JobStatus() as status:
            shared = (HostStatus(view, 0, None) for view in status.shared)
            return {host.view.host: host for host in (*status.hosts, *shared)}
        case RepoStatus() as status:
            return {host.view.host: host for host in status.hosts}
        case PollingStatus(limiter=HostView() as view, ready=ready):
            return {view.host: HostStatus(view, ready, None)}
    return None


def _known_host(system: Found, host: AnyHost, wall: float) -> KnownHost:
    status = system.status
    facts: dict[str, object]
    match status, host:
        case PollingStatus(), HostStatus():
            made = polling_report(status)
            said = tuple(f"{text[0].upper()}{text[1:]}." for text in (made.doing, *made.texts()))
            state, facts = report_host(host, lasting=True).state.value, {"queued": host.queued}
            return KnownHost(system, host.view, state, status.pid, polled=True, sentences=said, facts=facts)
        case RepoStatus(), RepoHostStatus():
            aside = _aside(system.folder, host)
            said = tuple(_repo_sentences(host, aside, wall))
            facts = {"pace": status.pace, "queued": host.waiting, "trouble": host.trouble}
            facts |= {"set_aside": None if aside is None else aside._asdict()}
            return KnownHost(system, host.view, report_one(host).state.value, status.pid, sentences=said, facts=facts)
        case ((PagesStatus() | JobStatus()), HostStatus()):
            waits = waits_in(system.folder, host.view.host)
            facts = {"pace": status.pace, "queued": host.queued, "trouble": host.trouble}
            facts |= {"set_aside": None if waits.aside is None else waits.aside._asdict(), "again_by": waits.again}
            said, state = tuple(_page_sentences(host, waits, wall)), report_host(host).state.value
            return KnownHost(system, host.view, state, status.pid, pace=status.pace, sentences=said, facts=facts)
    raise TypeError(f"{type(status).__name__} has no {type(host).__name__}")


def _spelled(host: str) -> str:
    """The host as crawls spell it, whether a name or a whole address was given; or what hosts share."""
    if host.partition("/")[0] in SCOPES:
        return host
    try:
        return ids.host_of(host) if "://" in host else ids.normalise(host, scheme="http")
    except ids.HostError as error:
        raise CommandError(str(error), code=2) from None


def _unknown(name: str, known: list[str]) -> str:
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


def _page_sentences(host: HostStatus, waits: HostWaits, wall: float) -> Iterator[str]:
    """What waits for a host of pages or of a job, and whose fault that is."""
    if host.queued:
        when = ": the host is set aside and only probed, and the next run asks for them first" if host.given_up else ""
        yield f"{count(host.queued, 'URL')} of it still to be asked for{when}."
    if host.trouble is not None:
        yield f"The last thing it said instead of a good answer: {host.trouble}"
    if waits.aside is not None:
        due = waits.aside.due - wall
        when = f"; it is next asked in {duration(due)}" if due > 0 else ""
        yield f"It was set aside, by no fault of its pages: {meaning(waits.aside.code)}{when}."
    if waits.again:
        number = count(sum(waits.again.values()), "URL")
        yield f"{number} of it failed and will be asked for once more: {reasons(waits.again)}."


def _repo_sentences(host: RepoHostStatus, aside: HostAside | None, wall: float) -> Iterator[str]:
    """The same for a host of repos."""
    if host.waiting:
        yield f"{count(host.waiting, 'repo')} of it still to be asked for."
    if aside is not None:
        yield f"It was set aside, by no fault of its repos: {describe(aside.category)}{when_host_due(aside, wall)}."
    elif host.trouble:
        yield f"The last thing it said instead of a good answer: {describe(host.trouble)}."


def _aside(folder: Path, host: RepoHostStatus) -> HostAside | None:
    """What the progress notes of the host; what the status says where the progress is in a Redis."""
    if (path := folder / PROGRESS).is_file():
        # What the crawl said itself is left, if that cannot be read.
        with suppress(ProgressError), closing(SqliteProgress(path)) as progress:
            return progress.aside_of(host.view.host)
    return HostAside(host.view.host, host.trouble, int(host.due)) if host.blocked else None
