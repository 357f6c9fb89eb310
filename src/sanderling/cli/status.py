"""`sanderling status`: all systems of a home, or one of them, in words or as JSON."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Protocol

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.events.status import show_events
from sanderling.cli.home import configured, home_of, set_for
from sanderling.cli.house_words import block, ended, heading, is_silent, nothing
from sanderling.cli.jobs.status import show_job
from sanderling.cli.loop import run
from sanderling.cli.pages.status import show_crawl
from sanderling.cli.polling.status import show_polling
from sanderling.cli.repos.progress import ArchiveFolder, show_progress
from sanderling.cli.screen import ascii_of
from sanderling.cli.sequence.status import show_ids
from sanderling.cli.system_folder import find_folder, system_of
from sanderling.clock import Clock, SystemClock
from sanderling.observe import logs
from sanderling.web.house_asking import Asking
from sanderling.web.house_live import Live
from sanderling.web.house_reach import Reach

# A rate needs two statuses. They are written every second or two; whoever is late has a rate of 0.
PATIENCE, LOOK = 3.0, 0.1


class Show(Protocol):
    """How one system stands, printed."""

    def __call__(self, folder: Path, /, *, as_json: bool) -> None:
        """Print it. Raises CommandError."""


SHOW: dict[str, Show] = {
    "pages": show_crawl,
    "jobs": show_job,
    "sequence": show_ids,
    "polling": show_polling,
    "events": show_events,
}


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
    system = "" if found is None else system_of(found)
    if found is not None and system:
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
    """Print how one system stands. Raises CommandError."""
    if system == "repos":
        show_progress(ArchiveFolder(out=folder, **set_for(("repos", "crawl"), ["redis_address"])), as_json=as_json)
    else:
        SHOW[system](folder, as_json=as_json)


def house_in(home: Path, clock: Clock) -> Live:
    """The systems of a home, not looked at yet. What no status says is not asked for: that would open databases."""
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
    for line in lines:
        print(ascii_of(line) if plain else line)
