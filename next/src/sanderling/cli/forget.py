"""`sanderling forget`: what somebody wants gone is removed, and never requested again."""

import asyncio
from pathlib import Path

from sanderling.cli.context import Context
from sanderling.files import Exit
from sanderling.options import REQUIRED, OptionError, Options, option
from sanderling.records.export import export_again, read_export
from sanderling.systems import system_of


class ForgetOptions(Options):
    """Options of `forget`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    things: tuple[str, ...] = option(
        (), "What to forget: addresses, and hosts with all that is theirs.", argument="THING"
    )
    gone: bool = option(default=False, help="Remove the repos of accounts that are deleted, taken down or deactivated.")
    export: tuple[str, ...] = option(
        (), "An export of the folder that is written anew without them, or a ClickHouse whose rows are removed."
    )


def forget(options: ForgetOptions, context: Context) -> Exit:
    """Remove what is named from the folder and from exports; exports that are none are said before."""
    system = system_of(options.folder, context.systems).load()
    things = (*options.things, *(["--gone"] if options.gone else []))
    databases = [target for target in options.export if target.startswith(("chdb:", "clickhouse"))]
    if (options.gone or databases) and not hasattr(system, "forget_rows"):
        raise OptionError("--gone, and databases as --export, are for archives of repos; name addresses or hosts")
    targets = [context.folder / target for target in options.export if target not in databases]
    marks = [(path, read_export(path, options.folder)) for path in targets]
    for database in databases:
        context.print(asyncio.run(system.forget_rows(options.folder, things, database)))
    context.print(asyncio.run(system.forget(options.folder, things)))
    for path, mark in marks:
        with system.records(options.folder) as rows:
            done = export_again(rows, path, mark)
        context.print(f"{done.written:,} records in {path}")
    return Exit.DONE
