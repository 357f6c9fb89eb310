"""`sanderling repos inspect`: what is in a segment."""

import json as jsonlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.repos.watch import Complaints, end, say, segments_at
from sanderling.formats.rca import Block, RcaError
from sanderling.repos.archives import Archive
from sanderling.repos.inspect import Inspection, inspect, join_inspections, newest
from sanderling.words import count, printable, size


def inspect_command(
    file: Annotated[Path, Parameter(help="An .rca, finished or not; or a folder of them.")],
    /,
    *,
    did: Annotated[str | None, Parameter(help="Only this repo, and its collections.")] = None,
    verify: Annotated[bool, Parameter(negative=(), help="Compare every CRC, and unpack everything.")] = False,
    json: AsJson = False,
) -> None:
    """Say what is in a segment, or in all segments of a folder."""
    complaints = Complaints(shown=not json)
    paths = segments_at([file]) if file.is_dir() else [file]
    with _explained(file):
        if did is not None:
            _one_repo(file, paths, did, complaints, as_json=json)
            return
        each = [inspect(path, complaints, verify=verify) for path in paths]
        found = join_inspections(file, each) if file.is_dir() else each[0]
    if json:
        print(jsonlib.dumps(_as_json(found) | complaints.as_json()))
    else:
        say([*complaints.words(), *_table(found)])
    end(complaints)


def _one_repo(file: Path, paths: Sequence[Path], did: str, complaints: Complaints, *, as_json: bool) -> None:
    if file.is_dir():
        kept = newest(paths, did, complaints)
        block = None if kept is None else kept[1]
    else:
        with Archive(file, complaints) as archive:
            block = archive.find(did)
    if block is None:
        raise CommandError(f"{did} is not in {file}")
    if as_json:
        told: dict[str, object] = {
            "did": block.did,
            "host": block.pds,
            "rev": block.rev,
            "crawled_at": block.crawled_at,
        }
        told |= {"offset": block.offset, "bytes": len(block.data)}
        told["collections"] = {name: {"records": records, "bytes": packed} for name, records, packed in block.toc}
        print(jsonlib.dumps(told))
    else:
        say(_described(block))
    end(complaints)


def _described(block: Block) -> Iterator[str]:
    yield f"{block.did} at {block.pds or 'no host'}"
    yield f"  rev {block.rev or '(none)'}, crawled {_when(block.crawled_at)}"
    yield f"  {size(len(block.data))} at byte {block.offset:,}"
    yield ""
    yield f"  {'records':>12} {'packed':>10}  collection"
    yield from (f"  {records:>12,} {size(packed):>10}  {name}" for name, records, packed in block.toc)


def _as_json(found: Inspection) -> dict[str, object]:
    return {
        "file": str(found.path),
        "bytes": found.size,
        "created_at": found.header.created_at,
        "segments": found.segments,
        "finalised": found.footer is not None,
        "index": found.footer and found.footer._asdict(),
        "torn": found.torn,
        "repos": found.repos,
        "records": found.records,
        "collections": {name: asdict(stats) for name, stats in found.collections.items()},
        "largest": [repo._asdict() for repo in found.largest],
    }


def _table(found: Inspection) -> Iterator[str]:
    footer = found.footer
    yield f"{found.path}: {size(found.size)}, begun {_when(found.header.created_at)}"
    if found.path.is_dir():
        torn = f"; {size(found.torn)} behind the last whole repo of one that is not finished" if found.torn else ""
        yield f"  {count(found.segments, 'segment')}{torn}"
    elif footer:
        yield f"  index of {count(footer.repos, 'repo')} at byte {footer.index_offset:,}, CRC {footer.crc:08x}"
    else:
        yield f"  not finalised, or without a sound index; {size(found.torn)} behind the last whole repo"
    yield f"  {count(found.repos, 'repo')}, {count(found.records, 'record')}"
    yield ""
    yield f"  {'repos':>10} {'records':>12} {'packed':>10}  collection"
    for name, stats in found.collections.items():
        yield f"  {stats.repos:>10,} {stats.records:>12,} {size(stats.bytes):>10}  {name}"
    yield ""
    yield f"  {'':>10} {'records':>12} {'packed':>10}  largest repos"
    yield from (f"  {'':>10} {records:>12,} {size(packed):>10}  {did}" for packed, did, records in found.largest)


def _when(microseconds: int) -> str:
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} µs after 1970"
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except RcaError as error:
        raise CommandError(printable(f"{file}: {error}; is it an .rca?"), code=2) from None
    except OSError as error:
        raise CommandError(printable(f"{file}: {error.strerror or error}"), code=2) from None
