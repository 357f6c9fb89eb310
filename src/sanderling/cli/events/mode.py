"""`sanderling events mode`: which formats of messages are processed, and how that is switched without a restart."""

import json as jsonlib
import os
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import msgspec
from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson, again
from sanderling.cli.events.place import USUAL, EventsFolder
from sanderling.cli.times import written
from sanderling.clock import SystemClock
from sanderling.events.modes import FILE, LEGACY, NEW, Modes, modes_from, read_modes, write_modes
from sanderling.events.report import EventsFacts
from sanderling.observe.report import Report
from sanderling.stores.durable import FolderError
from sanderling.stores.status_file import is_running, read_statuses
from sanderling.words import printable

FORMATS = ("new", "legacy", "inline")


class Present(NamedTuple):
    """The modes as they are, and who says so: the file since a time, or else somebody without a file."""

    modes: Modes
    since: float | None
    whose: str


def mode(
    *,
    new: Annotated[bool | None, Parameter(help="Process messages of the new format: payload.minio_path.")] = None,
    legacy: Annotated[bool | None, Parameter(help="Process those of the legacy format: data_ref.")] = None,
    inline: Annotated[bool | None, Parameter(help="Process those that carry the item itself.")] = None,
    canary: Annotated[float | None, Parameter(help="Process this share of the new ones, from 0 to 1.")] = None,
    json: AsJson = False,
    folder: EventsFolder = USUAL,
) -> None:
    """Say which formats are processed, or switch them."""
    given = {"new": new, "legacy": legacy, "inline": inline, "canary": canary}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if canary is not None and not 0 <= canary <= 1:
        raise CommandError(f"--canary is {canary:g}, expected a share from 0 to 1", code=2)
    if not changes:
        _tell(_present(folder), folder, as_json=json)
        return
    # Whoever says all of it need not know what was there: so a file that makes no sense is mended.
    before = None if len(changes) == len(given) and _is_broken(folder) else _present(folder).modes
    now = msgspec.structs.replace(before or Modes(), **changes)
    try:
        write_modes(folder.out, now)
    except FolderError as error:
        raise CommandError(printable(str(error))) from None
    if json:
        print(jsonlib.dumps({"before": msgspec.to_builtins(before), "now": msgspec.to_builtins(now)}))
        return
    for line in (*_compared(before, now), "", _waiting(now)):
        print(line)


def _present(folder: EventsFolder) -> Present:
    """The modes as they are. Raises CommandError."""
    try:
        found = read_modes(folder.out)
    except ValueError as error:
        command = again("events mode --new --legacy --inline --canary 1", folder)
        hint = f"write a good one with all flags, such as: {command}"
        message = f"{error}; whoever consumes keeps to the modes it had; {hint}"
        raise CommandError(printable(message)) from None
    if found is not None:
        return Present(found, _written_at(folder), "")
    for report in read_statuses(folder.out, Report[EventsFacts]):
        if is_running(report.process, SystemClock().wall()):
            there = f"process {report.process.pid}, which consumes there, keeps to these"
            return Present(report.facts.modes, None, there)
    try:
        modes = modes_from(os.environ)
    except ValueError as error:
        raise CommandError(printable(str(error)), code=2) from None
    return Present(modes, None, f"whoever consumes begins with {NEW} and {LEGACY} of its environment, here that is")


def _is_broken(folder: EventsFolder) -> bool:
    try:
        read_modes(folder.out)
    except ValueError:
        return True
    return False


def _written_at(folder: EventsFolder) -> float | None:
    try:
        return (folder.out / FILE).stat().st_mtime
    except OSError:  # it was there a moment ago, so somebody writes it just now
        return None


def _tell(present: Present, folder: EventsFolder, *, as_json: bool) -> None:
    if as_json:
        how = {"written": not present.whose, "since": present.since}
        print(jsonlib.dumps(msgspec.to_builtins(present.modes) | how))
        return
    if present.whose:
        print(printable(f"No modes are written in {folder.out}; {present.whose}:"))
    else:
        print(printable(f"The modes in {folder.out}, since {written(present.since or 0)}:"))
    for line in ("", *_compared(present.modes, present.modes), "", _waiting(present.modes)):
        print(line)


def _compared(before: Modes | None, now: Modes) -> Iterator[str]:
    """The modes, one to a line; of those that differ, both."""
    for name in (*FORMATS, "canary"):
        was, is_ = "unknown" if before is None else _text(before, name), _text(now, name)
        of_what = " of the new ones" if name == "canary" else ""
        yield f"{name:>8}  {is_ if was == is_ else f'{was} -> {is_}'}{of_what}"


def _text(modes: Modes, name: str) -> str:
    if name == "canary":
        return f"{100 * modes.canary:.4g}%"
    return "on" if getattr(modes, name) else "off"


def _waiting(modes: Modes) -> str:
    """Which messages are not processed."""
    waits = [f"those of the {name} format" for name in FORMATS if not getattr(modes, name)]
    if modes.new and modes.canary < 1:
        waits.insert(0, f"{100 - 100 * modes.canary:.4g}% of those of the new format")
    if not waits:
        return "No message waits: those of every format are processed."
    return f"Messages that wait in the queue until this changes: {', '.join(waits)}."
