"""Asks for one target: conditionally, once, and reads only what differs from the last time."""

import hashlib
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from sanderling.apis.polled import PolledSource, Wanted
from sanderling.clock import Clock
from sanderling.engine.ports import Settled
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Permit, hints
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.polling.targets import PollRun, ScheduledTarget
from sanderling.stores.documents import Document, SourceError
from sanderling.task import Blame, Reply, Task

LONGEST_TAG = 1000  # characters of an ETag or a date that are kept; longer ones are not sent back
# What may be sent back as a condition: a tag as it should be, or one that lacks its quotes, as some servers have them.
# Not "*", which would mean: only if there is nothing (RFC 9110, 13.1.2).
TAG = re.compile(r'(W/)?"[!#-~]*"|[\w.:+/=-]+', re.ASCII)
# A date tells versions apart only if it is this many seconds older than the answer: what changes twice in a second has
# one date (RFC 9110, 8.8.2.2).
DATE_GRAIN = 1.0
# Bytes that are read at once. A larger document would make others late, and goes to a thread.
AT_ONCE = 64 * 1024
CONDITIONS = ("If-None-Match", "If-Modified-Since")
NOWHERE = ""  # the host of targets that cannot be asked about
UNCHANGED = Outcome(Code.NOT_MODIFIED, detail="the same as before")
UNASKED = Outcome(Code.INVALID_RESPONSE, 304, "not modified, though it was not asked under a condition")

_ANY = msgspec.json.Decoder()


class PolledAnswer(NamedTuple):
    """What came of asking. Without a document nothing is new, or nothing came; the outcome says which."""

    outcome: Outcome
    seconds: float
    document: Document | None = None
    etag: str = ""
    modified: str = ""
    raw: bytes = b""
    digest: bytes = b""
    epoch: int = 0  # of its event, when it was asked for
    size: int = 0  # bytes of the document


@dataclass(slots=True)
class PollingHandler:
    """All there is to ask with. Large documents are read at the desk."""

    source: PolledSource
    fetcher: Fetcher
    memory: Memory
    clock: Clock
    desk: Executor

    def host(self, entry: ScheduledTarget) -> str:
        """Who is asked."""
        try:
            return str(self.source.task(wanted(entry)).host)
        except SourceError:
            return NOWHERE

    def task(self, entry: ScheduledTarget) -> Task:
        """The question. Raises SourceError for a target that cannot be asked about."""
        task = self.source.task(wanted(entry))
        conditions = tuple(pair for pair in zip(CONDITIONS, (entry.etag, entry.modified), strict=True) if pair[1])
        return replace(task, headers=(*task.headers, *conditions)) if conditions else task

    async def __call__(self, work: PollRun, permit: Permit | None, blame: Blame) -> Settled[PolledAnswer]:  # noqa: ARG002 - of one
        """What came of it. The limiter counts each failure for itself: there may be one document only."""
        epoch = work.entry.epoch
        answer = (await self.ask(work.entry, permit))._replace(epoch=epoch)
        return Settled(answer.outcome, answer, decided=True, size=answer.size)

    def received(self, work: PollRun) -> None:  # noqa: ARG002 - the port's
        """Nobody looks: the client has its own times, and what hangs holds up nothing."""
        return

    def problem(self, entry: ScheduledTarget) -> Outcome | None:
        """Why a target cannot be asked about, if it cannot."""
        try:
            self.source.task(wanted(entry))
        except SourceError as error:
            return error.outcome
        return None

    async def ask(self, entry: ScheduledTarget, permit: Permit | None) -> PolledAnswer:
        """What came of it. Without a permit it waits for its turn."""
        started = self.clock.now()
        try:
            task = self.task(entry)
        except SourceError as error:
            if permit is not None:
                permit.release(sent=False)
            return PolledAnswer(error.outcome, 0.0)
        fetched = await self.fetcher.fetch(task, permit)
        reply = fetched.reply
        try:
            if reply is None or not fetched.outcome.ok:
                return PolledAnswer(fetched.outcome, self.clock.now() - started)
            if fetched.outcome.code is Code.NOT_MODIFIED:
                asked = any(name in CONDITIONS for name, _ in task.headers)
                return PolledAnswer(fetched.outcome if asked else UNASKED, self.clock.now() - started)
            return await self._compared(entry, reply, started)
        finally:
            if reply is not None:
                self.memory.release(reply.url)

    async def _compared(self, entry: ScheduledTarget, reply: Reply, started: float) -> PolledAnswer:
        large = len(reply.body) > AT_ONCE
        answer = await self.desk(self._read, entry, reply) if large else self._read(entry, reply)
        return answer._replace(seconds=self.clock.now() - started)

    def _read(self, entry: ScheduledTarget, reply: Reply) -> PolledAnswer:
        """Read the reply if it differs. Of the entry nothing is changed: this may be another thread."""
        raw, tags = hashlib.blake2b(reply.body, digest_size=16).digest(), (_tag(reply), self._date(reply))
        if entry.digest and raw == entry.raw:
            return PolledAnswer(UNCHANGED, 0.0, None, *tags, raw, entry.digest)
        digest = canonical(reply.body, raw)
        if digest == entry.digest:
            return PolledAnswer(UNCHANGED, 0.0, None, *tags, raw, digest)
        try:
            document = self.source.read(wanted(entry), reply)
        except SourceError as error:
            return PolledAnswer(error.outcome, 0.0)
        return PolledAnswer(Outcome(Code.OK, reply.status), 0.0, document, *tags, raw, digest, size=len(reply.body))

    def _date(self, reply: Reply) -> str:
        """Its Last-Modified, if that can tell whether it changes."""
        modified, wall = reply.header("Last-Modified") or "", self.clock.wall()
        if len(modified) > LONGEST_TAG:
            return ""
        since, said = (hints.http_date(text, now=wall) for text in (modified, reply.header("Date") or ""))
        return modified if since is not None and said is not None and since <= said - DATE_GRAIN else ""


def wanted(entry: ScheduledTarget) -> Wanted:
    """The target as its source knows it."""
    return Wanted(entry.kind, entry.source_id, entry.event, entry.only)


def canonical(body: bytes, otherwise: bytes) -> bytes:
    """A digest that does not mind the order of keys, or blanks; `otherwise` for what is no JSON."""
    try:
        document = _ANY.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return otherwise
    same = msgspec.json.encode(document, order="deterministic")
    return hashlib.blake2b(same, digest_size=16).digest()


def _tag(reply: Reply) -> str:
    value = reply.header("ETag") or ""
    return value if len(value) <= LONGEST_TAG and TAG.fullmatch(value) else ""
