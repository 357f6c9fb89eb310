"""`sanderling run`: a job into its folder, or with --try some records of it on the screen."""

import tempfile
from io import StringIO
from pathlib import Path

from sanderling.cli.context import Context
from sanderling.cli.shell import run_command
from sanderling.crawl.options import JobOptions
from sanderling.files import Exit
from sanderling.systems import System, load_name


def run_job_file(options: JobOptions, context: Context) -> Exit:
    """Run a job; with --try nothing of it stays."""
    system = next(each for each in context.systems if any(command.words == "run" for command in each.runs))
    if options.try_ is None:
        return run_command(system, options, context)
    with tempfile.TemporaryDirectory(prefix="sanderling-try-") as folder:
        given = {**options.given, "out": Path(folder), "readers": 0, "quiet": True}
        return _try(system, JobOptions(**given), context)


def _try(system: System, options: JobOptions, context: Context) -> Exit:
    from dataclasses import replace  # noqa: PLC0415 - only here

    code = run_command(system, options, replace(context, out=StringIO()))
    context.warn("tried in this process: a function that never returns is not ended")
    rows = load_name(f"{system.module}:records")(options.out)
    with rows:
        number = 0
        for entry in rows.entries():
            for line in entry.lines:
                context.print(line.decode())
                number += 1
    failed = options.out / "failed.jsonl"
    for line in failed.read_text().splitlines()[:20] if failed.exists() else ():
        context.warn(f"failed: {line}")
    context.warn(f"{number:,} records; nothing is kept")
    return Exit.DONE if code is Exit.WAITING else code
