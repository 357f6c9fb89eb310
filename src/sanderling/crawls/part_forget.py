"""Forgetting in a crawl in parts: the wish is noted for the whole first, then each part forgets all of it."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sanderling.stores.forgotten import Forgotten

N = TypeVar("N", bound=tuple[int, ...])


def forget_in_parts(
    folder: Path, parts: Sequence[Path], begin: Callable[[Path, Sequence[str]], object], finish: Callable[[Path], N]
) -> N | None:
    """How much was removed from all parts; None if nothing is to be. Killed in between, it is done again."""
    forgotten = Forgotten.of(folder)
    if not forgotten.says.removing:
        return None
    for part in parts:
        begin(part, forgotten.says.removing)
    removed = add_removed(finish(part) for part in parts)
    forgotten.removed()
    return removed


def add_removed(removed: Iterable[N]) -> N:
    """What was removed from several parts, of which there is one at least."""
    found: list[Any] = list(removed)
    return type(found[0])(*map(sum, zip(*found, strict=True)))  # type: ignore[no-any-return] # a NamedTuple
