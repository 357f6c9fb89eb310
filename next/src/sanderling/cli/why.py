"""`sanderling why`: why a host gets the rate it gets, or what became of an item, in one sentence."""

import asyncio
from pathlib import Path

from sanderling.cli.context import Context
from sanderling.files import Exit, FolderError, lock_holder
from sanderling.ids import HostError, normalise_host
from sanderling.observe.control import leave_request, wait_for_answer
from sanderling.observe.render import show_number
from sanderling.observe.report import HostReport, current_report
from sanderling.options import REQUIRED, Options, option
from sanderling.systems import system_of


class WhyOptions(Options):
    """Options of `why`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    item: str | None = option(None, "A host, a URL or an id; without one, all hosts shown.", argument="ITEM")


def why(options: WhyOptions, context: Context) -> Exit:
    """Print the reason; FAILED if nothing is known."""
    system = system_of(options.folder, context.systems)
    report = current_report(options.folder)
    hosts = {host.host: host for host in (report.hosts if report is not None else ())}
    if options.item is None:
        for host in hosts.values():
            context.print(_sentence(host))
        if not hosts:
            raise FolderError(f"no host is shown in {options.folder}", "name one, or a URL, as in: why FOLDER HOST")
        return Exit.DONE
    if named := [host for name, host in hosts.items() if options.item in (name, name.rpartition(":")[0])]:
        for host in named:
            context.print(_sentence(host))
        return Exit.DONE
    if "/" not in options.item and lock_holder(options.folder) is not None and (name := _host(options.item)):
        # Hosts that are not shown are known to the run alone.
        request = leave_request(options.folder, "why", (name,))
        if said := asyncio.run(wait_for_answer(options.folder, request)):
            context.print(f"{name}: {said}")
            return Exit.DONE
    shown = asyncio.run(system.load().show(options.folder, options.item))
    if shown.said or shown.records:
        records = f"it was stored, {len(shown.records)} {'record' if len(shown.records) == 1 else 'records'}"
        context.print(f"{options.item}: {shown.said or records}")
        return Exit.DONE
    context.print(f"{options.item}: not known in {options.folder}")
    return Exit.FAILED


def _sentence(host: HostReport) -> str:
    state = "" if host.state == "ok" else f"{host.state}: "
    allowed = f" of {show_number(host.allowed)} allowed" if host.allowed is not None else ""
    return f"{host.host}: {state}{host.why or 'nothing holds it back'} ({show_number(host.rate)}{allowed} requests/s)"


def _host(text: str) -> str | None:
    try:
        return normalise_host(text)
    except HostError:
        return None
