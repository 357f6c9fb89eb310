"""The numbers and bans of our style that a script can check, over everything under src/."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

Findings = Iterator[tuple[int, str]]
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """One file; `path` is relative to src/."""

    path: Path
    text: str
    nodes: tuple[ast.AST, ...]

    @classmethod
    def of(cls, path: str | Path, text: str) -> "Module":
        return cls(Path(path), text, tuple(ast.walk(ast.parse(text))))

    def functions(self) -> Iterator[AnyFunction]:
        return (node for node in self.nodes if isinstance(node, AnyFunction))

    def handlers(self) -> Iterator[ast.ExceptHandler]:
        return (node for node in self.nodes if isinstance(node, ast.ExceptHandler))

    def mentions(self) -> Iterator[tuple[int, str]]:
        """Give line and full dotted name of everything mentioned, whatever it was imported as."""
        known = origins(self.nodes)
        for node in self.nodes:
            if isinstance(node, ast.Name | ast.Attribute):
                first, _, rest = dotted(node).partition(".")
                full = known.get(first, first)
                yield node.lineno, f"{full}.{rest}" if rest else full


def origins(nodes: tuple[ast.AST, ...]) -> dict[str, str]:
    """Return what each imported name stands for."""
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return known


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a name or attribute; a call on the way is written `()`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
        case ast.Call(func=function):
            return f"{dotted(function)}()"
    return "?"


def long_file(module: Module) -> Findings:
    lines = len(module.text.splitlines())
    if lines > 400:
        yield 401, f"{lines} lines, at most 400"


def long_function(module: Module) -> Findings:
    for function in module.functions():
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > 60:
            yield function.lineno, f"{function.name} has {lines} lines, at most 60"


def deep_nesting(module: Module) -> Findings:
    for function in module.functions():
        line, depth = deepest(function, function.lineno, 0)
        if depth > 3:
            yield line, f"{function.name} nests {depth} deep, at most 3"


LEVELS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar)


def deepest(node: ast.AST, line: int, depth: int) -> tuple[int, int]:
    """Return line and depth of the deepest level under `node`; functions within it are counted by themselves."""
    found = (line, depth)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, AnyFunction | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(child, LEVELS) and not is_elif(node, child):
            below = deepest(child, child.lineno, depth + 1)
        else:
            below = deepest(child, line, depth)
        found = max(found, below, key=lambda level: level[1])
    return found


def is_elif(parent: ast.AST, child: ast.AST) -> bool:
    """Say whether `child` is the `elif` of `parent`: an `if` in its else, and not indented further."""
    return (
        isinstance(parent, ast.If)
        and isinstance(child, ast.If)
        and parent.orelse == [child]
        and child.col_offset == parent.col_offset
    )


def wide_constructor(module: Module) -> Findings:
    for function in module.functions():
        spec = function.args
        arguments = len(spec.posonlyargs) + len(spec.args) + len(spec.kwonlyargs) - 1
        if function.name == "__init__" and arguments > 6:
            yield function.lineno, f"a constructor with {arguments} arguments, at most 6"


BROAD = {"Exception", "BaseException"}


def swallowed_error(module: Module) -> Findings:
    for handler in module.handlers():
        if (handler.type is None or caught(handler.type) & BROAD) and not raises(handler):
            yield handler.lineno, "a broad except that does not raise"
    yield from suppressed(module, BROAD)


def swallowed_cancellation(module: Module) -> Findings:
    for handler in module.handlers():
        if "CancelledError" in caught(handler.type) and not raises(handler):
            yield handler.lineno, "a cancellation caught and not raised on"
    yield from suppressed(module, {"CancelledError"})


def suppressed(module: Module, errors: set[str]) -> Findings:
    for node in module.nodes:
        if not isinstance(node, ast.Call) or dotted(node.func).split(".")[-1] != "suppress":
            continue
        for error in sorted(errors & {name for argument in node.args for name in caught(argument)}):
            yield node.lineno, f"suppress({error})"


def caught(kind: ast.expr | None) -> set[str]:
    """Return the last names of the classes after `except`."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind] if kind else []
    return {dotted(each).split(".")[-1] for each in kinds}


def raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) for node in own_nodes(handler))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Give everything under `node` that runs with it, so not the bodies of functions defined there."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, AnyFunction | ast.Lambda):
            yield child
            yield from own_nodes(child)


