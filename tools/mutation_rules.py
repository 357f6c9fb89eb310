"""Small faults, made by rule: each gives a place in a source file and the text that would stand there instead.

One table, `RULES`, has them all. To add a rule, write a function that gives the changes of one node, and put it there.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

# Calls that make data durable, tell others that it is, or take it back.
DURABLE = frozenset(
    {
        *("acknowledge", "append", "bury", "commit", "cut", "delete", "done", "execute"),
        *("execute_many", "executemany", "fsync", "ftruncate", "flush", "hand", "insert", "keep"),
        *("later", "move_to", "note_hosts", "pop", "publish", "put", "pwrite", "record"),
        *("release", "rename", "replace", "rollback", "save", "settle", "sync_data", "sync_folder"),
        *("truncate", "unlink", "update", "write", "write_meta", "write_new", "write_pieces"),
    }
)
# What is said about data is no data.
TALK = frozenset({"debug", "info", "warning", "error", "exception", "log"})

COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
Change = tuple[ast.AST, ast.AST, str]  # the first and the last node to be replaced, and by what


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One fault in one file: the bytes from `start` to `end` become `text`."""

    file: str
    line: int
    rule: str
    start: int
    end: int
    text: str
    number: int = 0  # of those of one rule in one line

    @property
    def name(self) -> str:
        """How a person asks for it."""
        return f"{self.file}:{self.line}:{self.rule}" + (f":{self.number}" if self.number else "")

    def applied(self, source: bytes) -> bytes:
        """The source with the fault in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def swap_comparison(node: ast.AST) -> Iterator[Change]:
    """`<` becomes `<=`, `==` becomes `!=`, and so on."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield node, node, f"({left} {COMPARED[type(node.ops[0])]} {right})"


def negate_condition(node: ast.AST) -> Iterator[Change]:
    """What was done if a condition held is done if it does not."""
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Constant):
        yield node.test, node.test, f"(not ({ast.unparse(node.test)}))"


def swap_and_or(node: ast.AST) -> Iterator[Change]:
    """`and` becomes `or`, and the other way round."""
    if isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield node, node, "(" + word.join(f"({ast.unparse(value)})" for value in node.values) + ")"


def drop_write(node: ast.AST) -> Iterator[Change]:
    """A call that makes data durable, or says that it is, is left out."""
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Await) and _is_durable(node):
        yield node, node, "pass"


def drop_await(node: ast.AST) -> Iterator[Change]:
    """A call that is awaited for its effect is left out."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Await):
        yield node, node, "pass"


def drop_raise(node: ast.AST) -> Iterator[Change]:
    """A refusal is left out, and what follows is done."""
    if isinstance(node, ast.Raise):
        yield node, node, "pass"


def swap_writes(node: ast.AST) -> Iterator[Change]:
    """Two durable writes that follow each other change places."""
    for block in blocks_of(node):
        for first, second in pairwise(block):
            if not (_is_durable(first) and _is_durable(second)):
                continue
            both = (ast.unparse(first), ast.unparse(second))
            settings = all("PRAGMA" in each for each in both)  # of a connection: in whatever order
            if both[0] != both[1] and not settings:
                yield first, second, f"{both[1]}; {both[0]}"


def return_early(node: ast.AST) -> Iterator[Change]:
    """A function ends before it has done all it should."""
    if isinstance(node, AnyFunction) and not any(
        isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node)
    ):
        for statement in without_docstring(node.body)[1:]:
            if not isinstance(statement, ast.Return | AnyFunction | ast.Raise):
                yield statement, statement, "return"


def shift_by_one(node: ast.AST) -> Iterator[Change]:
    """A number that is added, compared with or cut at is one more."""
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            near = [node.left, node.right]
        case ast.Compare():
            near = [node.left, *node.comparators]
        case ast.Slice():
            near = [each for each in (node.lower, node.upper) if each is not None]
        case _:
            near = []
    for each in near:
        if isinstance(each, ast.Constant) and type(each.value) is int:
            yield each, each, str(each.value + 1)


def change_constant(node: ast.AST) -> Iterator[Change]:
    """A flag is the other one; a number that is assigned or passed is twice as large."""
    match node:
        case ast.Assign() | ast.AnnAssign() | ast.keyword() | ast.Return():
            near = [node.value]
        case ast.Call():
            near = list(node.args)
        case _:
            near = []
    for each in near:
        if isinstance(each, ast.Constant) and isinstance(each.value, bool | int | float):
            changed = (not each.value) if isinstance(each.value, bool) else (each.value * 2 or 1)
            yield each, each, repr(changed)


RULES: dict[str, Callable[[ast.AST], Iterator[Change]]] = {
    rule.__name__: rule
    for rule in (
        swap_comparison,
        negate_condition,
        swap_and_or,
        drop_write,
        drop_await,
        drop_raise,
        swap_writes,
        return_early,
        shift_by_one,
        change_constant,
    )
}


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """Every fault that the rules make in a file, in the order of its lines."""
    starts = _line_starts(source)
    made: list[Mutant] = []
    for node in _nodes(ast.parse(source)):
        for rule, changes in RULES.items():
            for first, last, text in changes(node):
                start = starts[first.lineno - 1] + first.col_offset  # type: ignore[attr-defined]  # only those with a place
                end = starts[last.end_lineno - 1] + last.end_col_offset  # type: ignore[attr-defined]  # the same
                made.append(Mutant(file, first.lineno, rule, start, end, text))  # type: ignore[attr-defined]  # the same
    return list(_numbered(sorted(set(made))))


def _numbered(made: list[Mutant]) -> Iterator[Mutant]:
    before: dict[str, int] = {}
    for each in made:
        number = before[each.name] = before.get(each.name, -1) + 1
        yield Mutant(each.file, each.line, each.rule, each.start, each.end, each.text, number)


def blocks_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements that a node has."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """What a body does."""
    first = body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if documented else body


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All that runs: no annotations, no decorators, no messages of errors and logs, nothing within an f-string."""
    yield node
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "exc"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr) and not _is_talk(child):
                yield from _nodes(child)


def _yields(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))


def _is_talk(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and _called(node) in TALK


def _is_durable(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and _called(node) in DURABLE


def _called(node: ast.Expr) -> str:
    """The last name of what a statement calls, awaited or not; empty if it calls nothing."""
    call = node.value.value if isinstance(node.value, ast.Await) else node.value
    match call:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name.lstrip("_")
    return ""


def _line_starts(source: bytes) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts
