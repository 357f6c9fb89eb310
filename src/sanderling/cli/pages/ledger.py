"""`sanderling verify` of a crawl of pages, and `sanderling pages failed`: what the folder of a crawl says of itself."""

import json as jsonlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson, again
from sanderling.cli.events.onward import NOWHERE, Onward
from sanderling.cli.options import DEFAULT, Options
from sanderling.cli.pages.crawl import USUAL, WHOLE, PagesFlags, PagesNetwork, PagesReading, open_folder, run_crawl
from sanderling.cli.pages.summary import FAULTS, by_reason, hosts_aside, meaning, reasons
from sanderling.cli.processes import is_in_parts
from sanderling.clock import SystemClock
from sanderling.crawls.parts import folders_of
from sanderling.crawls.verify import CrawlProof, verify_parts
from sanderling.outcome import Code
from sanderling.pages.earlier import LEDGER
from sanderling.pages.verify import verify
from sanderling.redact import redact_url
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_rows import Aside, End, Failed, Fault
from sanderling.words import count, printable

# In the order of the road: what has a row, what has none, what is still to come.
ENDS = (End.FETCHED, End.UNCHANGED, End.MOVED, End.REFUSED, End.LEFT_OUT, End.FAILED, End.LEFT, End.WAITING)
EXAMPLES = 3  # URLs shown for each reason

Folder = Annotated[Path, Parameter(help="The folder of a crawl.")]


def check_crawl(folder: Path) -> None:
    """Raise CommandError where no crawl has begun."""
    if not is_in_parts(folder) and not (folder / LEDGER).is_file():
        found = f"it has no {LEDGER}" if folder.is_dir() else "it is a file" if folder.exists() else "it is not there"
        raise CommandError(f"{folder} is no crawl: {found}", code=2)


def prove_crawl(folder: Path, *, as_json: bool) -> None:
    """Compare the ledger of a crawl with its rows and files, and say what came of it."""
    check_crawl(folder)
    try:
        proof = verify_parts(folder, verify)
    except FolderError as error:
        raise CommandError(str(error), code=2) from None
    if as_json:
        print(jsonlib.dumps(_as_json(folder, proof)))
    else:
        for line in _table(folder, proof):
            print(line)
    if not proof.ok:
        sys.exit(1)


def failed(  # noqa: PLR0913 - a flag each
    folder: Folder,
    /,
    *,
    retry: Annotated[bool, Parameter(negative=(), help="Ask for them all once more.")] = False,
    cut_off: Annotated[bool, Parameter(negative=(), help="What budgets cut off, and not what failed.")] = False,
    json: AsJson = False,
    network: PagesNetwork = USUAL,
    onward: Onward = NOWHERE,
    options: Options = DEFAULT,
    reading: PagesReading = WHOLE,
) -> None:
    """Say which URLs of a crawl failed, by reason, or ask for them again."""
    onward.check()
    check_crawl(folder)
    if retry:
        flags = PagesFlags(network=network, onward=onward, options=options, reading=reading)
        _retry(folder, flags, as_json=json, cut_off=cut_off)
    elif json:
        for each in _failures(folder, cut_off=cut_off):
            print(jsonlib.dumps(_described(each)))
    elif cut_off:
        go_on = again("pages failed", folder, "--cut-off", "--retry", network, onward)
        for line in _grouped(folder, _failures(folder, cut_off=True), go_on, "cut off by budgets"):
            print(line)
    else:
        for line in _grouped(folder, _failures(folder), again("pages failed", folder, "--retry", network, onward)):
            print(line)
        for line in _not_asked(folder, again("pages crawl", "--resume", "--out", folder, network, onward)):
            print(line)


def _failures(folder: Path, *, cut_off: bool = False) -> Iterator[Failed]:
    """What failed, or what budgets cut off, read beside a crawl that may be running."""
    wanted = (End.LEFT_OUT, Code.CANCELLED) if cut_off else (End.FAILED, None)
    try:
        for path in (each / LEDGER for each in folders_of(folder)):
            with plainly(path), closing(frontier_file.connect_to_read(path)) as db:
                yield from (each for each in frontier_reading.failed(db) if _is_so(each, *wanted))
    except FolderError as error:
        raise CommandError(str(error), code=2) from None


def _is_so(failed: Failed, end: End, code: str | None) -> bool:
    return failed.end is end and code in (None, failed.code)


def _retry(folder: Path, flags: PagesFlags, *, as_json: bool, cut_off: bool) -> None:
    network, onward = flags.network, flags.onward
    if is_in_parts(folder):
        from sanderling.cli.pages.parts import run_parts_of  # noqa: PLC0415 - most crawls need none

        reopen = None if cut_off else End.FAILED
        run_parts_of(folder, None, flags, resume=True, as_json=as_json, reopen=reopen, retry_cut=cut_off)
        return
    if next(_failures(folder, cut_off=cut_off), None) is None and not as_json:
        print(f"Nothing {'was cut off by budgets' if cut_off else 'failed'} in {printable(str(folder))}.")
        for line in _not_asked(folder, again("pages crawl", "--resume", "--out", folder, network, onward)):
            print(line)
        return
    transport, rules = network.transport(), replace(flags.rules(), retry_cut=cut_off)
    with open_folder(folder, None, resume=True, clock=SystemClock()) as crawl:
        if not cut_off:
            crawl.ledger.reopen(End.FAILED)
        run_crawl(crawl, transport, rules, flags, as_json=as_json)


