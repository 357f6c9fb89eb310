"""A polite client in one object, for code that is not ours: limiter, guard, redirects and retries are all in it."""

from types import TracebackType
from typing import Self

from sanderling.fetch.attempts import Fetched, Fetcher
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import connections_for, guard_for
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.task import Task


class Client:
    """`async with Client() as client: fetched = await client.fetch("https://example.org/")`.

    `rps` bounds the requests a second to each host; what a host allows below that is learned. `contact` is where its
    owner can reach you, https://… or mailto:…. `private` allows your own machine and network, which are refused
    otherwise. Raises ValueError for what cannot be.
    """

    def __init__(self, *, rps: float = 8.0, contact: str | None = None, private: bool = False) -> None:
        rules = HttpRules(contact=contact, connections_per_host=connections_for(rps))
        self.limiter = Limiter(LimiterRules(pace=PaceRules.up_to(rps)))
        self._http = Http(rules, guard_for(private=private))
        self._fetcher = Fetcher(self._http, self.limiter)

    def __repr__(self) -> str:
        return f"<Client, {self.limiter!r}>"

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def fetch(self, task: Task | str) -> Fetched:
        """How it ended, after leave of the host, redirects and retries within seconds; `reply` is what came back.

        Never raises for anything that a host does: that is `outcome`. Raises ValueError for what is no address.
        """
        return await self._fetcher.fetch(Task(task) if isinstance(task, str) else task)
