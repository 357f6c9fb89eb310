"""What came of a crawl, in numbers and in words, and what to do next."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from sanderling.outcome import Code, code_of
from sanderling.pages.ends import KEPT, End
from sanderling.pages.folder import CrawlFolder, State
from sanderling.pages.status import Status

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
}


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl after a run. Counts are the crawl's; seconds and bytes are those of the run."""

    complete: bool
    crawl: int
    seconds: float
    known: int
    fetched: int
    unchanged: int
    moved: int
    refused: int
    failed: int
    left: int
    waiting: int
    bytes: int
    hosts: int
    seeds_fetched: bool  # whether there is a row for every first address
    out: str
    failed_by: dict[str, int]
    resumed: bool
    files: tuple[str, ...]  # of the output that are there
    flags: tuple[str, ...]  # that a command to go on needs as well

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("resumed", "files", "flags"):
            del shown[name]
        return shown


def summarise(folder: CrawlFolder, last: Status, *, complete: bool, flags: Iterable[str] = ()) -> Summary:
    """The summary of a run that ended with `last`."""
    counts = folder.ledger.counts()
    ends = folder.ledger.ends()[
        1 : 1 + len(folder.plan.seeds)
    ]  # the first ids are theirs, in the order they were given
    return Summary(
        complete=complete,
        crawl=folder.crawl,
        seconds=round(last.seconds, 3),
        known=folder.ledger.known,
        fetched=counts[End.FETCHED],
        unchanged=counts[End.UNCHANGED],
        moved=counts[End.MOVED],
        refused=counts[End.REFUSED],
        failed=counts[End.FAILED],
        left=counts[End.LEFT],
        waiting=counts[End.WAITING],
        bytes=last.bytes,
        hosts=last.hosts_known,
        seeds_fetched=len(ends) == len(folder.plan.seeds) and all(end in KEPT for end in ends),
        out=str(folder.path),
        failed_by=failed_by(folder),
        resumed=folder.state is State.RESUMED,
        files=tuple(_files(folder.path)),
        flags=tuple(flags),
    )


def failed_by(folder: CrawlFolder) -> dict[str, int]:
    """How many URLs failed for each reason, the most frequent first."""
    by_code = Counter({code: number for (end, code), number in folder.ledger.by_code().items() if end is End.FAILED})
    return dict(by_code.most_common())


def _files(path: Path) -> Iterator[str]:
    """What there is of the output, that which is derived behind what it is derived from."""
    for rows, derived in (("pages.jsonl", "pages-*.parquet"), ("failed.jsonl", "failed.parquet")):
        if (path / rows).is_file() and (path / rows).stat().st_size:
            yield from (rows, *sorted(each.name for each in path.glob(derived)))
    if (path / "bodies").is_dir():
        yield "bodies"


def words(summary: Summary) -> Iterator[str]:
    """The summary as lines; those that are indented must not be broken."""
    yield ""
    yield _fetched(summary)
    yield from _not_fetched(summary)
    yield ""
    if summary.files:
        yield "The output:"
        yield from _indented(*(shlex.quote(str(Path(summary.out) / name)) for name in summary.files))
    yield from _next(summary)


def _fetched(summary: Summary) -> str:
    pages, took = count(summary.fetched, "page"), duration(summary.seconds)
    also = ((summary.unchanged, "unchanged"), (summary.moved, "moved elsewhere"))
    more = "".join(f", {number:,} {what}" for number, what in also if number)
    if summary.resumed:
        return f"The crawl holds {pages} now{more}; this run fetched {size(summary.bytes)} in {took}."
    return f"Fetched {pages}, {size(summary.bytes)}, from {count(summary.hosts, 'host')} in {took}{more}."


def _not_fetched(summary: Summary) -> Iterator[str]:
    if summary.refused:
        yield f"robots.txt forbids {count(summary.refused, 'URL')}; nothing was sent for those."
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


def _next(summary: Summary) -> Iterator[str]:
    out = shlex.quote(summary.out)
    flags = "".join(f" {shlex.quote(flag)}" for flag in summary.flags)
    if summary.waiting:
        yield f"{count(summary.waiting, 'URL')} still to ask for. Nothing is lost; go on where it stopped with:"
        yield from _indented(f"sanderling pages crawl --resume --out {out}{flags}")
    if summary.left:
        yield f"{count(summary.left, 'URL')} left because of --max-pages. Ask for them as well with:"
        yield from _indented(f"sanderling pages crawl --resume --out {out}{flags}")
    if summary.failed:
        yield "What failed and why, and how to ask for it again:"
        yield from _indented(f"sanderling pages failed {out}", f"sanderling pages failed {out} --retry{flags}")
    yield "Proof that every URL is accounted for:"
    yield from _indented(f"sanderling pages verify {out}")


def _indented(*lines: str) -> Iterator[str]:
    yield ""
    yield from (f"    {line}" for line in lines)
    yield ""


def finishing(requests: int) -> str:
    """What a crawl does that was asked to stop."""
    return f"finishing {count(requests, 'request')} in flight"


def count(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def size(number: int) -> str:
    """Bytes, as people say it."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} B"


def duration(seconds: float) -> str:
    """Seconds, as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def clock_face(seconds: float) -> str:
    """Seconds, as a stopwatch shows them."""
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def printable(text: str) -> str:
    """The text without what could move a cursor, change a colour or turn the reading direction: hosts write it."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
