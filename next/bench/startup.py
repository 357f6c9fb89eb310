"""What a start costs: importing the package, --help, a command's --help, reading options.

CPU of whole processes, the median of interleaved rounds. `cyclopts` is measured where .venv-peers has it (make peers).
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bars import Bar, report

from sanderling.cli.commands import all_commands
from sanderling.cli.parse import parse
from sanderling.fetch.options import RequestOptions
from sanderling.observe.options import ObserveOptions
from sanderling.systems import SYSTEMS

ROUNDS = 5 if "--quick" in sys.argv else 15
PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
CYCLOPTS = """
from cyclopts import App
app = App(result_action="return_value")
@app.command
def crawl(url: str, *, depth: int = 3, rps: float = 2.0, out: str = "x", quiet: bool = False, contact: str = ""):
    "Crawl."
app(["crawl", "--help"])
"""


class EveryOption(RequestOptions, ObserveOptions, table="bench"):
    """As many options as a system has that are not its own."""


def cpu(command: list[str]) -> float:
    """Seconds of CPU of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processes(commands: dict[str, list[str]]) -> dict[str, float]:
    """Milliseconds of each, interleaved, so that a busy moment hits all of them."""
    found: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            found[name].append(1000 * cpu(command))
    return {name: median(each) for name, each in found.items()}


def microseconds(call: Callable[[], object], times: int = 200) -> float:
    """Of one call."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(times):
            call()
        rounds.append((time.process_time() - began) / times * 1e6)
    return median(rounds)


def parsers() -> tuple[float, float]:
    """Ours and argparse, each from the declared options to the values of a command line."""
    words = ["--rps", "3", "--private", "--timeout=10", "--log", "json"]

    def with_argparse() -> object:
        parser = argparse.ArgumentParser()
        for each in EveryOption.fields.values():
            if each.flags and each.item is bool:
                parser.add_argument(f"--{each.key}", action=argparse.BooleanOptionalAction, help=each.help)
            elif each.flags:
                parser.add_argument(f"--{each.key}", metavar=each.metavar, help=each.help)
        return parser.parse_args(words)

    return microseconds(lambda: parse(words, EveryOption.fields)), microseconds(with_argparse)


def loaded(code: str) -> set[str]:
    """The modules that a program has loaded."""
    program = f"import sys\n{code}\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def main() -> int:
    python = sys.executable
    first = all_commands(SYSTEMS)[0]
    commands = {
        "bare": [python, "-c", "pass"],
        "import": [python, "-c", "import sanderling"],
        "limiter": [python, "-c", "from sanderling import Limiter"],
        "help": [python, "-m", "sanderling", "--help"],
        "command": [python, "-m", "sanderling", *first.words.split(), "--help"],
        "complete": [python, "-m", "sanderling", "--complete", *first.words.split(), "--"],
    }
    if PEERS.exists():
        commands["peer"] = [str(PEERS), "-c", "pass"]
        commands["cyclopts"] = [str(PEERS), "-c", CYCLOPTS]
    took = processes(commands)
    ours, theirs = parsers()
    clients = loaded("import sanderling") & {"aiohttp", "asyncio", "msgspec"}
    bars = [
        Bar("ms of CPU: python -c pass", took["bare"]),
        Bar("ms of CPU: import sanderling", took["import"], 60),
        Bar("modules of an HTTP client after import sanderling", len(clients), 0),
        Bar("ms of CPU: from sanderling import Limiter", took["limiter"]),
        Bar("ms of CPU: sanderling --help", took["help"], 250),
        Bar(f"ms of CPU: sanderling {first.words} --help", took["command"], 500),
        Bar("ms of CPU: one completion", took["complete"], 500),
        Bar("µs: options read by our parser", ours, theirs),
        Bar("µs: declared and read by argparse", theirs),
    ]
    if "cyclopts" in took:
        bars.append(Bar("ms of CPU beyond bare Python: a cyclopts program's --help", took["cyclopts"] - took["peer"]))
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
