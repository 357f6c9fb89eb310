"""`sanderling why HOST`: why is this host as slow as it is, right now, in words."""

import json as jsonlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from sanderling import ids
from sanderling.cli import CommandError
from sanderling.cli.pages.hosts import mood
from sanderling.cli.pages.summary import meaning, reasons
from sanderling.clock import SystemClock
from sanderling.limit import explain
from sanderling.limit.sharing import SCOPES
from sanderling.pages.earlier import LEDGER
from sanderling.pages.status import FILE, HostStatus, Status, published
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_reading import HostWaits
from sanderling.stores.status_file import age, is_running
from sanderling.words import count, duration, printable

NEAREST = 5  # names offered for one that is not known


@dataclass(frozen=True, slots=True)
class Published:
    """A crawl's status, and where it was found."""

    folder: Path
    status: Status

    def host(self, name: str) -> HostStatus | None:
        """What it says of a host."""
        shared = (HostStatus(view, 0, None) for view in self.status.shared)
        return next((host for host in (*self.status.hosts, *shared) if host.view.host == name), None)


def why(
    host: Annotated[
        str, Parameter(help="As in example.org, 127.0.0.1:8080 or https://example.org/; or credential/NAME.")
    ],
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(help="The folder of the crawl; by default this one, or of those directly in it the freshest."),
    ] = None,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object, and nothing else.")] = False,
) -> None:
    """Find the crawl that knows the host, and say what it says."""
    crawls = list(crawls_in(out))
    if not crawls:
        where = f"in {out}" if out else "here or in the folders directly below; say --out DIR"
        raise CommandError(f"no crawl {where}: there is no {FILE}", code=2)
    name = _spelled(host)
    knowing = [each for each in crawls if each.host(name) is not None]
    if not knowing:
        raise CommandError(_unknown(name, crawls))
    crawl = max(knowing, key=lambda each: each.status.wall)
    told = crawl.host(name)
    assert told is not None  # noqa: S101 - as was just asked
    _tell(crawl, told, as_json=json)


def crawls_in(out: Path | None) -> Iterator[Published]:
    """The crawls to look at: the one that is named, or the one here, or those one folder down."""
    here = out or Path()
    found = published(here)
    if found is not None:
        yield Published(here, found)
    elif out is None:
        for path in sorted(here.glob(f"*/{FILE}")):
            below = published(path.parent)
            if below is not None:
                yield Published(path.parent, below)


def _spelled(host: str) -> str:
    """The host as crawls spell it, whether a name or a whole address was given; or what hosts share."""
    if host.partition("/")[0] in SCOPES:
        return host
    try:
        return ids.host_of(host) if "://" in host else ids.normalise(host, scheme="http")
    except ids.HostError as error:
        raise CommandError(str(error), code=2) from None


def _unknown(name: str, crawls: list[Published]) -> str:
    known = sorted({host.view.host for crawl in crawls for host in crawl.status.hosts})
    nearest = get_close_matches(name, known, NEAREST, cutoff=0.0)
    if not nearest:
        return f"no host {name} is known, and no other: nothing was asked yet"
    return f"no host {name} is known; of the {count(len(known), 'host')} that are, nearest: {', '.join(nearest)}"


def _tell(crawl: Published, host: HostStatus, *, as_json: bool) -> None:
    wall = SystemClock().wall()
    since, running = age(crawl.status, wall), is_running(crawl.status, wall)
    waits = waits_in(crawl.folder, host.view.host)
    if as_json:
        told = {
            "host": host.view.host,
            "state": mood(host).value,
            "why": explain(host.view),
            "pace": crawl.status.pace,
            "queued": host.queued,
            "trouble": host.trouble,
            "set_aside": None if waits.aside is None else waits.aside._asdict(),
            "again_by": waits.again,
            "age": round(since, 3),
            "running": running,
            "pid": crawl.status.pid,
            "out": str(crawl.folder),
            "view": msgspec.to_builtins(host.view),
        }
        print(jsonlib.dumps(told))
        return
    for line in _words(crawl, host, since, running=running):
        print(printable(line))
    for line in _faults(waits, wall):
        print(printable(line))


def waits_in(folder: Path, host: str) -> HostWaits:
    """Why what waits for the host waits, as the ledger says; nothing if that cannot be read."""
    path = folder / LEDGER
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
    where, then = crawl.folder.absolute(), f"{duration(since)} ago"
    if running:
        yield f"{host.view.host} is {mood(host).value}: {then}, in the crawl in {where} (process {crawl.status.pid})."
    else:
        yield f"{host.view.host} was {mood(host).value} {then}, in the crawl in {where}, which does not run any more."
    yield explain(host.view) + ("" if crawl.status.pace == "governor" else f" Paced by {crawl.status.pace}.")
    if host.queued:
        when = ": the host is set aside and only probed, and the next run asks for them first" if host.given_up else ""
        yield f"{count(host.queued, 'URL')} of it still to be asked for{when}."
    if host.trouble is not None:
        yield f"The last thing it said instead of a good answer: {host.trouble}"
