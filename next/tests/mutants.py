"""Do the tests notice faults? Draws faults from a folder's code, and runs that folder's tests on a copy with each.

    make mutants FOLDER=limit            20 faults, drawn anew each time; the seed is printed
    make mutants FOLDER=limit,stores SEED=7 COUNT=40

A fault that no test noticed is printed with its line. Some change nothing that could be noticed: judge them by hand.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parent.parent
COPIED = "src tests simulators examples bench docs pyproject.toml README.md CONTRIBUTING.md".split()
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Mod: "*", ast.FloorDiv: "/", ast.BitOr: "&",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Fault:
    """What stands at bytes `start` to `end` of a file is replaced."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def faults_of(path: Path) -> Iterator[Fault]:
    """All faults that could be put into a file."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def fault(node: ast.AST, text: str) -> Fault:
        return Fault(path, node.lineno, *span(node), text)  # type: ignore[attr-defined]

    def between(left: ast.expr, right: ast.expr, sign: str) -> Iterator[Fault]:
        """Replace the operator between two expressions; not where brackets or comments stand beside it."""
        start, end = span(left)[1], span(right)[0]
        if source[start:end].strip(b" \n").replace(b"not in", b"in").replace(b"is not", b"is").isalpha() or (
            len(source[start:end].split()) == 1 and not set(source[start:end]) & set(b"()#")
        ):
            yield Fault(path, left.lineno, start, end, f" {sign} ")

    def visit(node: ast.AST) -> Iterator[Fault]:
        match node:
            case ast.Compare(left, [sign], [right]) if type(sign) in COMPARISONS:
                yield from between(left, right, COMPARISONS[type(sign)])
            case ast.BinOp(left, sign, right) if type(sign) in OPERATORS:
                yield from between(left, right, OPERATORS[type(sign)])
            case ast.BoolOp(sign, values):
                for left, right in pairwise(values):
                    yield from between(left, right, "or" if isinstance(sign, ast.And) else "and")
            case ast.UnaryOp(ast.Not(), operand):
                yield fault(node, source[slice(*span(operand))].decode())
            case ast.If(test) | ast.IfExp(test):
                yield fault(test, "True")
                yield fault(test, "False")
            case ast.Constant(bool(value)):
                yield fault(node, str(not value))
            case ast.Constant(int() | float() as value):
                yield fault(node, repr(value + 1))
            case ast.Name(name, ast.Load()) if name in NAMES:
                yield fault(node, NAMES[name])
            case ast.AugAssign(target, sign, value) if type(sign) in OPERATORS:
                start, end = span(target)[1], span(value)[0]
                yield Fault(path, node.lineno, start, end, f" {OPERATORS[type(sign)]}= ")
                yield fault(node, "pass")
            case ast.Expr(ast.Call() | ast.Await()) | ast.Break() | ast.Continue():
                yield fault(node, "pass")
            case ast.Assign(targets) if not any(isinstance(each, ast.Name) for each in targets):
                yield fault(node, "pass")  # of a name it would be an error at once, which any test notices
            case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
                yield fault(value, "None")
            case _:
                pass
        for child in inside(node):
            yield from visit(child)

    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from visit(node)


def inside(node: ast.AST) -> list[ast.AST]:
    """What of a node may be wrong: no type, no documentation, no text for people."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            defaults = [each for each in (*node.args.defaults, *node.args.kw_defaults) if each is not None]
            return [] if node.name == "__repr__" else [*defaults, *node.body]
        case ast.AnnAssign(value=value):
            return [] if value is None else [value]
        case ast.Raise() | ast.Assert() | ast.JoinedStr():
            return []
        case ast.Subscript(value=value, ctx=ast.Load()) if isinstance(value, ast.Name) and value.id[0].isupper():
            return []  # a type
    return list(ast.iter_child_nodes(node))


def run(copy: Path, tests: list[str], limit: float) -> bool:
    """Whether the tests pass, and in time."""
    paths = os.pathsep.join(str(copy / each) for each in ("src", "tests", "simulators"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    with subprocess.Popen(
        command,
        cwd=copy,
        env=os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=(copy / "log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", help="folders or modules below src/sanderling, with commas between")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=20)
    arguments = parser.parse_args()
    files: list[Path] = []
    tests: list[str] = []
    for name in arguments.folders.split(","):
        code, test = Path("src/sanderling") / name, Path("tests") / name
        found = [code.with_suffix(".py")] if not (ROOT / code).is_dir() else sorted((ROOT / code).rglob("*.py"))
        if not (ROOT / found[0]).exists():
            parser.error(f"{code} does not exist; expected a folder or a module below src/sanderling")
        files += [ROOT / path for path in found]
        tests.append(str(test if (ROOT / test).is_dir() else f"tests/test_{name}.py"))
    faults = [fault for path in files for fault in faults_of(path)]
    drawn = random.Random(arguments.seed).sample(faults, min(arguments.count, len(faults)))
    print(
        f"{len(faults)} faults are possible in {arguments.folders}; {len(drawn)} are drawn by --seed {arguments.seed}"
    )
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        for each in COPIED:
            if (ROOT / each).is_dir():
                shutil.copytree(ROOT / each, copy / each, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            elif (ROOT / each).exists():
                shutil.copy(ROOT / each, copy / each)
        began = monotonic()
        if not run(copy, tests, 900):
            print((copy / "log").read_text()[-3000:], f"{' '.join(tests)} must pass before there are faults", sep="\n")
            return 1
        limit = 20 + 3 * (monotonic() - began)
        survivors = 0
        for number, fault in enumerate(drawn, 1):
            target, source = copy / fault.path.relative_to(ROOT), fault.path.read_bytes()
            was = source[fault.start : fault.end].decode().strip()
            target.write_bytes(fault.apply(source))
            lives = run(copy, tests, limit)
            target.write_bytes(source)
            survivors += lives
            place = f"{fault.path.relative_to(ROOT)}:{fault.line}"
            shown = " ".join(was.split())[:60]
            print(
                f"{number:3} {'NOT NOTICED' if lives else 'noticed'}  {place}  {shown}  ->  {fault.text.strip()}",
                flush=True,
            )
    print(f"{len(drawn) - survivors} of {len(drawn)} were noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
