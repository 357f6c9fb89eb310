"""Which sorts of messages are processed now. Others wait in the queue: a switch never loses anything.

The modes are a small file that is read every second, so that they can be switched without a restart, by hand or by
`sanderling events mode`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sanderling.clock import Clock
from sanderling.events.envelopes import Envelope, canary
from sanderling.observe import logs
from sanderling.stores.control_file import read_wish
from sanderling.stores.durable import plainly, write_new

FILE = "modes.json"
EVERY = 1.0  # seconds between looks
NEW, LEGACY = "NEW_MODE_ENABLED", "LEGACY_MODE_ENABLED"  # variables of the environment
YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")

log = logs.get(__name__)


class Modes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is processed. `canary` is the share of new messages, chosen by their ids."""

    new: bool = True
    legacy: bool = True
    inline: bool = True
    canary: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.canary <= 1:
            raise ValueError(f"canary is {self.canary}, expected a share from 0 to 1")

    def refuses(self, envelope: Envelope) -> str:
        """Why a message has to wait; empty if it need not."""
        if not getattr(self, envelope.mode):
            return f"messages of the {envelope.mode} format are switched off"
        if envelope.mode == "new" and not canary(envelope.context.event_id, self.canary):
            return f"not among the {self.canary:.0%} of messages that are processed for now"
        return ""


def modes_from(environment: Mapping[str, str]) -> Modes:
    """The modes to begin with, where none are written. Raises ValueError."""
    usual = Modes()
    return Modes(new=_switch(environment, NEW, usual.new), legacy=_switch(environment, LEGACY, usual.legacy))


def _switch(environment: Mapping[str, str], name: str, otherwise: bool) -> bool:  # noqa: FBT001 - what it gives
    text = environment.get(name, "").strip().lower()
    if text and text not in YES + NO:
        expected = f"{', '.join(YES)} or {', '.join(NO)}"
        raise ValueError(f"{name} is {environment[name][:40]!r}, expected one of {expected}, or nothing")
    return text in YES if text else otherwise


def write_modes(folder: Path, modes: Modes) -> None:
    """Make these the modes from now on. Raises FolderError."""
    with plainly(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_new(folder / FILE, [msgspec.json.encode(modes), b"\n"])


def read_modes(folder: Path) -> Modes | None:
    """The modes that were written; None if there are none. Raises ValueError for a file that makes no sense."""
    return read_wish(folder / FILE, Modes)


@dataclass(slots=True)
class LiveModes:
    """The modes of a folder; without a file, those that were given."""

    folder: Path
    now: Modes
    clock: Clock
    trouble: str = ""  # why the file is not heeded, if it is not

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.look()
            await self.clock.sleep(EVERY)

    def look(self) -> None:
        """Look now. A file that makes no sense leaves the modes as they were."""
        try:
            found = read_modes(self.folder)
        except ValueError as error:
            if self.trouble != str(error):
                log.warning("modes_not_used", why=str(error))
            self.trouble = str(error)
            return
        self.trouble = ""
        if found is not None and found != self.now:
            log.info("modes_changed", before=msgspec.to_builtins(self.now), now=msgspec.to_builtins(found))
            self.now = found
