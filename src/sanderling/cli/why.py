"""`sanderling why HOST`: why is this host as slow as it is, right now, in words."""

import json as jsonlib
from collections.abc import Iterator
from contextlib import closing, suppress
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from sanderling import ids
from sanderling.cli.command_error import CommandError
from sanderling.cli.pages.summary import meaning, reasons
from sanderling.cli.repos.progress import describe, when_host_due
from sanderling.clock import SystemClock
from sanderling.crawls.parts import folders_of, part_of
from sanderling.engine.host_report import view_of
from sanderling.jobs.files import FRONTIER
from sanderling.limit import explain
from sanderling.limit.sharing import SCOPES
from sanderling.observe.report import AnyReport, HostCondition, HostReport
from sanderling.pages.earlier import LEDGER
from sanderling.repos.parts import PROGRESS
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.control_file import read_control
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_reading import HostWaits
from sanderling.stores.ports import HostAside, ProgressError
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.stores.status_file import FILE, age, is_running
from sanderling.web.house import Found, HouseReader
from sanderling.words import count, duration, printable

NEAREST = 5  # names offered for one that is not known
ITEMS = {"pages": "URL", "jobs": "request", "repos": "repo", "polling": "target", "sequence": "id"}


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
    found = [(folder, each.report) for folder, each in _processes(out) if each.report is not None]
    found = [each for each in found if each[1].system != "events"]  # what it lists are services, and no hosts
    if not found:
        where = f"in {out}" if out else "here or in the folders directly below; say --out DIR"
        raise CommandError(printable(f"nothing was crawled or polled {where}: {_instead(out)}"), code=2)
    name = _spelled(host)
    knowing = [each for each in found if name in hosts_of(each[1])]
    if not knowing:
        raise CommandError(_unknown(name, [report for _, report in found]))
    folder, report = max(knowing, key=lambda each: each[1].process.wall)
    known, wall, alone = hosts_of(report)[name], SystemClock().wall(), _is_left_alone(folder, name)
    if json:
        print(jsonlib.dumps(document(folder, report, known, wall) | {"left_alone": alone}))
        return
    for line in words(folder, report, known, wall):
        print(printable(line))
    if alone:
        command = f"sanderling control {quote(str(folder))} let-go {name}"
        print(printable(f"It is left alone, and not even probed, until somebody says: {command}"))


def _processes(out: Path | None) -> list[tuple[Path, Found]]:
    """Those to look at: of the folder that is named, or of the one here, or of those one folder down."""
    here = out or Path()
    folders = [here] if (here / FILE).exists() or out else [path.parent for path in sorted(here.glob(f"*/{FILE}"))]
    return [
        (each, found) for each in folders for found in HouseReader(each.absolute().parent).processes(each.absolute())
    ]


def hosts_of(report: AnyReport) -> dict[str, HostReport]:
    """What is said of each host, and of what hosts share."""
    return {host.host: host for host in (*report.hosts, *report.shared)}


def words(folder: Path, report: AnyReport, host: HostReport, wall: float) -> Iterator[str]:
    """How a host is, in sentences."""
    process, items = report.process, ITEMS.get(report.system, "item")
    then, where = f"{duration(age(process, wall))} ago", folder.absolute()
    how = f"polled into {where}" if report.system == "polling" else f"in the crawl in {where}"
    if is_running(process, wall):
        yield f"{host.host} is {host.state}: {then}, {how} (process {process.pid})."
    else:
        yield f"{host.host} was {host.state} {then}, {how}, which does not run any more."
    yield explain(view_of(host)) + ("" if report.pace == "governor" else f" Paced by {report.pace}.")
    if report.system == "polling":
        yield from (f"{said[0].upper()}{said[1:]}." for said in (report.doing, *report.texts()))
        return
    aside = host.state is HostCondition.SET_ASIDE
    if host.waiting:
        when = ": the host is set aside and only probed, and the next run asks for them first" if aside else ""
        yield f"{count(host.waiting, items)} of it still to be asked for{when}."
    if report.system == "repos":
        yield from _of_repos(folder, host, wall)
    elif host.said:
        yield f"The last thing it said instead of a good answer: {host.said}"
    yield from _faults(waits_in(folder, host.host), items, wall)


