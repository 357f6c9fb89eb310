"""How well does each strategy find a limit that nobody tells it? Hosts as arithmetic, from ten minutes to three hours.

Delivered in percent of what the host allows, refused in percent of requests, median latency, the most requests in any
second; means over the seeds. `--only WORD` runs the rows or hosts that have the word in their name, `--seeds N` more
or fewer seeds, `--no-rivals` ours alone.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import NamedTuple

from harness import Report, at_least, at_most
from limiter_cases import Case, Figures, Row, mean, ours, run
from limiter_rows import ROWS
from limiter_rows_first import FIRST
from rivals import AutoThrottle, AwsAdaptive, Gradient2, PlainAimd
from simulation import Controller

SEEDS = 3
OURS = "our governor"
ALL = FIRST + ROWS
RIVALS: dict[str, Callable[[int], Controller]] = {
    "plain AIMD": lambda _seed: PlainAimd(),
    "AWS adaptive": lambda _seed: AwsAdaptive(),
    "AutoThrottle 1": lambda _seed: AutoThrottle(1),
    "AutoThrottle 8": lambda _seed: AutoThrottle(8),
    "Gradient2": lambda _seed: Gradient2(),
}


class Job(NamedTuple):
    """One controller on one host, with one seed; rows and cases by their place, as processes cannot send them."""

    row: int
    case: int
    controller: str
    seed: int


def measure(job: Job) -> Figures:
    """In a process of its own."""
    row = ALL[job.row]
    case = row.cases[job.case]
    figures, _ = run(row, case, maker(job.controller, case), job.seed)
    return figures


def maker(name: str, case: Case) -> Callable[[int], Controller]:
    """Who decides when the next request may leave."""
    if name in RIVALS:
        return RIVALS[name]
    return ours(name.removeprefix("our "), case.min_rps)


def wanted(only: str, seeds: int, rivals: bool) -> list[Job]:  # noqa: FBT001 - the command line's
    """Everything that is to be run."""
    return [
        Job(at, place, name, seed)
        for at, row in enumerate(ALL)
        for place, case in enumerate(row.cases)
        if only in titled(row, case)
        for name in (*(row.rivals if rivals else ()), OURS)
        for seed in range(seeds)
    ]


def titled(row: Row, case: Case) -> str:
    """A name for a line."""
    return f"{row.name}: {case.name}" if case.name else row.name


def line(title: str, controller: str, figures: Figures) -> str:
    """For people."""
    usual = f"{figures['delivered']:6.1f}% {figures['refused']:6.2f}% {1000 * figures['median']:6.0f}ms"
    more = {name: each for name, each in figures.items() if name not in ("delivered", "refused", "median")}
    rest = ", ".join(f"{name} {each:.4g}" for name, each in more.items() if each or name != "early")
    return f"{title:52} {controller:14} {usual}  {rest}"


def judge(report: Report, row: Row, case: Case, figures: Figures) -> str:
    """Note the figures and the bars of one host; a word on whether they are met."""
    title = titled(row, case)
    report.figures |= {f"{title}, {name}": round(each, 3) for name, each in figures.items()}
    bars = [
        (at_least if sign == ">=" else at_most)(
            # Each of several clients must find out for itself.
            f"{title}, {name}",
            number * (case.clients if name == "refused" else 1),
            figures[name],
        )
        for name, (sign, number) in row.need.items()
    ]
    report.bars += bars
    short = [f"{bar.what.rpartition(', ')[2]} {bar.need}" for bar in bars if not bar.ok]
    if short:
        return "  SHORT: " + ", ".join(short)
    return ("  kept" if row.kept else "  ok") if bars else ""


def main() -> None:
    """Print the table, then the bars."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--rivals", action=argparse.BooleanOptionalAction, default=True)
    given, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    report = Report("limiter_sim")
    jobs = wanted(given.only, given.seeds, given.rivals)
    # What takes longest first, so that no core waits for the other at the end.
    by_cost = sorted(jobs, key=lambda job: -ALL[job.row].cases[job.case].allows(job.seed))
    print(f"{'':52} {'':14} {'delivered':>6} {'refused':>6} {'median':>7}")
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        running: dict[Job, Future[Figures]] = {job: pool.submit(measure, job) for job in by_cost}
        for job in (each for each in jobs if each.seed == 0):
            row = ALL[job.row]
            case = row.cases[job.case]
            figures = mean([running[job._replace(seed=seed)].result() for seed in range(given.seeds)])
            said = judge(report, row, case, figures) if job.controller == OURS else ""
            print(line(titled(row, case), job.controller, figures) + said, flush=True)
    report.finish()


if __name__ == "__main__":
    main()
