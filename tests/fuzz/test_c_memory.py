"""Every function of the C, called 100,000 times with what it takes and with what it refuses, leaves nothing behind."""

import gc
import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import corpus
import pytest
import sanitized

from sanderling.formats import parsed
from sanderling.formats.parsed import Limits, RepoError

_repo = pytest.importorskip("sanderling.formats._repo", reason="the C part was not built")
_reader = pytest.importorskip("sanderling.pages._reader", reason="the C part was not built")
_complexity = pytest.importorskip("sanderling.pages._complexity", reason="the C part was not built")
_scan = pytest.importorskip("sanderling.events.analysis._scan", reason="the C part was not built")

CALLS = 100_000
LEAST = 500  # of blocks or references: a hundredth of what one of them for every other call would be
LEAST_BYTES = 5_000_000  # of the process: fifty for every call
STATM = Path("/proc/self/statm")

REPOS = sorted(corpus.cars(), key=len)
SOUND = corpus.repo_of(b"\xa1\x63cid\x61b", b"\xa1\x61a\xfb?\xb9\x99\x99\x99\x99\x99\x9a")
SAID = (0, 1.5, 0.5)
NEGATION = (2, 0.0, 0.0)
TREE: dict[str, Any] = {
    "a": (None, {"b": (SAID, {}), "c": (SAID, {"d": (SAID, {})})}),
    "no": (NEGATION, {}),
    "!": (SAID, {}),
}
BROKEN = {"a": (SAID, {"b": None}), "b": ((0, "1", 0.0), {}), "c": ((), {}), "d": ((None, 0.0, 0.0), {})}
WORDS = ["a", "b", "x", "a", "c", "d", "no", "a", "!", "no"]
ASKING = frozenset("a")
TEXT = "Không tốt, a b 'c' 日 😍😍😍 www.a.b"
PAGE = "<title>t</title><p><a href=x class='&notit;'>A &copy link</a><pre>code</pre><table><tr><td>1</table>é, 日"
PLACES = [(3, 5), (10, 12)]


class Key:
    """A key that cannot be compared."""

    def __hash__(self) -> int:
        return hash("a")

    def __eq__(self, other: object) -> bool:
        raise TypeError("not to be compared")


# Function, arguments, and which error is to come.
Case = tuple[Callable[..., object], tuple[object, ...], type[Exception] | None]
CASES: list[Case] = [
    (_repo.parse_repo, (SOUND,), None),
    (_repo.parse_repo, (b"",), RepoError),
    (_repo.parse_repo, ("text",), TypeError),
    (partial(_repo.parse_repo, cids="drop"), (SOUND,), ValueError),
    (partial(_repo.parse_repo, limits=100), (SOUND,), TypeError),
    (partial(_repo.parse_repo, limits=Limits(blocks=1)), (SOUND,), RepoError),
    (_repo.sha256, (b"abc", "portable"), None),
    (_repo.sha256, (b"abc", "md5"), ValueError),
    (_repo.sha256, (b"abc", 1), TypeError),
    (_repo.float_text, (0.1,), None),
    (_repo.float_text, (float("inf"),), ValueError),
    (_repo.float_text, ("a",), TypeError),
    (_reader.read, (PAGE, lambda _: str.upper), None),
    (_reader.read, (PAGE, lambda _: len), None),
    (_reader.read, (PAGE, lambda _: int), ValueError),
    (_reader.read, (PAGE, len), TypeError),
    (_reader.read, (b"", len), TypeError),
    (_reader.read, ("\ud800", len), UnicodeEncodeError),
    (_scan.words_of, (TEXT,), None),
    (_scan.words_of, (b"a",), TypeError),
    (_scan.plain_words, ("Đẹp, a b.",), None),
    (_scan.plain_words, (TEXT,), None),
    (_scan.plain_words, (None,), TypeError),
    (_scan.has_triple, (TEXT,), None),
    (_scan.has_triple, (1,), TypeError),
    (_scan.longest, (TREE, WORDS), None),
    (_scan.longest, (TREE, (*WORDS, 1)), TypeError),
    (_scan.longest, (BROKEN, WORDS), TypeError),
    (_scan.longest, ({Key(): SAID}, WORDS), TypeError),
    (_scan.every, (TREE, tuple(WORDS)), None),
    (_scan.every, (BROKEN, WORDS), TypeError),
    (_scan.every, (TREE, None), TypeError),
    (_scan.weigh, (TREE, ASKING, WORDS), None),
    *((_scan.weigh, (BROKEN, ASKING, [word]), TypeError) for word in "bcd"),
    (_scan.weigh, (TREE, frozenset((Key(),)), WORDS), TypeError),
    (_scan.weigh, (TREE, {"a"}, WORDS), TypeError),
    (_scan.windows, (TEXT, [(7, 8)], PLACES), None),
    (_scan.windows, (TEXT, PLACES, [(0, 1), (0, 99)]), ValueError),
    (_scan.windows, (TEXT, PLACES, [(0, 2**70)]), OverflowError),
    (_scan.windows, (TEXT, [(0, "b")], PLACES), TypeError),
    (_complexity.weigh, (PAGE,), None),
    (_complexity.weigh, (f"\ud800{PAGE}",), None),
    (_complexity.weigh, (b"",), TypeError),
    (_scan.locate, (TEXT, "a", 0), None),
    (_scan.locate, (TEXT, "nowhere", 0), None),
    (_scan.locate, (TEXT, "", 0), ValueError),
    (_scan.locate, (TEXT, "a", 2**70), OverflowError),
    (_scan.locate, (TEXT, None, 0), TypeError),
]


