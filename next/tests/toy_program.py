"""How tests call the program: its exit code, and what it printed."""

from dataclasses import dataclass
from typing import Protocol

from sanderling.files import Exit


@dataclass
class Ended:
    code: Exit
    out: str
    err: str


class Call(Protocol):
    def __call__(self, *words: str, toml: str = "", **environment: str) -> Ended: ...
