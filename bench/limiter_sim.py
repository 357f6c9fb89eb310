"""How well does each strategy find a limit that nobody tells it? Hosts as arithmetic, from a minute to three hours.

Delivered in percent of what the host allows, refused in percent of requests, median latency: means over the seeds. Of
everything else the worst seed: the most requests in any second, seconds without a probe, seconds until a rate is back.
`--only WORD` runs the hosts that have the word in their name, `--seeds N` more seeds or fewer, `--others` a second set
of hosts and seeds that nobody tunes by, `--no-rivals` ours alone, `--plots FOLDER`
draws a picture of each row instead.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

from harness import Bar, Report, at_least, at_most
from limiter_cases import NEVER, SHARES, Case, Figures, Row, run, together
from limiter_plots import file_name, picture
from limiter_rows import ROWS
from limiter_rows_first import FIRST
from limiter_rows_others import OTHER_ROWS
from rivals import AutoThrottle, AwsAdaptive, Gradient2, PlainAimd
from simulation import Controller, Ours, OursNamed

SEEDS, OTHER_SEEDS = 3, 4200  # how many; where the others begin
OURS = "our governor"
SETS = {False: FIRST + ROWS, True: OTHER_ROWS}  # whether it is the others
RIVALS: dict[str, Callable[[int], Controller]] = {
    "plain AIMD": lambda _seed: PlainAimd(),
    "AWS adaptive": lambda _seed: AwsAdaptive(),
    "AutoThrottle 1": lambda _seed: AutoThrottle(1),
    "AutoThrottle 8": lambda _seed: AutoThrottle(8),
    "Gradient2": lambda _seed: Gradient2(),
}


class Job(NamedTuple):
    """One controller on one host; rows and cases by their place, as processes cannot send them to each other."""

    others: bool
    row: int
    case: int
    controller: str
    seed: int

    @property
    def on(self) -> tuple[Row, Case]:
        """The row and the host."""
        row = SETS[self.others][self.row]
        return row, row.cases[self.case]

    @property
    def cost(self) -> float:
        """About how long it takes."""
        row, case = self.on
        return case.allows(self.seed, row.seconds) * (3 if self.controller.startswith("our") else 1)


def measure(job: Job) -> Figures:
    """In a process of its own."""
    row, case = job.on
    return run(row, case, maker(job.controller, case), job.seed)[0]


def draw(job: Job) -> str:
    """A picture of ours beside AWS adaptive, in a process of its own."""
    row, case = job.on
    results = (run(row, case, maker(name, case), job.seed)[1] for name in (OURS, "AWS adaptive"))
    return picture(row, case, job.seed, *results)


def maker(name: str, case: Case) -> Callable[[int], Controller]:
    """Who decides when the next request may leave."""
    kind = OursNamed if case.named else Ours
    return RIVALS.get(name) or (lambda seed: kind(name.removeprefix("our "), seed, case.min_rps))


def titled(row: Row, case: Case) -> str:
    """A name for a line."""
    return f"{row.name}: {case.name}" if case.name else row.name


def line(title: str, controller: str, figures: Figures) -> str:
    """For people."""
    usual = f"{figures['delivered']:8.1f}% {figures['refused']:7.2f}% {1000 * figures['median']:6.0f}ms"
    more = {name: each for name, each in figures.items() if name not in SHARES and (each or name != "early")}
    said = (f"{name} {'never' if each == NEVER else f'{each:.4g}'}" for name, each in more.items())
    return f"{title:54} {controller:14} {usual}  {', '.join(said)}"


def judged(row: Row, case: Case, figures: Figures) -> list[Bar]:
    """The bars of one host. Each of several clients must find out for itself, so each may be refused as often."""
    return [
        (at_least if sign == ">=" else at_most)(
            f"{row.name}, {name}", number * (case.clients if name == "refused" else 1), figures[name]
        )
        for name, (sign, number) in row.need.items()
    ]


def verdict(row: Row, bars: Sequence[Bar]) -> str:
    """A word on whether they are met."""
    short = [f"{bar.what.rpartition(', ')[2]} {bar.need}" for bar in bars if not bar.ok]
    if short:
        return f"  SHORT: {', '.join(short)}"
    return ("  kept" if row.kept else "  ok") if bars else ""


def worst(bars: Sequence[Bar]) -> list[Bar]:
    """Of each bar the host that is furthest on the wrong side, and how many fall short."""
    found = []
    for what in dict.fromkeys(bar.what for bar in bars):
        same = [bar for bar in bars if bar.what == what]
        short = sum(not bar.ok for bar in same)
        sign, need = -1 if same[0].need.startswith(">") else 1, float(same[0].need[3:])
        least = max(same, key=lambda bar: (not bar.ok, sign * (bar.got - need)))
        found.append(least if len(same) == 1 else Bar(f"{what} ({short} of {len(same)} short)", *astuple(least)[1:]))
    return found


def draw_all(jobs: Sequence[Job], folder: Path) -> None:
    """One picture for each row: its first host, with the first seed."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        for job, text in zip(jobs, pool.map(draw, jobs), strict=True):
            path = folder / file_name(job.on[0])
            path.write_text(text)
            print(f"{path} {len(text):,} bytes", flush=True)


def main() -> None:
    """Print the table, then the bars."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--rivals", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--plots", type=Path)
    given, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    report = Report("limiter_sim")
    first = OTHER_SEEDS if given.others else 0
    jobs = [
        Job(given.others, at, place, name, seed)
        for at, row in enumerate(SETS[given.others])
        for place, case in enumerate(row.cases)
        if given.only in titled(row, case)
        for name in (*(row.rivals if given.rivals else ()), OURS)
        for seed in range(first, first + given.seeds)
    ]
    if given.plots:
        first_hosts = (each for each in jobs if (each.case, each.controller, each.seed) == (0, OURS, first))
        draw_all([each for each in first_hosts if each.on[0] not in FIRST], given.plots)
        return
    print(f"{'':54} {'':14} {'delivered':>9} {'refused':>8} {'median':>8}")
    bars = list[Bar]()
    with ProcessPoolExecutor() as pool:
        # What takes longest first, so that no core waits for the other at the end.
        running = {job: pool.submit(measure, job) for job in sorted(jobs, key=lambda job: -job.cost)}
        for job in (each for each in jobs if each.seed == first):
            row, case = job.on
            seeds = (job._replace(seed=seed) for seed in range(first, first + given.seeds))
            figures = together([running[each].result() for each in seeds], row.need)
            said = ""
            if job.controller == OURS:
                report.figures |= {f"{titled(row, case)}, {name}": round(each, 3) for name, each in figures.items()}
                bars += (met := judged(row, case, figures))
                said = verdict(row, met)
            print(line(titled(row, case), job.controller, figures) + said, flush=True)
    report.bars = worst(bars)
    report.finish()


if __name__ == "__main__":
    main()
