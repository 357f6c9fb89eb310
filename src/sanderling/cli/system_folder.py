"""Which folder is meant, and which system it is of: for the commands that are the same for every system."""

from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.cli.config.settings import known
from sanderling.cli.events.place import ROWS_FILE
from sanderling.cli.home import configured, home_of
from sanderling.cli.polling.place import DATABASE
from sanderling.cli.sequence import place as sequence_place
from sanderling.cli.sequence.place import ROWS, STATE
from sanderling.crawls.parts import number_of_parts, part_folder
from sanderling.events.outbox import QUEUE
from sanderling.jobs.files import FRONTIER
from sanderling.pages.earlier import LEDGER
from sanderling.repos.parts import PROGRESS, all_segments
from sanderling.stores.durable import FolderError
from sanderling.web.house import HouseReader
from sanderling.words import printable

MARKS = {
    "pages": (LEDGER,),
    "jobs": (FRONTIER,),
    "sequence": (STATE, ROWS, f"{sequence_place.QUEUE}.db"),
    "repos": (PROGRESS,),
    "polling": (DATABASE,),
    "events": (ROWS_FILE, f"{QUEUE}.db"),
}

# The command whose --out is the folder of a system.
KEEPS = {
    "pages": ("pages", "crawl"),
    "sequence": ("sequence", "crawl"),
    "repos": ("repos", "crawl"),
    "polling": ("polling", "run"),
    "events": ("events", "consume"),
}


def find_folder(folder: Path) -> Path:
    """The folder that is meant: here, or in the home, or, by the name of a system, the one that is set for it."""
    if folder.exists():
        return folder
    configuration = configured()
    if (there := home_of(configuration) / folder).exists():
        return there
    if (command := KEEPS.get(str(folder))) is not None:
        found = configuration.effective(command, known().commands[command]["out"]).value
        return folder if found is None else Path(str(found)).expanduser()
    return folder


def system_of(folder: Path) -> str:
    """The system that keeps what it has in a folder; empty if none does. Raises CommandError."""
    try:
        first = part_folder(folder, 0) if number_of_parts(folder) else folder
    except FolderError as error:
        raise CommandError(printable(str(error)), code=2) from None
    for system, files in MARKS.items():
        if any((first / file).is_file() for file in files):
            return system
    return reported_system(folder) or ("repos" if folder.is_dir() and all_segments(folder) else "")


def reported_system(folder: Path) -> str:
    """The system that has reported from a folder; empty if none has."""
    found = HouseReader(folder.absolute().parent).system(folder.absolute())
    return "" if found is None or found.process is None else found.system
