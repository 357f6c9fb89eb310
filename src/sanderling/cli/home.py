"""What is set for the command that runs, and its home: as flag, environment or file say, or the folder we are in.

`--home` and `--config` are taken out of the command line before a command sees it (`everywhere.py`). A command that is
about the whole home, and not about one folder in it, asks here.
"""

from collections.abc import Iterable
from pathlib import Path

from sanderling.cli import app
from sanderling.cli.config.file import Configuration
from sanderling.cli.config.settings import Table, known
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


def set_for(command: Table, names: Iterable[str]) -> dict[str, str]:
    """What is set for a command, of these: for another one that works in the same place. Raises CommandError."""
    configuration = configured()
    settings = known().commands[command]
    keys = {name: name.replace("_", "-") for name in names}
    found = {name: configuration.found(command, key, settings[key].variables) for name, key in keys.items()}
    return {name: str(each.value) for name, each in found.items() if each is not None}
