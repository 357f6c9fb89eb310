"""Bounds against traps: an endless calendar, a session in every path, one text at ever new addresses.

What traps share is that they say nothing new. So a part of a site may take up more the more it gives that is new, and
pages that lead to new texts go first. Only whole texts count, never how they begin.
"""

import re
from collections.abc import Callable
from hashlib import blake2b

import msgspec

EACH_NEW = 4  # pages with a known text for each with a new one
MOST_TEXTS = 4_000_000  # remembered, of this run; the oldest are forgotten
MOST_KINDS = 100_000
DOUBTFUL = 10  # repeats after which a host's kinds of pages have an order
STEPS = 20  # of their order
MARK = 5  # bytes

_DIGITS = re.compile(r"\d+")


class KindCount(msgspec.Struct, array_like=True):
    """Pages of one kind: those with a new text, or found on one of the kind; and those with a known text."""

    new: int = 0
    known: int = 0

    def add(self, new: int, known: int) -> None:
        """So many more."""
        self.new += new
        self.known += known


def kind_of(url: str) -> str:
    """Addresses of a host that differ only in numbers, and in the values of their parameters."""
    page, _, query = url.partition("?")
    names = ",".join(sorted({pair.partition("=")[0] for pair in query.split("&")})) if query else ""
    start, _, path = page.partition("//")[2].partition("/")
    parts = [_DIGITS.sub("0", part) if not _is_mixed(part) else "*" for part in path.split("/")]
    return f"{start}/{'/'.join(parts[:12])}?{names}"[:300]


def _is_mixed(part: str) -> bool:
    """Whether a part of a path looks like a session or another number of letters and digits."""
    return len(part) >= 12 and len(_DIGITS.findall(part)) >= 3


def _wholes(kind: str) -> tuple[str, str]:
    return kind.partition("/")[0], kind.partition("?")[0]


class Repeats:
    """Which kinds of pages say what others have said. `most` repeats are allowed at first; 0: any number."""

    def __init__(self, most: int, saved: bytes = b"") -> None:
        self._most = most
        self._kinds: dict[str, KindCount] = {}
        self._wholes: dict[str, KindCount] = {}  # of hosts, and of their paths whatever the query
        self._by_mark: dict[bytes, str] = {}
        self._texts: dict[bytes, None] = {}
        self.changed = False
        for kind, count in (msgspec.msgpack.decode(saved, type=dict[str, KindCount]) if saved else {}).items():
            self._add(kind, count.new, count.known)

    def saved(self) -> bytes:
        """What the next run has to know."""
        self.changed = False
        return msgspec.msgpack.encode(self._kinds)

    def forget(self, names: Callable[[str], bool]) -> None:
        """Remember nothing of kinds of pages that `names` is true for."""
        for kind in [each for each in self._kinds if names(each)]:
            del self._kinds[kind], self._by_mark[mark_of_kind(kind)]
            self.changed = True

    def see(self, url: str, text: bytes, found_by: bytes) -> None:
        """A page came, with that digest of its text, which a page with the mark `found_by` had led to."""
        if not (self._most and text):
            return
        kind = kind_of(url)
        text = blake2b(text + kind.partition("/")[0].encode(), digest_size=8).digest()
        is_new = text not in self._texts
        self._texts[text] = None
        if len(self._texts) > MOST_TEXTS:
            del self._texts[next(iter(self._texts))]
        self._add(kind, int(is_new), int(not is_new))
        if is_new and (leading := self._by_mark.get(found_by)) is not None and leading != kind:
            self._add(leading, 1, 0)  # a list may say the same on each page, as long as it leads to what is new
        self.changed = True

    def _add(self, kind: str, new: int, known: int) -> None:
        if kind not in self._kinds:
            if len(self._kinds) >= MOST_KINDS:
                gone = next(iter(self._kinds))
                del self._kinds[gone], self._by_mark[mark_of_kind(gone)]
            self._kinds[kind] = KindCount()
            self._by_mark[mark_of_kind(kind)] = kind
        self._kinds[kind].add(new, known)
        for whole in _wholes(kind):
            self._wholes.setdefault(whole, KindCount()).add(new, known)

    def is_over(self, url: str) -> bool:
        """Whether nothing more is to be requested of this kind of page, or of its host."""
        if not self._most:
            return False
        kind = kind_of(url)
        count = self._kinds.get(kind)
        if count is not None and count.known > self._most + EACH_NEW * count.new:
            return True
        if count is not None and count.new:
            return False
        # Where each page is a kind of its own, as by sessions without digits, they are known by their host; where
        # filters multiply, by their path.
        wholes = [self._wholes[whole] for whole in _wholes(kind) if whole in self._wholes]
        return any(whole.known > 5 * self._most + 2 * EACH_NEW * whole.new for whole in wholes)

    def priority(self, url: str) -> int:
        """Where links to this kind of page stand in the queue: above 0 before the others, below 0 behind them.

        All alike until a host repeats itself; then what gave new texts, or led to them, comes first.
        """
        kind = kind_of(url)
        count, host = self._kinds.get(kind), self._wholes.get(kind.partition("/")[0])
        if not self._most or count is None or host is None or host.known < DOUBTFUL:
            return 0
        rank = round(STEPS * (count.new - count.known) / (count.new + count.known))
        return rank if count.known >= DOUBTFUL else max(0, rank)


def mark_of(url: str) -> bytes:
    """What is stored with each link of a page, so that what it leads to counts for it."""
    return mark_of_kind(kind_of(url))


def mark_of_kind(kind: str) -> bytes:
    """The same of a kind."""
    return blake2b(kind.encode(), digest_size=MARK).digest()
