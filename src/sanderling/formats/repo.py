"""A repo's CAR to its records, as it is best had here: in C if that was built, else in Python. Both give the same."""

import os
from typing import TYPE_CHECKING

from sanderling.formats.parsed import Cids, Collection, Kind, Limits, Repo, RepoError, Stats

if TYPE_CHECKING:
    from sanderling.formats.repo_python import parse_repo

    ACTIVE: str
elif os.environ.get("SANDERLING_PURE"):  # for the tests, and for whoever distrusts the C
    from sanderling.formats.repo_python import parse_repo

    ACTIVE = "python"
else:
    try:
        from sanderling.formats._repo import parse_repo

        ACTIVE = "c"
    except ImportError:
        from sanderling.formats.repo_python import parse_repo

        ACTIVE = "python"

__all__ = ["ACTIVE", "Cids", "Collection", "Kind", "Limits", "Repo", "RepoError", "Stats", "parse_repo"]
