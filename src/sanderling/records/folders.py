"""Which system a folder is of, and its records."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from sanderling.crawls.part_records import PartRecords
from sanderling.crawls.parts import folders_of
from sanderling.stores.durable import FolderError
from sanderling.stores.record_source import RecordsError, RecordSource

# The files by which folders are known, the module that reads each, and its class. Loaded when needed: each knows much.
SYSTEMS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("pages", ("ledger.db", "ledger.next"), "sanderling.pages.records", "PageRecords"),
    ("jobs", ("frontier.db",), "sanderling.jobs.records", "JobRecords"),
    ("repos", ("segment_*.rca", "segment_*.rca.part"), "sanderling.repos.records", "RepoRecords"),
    ("polling", ("polling.db",), "sanderling.polling.records", "PollingRecords"),
    ("events", ("events.db",), "sanderling.events.records", "EventRecords"),
    ("sequence", ("rows.db", "sequence.db"), "sanderling.sequence.records", "SequenceRecords"),
)
# What a system leaves in its folder when its records are on a server, and what to do then.
ELSEWHERE = {
    "source.toml": "polling keeps its rows in the PostgreSQL that --database named: read the tables there",
    "objects": "events keeps its rows in the PostgreSQL that --database named: read post_analytics there",
    "dids.txt": "no repo is archived yet",
    "status.json": "it has run, and its records are on the server that --database or --rows named: read them there",
}
MOST_SHOWN = 5


def open_records(folder: Path) -> RecordSource:
    """The records of a folder. Raises RecordsError."""
    if not folder.is_dir():
        found = "it is a file" if folder.exists() else "it is not there"
        raise RecordsError(f"{folder} is no folder of a system: {found}")
    try:
        parts = folders_of(folder)
    except FolderError as error:
        raise RecordsError(str(error)) from None
    # What one process had kept, before there were parts, is in the folder itself; not all parts need have something.
    folders = parts if parts == [folder] else [*parts, folder]
    for _, marks, module, name in SYSTEMS:
        if any(next(each.glob(mark), None) for each in folders for mark in marks):
            opens: Callable[[Path], RecordSource] = getattr(import_module(module), name)
            if parts == [folder]:
                return opens(folder)
            before = [folder] if any(next(folder.glob(mark), None) for mark in marks) else []
            return PartRecords([*parts, *before], opens)
    raise RecordsError(_not_ours(folder))


def _not_ours(folder: Path) -> str:
    for name, why in ELSEWHERE.items():
        if (folder / name).exists():
            return f"{folder} holds no records: {why}"
    below = sorted(each.name for each in folder.iterdir() if each.is_dir() and _is_system(each))[:MOST_SHOWN]
    if below:
        return f"{folder} holds several systems; name one of them: {', '.join(str(folder / name) for name in below)}"
    known = "; ".join(f"{system}: {marks[0]}" for system, marks, _, _ in SYSTEMS)
    return f"{folder} is no folder of a system; expected one of these in it ({known})"


def _is_system(folder: Path) -> bool:
    return any(next(folder.glob(mark), None) for _, marks, _, _ in SYSTEMS for mark in marks)
