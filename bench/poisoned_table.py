"""What the parts of `poisoned` share: lines for people, and for each bar the worst of its cases."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from math import isfinite
from pathlib import Path
from typing import TypeVar

import structlog
from harness import Bar, Report, at_most

T = TypeVar("T")


class Table:
    """Lines for people, and for each bar the worst of its cases."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._worst: dict[str, tuple[Bar, int, int]] = {}

    def judge(self, case: str, *bars: Bar) -> None:
        """Note the bars of one case; say which of them it falls short of."""
        for bar in bars:
            worst, cases, short = self._worst.get(bar.what, (bar, 0, 0))
            # Of two that are good or bad alike, the one that is further on the wrong side.
            worse = bar.got < worst.got if bar.need.startswith(">") else bar.got > worst.got
            self._worst[bar.what] = (bar if worse else worst, cases + 1, short + (not bar.ok))
        said = "; ".join(f"{bar.what.partition(': ')[2]} {bar.got:g} ({bar.need})" for bar in bars if not bar.ok)
        print(f"  {'SHORT' if said else 'ok   '} {case}{': ' if said else ''}{said}", flush=True)

    def finish(self) -> None:
        """Hand the worst of each bar to the report."""
        for bar, cases, short in self._worst.values():
            what = f"{bar.what} ({short} of {cases} cases short)" if cases > 1 else bar.what
            self.report.bars.append(Bar(what, bar.need, bar.got if isfinite(bar.got) else 1e9, bar.ok))


def count(what: str, items: Iterable[object], most: int = 0) -> Bar:
    """A bar of how many there are at most."""
    return at_most(what, most, sum(1 for _ in items))


def run_all(folder: Path, work: Callable[..., T], jobs: Mapping[str, tuple[object, ...]]) -> Iterator[tuple[str, T]]:
    """Do the work for each job, two at a time, in a folder and a process of its own; what came of each, in order."""
    with ProcessPoolExecutor(2, initializer=be_quiet) as pool:
        runs: dict[str, Future[T]] = {}
        for case, job in jobs.items():
            own = folder / f"{len(runs)}"
            own.mkdir(parents=True, exist_ok=True)
            runs[case] = pool.submit(work, own, *job)
        for case, run in runs.items():
            yield case, run.result()


def be_quiet() -> None:
    """Log errors only: of each outage there is a line otherwise."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


# A part of the benchmark: it gets a folder of its own, and the seed of its worlds.
Part = Callable[[Table, Path, int], None]
