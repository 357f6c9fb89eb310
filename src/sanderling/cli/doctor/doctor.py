"""`sanderling doctor`: whether all that is needed is there and works, and what to do about what does not."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.config.file import Configuration
from sanderling.cli.doctor.findings import ABSENT, FAIL, OK, UNSET, WARN, CheckFinding, State, aside
from sanderling.cli.doctor.machine import EXTRAS, clocks, findings, machine
from sanderling.cli.doctor.services import PATIENCE, Service, asked_for, checked, of_fleet, services
from sanderling.cli.home import configured, home_of
from sanderling.cli.loop import run
from sanderling.cli.screen import ascii_of
from sanderling.clock import Clock, SystemClock
from sanderling.words import count, printable

MARKS: dict[State, str] = {OK: "ok", WARN: "--", FAIL: "XX", UNSET: "", ABSENT: ""}
WHAT, WIDEST = 17, 32  # columns of what was checked: of what is always there, and of services, which have longer names
INDENT = 4

__all__ = ["EXTRAS", "doctor", "examined", "findings", "told"]


def doctor(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print the findings as JSON, and nothing else.")] = False,
    check: Annotated[
        tuple[str, ...],
        Parameter(
            name=("--check", "--database"),
            help="The URL of a service to check as well: postgresql, amqp, redis, s3+http (with its bucket behind the "
            "host), clickhouse, http (a Prometheus), chdb or sqlite; may be repeated.",
        ),
    ] = (),
    fleet: Annotated[
        tuple[str, ...],
        Parameter(help="The PostgreSQL of a fleet to check, as pages crawl has it; may be repeated.", negative=()),
    ] = (),
    objects: Annotated[str | None, Parameter(help="The object store of that fleet, as pages crawl has it.")] = None,
    workers: Annotated[
        int, Parameter(validator=Number(gte=0, lte=100_000), help="How many workers that fleet is to have.")
    ] = 0,
) -> None:
    """Look at everything, and say what to do about each finding."""
    configuration = configured()
    besides = [*asked_for(check), *of_fleet(fleet, objects, workers)]
    local, others = run(examined(configuration, home_of(configuration), besides, SystemClock()))
    found = [*local, *others]
    if json:
        print(msgspec.json.encode([{**msgspec.structs.asdict(each), "ok": each.ok} for each in found]).decode())
    else:
        for line in told(found, len(local)):
            print(line if (sys.stdout.encoding or "").lower().startswith("utf") else ascii_of(line))
    if any(each.state == FAIL for each in found):
        sys.exit(1)


async def examined(
    configuration: Configuration, home: Path, besides: Sequence[Service], clock: Clock
) -> tuple[list[CheckFinding], list[CheckFinding]]:
    """What was found about this machine, and about services. Whatever has to be waited for is waited for at once."""
    wanted = [*services(configuration), *besides]
    async with asyncio.TaskGroup() as group:
        about = group.create_task(_of_machine(home))
        time = group.create_task(clocks(clock))
        asked = [group.create_task(checked(each)) for each in wanted if isinstance(each, Service)]
    variables = [
        CheckFinding("environment", FAIL, printable(wrong), "see: sanderling config check")
        for wrong in configuration.wrong_variables()
    ]
    file = configuration.file.name
    setup = CheckFinding("configuration", OK, printable(file) if file else "no file; flags, environment and defaults")
    of_services = [finding for task in asked for finding in task.result()]
    unset = [each for each in wanted if isinstance(each, CheckFinding)]
    return [*findings(), *about.result(), time.result(), setup, *variables], [*of_services, *unset]


async def _of_machine(home: Path) -> list[CheckFinding]:
    try:
        async with asyncio.timeout(PATIENCE):
            return await aside(lambda: list(machine(home)))
    except TimeoutError:
        advice = "is it on a disk that is away, or on a network that is?"
        return [CheckFinding("home", FAIL, f"{printable(str(home))} gave no answer within {PATIENCE:.0f} s", advice)]


def told(found: Sequence[CheckFinding], local: int) -> Iterator[str]:
    """The findings in lines; the first `local` of them are about this machine."""
    longest = min(WIDEST, max((len(each.what) for each in found[local:]), default=0) + 1)
    for number, each in enumerate(found):
        what = each.what.ljust(WHAT if number < local else max(WHAT, longest))
        if number == local:
            yield ""
        unset = "not configured: " if each.state == UNSET else ""
        yield f"{MARKS[each.state]:<{INDENT}}{what}{' ' * (not what.endswith(' '))}{unset}{each.found}"
        if each.advice:
            yield f"{'':<{INDENT + len(what)}}{each.advice}"
    yield ""
    yield _summed(found)


def _summed(found: Iterable[CheckFinding]) -> str:
    wrong = [each for each in found if not each.ok]
    if not wrong:
        return "All is well."
    failing = sum(each.state == FAIL for each in wrong)
    return f"{count(len(wrong), 'thing')} to look at, {failing} of which {'does' if failing == 1 else 'do'} not work."