def _not_asked(folder: Path, go_on: str) -> Iterator[str]:
    """What has not failed for good: it waits for hosts that did not answer, or will be asked for once more."""
    aside, again_by = list[Aside](), dict[str, int]()
    try:
        for path in (each / LEDGER for each in folders_of(folder)):
            with plainly(path), closing(frontier_file.connect_to_read(path)) as db:
                aside += frontier_reading.aside(db)
                again_by = dict(Counter(again_by) + Counter(frontier_reading.blamed(db).again))
    except FolderError as error:
        raise CommandError(str(error), code=2) from None
    if aside:
        yield f"{count(sum(each.waiting for each in aside), 'URL')} did not fail, and could not be asked for:"
        yield ""
        yield from (f"    {each}" for each in hosts_aside(aside))
        yield ""
    if again_by:
        yield f"{count(sum(again_by.values()), 'URL')} failed, though not for good: {reasons(again_by)}."
        yield ""
    if aside or again_by:
        yield "To ask for them once more:"
        yield ""
        yield f"    {go_on}"
        yield ""


def _described(failed: Failed) -> dict[str, object]:
    """One failure, with the names that failed.jsonl has for it."""
    row = failed._asdict() | {"end": failed.end.name.lower(), "outcome": failed.code}
    del row["code"]
    return row


def _grouped(folder: Path, failures: Iterable[Failed], retry: str, what: str = "failed") -> Iterator[str]:
    """The failures by reason, the most frequent first, each with a few examples."""
    numbers: Counter[tuple[str, int, Fault]] = Counter()
    examples: dict[tuple[str, int, Fault], list[Failed]] = defaultdict(list)
    for each in failures:
        reason = each.code, each.status, each.fault
        numbers[reason] += 1
        if len(examples[reason]) < EXAMPLES:
            examples[reason].append(each)
    if not numbers:
        yield f"Nothing {what} in {printable(str(folder))}."
        return
    yield f"{count(numbers.total(), 'URL')} {what} in {printable(str(folder))}."
    for reason, number in numbers.most_common():
        code, status, fault = reason
        yield ""
        yield f"{number:>7,}  {meaning(code)} ({f'{status}, ' if status else ''}{code}), {FAULTS[fault]}"
        yield from (f"         {_example(each)}" for each in examples[reason])
        if number > EXAMPLES:
            yield f"         and {number - EXAMPLES:,} more"
    yield ""
    yield "To ask for them all once more:"
    yield ""
    yield f"    {retry}"
    yield ""


def _example(failed: Failed) -> str:
    asked = count(failed.requests, "request") if failed.requests > 1 else ""
    return printable("  ".join(part for part in (redact_url(failed.url), failed.detail, asked) if part))


def _as_json(folder: Path, proof: CrawlProof) -> dict[str, object]:
    return {
        "ok": proof.ok,
        "out": str(folder),
        "finished": proof.finished,
        "known": proof.known,
        **{end.name.lower(): proof.counts[end] for end in ENDS},
        "rows": proof.rows,
        "bodies": proof.bodies,
        "wrong": proof.wrong,
        "problems": list(proof.problems),
        "unproven": list(proof.unproven),
        "set_aside": sum(each.waiting for each in proof.aside),
        "set_aside_by": by_reason(proof.aside),
    }


def _table(folder: Path, proof: CrawlProof) -> Iterator[str]:
    """The ends as a sum, then what is wrong with it, if anything."""
    yield f"{printable(str(folder))}: {'a finished crawl' if proof.finished else 'a crawl that is not finished'}"
    yield ""
    for end in ENDS:
        yield f"  {end.name.lower():<10}{proof.counts[end]:>12,}  {EXPLAINED[end]}".rstrip()
    yield f"  {'':<10}{'-' * 12}"
    yield f"  {'known':<10}{proof.known:>12,}  URLs; {count(proof.rows, 'row')} and {count(proof.bodies, 'file')} kept"
    yield ""
    if proof.aside:
        waiting = count(sum(each.waiting for each in proof.aside), "URL")
        yield f"  {waiting} still to be asked for, of hosts that did not answer:"
        yield from (f"    {each}" for each in hosts_aside(proof.aside))
        yield ""
    for problem in proof.problems:
        yield f"  wrong: {printable(problem)}"
    if proof.wrong > len(proof.problems):
        yield f"  and {proof.wrong - len(proof.problems):,} more"
    for gap in proof.unproven:
        yield f"  not looked at: {printable(gap)}"
    if proof.ok:
        yield "It adds up: every known URL has come to one end or still waits, and what is kept is there, once."
    else:
        yield f"It does not add up: {count(proof.wrong, 'thing')} wrong."


EXPLAINED = {
    End.FETCHED: "a row in pages.jsonl",
    End.UNCHANGED: "a row: as it was in the earlier crawl",
    End.MOVED: "a row that says where to",
    End.REFUSED: "by robots.txt; in failed.jsonl",
    End.LEFT_OUT: "listed with --leave-out, or cut off by a budget; in failed.jsonl",
    End.FAILED: "in failed.jsonl, with the reason",
    End.LEFT: "because of --max-pages",
    End.WAITING: "still to be asked for",
}
