"""`sanderling forget`: what somebody wants gone is removed, and never requested again."""

import asyncio
from pathlib import Path

from sanderling.cli.context import Context
from sanderling.files import Exit
from sanderling.options import REQUIRED, Options, option
from sanderling.records.export import export_again, read_export
from sanderling.systems import system_of


class ForgetOptions(Options):
    """Options of `forget`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    things: tuple[str, ...] = option(
        (), "What to forget: addresses, and hosts with all that is theirs.", argument="THING"
    )
    export: tuple[Path, ...] = option((), "An export of the folder that is to be written anew without them.")


def forget(options: ForgetOptions, context: Context) -> Exit:
    """Remove what is named from the folder and from exports; exports that are none are said before."""
    system = system_of(options.folder, context.systems).load()
    targets = [context.folder / path for path in options.export]
    marks = [(path, read_export(path, options.folder)) for path in targets]
    context.print(asyncio.run(system.forget(options.folder, options.things)))
    for path, mark in marks:
        with system.records(options.folder) as rows:
            done = export_again(rows, path, mark)
        context.print(f"{done.written:,} records in {path}")
    return Exit.DONE
