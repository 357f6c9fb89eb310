"""The commands of `sanderling demo house`, each a process of its own, which never outlives us."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sanderling.cli.config.settings import known

MODULE = "sanderling.cli.demos.child"
LOGS = "logs"
PATIENCE = 10.0  # seconds for one that was told to stop
SET = {"SANDERLING_REPOS_CRAWL_SEGMENT_SIZE": "1MB"}  # so that there are some
TOLD = 5  # lines of what one said before it died
LONGEST = 300  # characters of each


def environment(ours: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Our environment without what sets up commands: a demo is the same for everyone."""
    settings = (each for command in known().commands.values() for each in command.values())
    others = {name for each in settings for name in each.variables}
    return {name: value for name, value in ours.items() if not name.startswith("SANDERLING_") and name not in others}


@dataclass(slots=True)
class Child:
    """One of them."""

    name: str
    process: Process
    log: Path
    stopped: bool = False  # whether we told it to stop

    @property
    def code(self) -> int | None:
        """What it ended with; None while it runs. One that was told to stop before it could listen ended so, too."""
        code = self.process.returncode
        return 0 if self.stopped and code == -signal.SIGTERM else code

    def stop(self) -> None:
        """Tell it to come to its end."""
        self.stopped = True
        with suppress(ProcessLookupError):
            self.process.terminate()

    async def ended(self) -> None:
        """Return when it has, if need be by force."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()

    def last_words(self) -> list[str]:
        """What it said at last. Blocks."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [line[:LONGEST] for line in lines[-TOLD:] if line.strip()]


@dataclass(slots=True)
class Children:
    """All that were begun, in that order."""

    home: Path
    all: list[Child] = field(default_factory=list)

    async def begin(self, name: str, command: Sequence[str]) -> Child:
        """Begin one; what it says goes into a file."""
        log = self.home / LOGS / f"{name}.txt"
        await asyncio.to_thread(log.parent.mkdir, exist_ok=True)
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", MODULE, "--config", "none", *command),
                stdin=PIPE,  # which ends with us: see `demo_child`
                stdout=file,
                stderr=file,
                env={**environment(), **SET},
                start_new_session=True,  # a Ctrl-C is for us, and we tell them
            )
        child = Child(name, process, log)
        self.all.append(child)
        return child

    async def stop(self, names: Collection[str]) -> None:
        """Tell these to stop, all at once, and return when they have."""
        wanted = [child for child in self.all if child.name in names and child.code is None]
        for child in wanted:
            child.stop()
        for child in wanted:
            await child.ended()


@asynccontextmanager
async def children_in(home: Path) -> AsyncIterator[Children]:
    """Those of a home; none is left when the block has ended, however it did."""
    children = Children(home)
    try:
        yield children
    finally:
        for child in children.all:
            if child.code is None:
                child.stop()
        for child in children.all:
            await child.ended()
