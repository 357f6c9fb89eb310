"""What the engine asks of a system, and what it tells it. Everything here is synchronous but asking and writing.

Terms. *Work*: one item to ask for, once. *Class*: why it is asked, by which permits and slots are shared. *Answered*:
the host spoke, whatever it said of the item. *Refused*: the host limits us; the item has not failed. *Failed*: no
answer, or one of the host's errors; blame decides whether the item or the host is at fault. *Unasked*: nothing was
sent. *Set aside*: a host without a good answer for too long; its items wait on disk, and it is still probed.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from sanderling.engine.classes import Class
from sanderling.engine.hosts import HostState
from sanderling.limit import Feedback, Permit
from sanderling.outcome import Outcome
from sanderling.task import Blame


class Work(Protocol):
    """One item to ask for."""

    @property
    def key(self) -> Hashable:
        """What tells this item from all others of its host."""


H = TypeVar("H", bound=HostState)
W = TypeVar("W", bound=Work)
R = TypeVar("R")
E_contra = TypeVar("E_contra", contravariant=True)
F_contra = TypeVar("F_contra", contravariant=True)
C_contra = TypeVar("C_contra", contravariant=True)
W_contra = TypeVar("W_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)


class Settled(msgspec.Struct, Generic[R], gc=False):
    """What came of asking for one item."""

    outcome: Outcome
    result: R | None = None  # what the handler made of the answer, for the source
    decided: bool = False  # the source schedules the item itself, also where it failed: the engine only blames
    size: int = 0  # bytes of the answer
    flawed: bool = False  # the host answered, and not with what was asked for: the item has failed, its host has not
    of_host: bool = False  # of a document of the host's own, like robots.txt, which is no item


class Source(Protocol[H, W, R]):
    """What to ask next. It is told of each end, once, and keeps what waits."""

    @property
    def loading(self) -> bool:
        """Whether something is on its way from disk or a broker, so that more work may come of itself."""

    def classes(self, host: H, now: float) -> Sequence[Class]:
        """The classes that have work due at the host now; none while nothing may be taken."""

    def due(self, host: H, now: float) -> float | None:
        """When there is next something to take there; None if that is not a matter of time."""

    def take(self, host: H, of: Class, now: float) -> W | None:
        """The next work of a class that is due. None if what was due was decided without asking."""

    def take_untried(self, host: H, now: float) -> W | None:
        """Work that has not failed, by which a closed host may be probed, away from what may have closed it."""

    def drain(self) -> None:
        """Take nothing new from outside from now on, and find no end of work: what is known and due is the last."""

    def enough(self, inflight: int) -> bool:
        """Whether all is asked for that is wanted, with so many in flight."""

    def settled(self, host: H, work: W, settled: Settled[R], now: float) -> None:
        """The host answered, or the handler has decided: end the item, or say when it is due again."""

    def later(self, host: H, work: W, outcome: Outcome, due: float) -> None:
        """The item was refused, or not asked, or its host was at fault: it has not failed, and is due then.

        At infinity: it was refused for too long, and is left to another run. One that needs no slot may have no answer
        yet (`flights.UNANSWERED`): it may be asked for again, and what comes of this request is told when it comes.
        """

    def failed(self, host: H, work: W, outcome: Outcome, failures: int, due: float | None) -> None:
        """The item has failed so many times in a row. It is due again then; without a time, this is its end."""

    def leave(self, host: H, outcome: Outcome, due: float) -> None:
        """The host does not answer: what waits for it stays on disk, with this reason, until the host answers.

        It is next asked how it is when that is `due`. If it is set aside already (`host.aside`), only that is new.
        """

    def welcome(self, host: H) -> None:
        """A host that was set aside has answered: nothing of it is set aside any more."""

    def written(self, result: Any) -> Iterable[H]:  # noqa: ANN401 - what the sink returns
        """A group is on disk; the hosts for which something came of it."""


class Permits(Protocol):
    """What the engine asks of a limiter: `limit.Limiter`, or `limit.Unpaced` where nothing has a pace."""

    def try_acquire(self, host: str, /) -> Permit | None:
        """A permit if the host may be asked this instant; else None, and nothing is taken."""

    def feedback(self, permit: Permit, feedback: Feedback, /) -> None:
        """Learn how the permit's request went."""

    def ready_at(self, host: str, /) -> float:
        """When `try_acquire` may next succeed."""

    def turn_at(self, host: str, /) -> float:
        """When it is likely to succeed, where others stand in line."""

    def is_down(self, host: str, /) -> bool:
        """Whether the circuit of the host has opened, and no probe has closed it yet."""

    def most_failures(self, host: str, /) -> int:
        """How many failures in a row of one item are improbable there."""

    def excuse(self, host: str, failures: int, /) -> None:
        """An item was answered well after so many failures in a row."""

    def probe_now(self, host: str, /) -> bool:
        """Let the first probe of a circuit that has just opened leave at once; whether that was done."""

    def vouch(self, host: str, /) -> None:
        """Say that the host has answered before."""


class Handler(Protocol[W_contra, R]):
    """Asks for one item and understands the answer; it never decides when."""

    async def __call__(self, work: W_contra, permit: Permit, blame: Blame) -> Settled[R]:
        """What came of it. A second request of the same item comes by `permit.more(host)`."""

    def received(self, work: W_contra) -> int | None:
        """Bytes of the answer so far; None for a stream that is meant to be silent."""


class Sink(Protocol[E_contra, F_contra, C_contra, T_co]):
    """Makes a batch durable, all of it or nothing, in order."""

    async def write(self, ended: Sequence[E_contra], found: Sequence[F_contra], checkpoint: C_contra) -> T_co:
        """Bytes, then ledger, then acknowledgement. Returns when all of it is durable."""

    def stop(self) -> None:
        """We end: do not wait any longer for a store that is away. What is not durable is asked for again."""
