"""The folder of a demo, which is removed when the demo is run again."""

import shutil
from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.stores.durable import FolderError, Lock

MARK = "demo.txt"  # tells a folder that we may remove from one that holds somebody's crawl


def marked(command: str) -> str:
    """What the mark of a demo says."""
    return f"Made by `{command}`, which removes this folder when it is run again.\n"


def make_room(out: Path, command: str, flag: str) -> None:
    """Remove what an earlier run of this demo left, and nothing else. Raises CommandError."""
    if not out.exists():
        return
    if not (out / MARK).is_file() or (out / MARK).read_text() != marked(command):
        raise CommandError(f"{out} was not made by this demo, so it is left alone; choose another {flag}", code=2)
    try:
        lock = Lock(out / "lock")
    except FolderError as error:
        raise CommandError(str(error), code=2) from None
    shutil.rmtree(out)
    lock.release()


def mark(out: Path, command: str) -> None:
    """Make the folder, and say whose it is."""
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).write_text(marked(command))
