"""`sanderling verify`: prove that a job lost nothing and kept nothing twice."""

import json as jsonlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.jobs.folder import FRONTIER
from sanderling.jobs.verify import JobProof, verify_job
from sanderling.pages.earlier import LEDGER
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.words import count, printable

# How requests may end, in the order of the road.
ENDS = (End.FETCHED, End.FAILED, End.LEFT_OUT, End.WAITING)


def verify(
    folder: Annotated[Path, Parameter(help="The folder of a job.")],
    /,
    *,
    json: AsJson = False,
) -> None:
    """Compare the records of a job with its frontier, and say what came of it."""
    check_job(folder)
    try:
        proof = verify_job(folder)
    except FolderError as error:
        raise CommandError(str(error), code=2) from None
    if json:
        print(jsonlib.dumps(_as_json(folder, proof)))
    else:
        for line in _words(folder, proof):
            print(printable(line))
    if not proof.ok:
        sys.exit(1)


def check_job(folder: Path) -> None:
    """Raise CommandError where no job has begun."""
    if (folder / FRONTIER).is_file() and not (folder / LEDGER).is_file():
        return
    found = f"it has no {FRONTIER}" if folder.is_dir() else "it is a file" if folder.exists() else "it is not there"
    if (folder / LEDGER).is_file():
        found = f"it is a crawl of pages; try: sanderling pages verify {folder}"
    raise CommandError(printable(f"{folder} is no folder of a job: {found}"), code=2)


def _as_json(folder: Path, proof: JobProof) -> dict[str, object]:
    return {
        "ok": proof.ok,
        "out": str(folder),
        "finished": proof.finished,
        "records": proof.records,
        "counts": {end.name.lower(): proof.counts[end] for end in ENDS},
        "wrong": proof.wrong,
        "problems": proof.problems,
    }


def _words(folder: Path, proof: JobProof) -> Iterator[str]:
    known = sum(proof.counts.values())
    yield f"{folder}: {count(known, 'request')}, {count(proof.records, 'record')}"
    yield ""
    for end in ENDS:
        if proof.counts[end]:
            yield f"{proof.counts[end]:>12,}  {end.name.lower().replace('_', ' ')}"
    yield ""
    if not proof.ok:
        yield f"{count(proof.wrong, 'thing')} wrong:"
        yield from (f"  {problem}" for problem in proof.problems)
    else:
        done = "All requests have their end" if proof.finished else f"{proof.counts[End.WAITING]:,} still wait"
        yield f"Every record is there once. {done}."
