from collections.abc import Callable

from sanderling.pages.reader_python import Absolute, Heads

def read(
    html: str, resolver: Callable[[Heads], Absolute], most_tags: int = ..., /
) -> tuple[str, str, Heads, list[tuple[str, str, str]], bool]: ...
