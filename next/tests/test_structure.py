"""How the code is built: floors, one clock, no private parts of other packages, unique names, no swallowed errors."""

import ast
import importlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

import sanderling

PACKAGE = Path(sanderling.__file__).parent
# Imports only go down, and units of one floor do not import each other. On floor 0 they may, in the order given.
FLOORS = (
    "clock outcome ids files redact forms options systems".split(),
    "limit stores formats observe serving readers".split(),
    "fetch extract".split(),
    "engine records".split(),
    "crawl sequence repos polling events".split(),
    "web".split(),
    "cli".split(),
    "jobs testing __init__ __main__".split(),
)
FLOOR = {unit: number for number, units in enumerate(FLOORS) for unit in units}
# What their documentation names. Anything else of another package may change without notice.
DOCUMENTED = frozenset(
    "pyarrow.parquet redis.asyncio redis.backoff redis.exceptions redis.retry "
    "ada_url aio_pika aio_pika.exceptions aiohttp aiohttp.abc aiohttp.resolver aiohttp.web aiormq.exceptions"
    " alembic alembic.config asyncpg asyncpg.exceptions backports backports.zstd brotli cbrrr clickhouse_connect"
    " clickhouse_connect.driver.exceptions compression.zstd fastwarc.warc html_to_markdown jmespath"
    " jmespath.exceptions jmespath.parser libipld lxml msgspec msgspec.json msgspec.msgpack msgspec.structs"
    " msgspec.toml obstore obstore.exceptions obstore.store playwright.async_api prometheus_client"
    " prometheus_client.core publicsuffixlist pyarrow resiliparse resiliparse.extract.html2text resiliparse.parse"
    " resiliparse.parse.encoding resiliparse.parse.html resiliparse.parse.lang rich rich.console rich.live"
    " rich.table rich.text scrapy selectolax.lexbor sqlalchemy sqlalchemy.exc sqlalchemy.ext.asyncio structlog"
    " structlog.stdlib trafilatura uvloop yarl".split()
)
# Documented in spite of their names.
PUBLIC = frozenset({"os._exit", "sys._current_frames", "_replace", "_asdict", "_value_"})
TIME = frozenset({"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today"})
Function = ast.FunctionDef | ast.AsyncFunctionDef
BROAD = frozenset({"Exception", "BaseException"})


@cache
def sources() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def unit_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each module that is imported, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import hides where it leads"
            assert node.module is not None
            yield node.lineno, node.module
            if node.module == "sanderling":
                yield from ((node.lineno, f"sanderling.{alias.name}") for alias in node.names)


def mentions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported that is mentioned, whatever it is called here."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in known:
                yield node.lineno, ".".join(filter(None, (known[first], rest)))


def test_imports_only_go_down() -> None:
    wrong = []
    for path, tree in sources().items():
        unit = unit_of(path)
        assert unit in FLOOR, f"{unit} has no floor"
        for line, name in imports(tree):
            other = name.split(".")[1] if name.startswith("sanderling.") else ""
            if other not in FLOOR or other == unit:
                continue
            lower = FLOOR[other] < FLOOR[unit]
            same = FLOOR[other] == FLOOR[unit] == 0 and FLOORS[0].index(other) < FLOORS[0].index(unit)
            if not (lower or same or (unit, other) == ("__main__", "cli")):
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")

    assert not wrong


def test_only_the_clock_reads_the_time() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for path, tree in sources().items()
        if path.name != "clock.py"
        for line, name in mentions(tree)
        if (name.split(".")[0] == "time" and name.count(".") == 1) or name in TIME
    ]

    assert not wrong


def test_no_error_is_swallowed() -> None:
    """ruff finds `except Exception: pass`; this finds its other spellings."""
    wrong = []
    for path, tree in sources().items():
        for node in ast.walk(tree):
            place = f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
                wrong += [place for argument in node.args if ast.unparse(argument) in BROAD]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("gather", "add_done_callback")):
                wrong.append(f"{place} tasks belong to a TaskGroup")
            elif isinstance(node, ast.ExceptHandler) and (node.type is None or ast.unparse(node.type) in BROAD):
                kept = any(isinstance(each, ast.Raise) for each in ast.walk(node))
                used = node.name and any(isinstance(e, ast.Name) and e.id == node.name for e in ast.walk(node))
                said = "traceback.format_exc" in ast.unparse(node)
                if not (kept or used or said):
                    wrong.append(place)

    assert not wrong


def test_public_class_names_are_unique() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(PACKAGE)))

    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_only_documented_modules_of_other_packages_are_imported() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for path, tree in sources().items()
        for line, name in imports(tree)
        if (name.split(".")[0] not in sys.stdlib_module_names | {"sanderling"} and name not in DOCUMENTED)
        or any(part.startswith("_") and not part.startswith("__") for part in name.split("."))
    ]

    assert not wrong


def test_private_names_are_ours() -> None:
    """`_name` is used only where a class or module of ours defines it."""
    ours: set[str] = set()
    for tree in sources().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                ours.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                ours.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                ours.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                ours.add(node.value)  # __slots__
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {ast.unparse(node)}"
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and ast.unparse(node) not in PUBLIC
        and node.attr not in PUBLIC
        and (node.attr not in ours or ast.unparse(node.value) in sys.stdlib_module_names)
    ]

    assert not wrong


def our_modules() -> list[str]:
    paths = [path.relative_to(PACKAGE.parent).with_suffix("") for path in sources()]
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    return [
        name
        for name in names
        if not name.endswith("__main__") and name != "sanderling.limit.scrapy" and ".migrations." not in name
    ]


@pytest.mark.parametrize("name", our_modules())
def test_no_class_leans_on_private_parts_that_it_inherits(name: str) -> None:
    """A class that extends one of another package neither reads nor replaces what that keeps to itself."""
    module = importlib.import_module(name)
    wrong = []
    for kind in vars(module).values():
        if not (inspect.isclass(kind) and kind.__module__ == name):
            continue
        foreign = [base for base in kind.__mro__ if base.__module__.split(".")[0] not in ("sanderling", "builtins")]
        theirs = {attribute for base in foreign for attribute in private_parts(base)}
        used = {
            node.attr if isinstance(node, ast.Attribute) else node.name if isinstance(node, Function) else node.id
            for node in ast.walk(ast.parse(dedent(inspect.getsource(kind))))
            if isinstance(node, Function)
            or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
            or (isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls"))
        }
        wrong += [f"{kind.__name__}.{attribute}" for attribute in theirs & used]

    assert not wrong


@cache
def private_parts(kind: type) -> frozenset[str]:
    """The private attributes of a class: those it has, and those its methods set."""
    names = set(vars(kind))
    try:
        tree = ast.parse(dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # written in C
        pass
    else:
        names |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        }
    # `_name_` is how an enum documents its own.
    return frozenset(name for name in names if name.startswith("_") and not name.endswith("_"))


def test_the_search_for_private_parts_finds_them() -> None:
    import asyncio

    assert "_scheduled" in private_parts(asyncio.BaseEventLoop)
