"""Makes a batch of a crawl durable: through one thread, so that the folder is never touched by two at once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sanderling.crawls.folder import Checkpoint, LedgerFolder
from sanderling.crawls.kept import KeptReply
from sanderling.crawls.session import CrawlSession
from sanderling.engine.handover import HandOver
from sanderling.executor import Executor
from sanderling.stores.frontier_rows import End, Ended, HostNote, RetryUrl

Note = Ended | RetryUrl | HostNote | KeptReply


class LedgerSink:
    """Writes into one folder.

    Where somebody comes after us (`hand_over`), the `row_of` all that ended is handed over before the ledger takes note
    of it: whoever is killed in between asks for it again, and hands it over again.
    """

    def __init__(
        self,
        folder: LedgerFolder[Any],
        executor: Executor,
        hand_over: HandOver[bytes] | None = None,
        row_of: Callable[[Ended], bytes] | None = None,
        session: CrawlSession | None = None,
    ) -> None:
        self.unhanded: Counter[End] = Counter()  # what ended, and waits again, since nobody took it
        self._folder = folder
        self._executor = executor
        self._hand_over = hand_over
        self._row_of = row_of
        self._session = session

    async def write(self, ended: Sequence[Note], found: Sequence[Any], checkpoint: Checkpoint) -> Mapping[Any, int]:
        """Commit all of it or nothing, with how far the run has come; how many new items wait."""
        done = [each for each in ended if isinstance(each, Ended)]
        if not await self._hand(done):
            self.unhanded.update(each.end for each in done)
            done = []
        # The last word of each counts, if it has no end yet.
        again = {each.id: each for each in ended if isinstance(each, RetryUrl)}
        for each in done:
            again.pop(each.id, None)
        notes = [each for each in ended if isinstance(each, HostNote)]
        if self._session is not None and (cookies := self._session.changes()) is not None:
            # Before the ledger: what a reply that is noted there was asked with must not be lost.
            await self._executor(self._folder.cookies.save, cookies)
        kept = [each for each in ended if isinstance(each, KeptReply)]
        return await self._executor(self._folder.commit, done, found, list(again.values()), notes, checkpoint, kept)

    async def _hand(self, done: Sequence[Ended]) -> bool:
        """Whether nobody comes after us, or whoever does has all of it."""
        if self._hand_over is None or self._row_of is None:
            return True
        # Whoever wants to be left out is not handed on as a failure either.
        rows = [self._row_of(each) for each in done if each.end is not End.LEFT_OUT]
        return not rows or await self._hand_over.hand(rows)

    def stop(self) -> None:
        """Whoever comes after us is told when we are stopped, which is earlier; a disk is not waited for."""
