"""What `sanderling doctor` looks at on this machine: what is installed, the home, the disk, limits, clocks."""

import os
import resource
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from sanderling.cli.doctor.findings import ABSENT, FAIL, OK, WARN, CheckFinding
from sanderling.clock import Clock
from sanderling.fetch.http import HttpRules
from sanderling.stores.durable import sync_folder
from sanderling.words import printable, size

# What each extra of the package makes possible, and the modules that come with it.
EXTRAS = {
    "parquet": ("pyarrow", "Parquet files beside JSON lines"),
    "postgres": ("asyncpg", "rows, targets and analytics in PostgreSQL"),
    "rabbitmq": ("aio_pika", "queues of a RabbitMQ"),
    "redis": ("redis", "progress in Redis"),
    "s3": ("obstore", "batches in S3, MinIO and their like"),
    "onnx": ("onnxruntime", "a trained model of sentiment"),
    "clickhouse": ("clickhouse_connect", "replay into a ClickHouse server"),
    "embedded": ("chdb", "ClickHouse within our own process"),
    "duckdb": ("duckdb", "exports to DuckDB"),
    "render": ("playwright", "pages in a browser"),
    "xpath": ("lxml", "XPath in jobs of pages"),
}
# pip would take the wheel that it has kept of the last build.
BUILD = "install a C compiler and Python's headers, then: pip install --force-reinstall --no-cache-dir sanderling"
PURE = "SANDERLING_PURE"
OLDEST = (3, 11)
CODINGS = {"zstd": ("compression.zstd", "backports.zstd"), "brotli": ("brotli",)}  # and the modules that have each

# A segment of repos has 2 GB by default, and is written beside the one before.
LOW, EMPTY = 5 * 10**9, 5 * 10**8
# Besides connections: databases and their logs, files of output, what Python itself has open.
OTHER_FILES = 256
# No clock of a machine that runs this is right if it says an earlier time: 2025-01-01.
EARLIEST = 1_735_689_600.0
LOOK, MOST_DRIFT = 0.1, 0.05  # seconds that both clocks are compared over, and by how much they may differ then


def findings() -> Iterator[CheckFinding]:
    """What this installation is made of."""
    yield python(sys.version_info[:2], sys.version.split()[0])
    yield _parser()
    yield c_part("reader of pages", "sanderling.pages._reader", "a page takes seven times as long to read")
    yield c_part("guard of parsers", "sanderling.pages._complexity", "a page takes 5 ms more before selectors")
    yield _scan()
    yield event_loop()
    for coding, modules in CODINGS.items():
        if any(_there(module) for module in modules):
            yield CheckFinding(coding, OK, "installed")
        else:
            advice = "install the package again: hosts that send it are not understood"
            yield CheckFinding(coding, FAIL, "not installed", advice)
    for extra, (several, use) in EXTRAS.items():
        there = all(_there(module) for module in several.split())
        advice = f"for {use}: pip install 'sanderling[{extra}]'"
        yield (
            CheckFinding(extra, OK, f"installed; {use}")
            if there
            else CheckFinding(extra, ABSENT, "not installed", advice)
        )


def python(found: tuple[int, ...], text: str) -> CheckFinding:
    """The version of Python."""
    if found >= OLDEST:
        return CheckFinding("Python", OK, text)
    return CheckFinding("Python", FAIL, text, f"expected {'.'.join(map(str, OLDEST))} or later")


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def _parser() -> CheckFinding:
    """The one that reads repos. The speeds are those of `docs/formats.md`."""
    wheels = all(_there(name) for name in ("libipld", "orjson"))
    cost = f"repos are read at a {'fourteenth' if wheels else 'fortieth'} of the speed"
    found = c_part("parser of repos", "sanderling.formats._repo", cost)
    if found.ok:
        from sanderling.formats import _repo  # noqa: PLC0415 - it is there only if it was built

        return replace(found, found=f"C, SHA-256 by {_repo.IMPLEMENTATION}")
    return found if wheels else replace(found, advice=f"{found.advice}; or: pip install 'sanderling[repos]'")


def _scan() -> CheckFinding:
    """The one that cuts texts into words. `docs/events.md` has what it takes."""
    return c_part("scan of texts", "sanderling.events.analysis._scan", "the analysis of an item takes twice as long")


def c_part(what: str, module: str, cost: str) -> CheckFinding:
    """Whether a C module was built and is used; if not, why, what that costs, and how to get it."""
    if os.environ.get(PURE):
        return CheckFinding(what, WARN, f"switched off by {PURE}, Python instead: {cost}", f"unset {PURE}")
    try:
        import_module(module)
    except ModuleNotFoundError:
        return CheckFinding(what, WARN, f"not built, Python instead: {cost}", BUILD)
    except ImportError as error:
        return CheckFinding(what, WARN, f"cannot be loaded ({printable(str(error))}), Python instead: {cost}", BUILD)
    return CheckFinding(what, OK, "C")


