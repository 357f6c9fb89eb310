"""A directory without some hosts, for whoever was asked to leave them alone."""

from collections.abc import Collection, Sequence

from sanderling.repos.directory import Directory, Entry


class Without:
    """The directory, as if these hosts were not in it. `count` still has their DIDs: to count them takes too long."""

    def __init__(self, directory: Directory, hosts: Collection[str]) -> None:
        self._directory = directory
        self._hosts = frozenset(hosts)

    def page(self, after: str, limit: int) -> list[Entry]:
        """The first DIDs after `after`; empty only at the end."""
        while page := self._directory.page(after, limit):
            kept = [entry for entry in page if entry.host not in self._hosts]
            if kept:
                return kept
            after = page[-1].did
        return []

    def hosts_of(self, dids: Sequence[str]) -> dict[str, str]:
        """The hosts of these, as far as they have one that is not left out."""
        found = self._directory.hosts_of(dids)
        return {did: host for did, host in found.items() if host not in self._hosts}

    def count(self) -> int:
        """How many DIDs have a host."""
        return self._directory.count()
