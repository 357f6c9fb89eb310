"""Makes a batch of a crawl durable: rows and bodies, then the frontier; before both, whoever comes after us has it.

Where somebody comes after us (`hand_over`), rows of pages.jsonl and failed.jsonl are handed over before the frontier
takes note of them: whoever is killed in between asks for them again, and hands them over again.
"""

from collections import Counter
from collections.abc import Sequence

from sanderling.engine.handover import HandOver
from sanderling.executor import Executor
from sanderling.ids import host_of
from sanderling.pages.folder import CrawlFolder, failed_row
from sanderling.stores.frontier_rows import End, Ended, FoundUrl, HostNote, RetryUrl, failed_as

Note = Ended | RetryUrl | HostNote


class PageSink:
    """Writes into one folder, through one thread, so that the folder is never touched by two at once."""

    def __init__(self, folder: CrawlFolder, desk: Executor, hand_over: HandOver[bytes] | None) -> None:
        self.unhanded: Counter[End] = Counter()  # what ended, and waits again, since nobody took it
        self._folder = folder
        self._desk = desk
        self._hand_over = hand_over

    async def write(self, ended: Sequence[Note], found: Sequence[FoundUrl], checkpoint: None) -> dict[str, int]:
        """Commit all of it or nothing; how many new URLs wait, by host."""
        del checkpoint  # rows and frontier are cut at the same watermark
        done = [each for each in ended if isinstance(each, Ended)]
        # Whoever wants to be left out is not handed on as a failure either.
        rows = [_row(each) for each in done if each.end is not End.LEFT_OUT]
        if self._hand_over is not None and rows and not await self._hand_over.hand(rows):
            self.unhanded.update(each.end for each in done)
            done = []
        # The last word of each counts, if it has no end yet.
        again = {each.id: each for each in ended if isinstance(each, RetryUrl)}
        for each in done:
            again.pop(each.id, None)
        notes = [each for each in ended if isinstance(each, HostNote)]
        return await self._desk(_commit, self._folder, done, found, list(again.values()), notes)

    def stop(self) -> None:
        """Whoever comes after us is told when we are stopped, which is earlier."""


def _row(ended: Ended) -> bytes:
    """The row of what ended, also of what has none in pages.jsonl."""
    if ended.row is not None:
        return ended.row
    return failed_row(failed_as(ended, host_of(ended.url)))


def _commit(
    folder: CrawlFolder,
    ended: Sequence[Ended],
    found: Sequence[FoundUrl],
    again: Sequence[RetryUrl],
    notes: Sequence[HostNote],
) -> dict[str, int]:
    """At the desk: a page that has not changed leads where it led in the earlier crawl."""
    follow = list(found)
    for each in ended:
        if each.end is End.UNCHANGED and each.depth < folder.plan.depth:
            links = folder.ledger.remembered_links(each.url)
            follow.extend(FoundUrl(link, host_of(link), each.depth + 1) for link in links)
    new = folder.commit(ended, follow, again)
    folder.ledger.note_hosts(notes)
    return new
