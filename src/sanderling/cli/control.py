"""The command `control`: pause a system, resume, stop or drain it, or leave hosts alone, by its folder."""

import json as jsonlib
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.clock import SystemClock
from sanderling.ids import HostError
from sanderling.stores.control_file import Control, Wish, read_control
from sanderling.stores.durable import FolderError
from sanderling.stores.status_file import FILE
from sanderling.web.house import Found, HouseReader
from sanderling.web.house_control import ASKING, UnknownHostError, spell_host, want
from sanderling.web.house_hosts import requests_of
from sanderling.words import count, printable

OF_HOSTS = ("leave", "let-go")
NAMED = 10  # hosts that are named when there are more


def control(
    folder: Annotated[Path, Parameter(help="The folder of the system: the one that its --out names.")],
    wish: Annotated[
        Wish | None,
        Parameter(
            help="pause: begin nothing new. resume: go on. leave HOST: ask that host for nothing. let-go HOST: ask it "
            "again. stop: ask for nothing more, and end. drain: take nothing new, end what is known and due, and then "
            "end. Without one, say what is wanted now."
        ),
    ] = None,
    host: Annotated[str | None, Parameter(help="The host to leave or to let go, as in slow.example.")] = None,
    /,
    *,
    replace: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Replace a control.json that cannot be read. What it says is forgotten: no host is left alone any "
            "more, and all is paused unless the wish is resume.",
        ),
    ] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object, and nothing else.")] = False,
) -> None:
    """Write down what is wanted of the system in a folder."""
    found, wall = system_in(folder), SystemClock().wall()
    try:
        said = None if wish is None else want(found, wish, wall, _host(found, wish, host), anew=replace)
        wanted = read_control(folder)
    except FolderError as error:
        raise CommandError(printable(str(error))) from None
    except ValueError as error:
        raise CommandError(printable(f"it cannot be changed as it is: {error}")) from None
    if json:
        hosts, running = sorted(wanted.hosts), found.running(wall)
        about = {"folder": str(folder), "system": found.system, "running": running, "done": said}
        print(jsonlib.dumps({**about, "paused": wanted.paused, "hosts": hosts, "ending": wanted.ending}))
    else:
        print(printable(said or words(found.name, wanted)))


def system_in(folder: Path) -> Found:
    """The system of a folder, called by the folder. Raises CommandError."""
    here = folder.absolute()
    found = HouseReader(here.parent).system(here)
    if found is None or found.process is None:
        there = f"it has no {FILE}" if folder.is_dir() else "it is not there"
        why = there if found is None else found.trouble
        expected = "expected the folder that --out of a system names"
        raise CommandError(
            printable(f"{folder} is no folder of a system: {why}; {expected}. See: sanderling status --home HOME"), 2
        )
    return found


def _host(found: Found, wish: Wish, host: str | None) -> str:
    """The host that is meant, as the system spells it; none for what is not of hosts. Raises CommandError."""
    if (host is None) == (wish in OF_HOSTS):
        expected = f"found none; expected a host, as in: {wish} slow.example" if host is None else "expected none"
        raise CommandError(f"{wish}: {expected}" if host is None else f"{wish}: found {host!a:.100}, {expected}", 2)
    if host is None:
        return ""
    if found.system not in ASKING:
        raise CommandError(f"{found.name} is of {found.system}, which asks no hosts; expected {', '.join(ASKING)}", 2)
    try:
        return spell_host(found, host, requests_of(found))
    except (HostError, UnknownHostError) as error:
        raise CommandError(printable(str(error)), 2) from None


def words(name: str, wanted: Control) -> str:
    """What is wanted now, as a sentence."""
    said = [
        "is paused" if wanted.paused else "may go on",
        *([f"leaves {count(len(wanted.hosts), 'host')} alone: {_named(sorted(wanted.hosts))}"] if wanted.hosts else []),
        *([f"was told to {wanted.ending}"] if wanted.ending else []),
    ]
    return f"{name} {', '.join(said)}"


def _named(hosts: list[str]) -> str:
    return ", ".join(hosts[:NAMED]) + (" and others" if len(hosts) > NAMED else "")
