"""`sanderling repos replay`, and `sanderling verify` of archives: what is done with archives afterwards."""

import json as jsonlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.flag_files import listing
from sanderling.cli.processes import how_many
from sanderling.cli.repos.replay_processes import ReplayGroup, SegmentLoader, is_started
from sanderling.cli.repos.watch import Bar, Complaints, Places, end, explained, say, segments_at
from sanderling.clock import SystemClock
from sanderling.redact import redact_url
from sanderling.repos.archives import Report
from sanderling.repos.inspect import verify
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.parts import segment_name
from sanderling.repos.replay import ReplayRules, ReplaySink, ReplayTotals, RepoReplay
from sanderling.repos.replay_clickhouse import ClickhouseSink
from sanderling.repos.replay_parquet import ParquetSink
from sanderling.repos.replay_pipe import PipeSink
from sanderling.stores.clickhouse import open_clickhouse
from sanderling.words import count, duration, printable, size

SCHEMES = ("chdb:", "clickhouse:", "clickhouses:")
BY_MONTH = (
    "repo_records is of an earlier release, with a partition for every month that a record names, which makes it slow; "
    "docs/repos.md says how to change that."
)

Collections = Annotated[
    tuple[str, ...],
    Parameter(
        help="Only this collection, or all that begin so: app.bsky.feed.*; may be repeated.",
        negative=(),
        show_default=False,
    ),
]


LeftOut = Annotated[
    Path | None, Parameter(help="A file of DIDs and hosts that are left out, one per line, as for `repos crawl`.")
]


def replay_command(  # noqa: PLR0913 - a flag each
    *places: Places,
    to: Annotated[str, Parameter(help="chdb:PATH, clickhouse://user@host:8123/database or parquet:FOLDER.")],
    collections: Collections = (),
    leave_out: LeftOut = None,
    again: Annotated[bool, Parameter(negative=(), help="Load also what was loaded before.")] = False,
    threads: Annotated[
        int, Parameter(validator=Number(gte=1, lte=64), help="Segments to read side by side.")
    ] = ReplayRules().threads,
    processes: Annotated[
        str, Parameter(help="Processes that load one segment at a time each, or auto: one for each core.")
    ] = "1",
    json: AsJson = False,
) -> None:
    """Load every record of these segments."""
    number = how_many(processes)
    if number > 1 and threads != ReplayRules().threads:
        raise CommandError("--threads and --processes: expected one of them", code=2)

    def make(sink: ReplaySink, report: Report) -> RepoReplay:
        rules, listed = ReplayRules(threads=threads), listed_in(leave_out)
        return RepoReplay(sink, report, collections=collections, again=again, leave_out=listed, rules=rules)

    if is_started():
        _load_for_another(to, make)
        return
    paths, complaints, clock = segments_at(places), Complaints(shown=not json), SystemClock()
    with explained(), _opened(to, paths) as sink:
        began, run = clock.now(), make(sink, complaints)
        with Bar(paths, shown=not json) as bar:

            def watch(more: ReplayTotals) -> None:
                bar.add(more.bytes, more.records)

            several = number > 1 and len(paths) > 1
            done = ReplayGroup(sink, complaints, watch, paths, number).run() if several else run.run(paths, watch)
        seconds, old = clock.now() - began, isinstance(sink, ClickhouseSink) and sink.by_month
    if json:
        numbers = asdict(done) | {"seconds": round(seconds, 3), "to": redact_url(to)}
        del numbers["problems"]
        print(jsonlib.dumps(numbers | complaints.as_json()))
    else:
        say([*complaints.words(), *_replayed(done, seconds, to), *([BY_MONTH] if old else [])])
    end(complaints)


def _load_for_another(to: str, make: Callable[[ReplaySink, Report], RepoReplay]) -> None:
    """Be one of the processes of a replay: load the segments that are handed to it."""
    loader = SegmentLoader()
    with explained(), _opened_beside(to, loader) as sink:
        loader.run(make(sink, loader.report))


@contextmanager
def _opened_beside(to: str, loader: SegmentLoader) -> Iterator[ReplaySink]:
    """Where a process writes that another one has started: to that one, if only one may open the database."""
    kind, _, rest = to.partition(":")
    if kind == "chdb":
        yield PipeSink(loader.pipe)
    elif kind == "parquet":
        yield ParquetSink(Path(rest))
    else:
        with closing(open_clickhouse(to)) as store:
            yield ClickhouseSink(store, make=False)


def listed_in(path: Path | None) -> RepoLeaveOut:
    """What the file of --leave-out lists. Raises CommandError."""
    return RepoLeaveOut() if path is None else listing("--leave-out", path, RepoLeaveOut.read)


@contextmanager
def _opened(to: str, paths: Sequence[Path]) -> Iterator[ReplaySink]:
    kind, _, rest = to.partition(":")
    if kind == "parquet" and rest:
        sink = ParquetSink(Path(rest))
        files = [sink.path_of(segment_name(path)) for path in paths]
        if len(set(files)) < len(files):
            raise CommandError(
                "two segments of the same name would become one file; load each archive into a folder of its own",
                code=2,
            )
        yield sink
    elif to.startswith(SCHEMES):
        if to in ("chdb:", "chdb://"):
            raise CommandError("--to chdb: would be gone at the end; expected chdb:PATH", code=2)
        with closing(open_clickhouse(to)) as store:
            yield ClickhouseSink(store)
    else:
        # It may be a URL with a password, for another program.
        raise CommandError(
            f"--to {kind if rest else '…'}: unknown; expected chdb:PATH, clickhouse://… or parquet:FOLDER", code=2
        )


def _replayed(done: ReplayTotals, seconds: float, to: str) -> Iterator[str]:
    rate = f", {done.records / seconds:,.0f} a second" if done.records and seconds else ""
    yield (
        f"{count(done.records, 'record')} of {count(done.repos, 'repo')} from {count(done.segments, 'segment')} into "
        f"{printable(redact_url(to))} in {duration(seconds)}{rate}."
    )
    if done.superseded:
        yield f"{count(done.superseded, 'row')} of earlier crawls of these repos removed."
    if done.left_out:
        yield f"{count(done.left_out, 'repo')} left out: see --leave-out."
    if done.before:
        yield f"{count(done.before, 'segment')} loaded before and left alone; --again loads them once more."
    if done.torn:
        yield f"{size(done.torn)} behind the last whole repo of a segment that is not finished were left."
    if done.problems:
        yield f"{count(done.problems, 'thing')} wrong; the other records were loaded."


def verify_archives(places: Sequence[Path], *, as_json: bool) -> None:
    """Compare every CRC of these segments."""
    paths, complaints = segments_at(places), Complaints(shown=not as_json)
    with explained(), Bar(paths, shown=not as_json) as bar:
        done = verify(paths, complaints, bar.add)
    if as_json:
        numbers = {"segments": done.segments, "repos": done.repos, "bytes": done.bytes}
        torn = {str(path): number for path, number in done.torn.items()}
        print(jsonlib.dumps({"ok": not complaints.number, **numbers, "torn": torn, **complaints.as_json()}))
    else:
        looked = f"{count(done.segments, 'segment')}, {count(done.repos, 'sound repo')}, {size(done.bytes)}"
        torn_words = [
            f"{path}: not finalised; {size(number)} behind the last whole repo" for path, number in done.torn.items()
        ]
        found = f"{count(complaints.number, 'thing')} wrong" if complaints.number else "all checksums are right"
        say([*complaints.words(), *torn_words, f"{looked}: {found}."])
    end(complaints)
