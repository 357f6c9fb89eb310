"""What all demos share: a folder of their own, the run, the proof at its end, and what to try next."""

import shutil
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import again, as_called
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
    make_room(out, name)
    if name != "pages":  # whose crawl begins in a folder that is empty
        mark_folder(out, name)
    with explain_end(again("demo", name), (*KNOWN, ProgressError, DirectoryError)):
        end = run(work())
    tell_end(end)
    if not end.ok:
        raise CommandError(WRONG)
    if end.stopped:
        raise KeyboardInterrupt


def tell_end(end: DemoEnd) -> None:
    """Print what came of it."""
    end.screen.end((as_called(each) if isinstance(each, str) else each for each in end.lines), end.document)


def make_room(out: Path, name: str) -> None:
    """Remove what an earlier run of this demo left, and nothing else. Raises CommandError."""
    if not out.exists():
        return
    if not (out / MARK).is_file() or (out / MARK).read_text() != _mark(name):
        raise CommandError(f"{out} was not made by this demo, so it is left alone; choose another --out", code=2)
    try:
        lock = Lock(out / "lock")
    except FolderError as error:
        raise CommandError(str(error), code=2) from None
    shutil.rmtree(out)
    lock.release()


def mark_folder(out: Path, name: str) -> None:
    """Make the folder, and say whose it is."""
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).write_text(_mark(name))


def _mark(name: str) -> str:
    return f"Made by the demo {name}, which removes this folder when it is run again.\n"


def next_steps(heading: str, commands: Mapping[str, str]) -> Iterator[str]:
    """Commands to try next, each with what it is for; lines that are indented are not broken."""
    width = max(map(len, commands))
    yield from ("", heading, "")
    yield from (f"    {command:<{width}}  # {what}" for command, what in commands.items())
    yield ""