CLOCKS = {
    *(f"time.{name}{unit}" for name in ("time", "monotonic", "perf_counter", "process_time") for unit in ("", "_ns")),
    *(f"time.{name}" for name in ("localtime", "gmtime", "ctime", "clock_gettime", "clock_gettime_ns")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
}


def clock_read(module: Module) -> Findings:
    if module.path.parts[:2] in {("sanderling", "clock.py"), ("sanderling", "testing")}:
        return
    for line, name in module.mentions():
        if name in CLOCKS or is_loop_time(name):
            yield line, f"{name} reads the clock; take a Clock, or the time as a number"


def is_loop_time(name: str) -> bool:
    """Say whether `name` is the time of an event loop: loop.time, self._loop.time, get_running_loop().time."""
    owner, _, last = name.rpartition(".")
    return last == "time" and owner.removesuffix("()").endswith("loop")


def gathered(module: Module) -> Findings:
    for line, name in module.mentions():
        if name == "asyncio.gather":
            yield line, "asyncio.gather; tasks belong to a TaskGroup"


NAMELESS = {"utils", "helpers", "common", "base", "manager"}


def nameless_file(module: Module) -> Findings:
    for part in module.path.with_suffix("").parts:
        if part.strip("_") in NAMELESS:
            yield 1, f"{part!r} says nothing; name it after what its contents share"


RULES: list[Callable[[Module], Findings]] = [
    long_file,
    long_function,
    deep_nesting,
    wide_constructor,
    swallowed_error,
    swallowed_cancellation,
    clock_read,
    gathered,
    nameless_file,
]


@pytest.fixture(scope="module")
def source() -> list[Module]:
    """All of src/, read once for all rules."""
    return [Module.of(path.relative_to(SOURCE), path.read_text()) for path in sorted(SOURCE.rglob("*.py"))]


@pytest.mark.parametrize("rule", RULES)
def test_the_source_keeps_the_rule(rule: Callable[[Module], Findings], source: list[Module]) -> None:
    assert source, f"nothing under {SOURCE}"

    found = [f"src/{module.path}:{line}: {problem}" for module in source for line, problem in rule(module)]

    assert not found, "\n" + "\n".join(found)


def swallowing(clause: str) -> str:
    return f"try:\n    work()\n{clause}\n    pass"


FOUR_DEEP = "def f():\n for a in b:\n  if a:\n   with a:\n    {}"
SEVEN = "a, b, c, *, d, e, f, g"

BAD = {
    long_file: ["\n" * 401],
    long_function: ["def f():\n" + " pass\n" * 60, "async def f():\n" + " pass\n" * 60],
    deep_nesting: [
        FOUR_DEEP.format("while a: pass"),
        FOUR_DEEP.format("try: pass\n    finally: pass"),
        FOUR_DEEP.format("if a:\n     pass\n    elif b:\n     pass"),
        "async def f():\n async for a in b:\n  if a: pass\n  else:\n   if b:\n    async with a: pass",
        "class C:\n def f(self):\n  if a:\n   if b:\n    if c:\n     if d: pass",
    ],
    wide_constructor: [f"class C:\n def __init__(self, {SEVEN}): pass"],
    swallowed_error: [
        swallowing("except:"),
        swallowing("except Exception:"),
        swallowing("except BaseException as error:"),
        swallowing("except (ValueError, Exception):"),
        swallowing("except* Exception:"),
        swallowing("except builtins.Exception:"),
        "try:\n    work()\nexcept Exception:\n    def later(): raise",
        "with contextlib.suppress(Exception): work()",
    ],
    swallowed_cancellation: [
        swallowing("except asyncio.CancelledError:"),
        swallowing("except CancelledError:"),
        swallowing("except (OSError, asyncio.CancelledError):"),
        "with suppress(asyncio.CancelledError): work()",
    ],
    clock_read: [
        "import time\ntime.time()",
        "import time as t\nt.monotonic_ns()",
        "from time import perf_counter\nstarted = perf_counter()",
        "from time import monotonic as now\nnow()",
        "import time\ndef f(clock=time.monotonic): pass",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.now(tz=UTC)",
        "from datetime import datetime\ndatetime.utcnow()",
        "from datetime import date\ndate.today()",
        "import datetime as dt\ndt.datetime.now()",
        "loop.time()",
        "self._loop.time()",
        "import asyncio\nasyncio.get_running_loop().time()",
    ],
    gathered: [
        "import asyncio\nasyncio.gather(a, b)",
        "from asyncio import gather\ngather(a, b)",
        "import asyncio as aio\naio.gather(a)",
    ],
}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in BAD.items() for text in texts])
def test_the_rule_turns_red(rule: Callable[[Module], Findings], text: str) -> None:
    found = list(rule(Module.of("sanderling/limit/gate.py", text)))

    assert len(found) == 1


@pytest.mark.parametrize(
    "path", ["sanderling/limit/utils.py", "sanderling/_helpers.py", "sanderling/common/ids.py", "sanderling/base.py"]
)
def test_a_nameless_file_turns_red(path: str) -> None:
    assert list(nameless_file(Module.of(path, "")))


def test_every_rule_has_a_case_that_turns_it_red() -> None:
    assert set(RULES) == {*BAD, nameless_file}


GOOD = {
    long_file: ["\n" * 400],
    long_function: ["def f():\n" + " pass\n" * 59],
    deep_nesting: [
        FOUR_DEEP.format("pass"),
        "def f():\n if a: pass\n elif b: pass\n elif c: pass\n elif d: pass\n elif e: pass",
        FOUR_DEEP.format("def g():\n     if a: pass"),
    ],
    wide_constructor: [
        "class C:\n def __init__(self, a, b, c, *, d, e, f): pass",
        f"class C:\n def admit(self, {SEVEN}): pass",
        "@dataclass\nclass C:\n a: int\n b: int\n c: int\n d: int\n e: int\n f: int\n g: int",
    ],
    swallowed_error: [
        "try:\n    work()\nexcept Exception:\n    undo()\n    raise",
        "try:\n    work()\nexcept Exception as error:\n    if bad: raise WorkError from error",
        swallowing("except (OSError, ValueError):"),
        "with suppress(KeyError): work()",
    ],
    swallowed_cancellation: ["try:\n    work()\nexcept asyncio.CancelledError:\n    undo()\n    raise"],
    clock_read: [
        "import time\ntime.sleep(1)",
        "clock.now()",
        "from datetime import datetime\ndatetime.fromtimestamp(now)",
        "reply.time",
        "race.time()",
    ],
    gathered: ["gather(a)", "hay.gather()", "import asyncio\nasyncio.TaskGroup()"],
}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in GOOD.items() for text in texts])
def test_the_rule_stays_green(rule: Callable[[Module], Findings], text: str) -> None:
    assert list(rule(Module.of("sanderling/limit/gate.py", text))) == []


@pytest.mark.parametrize("path", ["sanderling/clock.py", "sanderling/testing/clock.py"])
def test_the_clock_may_read_the_clock(path: str) -> None:
    assert list(clock_read(Module.of(path, "import time\ntime.monotonic()"))) == []
