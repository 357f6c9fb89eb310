"""What a host's robots.txt says: from the crawl's own folder if that is fresh, else from the host."""

from sanderling.clock import Clock
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Permit
from sanderling.outcome import Code, Outcome
from sanderling.pages.books import Books
from sanderling.pages.folder import State
from sanderling.pages.robots import MOST, UNREACHABLE, Robots, read
from sanderling.task import Task

KEPT = 86_400.0  # seconds to trust a copy; RFC 9309, 2.4


class Permissions:
    """Learns the rules of one origin after the other."""

    def __init__(self, fetcher: Fetcher, books: Books, clock: Clock) -> None:
        self._fetcher = fetcher
        self._books = books
        self._clock = clock

    async def learn(self, origin: str, permit: Permit) -> Robots | Outcome:
        """The rules of an origin, or why they are not known yet. The permit is used or given back."""
        known = await self._remembered(origin)
        if known is None:
            return await self._ask(origin, permit)
        permit.release()
        return known

    async def _remembered(self, origin: str) -> Robots | None:
        if self._books.folder.state is not State.RESUMED:
            return None
        kept = await self._books.ask(self._books.folder.ledger.robots, origin)
        if kept is None or self._clock.wall() - kept.fetched_at > KEPT:
            return None
        return read(kept.status, kept.body)

    async def _ask(self, origin: str, permit: Permit) -> Robots | Outcome:
        fetched = await self._fetcher.fetch(Task(f"{origin}/robots.txt", most=MOST), permit)
        outcome, status, body = fetched.outcome, 0, b""
        if fetched.reply is not None:
            status, body = fetched.reply.status, fetched.reply.body
        if outcome.code is Code.REDIRECT_LOOP:
            status, body = 404, b""  # RFC 9309, 2.3.1.2: after too many redirects there is none
        known = read(status, body)
        if known is UNREACHABLE:
            said = f"robots.txt: {outcome.detail or outcome.status or outcome.code}"
            return Outcome(outcome.code, outcome.status, said[:200], outcome.retry_after)
        await self._books.ask(self._books.folder.ledger.keep_robots, origin, status, body, self._clock.wall())
        return known
