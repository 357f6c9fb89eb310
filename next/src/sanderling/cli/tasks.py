"""`sanderling tasks`: what waits, what ended without a record and why; and trying it again."""

import asyncio
from datetime import UTC, datetime
from math import isinf
from pathlib import Path
from types import ModuleType

import msgspec

from sanderling.cli.context import Context
from sanderling.clock import SystemClock
from sanderling.files import Exit
from sanderling.options import REQUIRED, OptionError, Options, nearest, option
from sanderling.records.answers import Task, retry_tasks
from sanderling.systems import system_of


class TasksOptions(Options):
    """Options of `tasks`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    state: str | None = option(None, "List those in this state; without it, count all.", argument="STATE")
    host: str | None = option(None, "Only those of this host.")
    code: str | None = option(None, "Only those with this code, such as TIMEOUT.")
    retry: bool = option(default=False, help="Try those in STATE again: now, or in the next run.")
    ids: str | None = option(None, "Request the missed ids of this range again, as in 1000-1999.")
    import_: Path | None = option(None, "Add the ids in this file to STATE, one a line; - is standard input.")
    export: Path | None = option(None, "Write the ids in STATE to this file, one a line; - is standard output.")
    json: bool = option(default=False, help="Print each as one line of JSON.")


def tasks(options: TasksOptions, context: Context) -> Exit:
    """List tasks, count them, or have them tried again."""
    system = system_of(options.folder, context.systems).load()
    if options.state is not None and options.state not in system.TASK_STATES:
        states = ", ".join(system.TASK_STATES)
        raise OptionError(
            f"STATE: found {options.state!r}, expected one of {states}{nearest(options.state, system.TASK_STATES)}"
        )
    if options.ids is not None or options.import_ is not None or options.export is not None:
        if options.state is None or not hasattr(system, "move_tasks"):
            raise OptionError(
                "--ids, --import and --export are for ids that are missed: tasks FOLDER missed --export -"
            )
        said = asyncio.run(
            system.move_tasks(options.folder, options.ids, options.import_, options.export, options.code)
        )
        context.warn(said)
        return Exit.DONE
    if options.retry:
        if options.state is None:
            raise OptionError("--retry needs a state; type tasks FOLDER failed --retry, say")
        context.print(asyncio.run(retry_tasks(system, options.folder, options.state, options.host, options.code)))
        return Exit.DONE
    if options.state is None:
        return _count(system, options, context)
    return asyncio.run(_list(system, options, options.state, context))


def _count(system: ModuleType, options: TasksOptions, context: Context) -> Exit:
    counts: dict[tuple[str, str], int] = asyncio.run(system.count_tasks(options.folder))
    for (state, code), count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if options.json:
            context.print(msgspec.json.encode({"state": state, "code": code, "count": count}).decode())
        else:
            context.print(f"{count:>12,} {state}{f' {code}' if code and code.lower() != state else ''}")
    if not counts and not options.json:
        context.print("nothing waits, nothing failed")
    elif counts and not options.json:
        largest = max(counts, key=lambda pair: counts[pair])[0]
        context.warn(f"list them: {context.command_line(('tasks', str(options.folder), largest))}")
    return Exit.DONE


async def _list(system: ModuleType, options: TasksOptions, state: str, context: Context) -> Exit:
    now = SystemClock().wall()
    async for task in system.tasks(options.folder, state, options.host, options.code):
        context.print(msgspec.json.encode(task).decode() if options.json else _line(task, now))
    return Exit.DONE


def _line(task: Task, now: float) -> str:
    due = ""
    if task.due is not None and isinf(task.due):
        due = "not in this run"
    elif task.due is not None and task.due > now:
        due = f"due {datetime.fromtimestamp(task.due, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return "  ".join(filter(None, (task.key, task.code, task.detail, due)))
