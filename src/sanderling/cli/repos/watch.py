"""What the commands over archives share: what to read, how far it is, what is wrong, and how that is said."""

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Self

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from sanderling.cli.command_error import CommandError
from sanderling.repos.archives import ArchiveProblem, archives_in
from sanderling.repos.rows import PatternError
from sanderling.stores.clickhouse import ClickhouseError
from sanderling.stores.durable import FolderError
from sanderling.words import printable

MOST_PROBLEMS = 100  # told one by one; the others are counted

Places = Annotated[Path, Parameter(help="Folders of segments, or .rca files.")]


class Complaints:
    """What is wrong with archives: the first of them are shown at once, all are counted. For any thread."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._turn = threading.Lock()
        self.first: list[ArchiveProblem] = []
        self.number = 0

    def __call__(self, problem: ArchiveProblem) -> None:
        """Something is wrong."""
        with self._turn:
            self.number += 1
            if self.number > MOST_PROBLEMS:
                return
            self.first.append(problem)
            if self._shown:
                print(f"wrong: {printable(str(problem))}", file=sys.stderr)

    def as_json(self) -> dict[str, object]:
        """How many there are, and the first of them."""
        told = [{"file": str(path), "offset": offset, "found": found} for path, offset, found in self.first]
        return {"wrong": self.number, "problems": told}

    def words(self) -> Iterator[str]:
        """What was not shown."""
        if self.number > MOST_PROBLEMS:
            yield f"wrong: and {self.number - MOST_PROBLEMS:,} more"


class Bar:
    """How far it is, on a terminal; elsewhere nothing. For any thread."""

    def __init__(self, paths: Sequence[Path], *, shown: bool) -> None:
        self._records = 0
        self._turn = threading.Lock()
        wanted = shown and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        columns = (BarColumn(), DownloadColumn(), TextColumn("{task.fields[said]}"), TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, disable=not wanted)
        self._task = self._progress.add_task("", total=sum(path.stat().st_size for path in paths), said="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def add(self, number: int, records: int = 0) -> None:
        """So many bytes are done, and records."""
        with self._turn:
            self._records += records
            said = f"{self._records:,} records" if self._records else ""
        self._progress.update(self._task, advance=number, said=said)


def segments_at(places: Sequence[Path]) -> list[Path]:
    """The segments to read, the oldest first."""
    if not places:
        raise CommandError("no folder given; expected that of a crawl of repos, or .rca files", code=2)
    try:
        return archives_in(places)
    except FolderError as error:
        raise CommandError(printable(str(error)), code=2) from None
    except OSError as error:
        raise CommandError(printable(f"cannot read {error.filename}: {error.strerror}"), code=2) from None


@contextmanager
def explained() -> Iterator[None]:
    """Turn what can go wrong into messages."""
    try:
        yield
    except (ClickhouseError, FolderError) as error:
        raise CommandError(printable(str(error))) from None
    except PatternError as error:
        raise CommandError(f"--collections {error}", code=2) from None


def say(lines: Iterable[str]) -> None:
    """Print lines, without what could move a cursor: strangers have written some of it."""
    for line in lines:
        print(printable(line))


def end(complaints: Complaints) -> None:
    """Exit with the code that says how it went."""
    if complaints.number:
        sys.exit(1)
