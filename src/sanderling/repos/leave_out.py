"""DIDs and hosts that are never asked for, since somebody wants them left alone: a list that people write."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from sanderling.fetch.attempts import LeavingOut, Sends
from sanderling.formats.list_file import read_list
from sanderling.ids import Host, HostError, host_of, normalise
from sanderling.repos.plc import EndpointError, host_at, is_did


@dataclass(frozen=True, slots=True)
class RepoLeaveOut:
    """What is listed. A host is meant with and without TLS."""

    dids: frozenset[str] = frozenset()
    hosts: frozenset[Host] = frozenset()

    @classmethod
    def read(cls, path: Path) -> Self:
        """The list in a file. Raises ListError, which says the line."""
        return cls.of(read_list(path, read_thing))

    @classmethod
    def of(cls, things: Iterable[tuple[str, bool]]) -> Self:
        """What was read of lines."""
        things = list(things)
        dids = frozenset(thing for thing, is_host in things if not is_host)
        return cls(dids, frozenset(Host(thing) for thing, is_host in things if is_host))

    def and_hosts(self, urls: Iterable[str]) -> Self:
        """The same with these as well; they are like https://host.example."""
        return replace(self, hosts=self.hosts.union(map(host_of, urls)))

    def before(self, http: Sends) -> Sends:
        """A client that asks no host that is listed, wherever a redirect leads."""
        return LeavingOut(http, lambda task: task.host if task.host in self.hosts else "") if self.hosts else http

    def has_host(self, url: str) -> bool:
        """Whether a host is left out with all its repos; `url` is its address, or what an archive says is one."""
        if not self.hosts:
            return False
        try:
            return host_of(url) in self.hosts
        except HostError:
            return False

    def has(self, did: str, url: str) -> bool:
        """Whether the repo of `did`, at this host, is left out."""
        return did in self.dids or self.has_host(url)


def read_thing(line: str) -> tuple[str, bool]:
    """What is meant, and whether that is a host."""
    if line.startswith("did:"):
        if not is_did(line):
            raise ValueError(f"{line[:80]!r} is no DID; expected one like did:plc:abcdefghijklmnopqrstuvwx")
        return line, False
    try:
        return host_of(host_at(line, plain=True)) if "://" in line else normalise(line), True
    except (HostError, EndpointError) as error:
        raise ValueError(f"{error}; expected a DID like did:plc:…, or a host like host.example") from None
