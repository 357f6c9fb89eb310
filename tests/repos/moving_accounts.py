"""Accounts that move between hosts at random while they are crawled, under virtual time."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from sanderling.fetch.attempts import Sends
from sanderling.repos.directory import DirectoryEntry
from sanderling.task import Reply, Task
from sanderling.worlds.pds import Fleet

GONE = b'{"error":"RepoNotFound","message":"it has moved"}'


class MovingAccounts:
    """A directory of the DIDs of a fleet, and its hosts: with every few requests an account moves, so often at most.

    An old host keeps a copy of every other account, and does not know the rest any more.
    """

    def __init__(self, fleet: Fleet, chance: Random, moves: int) -> None:
        self.homes = dict(fleet.directory())
        self.moves = moves
        self._born = dict(self.homes)
        self._hosts = sorted(set(self.homes.values()))
        self._been: dict[str, set[str]] = {}
        self._chance = chance

    def move(self) -> None:
        """One account has moved, to a host where it never was: who comes back meanwhile is not found."""
        self.moves -= 1
        did = self._chance.choice(sorted(self.homes))
        been = self._been.setdefault(did, {self.homes[did]})
        if new := [host for host in self._hosts if host not in been]:
            self.homes[did] = self._chance.choice(new)
            been.add(self.homes[did])

    # As a directory.

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        return [DirectoryEntry(did, self.homes[did]) for did in sorted(self.homes) if did > after][:limit]

    def hosts_of(self, dids: Sequence[str]) -> dict[str, str]:
        return {did: self.homes[did] for did in dids if did in self.homes}

    def count(self) -> int:
        return len(self.homes)

    # As a network.

    def network(self, network: Sends) -> Sends:
        """The hosts, at which accounts are where they are now."""
        return _MovingNetwork(self, network)

    async def ask(self, task: Task, network: Sends) -> Reply:
        if self.moves > 0 and self._chance.random() < 0.4:
            self.move()
        did = task.url.partition("did=")[2].partition("&")[0].replace("%3A", ":")
        here = task.url.startswith(self.homes[did] + "/")
        answer = await network.send(replace(task, url=f"{self._born[did]}/{task.url.split('/', 3)[3]}"))
        if here or did.encode()[-1] % 2:
            return answer
        return Reply(400, (("content-type", "application/json"),), GONE, task.url, answer.latency)


class _MovingNetwork:
    def __init__(self, accounts: MovingAccounts, network: Sends) -> None:
        self._accounts, self._network = accounts, network

    async def send(self, task: Task) -> Reply:
        return await self._accounts.ask(task, self._network)
