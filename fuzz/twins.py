"""The C modules against their Python twins, on input drawn at random, always the same from one seed.

    python fuzz/sanitized.py build/fuzz fuzz/twins.py {complexity,reader,repo,scan} [--seconds 60] [--seed 1] [--runs N]

They must say the same. With hostile objects, or when there is no memory, the C may only refuse. Before each run its
number is written to `crash-` and the target in the current folder, which is deleted if nothing broke.
"""

import argparse
import contextlib
import hashlib
import math
import mmap
import re
import struct
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from sanderling.events.analysis import _scan, scan_python
from sanderling.formats import _repo, repo_python
from sanderling.formats.parsed import Limits, RepoError
from sanderling.pages import _complexity, _reader, complexity_python, reader_python

testcapi: Any
try:  # of CPython's own tests; not every installation has them
    testcapi = import_module("_testcapi")
except ImportError:
    testcapi = None

Tree = dict[Any, tuple[Any, Any]]
Span = tuple[int, int]


def expect(what: str, found: object, expected: object) -> None:
    """Raise if the C says another thing than its twin. Floats are compared to the last bit, and types too."""
    if type(found) is not type(expected) or repr(found) != repr(expected):
        raise AssertionError(f"{what}: C {found!r}, Python {expected!r}"[:4000])


def said(function: Callable[..., object], *arguments: object, **options: object) -> object:
    """What comes back, or which error."""
    try:
        return function(*arguments, **options)
    except RepoError as error:
        return error.kind, error.offset


def refused(function: Callable[..., object], *arguments: object) -> object:
    """What comes back, if anything does: the C is given what it is not made for, and may refuse it in these words."""
    try:
        return function(*arguments)
    except (TypeError, ValueError, OverflowError, BufferError) as error:
        return type(error)


def starved(rng: Random, function: Callable[..., object], *arguments: object) -> None:
    """One request for memory fails, which is another one each time."""
    if testcapi is None:
        return
    at = rng.randrange(12 if rng.randrange(2) else 60)
    testcapi.set_nomemory(at, at + 1 if rng.randrange(2) else 0)  # that one, or all from there on
    try:
        function(*arguments)
    except (MemoryError, RepoError):
        pass
    finally:
        testcapi.remove_mem_hooks()


# --- The parser of repos --------------------------------------------------------------------------------------------

TELLING = bytes.fromhex(
    "0001171819 1a1b1f203b 4057585b60 63787b7f80 81989b9fa0 a1a2a4bbc2 d82ae0edf0 f4f5f6f7f9 fbff225c2f"
)


ENDS = (0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, math.inf, -math.inf, math.nan)


def changed(rng: Random, car: bytes) -> bytes:
    """A CAR with some bytes changed, moved, repeated or gone."""
    data = bytearray(car)
    for _ in range(rng.randrange(5)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.randrange(40))
        match rng.randrange(5):
            case 0:
                data[at:end] = rng.randbytes(rng.randrange(4))
            case 1:
                data[at : at + 1] = rng.choice(TELLING).to_bytes(1)
            case 2:
                data[at:at] = data[at:end]
            case 3:
                del data[at:end]
            case _:
                data[at : at + 8] = b"\xff" * rng.randrange(9)
    return bytes(data)


def draw_limits(rng: Random) -> Limits:
    """Usual ones, or some that are reached."""
    if rng.randrange(3):
        return Limits()
    return Limits(
        car=rng.randrange(500, 40_000),
        block=rng.randrange(50, 2000),
        blocks=rng.randrange(1, 60),
        depth=rng.randrange(1, 5),
        nesting=rng.randrange(1, 8),
        output=rng.randrange(1, 9000),
    )


def repo_run(rng: Random, cars: Sequence[bytes]) -> None:
    """A repo that is broken in some way, and the two functions that are there for tests."""
    car = changed(rng, rng.choice(cars))
    options = {"verify": not rng.randrange(4), "cids": rng.choice(("strip", "keep")), "limits": draw_limits(rng)}
    given = rng.choice((bytes, bytearray, memoryview))(car)
    expect("parse_repo", said(_repo.parse_repo, given, **options), said(repo_python.parse_repo, car, **options))
    size = rng.randrange(len(car) + 1)
    expected = hashlib.sha256(car[:size]).digest()
    expect("sha256", _repo.sha256(car[:size], rng.choice(_repo.IMPLEMENTATIONS)), expected)
    (number,) = struct.unpack("d", rng.randbytes(8)) if rng.randrange(8) else [rng.choice(ENDS)]
    expect("float_text", refused(_repo.float_text, number), repr(number) if math.isfinite(number) else ValueError)
    if not rng.randrange(8):
        wrong = rng.choice((None, "", 7, [car], memoryview(car)[::2], object(), Limits(), {}))
        for arguments in ([wrong], [car, wrong], [wrong, "portable"]):
            refused(rng.choice((_repo.parse_repo, _repo.sha256, _repo.float_text)), *arguments)
        starved(rng, _repo.parse_repo, car)


