"""Files and folders that stand in for a service: whether they are what they should be, and can be written."""

import os
import stat
from pathlib import Path

from sanderling.cli.doctor.findings import FAIL, OK, CheckError, CheckFinding, revision_found
from sanderling.cli.doctor.services import Service
from sanderling.extras import have, install
from sanderling.stores.analytics import AnalyticsError
from sanderling.words import printable, size

MAGIC = b"SQLite format 3\0"


def check_file(service: Service) -> list[CheckFinding]:
    """Look at it. Raises CheckError."""
    path = service.path
    if not service.url.partition(":")[2]:
        raise CheckError(f"{service.kind}: names no place", f"expected {service.kind}:PATH")
    if service.kind == "chdb" and not (have("chdb") and have("clickhouse_connect")):
        raise CheckError("chdb is not installed", install("chdb"))
    if service.kind == "sqlite" and service.name and path.is_dir():
        path /= f"{service.name}.db"  # a queue is a file in a folder
    try:
        found = _there(service.what, path, folder=service.kind != "sqlite")
    except OSError as error:
        raise CheckError(f"{printable(str(path))}: {error.strerror}", "let this user read and write there") from None
    database = service.kind == "sqlite" and service.setting == ("events", "database") and path.is_file()
    return [found, *([_revision(service.what, path)] if database and found.ok else [])]


def _there(what: str, path: Path, *, folder: bool) -> CheckFinding:
    shown = printable(str(path))
    if not path.exists():
        above = next(each for each in path.absolute().parents if each.is_dir())
        if os.access(above, os.W_OK | os.X_OK):
            return CheckFinding(what, OK, f"{shown} is not there yet, and can be made")
        raise CheckError(f"{shown} is not there", f"nothing can be made in {printable(str(above))}")
    mode = path.stat().st_mode
    if not (stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)):
        expected = "a folder" if folder else "a file"
        raise CheckError(f"{shown} is something else, expected {expected}", "move it away, or choose another place")
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path if folder else path.parent, os.W_OK | os.X_OK):
        raise CheckError(f"{shown} may not be written", "let this user write there")
    if folder:
        return CheckFinding(what, OK, f"{shown}, a folder that may be written")
    # Not opened as a database: that would leave files beside one that nobody uses just now.
    with path.open("rb") as file:
        begins = file.read(len(MAGIC))
    if begins and begins != MAGIC:
        return CheckFinding(what, FAIL, f"{shown} is no SQLite file", "restore it from a copy, or choose another place")
    return CheckFinding(what, OK, f"{shown}, {size(path.stat().st_size)}")


def _revision(what: str, path: Path) -> CheckFinding:
    from sanderling.stores.analytics_sqlite_tables import read_revision  # noqa: PLC0415 - few have such a file

    try:
        return revision_found(f"{what}: revision", read_revision(path))
    except AnalyticsError as error:
        raise CheckError(str(error)) from None