def _of_repos(folder: Path, host: HostReport, wall: float) -> Iterator[str]:
    if (found := aside_in(folder, host)) is not None:
        due = when_host_due(found, wall)
        yield f"It was set aside, by no fault of its repos: {describe(found.category)}{due}."
    elif host.said:
        yield f"The last thing it said instead of a good answer: {describe(host.said)}."


def document(folder: Path, report: AnyReport, host: HostReport, wall: float) -> dict[str, Any]:
    """The same for machines."""
    waits = waits_in(folder, host.host)
    aside = aside_in(folder, host) if report.system == "repos" else waits.aside
    return {
        "host": host.host,
        "state": host.state.value,
        "why": explain(view_of(host)),
        "pace": report.pace,
        "queued": host.waiting,
        "trouble": host.said or None,
        "set_aside": None if aside is None else aside._asdict(),
        "again_by": waits.again,
        "age": round(age(report.process, wall), 3),
        "running": is_running(report.process, wall),
        "pid": report.process.pid,
        "out": str(folder),
        "view": msgspec.to_builtins(view_of(host)),
    }


def aside_in(folder: Path, host: HostReport) -> HostAside | None:
    """What the progress of repos notes of a host; what the report says where the progress is in a Redis."""
    with suppress(ProgressError, FolderError):
        parts = folders_of(folder)
        path = parts[part_of(host.host, len(parts))] / PROGRESS
        if path.is_file():
            with closing(SqliteProgress(path)) as progress:
                return progress.aside_of(host.host)
    aside = host.state is HostCondition.SET_ASIDE or host.due
    return HostAside(host.host, host.said, int(host.due)) if aside else None


def _is_left_alone(folder: Path, host: str) -> bool:
    """Whether somebody wants the host left alone; a control that makes no sense wants nothing."""
    with suppress(ValueError):
        return host in read_control(folder).hosts
    return False


def _instead(out: Path | None) -> str:
    """What there is in a folder that asks no hosts, or none that are told of here."""
    there = None if out is None else HouseReader(out.absolute().parent).system(out.absolute())
    if there is None:
        return f"there is no {FILE}"
    return there.trouble or f"its {FILE} is of {there.system}, which has no hosts to tell of"


def _spelled(host: str) -> str:
    """The host as crawls spell it, whether a name or a whole address was given; or what hosts share."""
    if host.partition("/")[0] in SCOPES:
        return host
    try:
        return ids.host_of(host) if "://" in host else ids.normalise(host, scheme="http")
    except ids.HostError as error:
        raise CommandError(str(error), code=2) from None


def _unknown(name: str, reports: list[AnyReport]) -> str:
    known = sorted({host for each in reports for host in hosts_of(each)})
    nearest = get_close_matches(name, known, NEAREST, cutoff=0.0)
    if not nearest:
        return f"no host {name} is known, and no other: nothing was asked yet"
    return f"no host {name} is known; of the {count(len(known), 'host')} that are, nearest: {', '.join(nearest)}"


def waits_in(folder: Path, host: str) -> HostWaits:
    """Why what waits for the host waits, as the ledger says; nothing if that cannot be read."""
    with suppress(FolderError):
        parts = folders_of(folder)
        own = parts[part_of(host, len(parts))]
        path = own / (LEDGER if (own / LEDGER).exists() else FRONTIER)
        with plainly(path), closing(frontier_file.connect_to_read(path)) as db:
            return frontier_reading.waits_of(db, host)
    return HostWaits(None, {})


def _faults(waits: HostWaits, items: str, wall: float) -> Iterator[str]:
    """Whose fault it is that something waits."""
    if waits.aside is not None:
        due = waits.aside.due - wall
        when = f"; it is next asked in {duration(due)}" if due > 0 else ""
        yield f"It was set aside, by no fault of what it was asked for: {meaning(waits.aside.code)}{when}."
    if waits.again:
        number = count(sum(waits.again.values()), items)
        yield f"{number} of it failed and will be asked for once more: {reasons(waits.again)}."
