"""`sanderling control`: pause, resume, stop or drain a run; block hosts and allow them again."""

import asyncio
from pathlib import Path
from typing import Literal

from sanderling.cli.context import Context
from sanderling.files import Exit, lock_holder
from sanderling.ids import HostError, normalise_host
from sanderling.observe.control import control_run, read_control
from sanderling.options import REQUIRED, OptionError, Options, option
from sanderling.systems import system_of


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
    answer = asyncio.run(control_run(options.folder, options.action, hosts))
    context.print(f"{' '.join((options.action, *hosts))}: {answer}")
    return Exit.DONE


def _show(folder: Path, context: Context) -> Exit:
    wanted = read_control(folder)
    context.print(f"running  {lock_holder(folder) or 'no'}")
    context.print(f"paused   {'yes' if wanted.paused else 'no'}")
    context.print(f"blocked  {' '.join(sorted(wanted.blocked)) or 'no host'}")
    return Exit.DONE
