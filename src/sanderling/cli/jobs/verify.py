"""`sanderling verify` of a job: prove that a job lost nothing and kept nothing twice."""

import json as jsonlib
import sys
from collections.abc import Iterator
from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.crawls.verify import CrawlProof, verify_parts
from sanderling.jobs.verify import verify_job
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.words import count, printable

# How requests may end, in the order of the road.
ENDS = (End.FETCHED, End.FAILED, End.LEFT_OUT, End.WAITING)


def prove_job(folder: Path, *, as_json: bool) -> None:
    """Compare the records of a job with its frontier, and say what came of it."""
    try:
        proof = verify_parts(folder, verify_job)
    except FolderError as error:
        raise CommandError(str(error), code=2) from None
    if as_json:
        print(jsonlib.dumps(_as_json(folder, proof)))
    else:
        for line in _words(folder, proof):
            print(printable(line))
    if not proof.ok:
        sys.exit(1)


def _as_json(folder: Path, proof: CrawlProof) -> dict[str, object]:
    return {
        "ok": proof.ok,
        "out": str(folder),
        "finished": proof.finished,
        "records": proof.rows,
        "kept": proof.kept,
        "counts": {end.name.lower(): proof.counts[end] for end in ENDS},
        "wrong": proof.wrong,
        "problems": proof.problems,
    }


def _words(folder: Path, proof: CrawlProof) -> Iterator[str]:
    known = sum(proof.counts.values())
    kept = f", {count(proof.kept, 'answer')} kept" if proof.kept else ""
    yield f"{folder}: {count(known, 'request')}, {count(proof.rows, 'record')}{kept}"
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
