"""What is set for the command that runs, and its home: as flag, environment or file say, or the folder we are in.

`--home` and `--config` are taken out of the command line before a command sees it (`everywhere.py`). A command that is
about the whole home, and not about one folder in it, asks here.
"""

from pathlib import Path

from sanderling.cli import app
from sanderling.cli.config.file import Configuration
from sanderling.cli.config.tokens import checked
from sanderling.cli.everywhere import Everywhere


def configured() -> Configuration:
    """What is set. Raises CommandError for a file that is not as it should be."""
    given = next((each for each in app.config or () if isinstance(each, Everywhere)), Everywhere())
    return checked(given.config, given.home)


def home_of(configuration: Configuration) -> Path:
    """The folder that holds everything; nobody has looked whether it is there."""
    found = configuration.home
    return Path() if found is None else Path(str(found.value)).expanduser()