# --- The scan of texts ----------------------------------------------------------------------------------------------

SPACES = "' ''  \t\n\r\x0b\x1c\x85\xa0\u2003\u3000\u2028"
ODD = f"{scan_python.BREAKS}{scan_python.OTHER}{SPACES}\0aAwWzZ09éÉđĐơƯạỹỸß\u0130\u0301"
LETTERS = (ODD, "ab .", "  .,;:!?abwWwWđĐẠỹ09Ươ\u00d7'x", f"{ODD}\u200b\ufeff😍👍🏽日\ud83d\udc4d", "www. '..")
KNOWN = ("a", "b", "c", "!", ".", ",", "không", "😍")


def draw_text(rng: Random) -> str:
    """Of one to four bytes a character, short or long."""
    letters = rng.choice(LETTERS)
    if not rng.randrange(6):
        letters = "".join(chr(rng.randrange(0x110000)) for _ in range(8)) + " "
    return "".join(rng.choices(letters, k=rng.randrange(300 if not rng.randrange(9) else 40)))


def draw_tree(rng: Random, words: Sequence[str]) -> Tree:
    """Phrases of some words; a value is what `weigh` reads."""
    first: Tree = {}
    for _ in range(rng.randrange(12)):
        following = first
        for word in rng.choices(words, k=rng.randrange(1, 5)):
            value, behind = following.get(word, (None, {}))
            if not rng.randrange(2):
                value = rng.randrange(-2, 8), rng.uniform(-3, 3), rng.choice((0.0, rng.uniform(-3, 3)))
            following[word] = value, behind
            following = behind
    return first


class Spoiler:
    """A key or number that empties what is looked at while it is compared or read."""

    def __init__(self, like: str) -> None:
        self._like = like
        self.spoiled: Sequence[Any] = ()

    def _spoil(self) -> None:
        for each in self.spoiled:
            each.clear()

    def __hash__(self) -> int:
        return hash(self._like)

    def __eq__(self, other: object) -> bool:
        self._spoil()
        return False

    def __index__(self) -> int:
        self._spoil()
        return 0

    def __float__(self) -> float:
        self._spoil()
        return 1.0


def spoil(rng: Random, words: list[str], tree: Tree) -> None:
    """Each function that takes a tree gets one that changes while it is read."""
    word, behind = rng.choice(KNOWN), rng.choice(KNOWN)
    spoiler: Any = Spoiler(rng.choice((word, behind)))
    said = (spoiler, spoiler, spoiler)
    inner: Tree = {spoiler: (said, {})} if rng.randrange(2) else {}
    inner[behind] = (said, {})
    tree |= {spoiler: (said, inner)} if rng.randrange(2) else {}
    tree[word] = (said, inner)
    words[:0] = [word, behind]
    asking = frozenset((spoiler, word) if rng.randrange(2) else (behind,))
    spoiler.spoiled = rng.sample((words, tree, inner), rng.randrange(1, 4))
    match rng.randrange(3):
        case 0:
            refused(_scan.longest, tree, words)
        case 1:
            refused(_scan.every, tree, words)
        case _:
            refused(_scan.weigh, tree, asking, words)


def draw_span(rng: Random, text: str) -> Span:
    """A start and an end in a text."""
    one, other = rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)
    return min(one, other), max(one, other)


def scan_run(rng: Random, _: Sequence[bytes]) -> None:
    """A text, its words, phrases among them, places in it."""
    text = draw_text(rng)
    words = scan_python.words_of(text) if rng.randrange(2) else rng.choices(KNOWN, k=rng.randrange(15))
    tree, asking = draw_tree(rng, words or KNOWN), frozenset(rng.choices(KNOWN, k=2))
    pivots, places = ([draw_span(rng, text) for _ in range(rng.randrange(4))] for _ in range(2))
    start = rng.randrange(len(text) + 1)
    phrase, at = text[start : start + rng.randrange(1, 4)] or "a", rng.randrange(len(text) + 3)
    calls: list[tuple[Any, ...]] = [
        (_scan.words_of, scan_python.words_of, text),
        (_scan.plain_words, scan_python.plain_words, text),
        (_scan.has_triple, scan_python.has_triple, text),
        (_scan.longest, scan_python.longest, tree, words),
        (_scan.every, scan_python.every, tree, words),
        (_scan.weigh, scan_python.weigh, tree, asking, tuple(words)),
        (_scan.windows, scan_python.windows, text, pivots, places),
        (_scan.locate, scan_python.locate, text, phrase, at),
    ]
    for fast, slow, *arguments in calls:
        expect(slow.__name__, fast(*arguments), slow(*arguments))
    if not rng.randrange(8):
        wrong = (
            None,
            -1,
            2**70,
            text,
            words,
            tree,
            asking,
            [(0, 1)],
            [(0, len(text) + 1)],
            [()],
            [None],
            {"a": 1},
            b"",
        )
        refused(rng.choice(calls)[0], *rng.choices(wrong, k=rng.randrange(4)))
        fast, _, *arguments = rng.choice(calls)
        starved(rng, fast, *arguments)
        spoil(rng, words, tree)


