"""What came of a crawl, in numbers and in words, and what to do next."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sanderling.cli import command_line
from sanderling.crawls.folder import plan_of
from sanderling.crawls.parts import FOLDER as PARTS
from sanderling.ids import host_of
from sanderling.observe.report import Report
from sanderling.outcome import Code, code_of
from sanderling.pages.folder import CrawlFolder, CrawlPlan, FolderState
from sanderling.pages.report import PagesFacts
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_rows import KEPT, Aside, End, Fault
from sanderling.words import count, duration, printable, size

UNFINISHED = 3  # the exit code if URLs still wait: their hosts did not answer, or the crawl was drained
REASONS = 5  # that are told in words; the others are counted together
# What the codes mean to whoever has to do something about it; those that are not here speak for themselves.
MEANINGS = {
    Code.CONTENT_NOT_FOUND: "not found",
    Code.CONTENT_REMOVED: "gone",
    Code.ACCESS_DENIED: "access denied",
    Code.AUTH_FAILED: "needs a login",
    Code.RATE_LIMITED: "still throttled after all patience",
    Code.HOST_UNAVAILABLE: "the host failed",
    Code.DEFERRED: "the host did not recover",
    Code.CONNECTION_REFUSED: "nobody listens there",
    Code.CONNECTION_RESET: "the connection was cut",
    Code.TRUNCATED: "the body ended early",
    Code.DNS_ERROR: "no such host, or no DNS",
    Code.TLS_ERROR: "TLS failed",
    Code.TIMEOUT: "no answer in time",
    Code.REDIRECT_LOOP: "redirects in a circle",
    Code.TOO_LARGE: "larger than we read",
    Code.BAD_ENCODING: "packed in a way that could not be read",
    Code.HTTP_ERROR: "the host said no",
    Code.REFUSED: "not called: our own guard, see --private",
    Code.CANCELLED: "not asked",  # the detail says why
}

FAULTS: dict[Fault, str] = {"item": "fault of the page", "host": "fault of its host", "us": "our own rules"}


class PageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl after a run. Counts are the crawl's; seconds and bytes are those of the run."""

    complete: bool
    crawl: int
    seconds: float
    known: int
    fetched: int
    unchanged: int
    moved: int
    refused: int
    left_out: int  # those that a budget cut off among them
    cut_off: int = 0
    depth: int = 0
    at_depth: int = 0  # pages of this run that are as deep as the crawl goes, and lead on
    failed: int
    left: int
    waiting: int
    bytes: int
    hosts: int
    seeds_fetched: bool  # whether there is a row for every first address that was not left out
    out: str
    failed_by: dict[str, int]
    set_aside: int  # of those that wait, the ones of hosts that did not answer
    set_aside_by: dict[str, int]
    aside: tuple[Aside, ...]
    resumed: bool
    files: tuple[str, ...]  # of the output that are there
    again: str  # the command to go on with
    retry: str  # and the one to ask again for what failed

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("aside", "resumed", "files", "again", "retry"):
            del shown[name]
        return shown


def summarise(
    folder: CrawlFolder, last: Report[PagesFacts], *, complete: bool, again: str = "", given: Iterable[object] = ()
) -> PageSummary:
    """The summary of a run that ended with `last`, and goes on with `again`; what failed is asked for as `given`."""
    resumed, ledgers = folder.state is FolderState.RESUMED, (folder.ledger,)
    return summarise_ledgers(folder.path, ledgers, last, complete=complete, resumed=resumed, again=again, given=given)


