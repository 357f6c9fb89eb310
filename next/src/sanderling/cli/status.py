"""`sanderling status`: what a run does, or what the last one did."""

from pathlib import Path

from sanderling.cli.context import Context
from sanderling.cli.screen import is_terminal, live, print_lines
from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError
from sanderling.observe.render import hint_words, render
from sanderling.observe.report import Report, RunState, current_report
from sanderling.options import REQUIRED, Options, option
from sanderling.systems import system_of


class StatusOptions(Options):
    """Options of `status`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    watch: bool = option(default=False, help="Draw it anew each second, until the run ends.")
    json: bool = option(default=False, help="Print the report as one line of JSON.")


def status(options: StatusOptions, context: Context) -> Exit:
    """Show the report of a folder; FAILED if something is wrong."""
    report = _current(options.folder, context)
    if options.watch and is_terminal(context.err, context):
        report = _watch(options.folder, report, context)
    if options.json:
        context.out.write(report.to_json().decode())
    else:
        commands = [context.command_line(words) for words in hint_words(report.hints)]
        print_lines(render(report, context.width, commands), context.out, context)
    return Exit.FAILED if report.troubles or report.state is RunState.KILLED else Exit.DONE


def _watch(folder: Path, report: Report, context: Context) -> Report:
    import asyncio  # noqa: PLC0415 - 25 ms, and only to wait

    async def watch(report: Report) -> Report:
        with live(context) as draw:
            while report.state not in (RunState.ENDED, RunState.KILLED):
                draw(render(report, context.width))
                await SystemClock().sleep(1)
                report = _current(folder, context)
        return report

    return asyncio.run(watch(report))


def _current(folder: Path, context: Context) -> Report:
    system = system_of(folder, context.systems)
    report = current_report(folder)
    if report is None:
        raise FolderError(
            f"{folder} has no report yet", f"its next run of {system.name} writes one; until then: verify, tasks"
        )
    return report
