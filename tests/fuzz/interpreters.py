"""Both C modules in several interpreters of one process, at once and one after the other; says only what is wrong.

interpreters.py FOLDER    with the CARs to be parsed, and for what each interpreter has to say
"""

import sys
import threading
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import twins

from sanderling.events.analysis import _scan

interpreters: Any
try:
    interpreters = import_module("_interpreters")  # since 3.13
except ImportError:
    interpreters = import_module("_xxsubinterpreters")

AT_ONCE, IN_TURN, RUNS = 4, 4, 60
# The words that were kept must be its own; so must be the types of results and errors, which `twins` compares.
CODE = """
import sys
sys.path[:] = {path!r}
from pathlib import Path
import twins
from sanderling.events.analysis import _scan
folder = Path({folder!r})
cars = [path.read_bytes() for path in sorted(folder.glob("*.car"))]
twins.testcapi = None  # which the other interpreters would feel as well
for number in range({first}, {first} + {runs}):
    for target in twins.RUNS:
        twins.run(target, 1, number, cars)
(folder / "word-{name}").write_text(str(id(_scan.words_of("sanderling .")[0])))
"""


class Interpreter:
    """One more interpreter, of its own GIL where there is such a thing."""

    def __init__(self, name: str, folder: Path) -> None:
        self._id: Any = interpreters.create()
        self._code = CODE.format(
            path=sys.path, folder=str(folder), first=Random(name).randrange(1000), runs=RUNS, name=name
        )
        self.wrong: object = None

    def run(self) -> None:
        """Run the code; what is wrong with it."""
        try:
            self.wrong = interpreters.run_string(self._id, self._code)  # since 3.13 it is given back
        except Exception as error:  # noqa: BLE001 - the class is another one in each version
            self.wrong = error

    def close(self) -> None:
        interpreters.destroy(self._id)


def at_once(folder: Path) -> list[object]:
    """What is wrong when they run in threads."""
    several = [Interpreter(f"at-once-{number}", folder) for number in range(AT_ONCE)]
    threads = [threading.Thread(target=each.run) for each in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = [path.read_text() for path in folder.glob("word-at-once-*")] + [str(id(_scan.words_of("sanderling .")[0]))]
    wrong = [each.wrong for each in several if each.wrong is not None]
    if not wrong and len(set(words)) != AT_ONCE + 1:
        wrong.append(f"{AT_ONCE} interpreters and the main one have {len(set(words))} words of their own")
    for each in several:
        each.close()
    return wrong


def in_turn(folder: Path) -> list[object]:
    """What is wrong when each begins after the one before has gone."""
    wrong = []
    for number in range(IN_TURN):
        one = Interpreter(f"in-turn-{number}", folder)
        one.run()
        one.close()
        wrong += [one.wrong] if one.wrong is not None else []
    return wrong


def main(folder: Path) -> None:
    """The main interpreter uses them before, between and after."""
    cars = [path.read_bytes() for path in sorted(folder.glob("*.car"))]
    for play in (at_once, in_turn, at_once):
        for number in range(RUNS):
            for target in twins.RUNS:
                twins.run(target, 2, number, cars)
        for wrong in play(folder):
            print(play.__name__, wrong)  # noqa: T201 - a script


if __name__ == "__main__":
    main(Path(sys.argv[1]))