def event_loop() -> CheckFinding:
    """What the commands run on."""
    try:
        return CheckFinding("event loop", OK, f"uvloop {version('uvloop')}")
    except PackageNotFoundError:
        return CheckFinding("event loop", FAIL, "no uvloop", "install the package again: pip install uvloop")


def machine(home: Path) -> Iterator[CheckFinding]:
    """The home, its disk, and what this process may have. Blocks, and takes as long as the disk does."""
    yield writable(home)
    nearest = _nearest(home)
    try:
        there = shutil.disk_usage(nearest)
    except OSError as error:
        yield CheckFinding("disk space", WARN, f"cannot be asked for: {error.strerror}")
    else:
        yield space(there.free, there.total)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield open_files(soft, hard, HttpRules().connections + OTHER_FILES)
    yield terminal(sys.stdout.encoding, os.environ)


def _nearest(folder: Path) -> Path:
    """The folder, or the first above it that is there."""
    whole = folder.absolute()
    return next((each for each in (whole, *whole.parents) if each.is_dir()), Path("/"))


def writable(home: Path) -> CheckFinding:
    """Whether the home can be written to: by writing, and not by asking."""
    shown, nearest = printable(str(home.absolute())), _nearest(home)
    if nearest != home.absolute():
        if home.exists():
            return CheckFinding("home", FAIL, f"{shown} is no folder", "choose another with --home")
        if os.access(nearest, os.W_OK | os.X_OK):
            return CheckFinding("home", OK, f"{shown} is not there yet, and can be made")
        return CheckFinding("home", FAIL, f"{shown} is not there", f"nothing can be made in {printable(str(nearest))}")
    probe = nearest / f".sanderling-doctor-{uuid4().hex}"
    try:
        handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, b"sanderling doctor\n")
            os.fsync(handle)
        finally:
            os.close(handle)
            probe.unlink()
        sync_folder(nearest)
    except OSError as error:
        advice = "let this user write there, free some space, or choose another with --home"
        return CheckFinding("home", FAIL, f"{shown} cannot be written to: {error.strerror}", advice)
    return CheckFinding("home", OK, f"{shown}; written, synced and deleted")


def space(free: int, total: int) -> CheckFinding:
    """How much room the disk has."""
    found = f"{size(free)} of {size(total)} free"
    if free >= LOW:
        return CheckFinding("disk space", OK, found)
    advice = f"free some, or choose another disk with --home; a segment of repos alone takes {size(2 * 2**30)}"
    return CheckFinding("disk space", FAIL if free < EMPTY else WARN, found, advice)


def open_files(soft: int, hard: int, needed: int) -> CheckFinding:
    """How many files and connections this process may have open; a limit below 0 is none."""
    found = "no limit" if soft < 0 else f"{soft:,} allowed, a large crawl needs {needed:,}"
    if soft < 0 or soft >= needed:
        return CheckFinding("file descriptors", OK, found)
    can = hard < 0 or hard >= needed
    raised = f"ulimit -n {max(4096, needed) if hard < 0 else min(hard, max(4096, needed))}"
    whose = "" if can else f", after an administrator has raised the hard limit of {hard:,}"
    return CheckFinding("file descriptors", WARN, found, f"{raised}{whose}")


def terminal(encoding: str | None, environment: os._Environ[str] | dict[str, str]) -> CheckFinding:
    """What can be drawn."""
    name, kind = (encoding or "none").lower(), environment.get("TERM", "")
    found = f"{name}, TERM={printable(kind)}" if kind else name
    if environment.get("NO_COLOR"):
        found += ", NO_COLOR"
    if name.startswith("utf"):
        return CheckFinding("terminal", OK, found)
    return CheckFinding("terminal", OK, f"{found}: plain lines, and ? for what is no ASCII; PYTHONUTF8=1 changes that")


async def clocks(clock: Clock) -> CheckFinding:
    """Whether our own clocks agree."""
    wall, now = clock.wall(), clock.now()
    await clock.sleep(LOOK)
    return steady(wall, clock.wall() - wall, clock.now() - now)


def steady(wall: float, passed: float, measured: float) -> CheckFinding:
    """What to say of a clock that says `wall`, and by which `passed` seconds passed while `measured` did."""
    if wall < EARLIEST:
        return CheckFinding("clock", FAIL, f"{wall:,.0f} s since 1970, which is long ago", "set it, by NTP if possible")
    drift = abs(passed - measured)
    if drift > MOST_DRIFT:
        advice = "something sets it while we look; times that are kept will be in disorder. Use one NTP service"
        return CheckFinding("clock", WARN, f"it jumped by {drift:.2f} s within {measured:.1f} s", advice)
    return CheckFinding("clock", OK, "steady")
