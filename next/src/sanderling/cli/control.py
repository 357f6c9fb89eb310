"""`sanderling control`: pause, resume, stop or drain a run; block hosts and allow them again."""

import asyncio
from pathlib import Path
from typing import Literal

from sanderling.cli.context import Context
from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError, lock_holder
from sanderling.ids import HostError, normalise_host
from sanderling.observe.control import LASTING, ControlRequest, change_control, leave_request, read_control
from sanderling.options import REQUIRED, OptionError, Options, option
from sanderling.systems import system_of

ANSWER_SECONDS = 10.0  # a run looks each second, unless its process is stopped


class ControlOptions(Options):
    """Options of `control`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    action: Literal["pause", "resume", "stop", "drain", "block", "allow"] | None = option(
        None,
        "pause and resume hold over restarts; stop ends after what is in flight, drain after what is known; block"
        " sends a host no requests until allow. Without one: what holds now.",
        argument="ACTION",
    )
    hosts: tuple[str, ...] = option((), "Hosts to block or allow.", argument="HOST")


def control(options: ControlOptions, context: Context) -> Exit:
    """Leave a request for the run, and wait until it has answered."""
    system_of(options.folder, context.systems)
    if options.action is None:
        return _show(options.folder, context)
    if options.action in ("block", "allow") and not options.hosts:
        raise OptionError(f"{options.action} needs hosts; type control {options.folder} {options.action} HOST")
    try:
        hosts = tuple(normalise_host(host) for host in options.hosts)
    except HostError as error:
        raise OptionError(f"HOST: {error}") from None
    if lock_holder(options.folder) is None:
        return _without_run(options, hosts, context)
    request = leave_request(options.folder, options.action, hosts)
    answer = asyncio.run(wait_for_answer(options.folder, request))
    context.print(f"{' '.join((options.action, *hosts))}: {answer}")
    return Exit.DONE


def _without_run(options: ControlOptions, hosts: tuple[str, ...], context: Context) -> Exit:
    if options.action is None or options.action not in LASTING:
        raise FolderError(f"nothing runs in {options.folder}", f"there is nothing to {options.action}", Exit.WRONG)
    request = ControlRequest("", options.action, hosts)
    change_control(options.folder, lambda wanted: wanted.after(request))
    context.print(f"{' '.join((options.action, *hosts))}: holds from the next run on")
    return Exit.DONE


def _show(folder: Path, context: Context) -> Exit:
    wanted = read_control(folder)
    context.print(f"running  {lock_holder(folder) or 'no'}")
    context.print(f"paused   {'yes' if wanted.paused else 'no'}")
    context.print(f"blocked  {' '.join(sorted(wanted.blocked)) or 'no host'}")
    return Exit.DONE


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
