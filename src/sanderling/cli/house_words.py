"""All systems of a home in words, for `sanderling status` and `sanderling top`."""

from collections.abc import Iterator

from sanderling.cli.report_words import FLOW, flow
from sanderling.observe.report import ASKED
from sanderling.web.house import Found
from sanderling.web.house_facts import System
from sanderling.words import duration, printable

NAME = 9  # columns of what a line is about
TRIAL = "sanderling demo sequence"


def titled(system: System) -> str:
    """What it is called, and what it is if that is something else."""
    return printable(system.name if system.name == system.system else f"{system.name} ({system.system})")


def standing(system: System, wall: float, *, silent: bool = False) -> str:
    """Whether it runs, and since when."""
    if not system.running:
        return f"silent for {_ago(system.age)}" if silent else f"ended {_ago(system.age)} ago"
    began = f"running for {_ago(max(0.0, wall - system.started))}" if system.started else "running"
    ending = {"stop": ", stopping", "drain": ", draining"}.get(system.ending, "")
    return f"{began}{', paused' * system.paused}{ending}"


def is_silent(found: Found, wall: float) -> bool:
    """Whether it fell silent without having said that it ended: it was killed, or it hangs."""
    return found.process is not None and found.process.running and not found.running(wall)


def flowing(system: System) -> str:
    """What moves, what waits, and until when."""
    known = not isinstance(system.points, dict) or system.points.get(ASKED) is not None
    rates = {name: getattr(system.flow, name) if known else None for name in FLOW}
    left = system.time_left if system.running and system.flow.waiting else None
    return flow(rates, system.flow.waiting, left)


def block(system: System, wall: float) -> Iterator[str]:
    """A system that runs, in a few lines."""
    yield f"{titled(system)}: {standing(system, wall)}, process {system.pid}"
    yield _line("doing", system.doing)
    yield _line("flow", flowing(system))
    if system.numbers:
        yield _line("numbers", ", ".join(f"{label} {text}" for label, text in system.numbers))
    for trouble in system.troubles:
        yield _line("trouble", trouble)


def ended(system: System, found: Found, wall: float) -> str:
    """One that does not run, in a line."""
    state = standing(system, wall, silent=is_silent(found, wall))
    wrong = f"; {system.troubles[0]}" if system.troubles else ""
    return printable(f"{titled(system)}: {state}; {system.doing}{wrong}")


def heading(home: str, systems: tuple[System, ...]) -> str:
    """How many there are."""
    running = sum(each.running for each in systems)
    wrong = sum(each.running and bool(each.troubles) for each in systems)
    troubled = f", {wrong} in trouble" if wrong else ""
    return printable(f"{home}: {running} running{troubled}, {len(systems) - running} ended")


def nothing(home: str, *, there: bool) -> str:
    """What to say of a home without systems."""
    found = f"nothing has run in {home} yet" if there else f"there is no folder {home}"
    return (
        f"{printable(found)}; choose another with --home, or begin with one that needs no server:\n\n"
        f"    {TRIAL}{'' if home == '.' else f' --home {printable(home)}'}\n"
    )


def _ago(seconds: float) -> str:
    return duration(seconds) if seconds >= 1 else "a moment"


def _line(name: str, text: str) -> str:
    return f"  {name:<{NAME}}{printable(text)}"
