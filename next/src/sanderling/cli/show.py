"""`sanderling show` and `sanderling verify`: one item, and the proof that nothing is missing or there twice."""

import asyncio
import sys
from pathlib import Path

import msgspec

from sanderling.cli.context import Context
from sanderling.files import Exit
from sanderling.options import REQUIRED, Options, option
from sanderling.systems import system_of


class ShowOptions(Options):
    """Options of `show`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    key: str = option(REQUIRED, "What is looked for: a URL, an id, as the system has it.", argument="KEY")


class VerifyOptions(Options):
    """Options of `verify`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    json: bool = option(default=False, help="Print the findings as one line of JSON.")


def show(options: ShowOptions, context: Context) -> Exit:
    """Print the records of an item as JSON, the newest last, or say what became of it."""
    shown = asyncio.run(system_of(options.folder, context.systems).load().show(options.folder, options.key))
    for line in shown.records:
        context.print(msgspec.json.format(line).decode())
    if not shown.records:
        context.warn(f"sanderling: {shown.said or f'{options.key} is not known in {options.folder}'}")
    return Exit.DONE if shown.records else Exit.FAILED


def verify(options: VerifyOptions, context: Context) -> Exit:
    """Compare what was stored with what the ledger knows; FAILED if something is wrong."""
    if not options.json and sys.stderr.isatty():
        context.warn("reading all that was stored …")
    verified = asyncio.run(system_of(options.folder, context.systems).load().verify(options.folder))
    if options.json:
        context.print(msgspec.json.encode(verified).decode())
        return Exit.FAILED if verified.faults else Exit.DONE
    for what, count in verified.counts.items():
        context.print(f"{count:>12,} {what}")
    for fault in verified.faults:
        context.print(f"WRONG: {fault}")
    context.print(f"{len(verified.faults)} faults" if verified.faults else "nothing is missing, nothing is there twice")
    return Exit.FAILED if verified.faults else Exit.DONE
