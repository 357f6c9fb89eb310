"""How a run is controlled from outside: requests in `control.json`, each carried out once and answered.

Pausing and blocked hosts are remembered there, also over a kill. Whoever changes the file holds `control.lock`.
"""

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError, disk_errors, lock_holder, read_small, write_file
from sanderling.observe.report import Report

CONTROL = "control.json"
_LOCK = "control.lock"
ANSWER_SECONDS = 10.0  # a run looks each second, unless its process is stopped
_MOST_ANSWERS = 50  # remembered: who asked reads the answer within seconds

LASTING = ("pause", "resume", "block", "allow")  # hold until the opposite is requested, over restarts too
ENDING = ("stop", "drain")  # concern the process that runs


class ControlRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody wants of a run: one of the above, or what its system carries out (retry, forget)."""

    id: str
    action: str
    words: tuple[str, ...] = ()


class Control(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wanted of a run now."""

    paused: bool = False
    blocked: frozenset[str] = frozenset()  # hosts that get no requests
    draining: bool = False  # take nothing new, end what is known
    requests: tuple[ControlRequest, ...] = ()  # not carried out yet
    answers: dict[str, str] = {}  # by the id of the request

    def after(self, request: ControlRequest) -> "Control":
        """What is wanted once a request of `LASTING` or `drain` holds."""
        hosts = frozenset(request.words)
        match request.action:
            case "pause" | "resume":
                return msgspec.structs.replace(self, paused=request.action == "pause")
            case "block":
                return msgspec.structs.replace(self, blocked=self.blocked | hosts)
            case "allow":
                return msgspec.structs.replace(self, blocked=self.blocked - hosts)
            case "drain":
                return msgspec.structs.replace(self, draining=True)
        return self

    def answered(self, request: ControlRequest, answer: str) -> "Control":
        """With the answer to a request, which does not wait any more."""
        answers = dict([*self.answers.items(), (request.id, answer)][-_MOST_ANSWERS:])
        waiting = tuple(each for each in self.requests if each.id != request.id)
        return msgspec.structs.replace(self, requests=waiting, answers=answers)


class Run(Protocol):
    """A system at work, as its `open_run` gives it to the shell."""

    async def run(self) -> Exit:
        """Work to the end: DONE, FAILED if items failed, WAITING if something is left."""

    def stop(self) -> None:
        """Begin nothing new; `run` returns when what is in flight has ended."""

    def control(self, wanted: Control) -> None:
        """Do as is wanted from now on: paused, blocked hosts, draining."""

    async def carry_out(self, request: ControlRequest) -> str:
        """Retry or forget what the words name; what was done, in a sentence. May come twice, after a kill."""

    def report(self, *, running: bool = True) -> Report:
        """All that is shown; called every second."""


def read_control(folder: Path) -> Control:
    """What is wanted of the run in a folder. Raises FolderError for a file that is damaged."""
    path = folder / CONTROL
    if not path.exists():
        return Control()
    try:
        return msgspec.json.decode(read_small(path), type=Control)
    except msgspec.DecodeError as error:
        raise FolderError(
            f"{path} is damaged: {error}", "repair it, or remove it: then nothing is paused and no host blocked"
        ) from None


def change_control(folder: Path, change: Callable[[Control], Control]) -> Control:
    """Replace what is wanted, durably, by what `change` makes of it."""
    with _locked(folder):
        wanted = change(read_control(folder))
        write_file(folder / CONTROL, msgspec.json.encode(wanted) + b"\n")
        return wanted


def leave_request(folder: Path, action: str, words: tuple[str, ...] = ()) -> ControlRequest:
    """Ask the run in a folder for something; `read_control(folder).answers` has the answer by its id."""
    request = ControlRequest(secrets.token_hex(8), action, words)
    change_control(folder, lambda wanted: msgspec.structs.replace(wanted, requests=(*wanted.requests, request)))
    return request


async def wait_for_answer(folder: Path, request: ControlRequest, seconds: float = ANSWER_SECONDS) -> str:
    """What the run has done for a request. Raises FolderError if it does not answer."""
    for _ in range(round(seconds / 0.1)):
        if (answer := read_control(folder).answers.get(request.id)) is not None:
            return answer
        await SystemClock().sleep(0.1)
    raise FolderError(
        f"the run in {folder} has not answered within {seconds:g} s",
        "the request waits for it in control.json; see whether the process is stopped",
        Exit.LATER,
    )


async def control_run(folder: Path, action: str, words: tuple[str, ...] = ()) -> str:
    """Have the run in a folder do something; what it has done. Without a run, what lasts holds for the next one."""
    if lock_holder(folder) is not None:
        return await wait_for_answer(folder, leave_request(folder, action, words))
    if action not in LASTING:
        raise FolderError(f"nothing runs in {folder}", f"there is nothing to {action}")
    change_control(folder, lambda wanted: wanted.after(ControlRequest("", action, words)))
    return "holds from the next run on"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with disk_errors(folder / _LOCK):
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # Held for a few milliseconds by anyone.
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
