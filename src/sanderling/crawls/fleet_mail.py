"""What parts of a fleet send each other: messages in the inboxes of servers, each gone once a commit has it."""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_log import until_there
from sanderling.stores.board import BoardField
from sanderling.stores.fleet import Beat, InboxMessage, PartFigures
from sanderling.stores.leases import HeldLease

# Kept by their ids as the positions of an inbox are by their files: what was read and is not known to be gone.
READ = 1
FULL = 200  # messages of one part in memory, from which no more are brought


class FleetOutbox:
    """What one part writes to others. It is with the servers after `sync`."""

    def __init__(self, fleet: FleetStores, held: HeldLease) -> None:
        self._fleet = fleet
        self._held = held
        self._unsent: list[tuple[int, bytes]] = []

    def put(self, to: int, lines: bytes) -> None:
        """Lines for another part."""
        self._unsent.append((to, lines))

    def sync(self) -> None:
        """Bring all of it to the servers. Raises LeaseLostError if the part is lost meanwhile."""
        unsent, self._unsent = self._unsent, []
        number = len(self._fleet.servers)
        for which, server in enumerate(self._fleet.servers):
            if some := [each for each in unsent if each[0] % number == which]:
                until_there(self._fleet, self._held, partial(server.send, some))

    def close(self) -> None:
        """Nothing more is written."""


class FleetInbox:
    """What others have sent to one part: `add` what arrives, `read` it one message at a time."""

    def __init__(self) -> None:
        self.durable: Mapping[str, int] = {}
        self._unread: deque[InboxMessage] = deque()
        self.taken: set[int] = set()  # which need not be brought again

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be read that more is left with the server."""
        return len(self._unread) >= FULL

    def add(self, messages: Sequence[InboxMessage]) -> None:
        """Messages have arrived."""
        new = [each for each in messages if each.id not in self.taken]
        self.taken |= {each.id for each in new}
        self._unread.extend(new)

    @property
    def waits(self) -> bool:
        """Whether something is here that nobody has read."""
        return bool(self._unread)

    def take(self) -> list[InboxMessage]:
        """All messages that are here, for who keeps them with one commit or gives up the part; `read` is for others."""
        messages = []
        while self._unread:  # and not a copy: more may arrive meanwhile, in another thread
            messages.append(self._unread.popleft())
        return messages

    def drop(self, messages: Sequence[InboxMessage]) -> None:
        """A commit has these, so that the server has them no more."""
        self.taken -= {each.id for each in messages}

    def read(self, positions: Mapping[str, int]) -> tuple[bytes, dict[str, int]]:
        """The lines of the next message, and what is read by then; no lines if there is none."""
        # One goes when somebody comes with its position: who was cancelled while it was read reads it again.
        while self._unread and str(self._unread[0].id) in positions:
            self._unread.popleft()
        if not self._unread:
            return b"", dict(positions)
        message = self._unread[0]
        # What a commit has is not there any more.
        still = {each: READ for each in positions if each not in self.durable}
        self.taken -= {int(each) for each in positions if each in self.durable}
        return message.body, still | {str(message.id): READ}


class FleetBoard:
    """What the parts of one worker say, and what is known of the others. As `Board`, which processes share."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.over = False
        self.elsewhere = 0  # what is kept by parts of others: pages, repos, records
        self._asked_elsewhere = 0  # requests
        self._said: dict[tuple[int, BoardField], int] = {}

    def get(self, part: int, field: BoardField) -> int:
        """What a part of ours says."""
        return self._said.get((part, field), 0)

    def put(self, part: int, field: BoardField, number: int) -> None:
        """Say it."""
        self._said[part, field] = number

    def total(self, field: BoardField) -> int:
        """What all parts say together, as far as it is known here."""
        own = sum(number for (_, said), number in self._said.items() if said is field)
        others = {
            BoardField.FETCHED: self.elsewhere,
            BoardField.RECORDS: self.elsewhere,
            BoardField.REQUESTS: self._asked_elsewhere,
        }
        return own + others.get(field, 0)

    def hear(self, beat: Beat, own: Sequence[PartFigures]) -> None:
        """A server has said what all parts have; it was told what those have that are ours, and open."""
        self.elsewhere = max(0, beat.fetched - sum(each.fetched for each in own))
        self._asked_elsewhere = max(0, beat.asked - sum(each.asked for each in own))

    def take_over(self, own: PartFigures) -> None:
        """A part is ours and open from now on, so that what it has is not elsewhere: who counted it twice would end."""
        self.elsewhere = max(0, self.elsewhere - own.fetched)
        self._asked_elsewhere = max(0, self._asked_elsewhere - own.asked)

    def forget(self, part: int) -> None:
        """A part is not ours any more."""
        for field in BoardField:
            self._said.pop((part, field), None)

    def close(self) -> None:
        """Nothing: it lives in this process."""