# --- The reader of pages --------------------------------------------------------------------------------------------

TAGS = re.findall(
    r"\S+",
    "a abbr article aside b base blockquote body br button caption cite code col colgroup dd del div dl dt em figure"
    " footer form h1 h2 h3 head header hr html i iframe img kbd li link main menu meta nav noscript object ol option p"
    " pre rp rt ruby s script section select span strong style svg table tbody td template textarea th thead title tr"
    " tt ul video x-Odd é xmp",
)
VALUES = (
    *("", "x", "content", "sidebar", "post-body share", "article", "comment", "#top", "/a?b=1&copy=2&amp;c", "none"),
    *("display:none", "true", "main", "navigation", "presentation", "3", "03", "99999", "language-c++", "it's", "a b"),
    *("&lt;", "&notit;", "&#x27;", "&#99999999999;", "nofollow", "canonical", "hid", "é&eacute;", "lang-é", "_share_"),
    *("brush: c", "brush:c;x", "rust", "widget", "postAuthor", "x-tags", "related", "S:0", "article", "og:type"),
)
NAMES = (
    "class",
    "id",
    "href",
    "src",
    "data-src",
    "data-original",
    "rel",
    "role",
    "style",
    "hidden",
    "aria-hidden",
    "lang",
    "colspan",
    "start",
    "alt",
    "name",
    "property",
    "content",
    "=",
)
SAID = (
    *("words, and more of them. ", " ", "\n", "*", "_a_", "`", "``x", "~~", "[x]", "<", "&amp;", "&", "&nbsp;", "é"),
    *(
        "1. ",
        "# ",
        "- ",
        "---",
        "|",
        ">",
        "\\",
        "日本、語",
        "x" * 90,
        ", " * 12,
        "\x1c",
        "\u3000",
        "&copy",
        "\r\n",
        "!",
    ),
    *(
        "Some prose that goes on, as prose does, for long enough to be a paragraph of its own.",
        "<!--",
        "-->",
        "</",
        "<?",
    ),
)


def draw_page(rng: Random) -> str:
    """Tags that are opened, closed and crossed at random, and texts with signs between them."""
    parts: list[str] = []
    few = rng.sample(TAGS, rng.randrange(1, 9)) if rng.randrange(2) else TAGS
    for _ in range(rng.randrange(400 if not rng.randrange(9) else 60)):
        match rng.randrange(5):
            case 0 | 1:
                tag = rng.choice(few)
                quote = rng.choice(("'", '"', ""))
                said = (f" {rng.choice(NAMES)}={quote}{rng.choice(VALUES)}{quote}" for _ in range(rng.randrange(3)))
                parts.append(
                    f"<{tag.upper() if not rng.randrange(9) else tag}{''.join(said)}{rng.choice(('>', '/>', ''))}"
                )
            case 2:
                parts.append(f"</{rng.choice(few)}>")
            case _:
                parts.append(rng.choice(SAID))
    return "".join(parts)


def resolver(heads: reader_python.Heads) -> reader_python.Absolute:
    """Some links lead nowhere."""
    start = f"http://e.example/{len(heads)}/"
    return lambda href: start + href if href and href[0] != "j" else None


