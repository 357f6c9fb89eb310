"""`sanderling export`: what a folder has collected, into files that other programs read."""

from pathlib import Path
from typing import Annotated

import msgspec

from sanderling.cli.context import Context
from sanderling.files import Exit
from sanderling.forms import Form
from sanderling.options import REQUIRED, Options, option
from sanderling.records.export import export, print_lines
from sanderling.records.selection import Selection
from sanderling.systems import system_of

ExportTarget = Annotated[str, Form(str, "a file such as pages.csv, or - to print", "FILE")]


class ExportOptions(Options):
    """Options of `export`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    to: ExportTarget = option(
        REQUIRED, "The file to write: .jsonl, .csv, .parquet or .sqlite (table records); - prints JSON Lines."
    )
    where: str = option("", "Only records for which this JMESPath holds, such as likes > `10`.")
    fields_: tuple[str, ...] = option((), "Only this JMESPath of each record, as a column; repeat it for several.")
    latest: bool = option(default=False, help="Only what the last run gave of each item.")
    since: str | None = option(None, "Only records of this run and later ones, or stored since this time (UTC).")
    replace: bool = option(default=False, help="Write a file that exists anew.")
    new: bool = option(default=False, help="Add to the file what has come since the last export to it.")
    json: bool = option(default=False, help="Print what was done as one line of JSON.")


def export_records(options: ExportOptions, context: Context) -> Exit:
    """Write the chosen records, or print them."""
    selection = Selection(options.where, options.fields_, latest=options.latest, since=options.since)
    with system_of(options.folder, context.systems).load().records(options.folder) as rows:
        if options.to == "-":
            print_lines(rows, selection, context.out)
            return Exit.DONE
        target = context.folder / options.to
        done = export(rows, selection, target, replace=options.replace, new=options.new)
    if options.json:
        context.print(msgspec.json.encode(done).decode())
        return Exit.DONE
    context.print(f"{done.written:,} {'new ' * options.new}records in {options.to}")
    if done.new_columns:
        context.print(f"new columns: {', '.join(done.new_columns)}")
    return Exit.DONE
