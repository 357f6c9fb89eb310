"""`sanderling status`: all systems of a home, or one of them, in words or as JSON."""

import json as jsonlib
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.home import configured, home_of
from sanderling.cli.house_words import block, ended, heading, is_silent, nothing
from sanderling.cli.loop import run
from sanderling.cli.on_disk import ON_DISK, OnDisk
from sanderling.cli.report_words import line, report_lines, state
from sanderling.cli.screen import ascii_of
from sanderling.cli.system_folder import find_folder, reported_system, system_of
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.parts import is_of_worker
from sanderling.observe import logs
from sanderling.observe.report import AnyReport
from sanderling.web.house import Found, HouseReader
from sanderling.web.house_asking import Asking
from sanderling.web.house_live import Live
from sanderling.web.house_reach import Reach
from sanderling.words import printable

# A rate needs two reports. They are written every second or two; whoever is late has a rate of 0.
PATIENCE, LOOK = 3.0, 0.1
BEGIN = {
    "pages": "pages crawl",
    "jobs": "run",
    "sequence": "sequence crawl",
    "repos": "repos crawl",
    "polling": "polling run",
    "events": "events consume",
}
WHAT = {"jobs": "The job", "polling": "Polling", "events": "Events"}


def status(
    folder: Annotated[
        Path | None, Parameter(help="The folder of a system, or a home; by default the home that --home names.")
    ] = None,
    /,
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object, and nothing else.")] = False,
) -> None:
    """Say how every system of the home stands, or the system of a folder."""
    found = None if folder is None else find_folder(folder)
    if found is not None and (system := reported_system(found) if is_of_worker(found) else system_of(found)):
        show_system(system, found, as_json=json)
        return
    home = home_of(configured()) if found is None else found
    logs.configure(None, "warning")
    live = run(looked(home, SystemClock()))
    seen = live.seen
    if json:
        print(live.house().decode())
    elif not seen.systems:
        raise CommandError(nothing(str(home), there=home.is_dir()), code=2)
    else:
        _print(live, str(home))
    sys.exit(code_of(live))


def show_system(system: str, folder: Path, *, as_json: bool) -> None:
    """Print how one system stands, in each of its processes. Raises CommandError."""
    shared = is_of_worker(folder)
    kept = ON_DISK[system](folder) if system in ON_DISK and not shared else None
    here, wall = folder.absolute(), SystemClock().wall()
    found = list(HouseReader(here.parent).processes(here))
    if kept is None and not found:
        raise CommandError(printable(f"nothing has run in {folder} yet; begin: sanderling {BEGIN[system]}"), code=2)
    if as_json:
        print(jsonlib.dumps(document(found, kept, wall)))
        return
    what = "The worker of a fleet" if shared else WHAT.get(system, "The crawl")
    for text in words(f"{what} in {folder}", found, kept, wall):
        print(printable(text))
    if shared:
        print()
        print(printable(f"The whole crawl: sanderling fleet status {here.resolve().name} --fleet …"))


def document(found: Sequence[Found], kept: OnDisk | None, wall: float) -> dict[str, Any]:
    """What `--json` prints: the process that runs, or did last; all where there are several; what is on disk."""
    processes = [
        {
            "running": each.running(wall),
            "age": round(each.age(wall), 1),
            "status": msgspec.to_builtins(each.report),
            **({"trouble": each.trouble} if each.trouble else {}),
        }
        for each in sorted(found, key=lambda each: (not each.running(wall), each.age(wall)))
    ]
    first: dict[str, Any] = processes[0] if processes else {"running": False, "age": None, "status": None}
    several = {"processes": processes} if len(processes) > 1 else {}
    return {**first, **several, **({} if kept is None else {"kept": kept.document})}


def words(what: str, found: Sequence[Found], kept: OnDisk | None, wall: float) -> Iterator[str]:
    """The same as lines."""
    reports = [(each.report, each.running(wall)) for each in found if each.report is not None]
    yield f"{what}:" if len(reports) != 1 else f"{what}, {state(reports[0][0].process, wall)}:"
    yield ""
    yield from () if kept is None else kept.lines
    for report, running in reports:
        if len(reports) > 1:
            yield ""
            yield line("process", f"{report.process.pid}, {state(report.process, wall)}")
        yield from report_lines(_without(report, kept), running=running)
    yield from (line("trouble", each.trouble) for each in found if each.trouble)


def _without(report: AnyReport, kept: OnDisk | None) -> AnyReport:
    """The report without what the disk says better."""
    if kept is None or not kept.instead_of:
        return report
    lines = tuple(each for each in report.lines if each[0] not in kept.instead_of)
    return msgspec.structs.replace(report, lines=lines)


def house_in(home: Path, clock: Clock) -> Live:
    """The systems of a home, not looked at yet. What no report says is not asked for: that would open databases."""
    return Live(home, Asking(Reach(clock=clock), clock), clock, version("sanderling"), secured=False)


async def looked(home: Path, clock: Clock) -> Live:
    """The systems of a home, looked at until each that runs has said something twice."""
    live = house_in(home, clock)
    await live.look()
    first = {name: each.stamp for name, each in live.seen.found.items() if each.running(live.seen.wall)}
    until = clock.now() + PATIENCE
    while clock.now() < until:
        known = live.seen.found
        if not any(name in known and known[name].stamp == stamp for name, stamp in first.items()):
            break
        await clock.sleep(LOOK)
        await live.look()
    return live


def code_of(live: Live) -> int:
    """0 if all is well, 1 if one that runs, or should, is in trouble, 2 if there is none."""
    seen = live.seen
    if not seen.systems:
        return 2
    wrong = any(each.running and each.troubles for each in seen.systems)
    return int(wrong or any(is_silent(each, seen.wall) for each in seen.found.values()))


def _print(live: Live, home: str) -> None:
    seen = live.seen
    lines = [heading(home, seen.systems)]
    for each in seen.systems:
        if each.running:
            lines += ["", *block(each, seen.wall)]
    resting = [ended(each, seen.found[each.name], seen.wall) for each in seen.systems if not each.running]
    lines += ["", *resting] if resting else []
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    for text in lines:
        print(ascii_of(text) if plain else text)
