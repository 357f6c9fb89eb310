"""`sanderling doctor`: what this installation is made of, and what to do about what it lacks."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated

import msgspec
from cyclopts import Parameter

from sanderling.formats import repo
from sanderling.limit import fast

# What each extra of the package makes possible, and a module that comes with it.
EXTRAS = {
    "parquet": ("pyarrow", "Parquet files beside JSON lines"),
    "redis": ("redis", "progress in Redis"),
    "clickhouse": ("clickhouse_connect", "replay into a ClickHouse server"),
    "embedded": ("chdb", "ClickHouse within our own process"),
}
BUILD = "install a C compiler and install the package again"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at. What is not `ok` works, but slowly or in part; `advice` says what to do."""

    what: str
    found: str
    ok: bool
    advice: str = ""


def findings() -> Iterator[Finding]:
    """What there is to say, in order."""
    yield Finding("Python", sys.version.split()[0], ok=True)
    yield Finding("limiter", "C" if fast.NATIVE else "Python", fast.NATIVE, "" if fast.NATIVE else BUILD)
    yield _parser()
    for extra, (module, use) in EXTRAS.items():
        there = find_spec(module) is not None
        advice = "" if there else f"for {use}: pip install 'sanderling[{extra}]'"
        yield Finding(extra, "installed" if there else "not installed", there, advice)


def _parser() -> Finding:
    """The one that reads repos."""
    if repo.ACTIVE == "c":
        from sanderling.formats import _repo  # noqa: PLC0415 - it is there only if it was built

        return Finding("parser of repos", f"C, SHA-256 by {_repo.IMPLEMENTATION}", ok=True)
    wheels = all(find_spec(name) is not None for name in ("libipld", "orjson"))
    advice = BUILD if wheels else f"{BUILD}, or: pip install 'sanderling[repos]'"
    return Finding("parser of repos", "Python" if wheels else "Python, without its wheels", ok=False, advice=advice)


def doctor(
    *, json: Annotated[bool, Parameter(negative=(), help="Print the findings as JSON, and nothing else.")] = False
) -> None:
    """Look at the installation, and say what to do about each finding."""
    found = list(findings())
    if json:
        print(msgspec.json.encode(found).decode())
    else:
        for each in found:
            print(f"{'ok' if each.ok else '--':4}{each.what:17}{each.found}{f'; {each.advice}' if each.advice else ''}")
    if not all(each.ok for each in found):
        sys.exit(1)
