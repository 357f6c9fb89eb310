"""What hosts are asked with, for the commands and for whoever uses a system as a library."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Generic, TypeVar

from sanderling.clock import Clock
from sanderling.fetch.attempts import Sends
from sanderling.fetch.cache import Cache
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.hosts import NO_HOSTS, HostTable
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.render import Renderer
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory

H = TypeVar("H", bound=Sends, covariant=True)  # noqa: PLC0105 - one letter, as elsewhere


@dataclass(frozen=True, slots=True)
class Transport(Generic[H]):
    """The HTTP client, the limiter that says when it may ask, and the memory that bodies share."""

    http: H
    limiter: Limiter
    memory: Memory
    cache: Cache | None = None  # of answers, for development
    hosts: HostTable = NO_HOSTS  # what is set for some
    renderer: Renderer | None = None  # of pages that need a browser


def make_transport(
    rules: HttpRules, limiter: Limiter, bodies: int, *, private: bool, clock: Clock | None = None
) -> Transport[Http]:
    """A client whose bodies hold so many bytes at once; with `private` it may ask our own machine and network."""
    memory = Memory(bodies)
    http = Http(rules, guard_for(private=private), clock=clock, memory=memory)
    return Transport(http, limiter, memory, hosts=rules.hosts)


def share_memory(transport: Transport[Http], memory: Memory) -> Transport[Http]:
    """The transport with memory that others use as well: its client takes of it, and whoever has a reply lets go."""
    transport.http.memory = memory
    return replace(transport, memory=memory)


def contexts_of(transport: Transport[Http]) -> list[AbstractAsyncContextManager[Any]]:
    """What is to be entered before anything is asked."""
    return [transport.http, *([] if transport.renderer is None else [transport.renderer])]


def guard_for(*, private: bool) -> GuardRules:
    """What may be asked: with `private` also our own machine and network, by name and by address."""
    return GuardRules(private=private, raw_addresses=private)


def connections_for(rps: float) -> int:
    """Connections to a host that is asked so often: enough for answers of a second, within reason."""
    return min(64, max(8, ceil(rps)))