def summarise_ledgers(  # noqa: PLR0913 - what is known of a crawl
    out: Path,
    ledgers: Sequence[Frontier],
    last: Report[PagesFacts],
    *,
    complete: bool,
    resumed: bool,
    again: str,
    given: Iterable[object],
) -> PageSummary:
    """The same of a crawl that several ledgers have parts of."""
    counts, by_code = Counter[End](), Counter[tuple[End, str]]()
    for each in ledgers:
        counts.update(each.counts())
        by_code.update(each.by_code())
    aside = sorted((host for each in ledgers for host in each.aside()), key=lambda host: -host.waiting)
    plan, failed = plan_of(ledgers[0].meta, out, CrawlPlan), failed_by(ledgers)
    return PageSummary(
        complete=complete,
        crawl=ledgers[0].meta.crawl,
        seconds=round(last.process.seconds, 3),
        known=sum(each.known for each in ledgers),
        fetched=counts[End.FETCHED],
        unchanged=counts[End.UNCHANGED],
        moved=counts[End.MOVED],
        refused=counts[End.REFUSED],
        left_out=counts[End.LEFT_OUT],
        depth=plan.depth,
        at_depth=last.facts.at_depth,
        cut_off=by_code[End.LEFT_OUT, Code.CANCELLED],
        failed=counts[End.FAILED],
        left=counts[End.LEFT],
        waiting=counts[End.WAITING],
        bytes=last.facts.bytes,
        hosts=last.hosts_known,
        seeds_fetched=_has_all_seeds(out, ledgers, counts),
        out=str(out),
        failed_by=failed,
        set_aside=sum(each.waiting for each in aside),
        set_aside_by=by_reason(aside),
        aside=tuple(aside),
        resumed=resumed,
        files=tuple(_files(out)),
        again=again,
        retry=command_line.again("pages failed", out, "--retry", *given, *_private(failed, given)),
    )


def _private(failed: Mapping[str, int], given: Iterable[object]) -> Sequence[str]:
    """What makes a difference to those that our own guard refused."""
    refused = failed.get(Code.REFUSED.name) and "--private" not in command_line.again("", *given)
    return ["--private"] if refused else []


def _has_all_seeds(out: Path, ledgers: Sequence[Frontier], counts: Mapping[End, int]) -> bool:
    """Whether there is a row for every first address that was not left out."""
    if not any(counts[end] for end in (End.WAITING, End.REFUSED, End.FAILED, End.LEFT)):
        return True
    seeds = plan_of(ledgers[0].meta, out, CrawlPlan).seeds
    ends = ([ledger.end_of(seed, host_of(seed)) for ledger in ledgers] for seed in seeds)
    return all(any(end in KEPT or end is End.LEFT_OUT for end in found) for found in ends)


def failed_by(ledgers: Iterable[Frontier]) -> dict[str, int]:
    """How many failed for each reason, the most frequent first."""
    by_code = Counter[str]()
    for each in ledgers:
        by_code.update({code: number for (end, code), number in each.by_code().items() if end is End.FAILED})
    return dict(by_code.most_common())


def by_reason(aside: Iterable[Aside]) -> dict[str, int]:
    """How many URLs wait for hosts that did not answer, for each reason, the most frequent first."""
    by_code: Counter[str] = Counter()
    for each in aside:
        by_code[each.code] += each.waiting
    return dict(by_code.most_common())


def hosts_aside(aside: Sequence[Aside], what: str = "URL") -> Iterator[str]:
    """Hosts that did not answer, how much waits for each, and why; those with most first."""
    for each in aside[:REASONS]:
        said = f": {each.detail}" if each.detail else ""
        yield printable(f"{each.host}  {count(each.waiting, what)}, {meaning(each.code)}{said}")
    if len(aside) > REASONS:
        yield f"and {count(len(aside) - REASONS, 'more host')}"


def _files(path: Path) -> Iterator[str]:
    """What there is of the output, that which is derived behind what it is derived from."""
    for rows, derived in (("pages.jsonl", "pages-*.parquet"), ("failed.jsonl", "failed.parquet")):
        if (path / rows).is_file() and (path / rows).stat().st_size:
            yield from (rows, *sorted(each.name for each in path.glob(derived)))
    for folder in ("bodies", PARTS):
        if (path / folder).is_dir():
            yield folder


