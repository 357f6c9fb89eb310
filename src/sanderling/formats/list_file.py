"""Lists that people write: a thing on each line, among blank lines and `# comments`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class ListError(ValueError):
    """A list cannot be read. The message says which, and the line."""


def listed(text: str) -> Iterator[tuple[int, str]]:
    """The number of each line that says something, and what it says."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if said := line.partition("#")[0].strip():
            yield number, said


def read_list(path: Path, read: Callable[[str], T]) -> list[T]:
    """What `read` makes of each line; the ValueError that it may raise says what was expected. Raises ListError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ListError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ListError(f"{path}, byte {error.start}: expected UTF-8") from None
    things = []
    for number, said in listed(text):
        try:
            things.append(read(said))
        except ValueError as error:
            raise ListError(f"{path}, line {number}: {error}") from None
    return things
