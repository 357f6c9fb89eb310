"""How tests call the program with the toy system, in this process or as another: its exit code and what it printed."""

import os
import sys
from dataclasses import dataclass
from typing import Protocol

from toy_system import TOYS

from sanderling.cli.context import Context
from sanderling.cli.main import main
from sanderling.files import Exit


@dataclass
class Ended:
    code: Exit
    out: str
    err: str


class Call(Protocol):
    def __call__(self, *words: str, toml: str = "", **environment: str) -> Ended: ...


if __name__ == "__main__":
    sys.exit(main(Context(tuple(sys.argv[1:]), os.environ, program="sanderling", systems=(TOYS,))))
