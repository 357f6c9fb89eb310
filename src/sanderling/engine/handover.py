"""The hand-over from one system to another: what one has found goes on to the next while it runs.

A sink hands over what has ended before its ledger takes note of it. Whoever is killed in between finds it again and
hands it over again: so everything is handed over at least once, and who takes it must not mind to see it twice.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

T_contra = TypeVar("T_contra", contravariant=True)


class HandOverError(Exception):
    """What was found cannot be handed over, now or later. The message says why."""


class HandOver(Protocol[T_contra]):
    """Takes what a system has found."""

    async def hand(self, found: Sequence[T_contra], /) -> bool:
        """Return True when all of it is safe, however long that takes. Raises HandOverError if it never will be.

        After `stop` it may give up, and return False: what is not safe then is left to the next run.
        """

    def stop(self) -> None:
        """The system is to end: wait for what is away no longer than a few seconds."""
