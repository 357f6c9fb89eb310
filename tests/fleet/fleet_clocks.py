"""Clocks that are wrong, for one process at a time: an hour off, too fast or too slow, set while it runs."""

import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from services.process import Missing

SOURCE = Path(__file__).with_name("skewed_clock.c")
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-shared", "-fPIC")


@dataclass(frozen=True, slots=True)
class WrongClock:
    """The clock of the processes that are started with its environment."""

    library: Path
    file: Path

    def set(self, ahead: float, pace: float = 1.0) -> "WrongClock":
        """Let the time of day be so many seconds ahead. The pace of all its clocks is for processes yet to start."""
        with self.file.open("r+b" if self.file.exists() else "wb") as skew:
            skew.write(struct.pack("dd", ahead, pace))
        return self

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process is started with to have this clock."""
        return {"LD_PRELOAD": str(self.library), "SKEWED_CLOCK": str(self.file)}


@contextmanager
def clocks(folder: Path) -> Iterator[Callable[[str], WrongClock]]:
    """Gives a clock by its name, right until it is set; raises Missing where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise Missing("no C compiler, which makes clocks that are wrong")
    library = folder / "skewed_clock.so"
    command = [compiler, *FLAGS, str(SOURCE), "-o", str(library), "-ldl"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if made.returncode:
        raise Missing(f"clocks that are wrong cannot be made here: {made.stderr}")
    yield lambda name: WrongClock(library, folder / f"{name}.clock").set(0.0)