def failing(_: object) -> Callable[[str], str]:
    """What makes a URL of a link fails."""
    return lambda href: str(1 // (len(href) % 2))


def reader_run(rng: Random, _: Sequence[bytes]) -> None:
    """A page that nobody wrote."""
    html = draw_page(rng)
    options = [rng.randrange(1, 60)] if not rng.randrange(4) else []  # how many tags are read
    found = _reader.read(html, resolver, *options)
    expect("read", tuple(found), tuple(reader_python.read(html, resolver, *options)))
    if not rng.randrange(8):
        for arguments in ((None, resolver), (html, None), (html,), ("\ud800", resolver), (html, lambda _: len)):
            refused(_reader.read, *arguments)
        with contextlib.suppress(ZeroDivisionError):
            _reader.read(html, failing)
        starved(rng, _reader.read, html, resolver)


# --- What a page may cost a parser ---------------------------------------------------------------------------------

MARKUP = re.findall(
    r"\S+",
    "a address annotation-xml applet area b base body br button caption center code col colgroup datalist dd"
    " desc details dialog div dl dt em fieldset font foreignObject form frame g h1 h2 head hr html i iframe"
    " image img input keygen label legend li link listing main marquee math meta mglyph mi mtext nobr noembed"
    " noscript object ol optgroup option output p param path pre rb rp rt rtc ruby script search select span"
    " style summary svg table tbody td template textarea th thead title tr ul wbr x-y xmp",
)
ODDITIES = (
    *(
        "<!--",
        "-->",
        "<!-->",
        "<!--<script>",
        "<![CDATA[",
        "]]>",
        "<!x>",
        "</ x>",
        "<?",
        "</>",
        '<a href="',
        "'",
        '"',
        ">",
    ),
    *(
        "</script>",
        "</style>",
        "</title>",
        "</textarea>",
        "</p/>",
        "<font color=1>",
        "<input type=hidden>",
        "\0",
        "&lt;",
    ),
    *(
        "<annotation-xml encoding='text/html'>",
        "<g a=b/>",
        "<plaintext>",
        "<frameset>",
        "<noframes>",
        "<Option>",
        "<\u212a>",
        "<\ud800",
    ),
)


def draw_token(rng: Random, few: Sequence[str]) -> str:
    """A tag, or what a parser may take for another thing than we do."""
    name = rng.choice(few)
    tags = (
        f"<{name}>",
        f"</{name}>",
        f"<{name} a='>' b=\"<\">",
        f"<{name}/>",
        f"<{name} id=N>",
        "x",
        rng.choice(ODDITIES),
    )
    return rng.choices(tags, (10, 5, 1, 1, 1, 1, 1))[0]


def draw_repeated(rng: Random, times: int) -> str:
    """A page that says the same so many times, which is what makes a tree deep."""
    few = rng.sample(MARKUP, rng.randrange(1, 6)) if rng.randrange(5) else MARKUP
    before, again, after = ("".join(draw_token(rng, few) for _ in range(rng.randrange(n))) for n in (6, 9, 3))
    if rng.randrange(3):
        return before + again * times + after
    return before + "".join(again.replace("id=N", f"id={number}") for number in range(times)) + after


def complexity_run(rng: Random, _: Sequence[bytes]) -> None:
    """A page that nobody wrote, or one that is hostile."""
    html = draw_page(rng) if not rng.randrange(4) else draw_repeated(rng, rng.choice((1, 8, 300)))
    expect("weigh", _complexity.weigh(html), complexity_python.weigh(html))
    if not rng.randrange(8):
        for wrong in (None, b"<p>"):
            refused(_complexity.weigh, wrong)
        starved(rng, _complexity.weigh, html + "!")


# --- All -----------------------------------------------------------------------------------------------------------

RUNS: dict[str, Callable[[Random, Sequence[bytes]], None]] = {
    "complexity": complexity_run,
    "reader": reader_run,
    "repo": repo_run,
    "scan": scan_run,
}


def run(target: str, seed: int, number: int, cars: Sequence[bytes]) -> None:
    """One run, which depends on nothing but these."""
    RUNS[target](Random(f"{seed}/{number}"), cars)


def run_until(end: float, options: argparse.Namespace, cars: Sequence[bytes], note: mmap.mmap) -> int:
    """Run until the time or the runs are over; how many there were."""
    for done in count():
        if done == options.runs or time.monotonic() > end:
            return done
        note[:] = f"--seed {options.seed} --first {options.first + done} --runs 1".ljust(len(note)).encode()
        run(options.target, options.seed, options.first + done, cars)
    raise AssertionError("unreachable")


def main() -> None:
    """Play, and say how much."""
    parser = argparse.ArgumentParser(description="C against its Python twin.")
    parser.add_argument("target", choices=RUNS)
    for name, default in {"seconds": 60, "seed": 1, "first": 0, "runs": None}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    cars: list[bytes] = []
    if options.target == "repo":
        from corpus import cars as make_cars  # noqa: PLC0415 - the other target need not wait for it

        cars = [car for car in make_cars() if len(car) < 10_000]
    path = Path(f"crash-{options.target}")
    path.write_bytes(b" " * 80)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as note:
        runs = run_until(time.monotonic() + options.seconds, options, cars, note)
    path.unlink()
    memory = "" if testcapi else ", with all the memory it wants: there is no _testcapi"
    module = {"complexity": _complexity, "reader": _reader, "repo": _repo, "scan": _scan}[options.target]
    print(f"{runs} runs of {module.__file__} and its twin, nothing broke{memory}")


if __name__ == "__main__":
    main()
