"""Notes which blocks of marked source are run. Every process that a test starts imports this: it must be small."""

import os

FILE = "MUTANTS_HITS"  # the variable that says where to

seen: set[str] = set()


def hit(block: str) -> None:
    """Note that a block is run: once for each process and test."""
    if block not in seen:
        seen.add(block)
        path = os.environ.get(FILE)  # a process that is started with an environment of its own is not watched
        if path is not None:
            with open(path, "a") as file:  # noqa: PTH123 - this is called everywhere: the shortest way
                file.write(f"{block}\n")
