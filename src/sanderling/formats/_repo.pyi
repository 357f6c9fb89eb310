from typing_extensions import Buffer

from sanderling.formats.parsed import Cids, Limits, Repo

IMPLEMENTATION: str
IMPLEMENTATIONS: tuple[str, ...]

def parse_repo(car: Buffer, *, verify: bool = True, cids: Cids = "strip", limits: Limits = ...) -> Repo: ...
def sha256(data: Buffer, implementation: str, /) -> bytes: ...
def float_text(value: float, /) -> str: ...
