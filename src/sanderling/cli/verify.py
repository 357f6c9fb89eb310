"""`sanderling verify`: prove that what a folder holds is whole. What that means, each system says itself."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.jobs.verify import prove_job
from sanderling.cli.pages.ledger import prove_crawl
from sanderling.cli.repos.archive import verify_archives
from sanderling.cli.system_folder import find_folder, system_of
from sanderling.words import printable

ARCHIVE = ".rca"


def verify(
    *places: Annotated[
        Path, Parameter(help="The folder of a crawl or a job; of archives of repos also several, or .rca files.")
    ],
    json: AsJson = False,
) -> None:
    """Compare what a system says with what it keeps."""
    if not places:
        raise CommandError("no folder is given; expected that of a crawl of pages or repos, or of a job", code=2)
    found = [find_folder(each) for each in places]
    first, system = found[0], system_of(found[0])
    if system == "repos" or ARCHIVE in first.name:
        verify_archives(found, as_json=json)
    elif len(found) > 1:
        raise CommandError(printable(f"{first} is no archive of repos; expected one folder, or archives only"), code=2)
    elif system == "pages":
        prove_crawl(first, as_json=json)
    elif system == "jobs":
        prove_job(first, as_json=json)
    else:
        why = f"it is of {system}" if system else "nothing of ours is in it" if first.is_dir() else "it is not there"
        raise CommandError(printable(f"{first} is no folder of a crawl of pages or repos, or of a job: {why}"), code=2)
