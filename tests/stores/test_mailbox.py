"""Lines between the parts of a crawl: none is lost, whoever is killed and whenever."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sanderling.stores import mailbox
from sanderling.stores.mailbox import CLOSED, OPEN, PartInbox, PartOutbox, blank_lines


class Reader:
    """Reads an inbox, keeps what it read with the positions, and may be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: list[bytes] = []
        self.durable: dict[str, int] = {}
        self.start()

    def start(self) -> None:
        self.inbox = PartInbox(self.folder, 1, self.durable)
        self.positions: dict[str, int] = dict(self.inbox.durable)
        self.read_lines: list[bytes] = []

    def look(self) -> bool:
        lines, self.positions = self.inbox.read(self.positions)
        self.read_lines += lines.splitlines()
        return bool(lines)

    def commit(self) -> None:
        self.kept += self.read_lines
        self.read_lines = []
        self.durable = dict(self.positions)
        self.inbox.durable = dict(self.durable)


class Writers:
    """Two parts that write, and may be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent: set[bytes] = set()
        self.safe: set[bytes] = set()
        self._unsafe: dict[int, set[bytes]] = {1: set(), 2: set()}
        self.outboxes = {own: self._new(own) for own in (1, 2)}

    def _new(self, own: int) -> PartOutbox:
        return PartOutbox(1, own, lambda _: self.folder)

    def put(self, own: int, line: bytes) -> None:
        self.outboxes[own].put(0, line + b"\n")
        self.sent.add(line)
        self._unsafe[own].add(line)

    def sync(self, own: int) -> None:
        """What a ledger may speak of from now on."""
        self.outboxes[own].sync()
        self.safe |= self._unsafe[own]

    def kill(self, own: int, torn: bytes) -> None:
        for path in self.folder.glob(f"1-{own}-*{OPEN}"):
            path.write_bytes(path.read_bytes() + torn)
        self.outboxes[own] = self._new(own)


STEPS = st.tuples(st.sampled_from("pppsslllckKt"), st.sampled_from((1, 2)), st.sampled_from((0, 5, 400)))


@given(st.lists(STEPS, max_size=60))
def test_what_is_on_disk_is_read_whoever_is_killed(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        reader, writers = Reader(Path(place) / "inbox"), Writers(Path(place) / "inbox")
        for number, (step, own, length) in enumerate(steps):
            act: dict[str, Callable[[], object]] = {
                "p": partial(writers.put, own, b"%d %d %s" % (own, number, b"x" * length)),
                "s": partial(writers.sync, own),
                "l": reader.look,
                "c": reader.commit,
                "k": reader.start,  # it was killed
                "K": partial(writers.kill, own, b""),
                "t": partial(writers.kill, own, b"torn"),
            }
            act[step]()
        for own in writers.outboxes:
            writers.put(own, b"last of %d" % own)
            writers.outboxes[own].close()
        while reader.look():
            reader.commit()
        assert writers.safe <= set(reader.kept) <= writers.sent
        if not any(step == "k" for step, _, _ in steps):
            assert len(reader.kept) == len(set(reader.kept))


def test_what_was_read_to_its_end_goes_away(tmp_path: Path) -> None:
    outbox, reader = PartOutbox(1, 7, lambda _: tmp_path / "inbox"), Reader(tmp_path / "inbox")
    outbox.put(0, b"a\n")
    outbox.sync()
    assert reader.look()
    outbox.close()
    assert not reader.look()
    assert [path.suffix for path in (tmp_path / "inbox").iterdir()] == [CLOSED]  # the ledger knows nothing of it yet
    reader.commit()
    assert not reader.look()
    assert list((tmp_path / "inbox").iterdir()) == []
    assert reader.positions == {}


def test_a_large_file_is_followed_by_another(tmp_path: Path) -> None:
    outbox, reader = PartOutbox(1, 7, lambda _: tmp_path / "inbox"), Reader(tmp_path / "inbox")
    piece = b"x" * 1000 + b"\n"
    for _ in range(2):
        outbox.put(0, piece * (mailbox.LARGE // len(piece) + 1))
        outbox.sync()
    assert len(list((tmp_path / "inbox").iterdir())) == 2
    while reader.look():
        reader.commit()
    assert len(reader.kept) == 2 * (mailbox.LARGE // len(piece) + 1)


def test_lines_of_an_earlier_crawl_are_not_read(tmp_path: Path) -> None:
    outbox = PartOutbox(1, 7, lambda _: tmp_path)
    outbox.put(0, b"of the first crawl\n")
    outbox.close()

    assert PartInbox(tmp_path, 2, {}).read({}) == (b"", {})
    assert list(tmp_path.iterdir()) == []


def test_a_line_longer_than_what_is_read_at_once_comes_whole(tmp_path: Path) -> None:
    line = b"x" * (3 * mailbox.READ + 5) + b"\n"
    outbox = PartOutbox(1, 7, lambda _: tmp_path)
    outbox.put(0, line + b"short\n")
    outbox.sync()

    assert PartInbox(tmp_path, 1, {}).read({})[0] == line + b"short\n"


def test_lines_that_are_blanked_are_gone_and_the_others_where_they_were(tmp_path: Path) -> None:
    outbox = PartOutbox(1, 7, lambda _: tmp_path)
    outbox.put(0, b'["a"]\n["secret"]\n["b"]\n["sec')
    outbox.sync()
    for _ in range(2):
        blank_lines(tmp_path, lambda line: b"secret" in line)

    lines, _ = PartInbox(tmp_path, 1, {}).read({})
    assert lines == b'["a"]\n          \n["b"]\n'
    assert msgspec.json.Decoder(list[str]).decode_lines(lines) == [["a"], ["b"]]
    assert all(b"sec" not in path.read_bytes() for path in tmp_path.iterdir())
