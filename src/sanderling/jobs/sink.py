"""Makes a batch of a job durable: records, then the frontier, through one thread."""

from collections.abc import Sequence

from sanderling.executor import Executor
from sanderling.jobs.folder import JobFolder
from sanderling.stores.frontier_requests import EndedRequest, Waiting
from sanderling.stores.frontier_rows import HostNote, RetryUrl

Note = EndedRequest | RetryUrl | HostNote


class JobSink:
    """Writes into one folder."""

    def __init__(self, folder: JobFolder, desk: Executor) -> None:
        self._folder = folder
        self._desk = desk

    async def write(self, ended: Sequence[Note], found: Sequence[object], checkpoint: int) -> Waiting:
        """Commit all of it or nothing, with the number of requests so far; how many new requests wait."""
        del found  # what was found comes with the request that it was found by
        done = [each for each in ended if isinstance(each, EndedRequest)]
        # The last word of each counts, if it has no end yet.
        again = {each.id: each for each in ended if isinstance(each, RetryUrl)}
        for each in done:
            again.pop(each.id, None)
        notes = [each for each in ended if isinstance(each, HostNote)]
        return await self._desk(self._folder.commit, done, list(again.values()), notes, checkpoint)

    def stop(self) -> None:
        """A disk is not waited for."""
