"""What the parts of a crawl find for each other: each sends what is not its own, and asks for what it is sent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.parts import part_folder, part_of
from sanderling.executor import Executor
from sanderling.stores.board import Board, BoardField
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.mailbox import PartInbox, PartOutbox

INBOX = "inbox"
QUIET = 0.1  # seconds between two looks into an inbox that has nothing
FULL = 5_000  # what was sent and is not on disk yet, from which no more is read
HOSTS = 65_536  # of which it is remembered whose they are


class FoundItem(Protocol):
    """What was found: a URL, or a request of a job."""

    @property
    def host(self) -> str:
        """Where it would be asked for."""

    @property
    def depth(self) -> int:
        """Links from the first addresses to it."""


class MailWriter(Protocol):
    """What one part writes to others."""

    def put(self, to: int, lines: bytes) -> None:
        """Lines for another part, which are durable after `sync`."""

    def sync(self) -> None:
        """Return when all of them are durable."""

    def close(self) -> None:
        """Nothing more is written."""


class MailReader(Protocol):
    """What others have written to one part."""

    durable: Mapping[str, int]  # the positions that the ledger has

    def read(self, positions: Mapping[str, int]) -> tuple[bytes, dict[str, int]]:
        """Whole lines behind `positions`, and the positions behind them; no lines if nothing is left."""


class PartBoard(Protocol):
    """Numbers that the parts of a crawl show each other."""

    parts: int

    @property
    def over(self) -> bool:
        """Whether all parts have nothing to do, and nothing is on its way."""

    def put(self, part: int, field: BoardField, number: int) -> None:
        """Say it, of a part that is ours."""

    def total(self, field: BoardField) -> int:
        """What all parts say together."""


class PartExchange:
    """Sends and receives for part `own` of a crawl. `kind` is what is found."""

    def __init__(
        self,
        own: int,
        board: PartBoard,
        kind: Any,  # noqa: ANN401 - a type, or a union of some
        outbox: MailWriter,
        inbox: MailReader,
    ) -> None:
        self.own = own
        self.board = board
        self.over = False
        self._outbox = outbox
        self._inbox = inbox
        self.positions: Mapping[str, int] = dict(inbox.durable)
        self._sent = 0
        self._looked = 0
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(kind)
        self.part_of: Callable[[str], int] = lru_cache(HOSTS)(lambda host: part_of(host, board.parts))

    def owns(self, host: str) -> bool:
        """Whether a host is this part's."""
        return self.part_of(host) == self.own

    def elsewhere(self, field: BoardField, own: int) -> int:
        """What the other parts say together; ours is said, so that they know."""
        self.board.put(self.own, field, own)
        return self.board.total(field) - own

    # In the thread that writes the ledger.

    def keep_own(self, found: Iterable[Any]) -> list[Any]:
        """What of it is this part's; the rest is on disk for the others when this returns."""
        own, others = [], dict[int, list[Any]]()
        for each in found:
            part = self.part_of(each.host)
            if part == self.own:
                own.append(each)
            else:
                others.setdefault(part, []).append(each)
        if others:
            self._send(others)
        return own

    def tell(self, part: int, found: Any) -> None:  # noqa: ANN401 - of the kind that is exchanged
        """Let one other part know of something."""
        self._send({part: [found]})

    def tell_all(self, found: FoundItem) -> None:
        """Let every other part know of one thing that was found, whoever it belongs to."""
        self._send({part: [found] for part in range(self.board.parts) if part != self.own})

    def _send(self, others: Mapping[int, Sequence[Any]]) -> None:
        for part, items in others.items():
            self._outbox.put(part, self._encoder.encode_lines(items))
            self._sent += len(items)
        self._outbox.sync()
        self.board.put(self.own, BoardField.SENT, self._sent)

    def committed(self, positions: Mapping[str, int]) -> None:
        """The ledger has what was read up to here."""
        self._inbox.durable = dict(positions)

    # In the event loop.

    async def receive(
        self,
        executor: Executor,
        clock: Clock,
        take: Callable[[Any], object],
        pending: Callable[[], int],
        is_idle: Callable[[], bool],
    ) -> None:
        """Hand what arrives to `take`, and say whether we are idle, until all parts are.

        `pending` is how much of what was taken is not on disk yet.
        """
        while not self.board.over:
            lines, positions = b"", self.positions
            if pending() < FULL:
                lines, positions = await executor(self._inbox.read, self.positions)
            for each in self._decoder.decode_lines(lines) if lines else ():
                take(each)
            self.positions = positions  # with what was read, and nothing in between
            idle = not lines and is_idle()
            self._looked += idle
            self.board.put(self.own, BoardField.LOOKED, self._looked)
            self.board.put(self.own, BoardField.IDLE, idle)
            if not lines:
                await clock.sleep(QUIET)
        self.over = True

    async def take_rest(self, executor: Executor, keep: Callable[[list[Any], Mapping[str, int]], object]) -> None:
        """Hand all that has arrived to `keep`, in the thread that writes the ledger, with how far it is then read."""
        if dict(self.positions) != dict(self._inbox.durable):
            await executor(keep, [], self.positions)  # it was read, and brought nothing new
        while True:
            lines, positions = await executor(self._inbox.read, self.positions)
            if not lines:
                return
            await executor(keep, self._decoder.decode_lines(lines), positions)
            self.positions = positions

    def close(self) -> None:
        """Nothing more is sent."""
        self._outbox.close()
        self.board.put(self.own, BoardField.IDLE, 0)


def exchange_files(
    root: Path,
    own: int,
    board: Board,
    kind: Any,  # noqa: ANN401 - as above
    meta: FrontierMeta,
) -> PartExchange:
    """The exchange of part `own` of the crawl in the folder `root`, whose ledger says `meta`."""
    positions = msgspec.json.decode(meta.inbox, type=dict[str, int])
    outbox = PartOutbox(meta.crawl, own, lambda part: part_folder(root, part) / INBOX)
    inbox = PartInbox(part_folder(root, own) / INBOX, meta.crawl, positions)
    return PartExchange(own, board, kind, outbox, inbox)


class EndOfParts:
    """Says when all parts have nothing to do, and nothing is on its way between them. Ask `is_reached` now and then.

    A part that is idle begins again only by what another sends. So if all are idle, then each has looked into its inbox
    once more, and then all are idle still and none has sent anything since, nothing is left anywhere.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._sent = -1
        self._looked: list[int] = []

    def is_reached(self) -> bool:
        """Whether it is so."""
        board, parts = self._board, range(self._board.parts)
        looked = [board.get(part, BoardField.LOOKED) for part in parts]
        sent = board.total(BoardField.SENT)
        if board.total(BoardField.IDLE) < board.parts:
            self._looked = []
            return False
        if not self._looked or sent != self._sent:
            self._sent, self._looked = sent, looked
            return False
        # Two looks: the first of them may have begun before.
        return all(now >= before + 2 for now, before in zip(looked, self._looked, strict=True))