def words(summary: PageSummary) -> Iterator[str]:
    """The summary as lines; those that are indented must not be broken."""
    yield ""
    yield _fetched(summary)
    yield from _not_fetched(summary)
    yield ""
    if PARTS in summary.files:
        yield "The output is in parts. All rows in one file:"
        yield from _indented(f"sanderling export {shlex.quote(summary.out)} --to pages.jsonl")
    elif summary.files:
        yield "The output:"
        yield from _indented(*(shlex.quote(str(Path(summary.out) / name)) for name in summary.files))
    yield from _next(summary)


def _fetched(summary: PageSummary) -> str:
    pages, took = count(summary.fetched, "page"), duration(summary.seconds)
    also = ((summary.unchanged, "unchanged"), (summary.moved, "moved elsewhere"))
    more = "".join(f", {number:,} {what}" for number, what in also if number)
    if summary.resumed:
        return f"The crawl holds {pages} now{more}; this run fetched {size(summary.bytes)} in {took}."
    return f"Fetched {pages}, {size(summary.bytes)}, from {count(summary.hosts, 'host')} in {took}{more}."


def _not_fetched(summary: PageSummary) -> Iterator[str]:
    if summary.refused:
        yield f"robots.txt forbids {count(summary.refused, 'URL')}; nothing was sent for those."
    if listed := summary.left_out - summary.cut_off:
        yield f"{count(listed, 'URL')} left out, as --leave-out says."
    if summary.at_depth:
        pages = count(summary.at_depth, "page")
        yield f"{pages} lead further than --depth {summary.depth} goes: what only they link to was not asked for."
    if summary.failed:
        yield f"{count(summary.failed, 'URL')} of {summary.known:,} failed: {reasons(summary.failed_by)}."
    if summary.complete and not summary.seeds_fetched:
        yield "Not every first address could be fetched."


def reasons(failed: dict[str, int]) -> str:
    """The most frequent reasons, counted."""
    told = [f"{number:,} {meaning(code)}" for code, number in list(failed.items())[:REASONS]]
    others = sum(list(failed.values())[REASONS:])
    return ", ".join([*told, f"{others:,} for other reasons"] if others else told)


def meaning(code: str) -> str:
    """What a code means, in words."""
    return MEANINGS.get(code_of(code), code.lower().replace("_", " "))


def _next(summary: PageSummary) -> Iterator[str]:
    out = shlex.quote(summary.out)
    if summary.aside:
        yield f"{count(summary.set_aside, 'URL')} could not be asked for: their hosts were set aside."
        yield from _indented(*hosts_aside(summary.aside))
    if summary.waiting:
        yield f"{count(summary.waiting, 'URL')} still to ask for. Nothing is lost; go on where it stopped with:"
        yield from _indented(summary.again)
    if summary.left:
        yield f"{count(summary.left, 'URL')} left because of --max-pages. Ask for them as well with:"
        yield from _indented(summary.again)
    if summary.cut_off:
        yield f"{count(summary.cut_off, 'URL')} cut off by budgets. List them, or ask for them all the same:"
        yield from _indented(f"sanderling pages failed {out} --cut-off", summary.retry + " --cut-off")
    if summary.failed:
        yield "What failed and why, and how to ask for it again:"
        yield from _indented(f"sanderling pages failed {out}", summary.retry)
    yield "Proof that every URL is accounted for:"
    yield from _indented(f"sanderling verify {out}")


def _indented(*lines: str) -> Iterator[str]:
    yield ""
    yield from (f"    {line}" for line in lines)
    yield ""


def exit_with(summary: PageSummary, *, stopped: bool) -> None:
    """Exit with the code that says how a run went, if not all went well."""
    if stopped:
        sys.exit(130)
    if summary.waiting:
        sys.exit(UNFINISHED)
    if summary.failed or not summary.seeds_fetched:
        sys.exit(1)