def call(
    function: Callable[..., object], arguments: tuple[object, ...], error: type[Exception] | None, times: int
) -> None:
    raised = 0
    for _ in range(times):
        try:
            function(*arguments)
        except (TypeError, ValueError, OverflowError) as caught:
            raised += type(caught) is error
    assert raised == (times if error else 0)


def resident() -> int:
    return int(STATM.read_text().split()[1]) * mmap.PAGESIZE if STATM.exists() else 0


def held(*things: object) -> list[object]:
    """These, what they are made of, and what results are made of: a reference too many to them takes no memory."""
    found: list[object] = [None, True, parsed.Repo, parsed.Stats, parsed.Collection, RepoError, Limits, *parsed.Kind]
    found += [*astuple(Limits()), *things]
    for thing in things:
        if isinstance(thing, dict):
            found += held(*thing.keys(), *thing.values())
        elif isinstance(thing, list | tuple | frozenset):
            found += held(*thing)
    return found


def sizes(things: list[object]) -> tuple[int, int, list[int]]:
    gc.collect()
    return resident(), sys.getallocatedblocks(), [sys.getrefcount(thing) for thing in things]


def check_flat(before: tuple[int, int, list[int]], after: tuple[int, int, list[int]]) -> None:
    assert after[0] - before[0] < LEAST_BYTES
    assert after[1] - before[1] < LEAST
    assert max(late - early for early, late in zip(before[2], after[2], strict=True)) < LEAST


def whole(function: Any) -> Any:  # noqa: ANN401 - a function, or one with some options
    return function.func if isinstance(function, partial) else function


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{whole(each).__name__}-{error and error.__name__}" for each, _, error in CASES]
)
def test_nothing_is_left_behind(case: Case) -> None:
    function, arguments, error = case
    things = held(*arguments)
    call(function, arguments, error, CALLS // 100)
    before = sizes(things)

    call(function, arguments, error, CALLS)

    check_flat(before, sizes(things))


def test_nothing_is_left_behind_by_any_broken_repo() -> None:
    small = [car for car in REPOS if len(car) < 4_000]
    things = held(*small)

    def parse(times: int) -> None:
        for number, car in enumerate(islice(cycle(small), times)):
            with suppress(RepoError):
                _repo.parse_repo(car, verify=number % 2 == 0, cids="keep" if number % 3 else "strip")

    parse(CALLS // 20)
    before = sizes(things)

    parse(CALLS)

    check_flat(before, sizes(things))


def test_every_function_is_called_here() -> None:
    modules = [vars(sys.modules[each.name]) for each in sanitized.extensions()]

    functions = {value for names in modules for value in names.values() if isinstance(value, BuiltinFunctionType)}

    assert {whole(function) for function, _, _ in CASES} == functions
