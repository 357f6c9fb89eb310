"""DIDs and hosts that are never requested, since somebody wants them left alone: a list that people write."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sanderling.files import read_small
from sanderling.ids import HostError, UrlError, host_of, normalise_host
from sanderling.options import OptionError
from sanderling.repos.atproto import is_did


@dataclass(frozen=True, slots=True)
class RepoLeaveOut:
    """What is listed. A host is meant with and without TLS."""

    dids: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path | None, hosts: Iterable[str] = ()) -> Self:
        """The list in a file, and hosts that were typed. Raises OptionError, which names the line."""
        lines = read_small(path, 256 << 20).decode(errors="replace").splitlines() if path is not None else []
        things = [(f"{path} line {number}", line.partition("#")[0].strip()) for number, line in enumerate(lines, 1)]
        found = [read_thing(text, where) for where, text in things if text]
        found += [read_thing(text, "--skip-pds") for text in hosts]
        return cls(
            frozenset(thing for thing in found if is_did(thing)), frozenset(each for each in found if not is_did(each))
        )

    def names(self, did: str, host: str) -> bool:
        """Whether a repo is left out; `host` may be an address."""
        return did in self.dids or (bool(self.hosts) and self.names_host(host))

    def names_host(self, host: str) -> bool:
        """Whether a host is left out, which may be whatever an archive says."""
        try:
            return (host_of(host) if "//" in host else host) in self.hosts
        except (UrlError, HostError):
            return False


def read_thing(text: str, where: str) -> str:
    """A DID, or a host in its one spelling. Raises OptionError."""
    if is_did(text):
        return text
    try:
        if text.startswith("did:"):
            raise HostError(f"{text[:80]!r} is no DID")  # noqa: TRY301 - said below
        return host_of(text) if "//" in text else normalise_host(text)
    except (HostError, UrlError) as error:
        raise OptionError(f"{where}: {error}; expected a DID or a host") from None
