"""What all demos share: a folder of their own, the run, the proof at its end, and what to try next."""

import shutil
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import as_called
from sanderling.cli.loop import explain_end, run
from sanderling.cli.reach import KNOWN
from sanderling.cli.report_screen import Screen
from sanderling.cli.screen import Drawing
from sanderling.repos.directory import DirectoryError
from sanderling.stores.durable import FolderError, Lock
from sanderling.stores.ports import ProgressError

MARK = "demo.txt"  # tells a folder that we may remove from one that holds somebody's crawl
WRONG = "what is stored is not what it should be; please tell us"


class DemoEnd(NamedTuple):
    """What came of a demo: in words, as JSON, and whether all is there that should be."""

    screen: Screen
    lines: Iterable[str | Drawing]
    document: Mapping[str, Any]
    ok: bool
    stopped: bool


def run_demo(name: str, out: Path, work: Callable[[], Coroutine[Any, Any, DemoEnd]]) -> None:
    """Run a demo in its folder, and say what came of it. Raises CommandError, and KeyboardInterrupt after Ctrl-C."""
    command = f"sanderling demo {name}"
    make_room(out, command)
    with explain_end(command, (*KNOWN, ProgressError, DirectoryError)):
        end = run(work())
    tell_end(end)
    if not end.ok:
        raise CommandError(WRONG)
    if end.stopped:
        raise KeyboardInterrupt


def tell_end(end: DemoEnd) -> None:
    """Print what came of it."""
    end.screen.end((as_called(each) if isinstance(each, str) else each for each in end.lines), end.document)


def make_room(out: Path, command: str) -> None:
    """Make the folder anew. What this demo made before is removed, and nothing else. Raises CommandError."""
    mark = f"Made by `{command}`, which removes this folder when it is run again.\n"
    if out.exists():
        if not (out / MARK).is_file() or (out / MARK).read_text() != mark:
            raise CommandError(f"{out} was not made by this demo, so it is left alone; choose another --out", code=2)
        try:
            lock = Lock(out / "lock")
        except FolderError as error:
            raise CommandError(str(error), code=2) from None
        shutil.rmtree(out)
        lock.release()
    out.mkdir(parents=True)
    (out / MARK).write_text(mark)


def next_steps(heading: str, commands: Mapping[str, str]) -> Iterator[str]:
    """Commands to try next, each with what it is for; lines that are indented are not broken."""
    width = max(map(len, commands))
    yield from ("", heading, "")
    yield from (f"    {command:<{width}}  # {what}" for command, what in commands.items())
    yield ""
