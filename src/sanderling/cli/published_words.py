"""What `status` of every system has in common: whether it runs and since when, and what `--json` prints."""

import json as jsonlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from sanderling.cli.command_error import CommandError
from sanderling.stores.process_identity import has_ended
from sanderling.stores.status_file import Published, age, is_running
from sanderling.words import clock_face, duration, printable


def tell(
    what: str, found: Published | None, wall: float, lines: Iterable[str], *, as_json: bool, kept: object = None
) -> None:
    """Print how a system stands, in words or as JSON.

    `found` is what it last said, None if it never did; `kept` is what is on disk, where that is more.
    """
    if as_json:
        print(jsonlib.dumps(document(found, wall, kept)))
        return
    for each in (f"{what}:" if found is None else f"{what}, {state(found, wall)}:", "", *lines):
        print(printable(each))


def document(found: Published | None, wall: float, kept: object = None) -> dict[str, object]:
    """What `--json` prints."""
    running, since = (False, None) if found is None else (is_running(found, wall), round(age(found, wall), 1))
    told = {"running": running, "age": since, "status": msgspec.to_builtins(found)}
    return told if kept is None else {**told, "kept": msgspec.to_builtins(kept)}


def nothing(what: str, folder: Path | str, flag: str, begin: str) -> CommandError:
    """That there is nothing to tell of: `what` never was in the folder, which `flag` names."""
    return CommandError(printable(f"{what} in {folder}; choose another folder with {flag}, or begin: {begin}"), code=2)


def state(found: Published, wall: float) -> str:
    """Whether it runs, in words."""
    since = age(found, wall)
    if is_running(found, wall):
        then = "now" if since < 2 else f"{duration(since)} ago"
        return f"running for {clock_face(found.seconds)} as process {found.pid}, as of {then}"
    if not found.running:
        return f"which ended {duration(since)} ago" if since >= 2 else "which ended just now"
    if has_ended(found.pid, found.process):
        return f"which was killed; it last said something {duration(since)} ago"
    return f"which has said nothing for {duration(since)} and is not running"
