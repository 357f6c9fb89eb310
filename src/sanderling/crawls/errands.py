"""What one part has another ask for: a host is asked by the part that it belongs to, whoever wants to know.

Most of what leads to a host of another part becomes work of that part. Some answers are needed where they were asked
for: the page that a redirect of a job leads to, a robots.txt that has moved to another host, what a page loads in a
browser. Such a request is an *errand*: it goes to the part of the host, which asks by its own limiter, as long as the
part is its own, and sends back what came. So the host has one sender, and the pace that this one has learned.

An errand is lost with whoever runs it, so it is sent again after a while; one that is known is not asked twice. Its
answer is lost with whoever waits for it, whose item waits in the ledger all the same.

What holds a password is no errand: it would lie on a disk, or in a database. That is sent by each part itself, and
hosts to log in at are a quota that all limiters share (`LimiterRules.with_logins`). The page of a form holds none yet.
"""

import asyncio
import secrets
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.exchange import PartExchange
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher, Sends, moves
from sanderling.fetch.classify import Relayed
from sanderling.fetch.guard import HeldBack
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome, code_of
from sanderling.stores.frontier_rows import FoundUrl, as_text
from sanderling.task import SECRET_BODY, Headers, Reply, Task

if sys.version_info >= (3, 14):
    from compression.zstd import compress, decompress
else:
    from backports.zstd import compress, decompress

LOOK = 1.0  # seconds between two looks at whether anybody still wants to know
AGAIN = 5  # looks after which an errand is sent again
ON_ITS_WAY = 30.0  # seconds that an answer may take: who asks again meanwhile will have it
KNOWN = 10_000  # errands of which it is remembered that they were run

RawHeaders = tuple[tuple[bytes, bytes], ...]


class Errand(msgspec.Struct, frozen=True, tag="errand", omit_defaults=True):
    """A request to a host of the part that it is sent to, and whom to tell."""

    part: int
    number: int
    url: str
    method: str = "GET"
    headers: RawHeaders = ()
    body: bytes | None = None
    most: int | None = None
    wait: float | None = None


class BroughtReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer; its body is packed."""

    status: int
    headers: RawHeaders
    body: bytes
    latency: float
    address: str = ""
    sent: RawHeaders = ()
    challenged: bool = False


class NoReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why there is none."""

    code: str
    detail: str = ""
    retry_after: float | None = None
    unsent: bool = False


class Brought(msgspec.Struct, frozen=True, tag="brought", omit_defaults=True):
    """What came of an errand."""

    number: int
    url: str
    reply: BroughtReply | None = None
    why: NoReply | None = None


PageMail: Any = FoundUrl | Errand | Brought  # what parts of a crawl of pages send each other


@dataclass(frozen=True, slots=True)
class ErrandTools:
    """What a part runs errands with. `http` is its own client, with all that forbids requests."""

    http: Sends
    limiter: Limiter
    memory: Memory
    executor: Executor
    clock: Clock


class Errands:
    """The errands of one part: a client that has other parts ask their hosts, and what it does for others.

    `is_ending` says whether nobody should wait any more. `serve` it beside the run.
    """

    def __init__(self, others: PartExchange, tools: ErrandTools, is_ending: Callable[[], bool]) -> None:
        self._others = others
        self._tools = tools
        self._is_ending = is_ending
        self._fetcher = Fetcher(tools.http, tools.limiter, clock=tools.clock, follow=False, retry=False)
        self._fetcher.patient = False  # who would wait for long is told so, and asks later, as a redirect does
        self._numbers = count(secrets.randbits(62))  # an answer to whoever had the part before is not ours
        self._waiting: dict[int, asyncio.Future[Brought]] = {}
        self._wanted: asyncio.Queue[Errand] = asyncio.Queue()  # not more than requests that others have in flight
        # By part and number: when it was answered, or never yet.
        self._met: OrderedDict[tuple[int, int], float] = OrderedDict()

    # What we have others ask for.

    async def send(self, task: Task) -> Reply:
        """The reply, whoever asks. Raises HeldBack, Relayed, or what the client raises."""
        tells = task.body is not None and SECRET_BODY in task.secrets
        if tells or self._others.owns(task.host):
            return await self._tools.http.send(task)
        brought = await self._have_asked(task)
        if brought.reply is None:
            raise Relayed(_outcome(brought.why))
        reply = await self._tools.executor(_unpack, brought.reply, task.url)
        if not moves(reply):  # as a client does: whoever gets the reply lets go
            await self._tools.memory.hold(task.holder or task.url, len(reply.body))
        return reply

    async def _have_asked(self, task: Task) -> Brought:
        number, part = next(self._numbers), self._others.part_of(task.host)
        errand = Errand(
            part=self._others.own,
            number=number,
            url=task.url,
            method=task.method,
            headers=_raw(task.headers),
            body=task.body,
            most=task.most,
            wait=task.wait,
        )
        answer: asyncio.Future[Brought] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            for look in count():
                if self._is_ending():
                    raise HeldBack("not sent: its host belongs to another part, and the run ends")
                if look % AGAIN == 0:
                    await self._tools.executor(self._others.tell, part, errand)
                await asyncio.wait([answer], timeout=LOOK)
                if answer.done():
                    break
            return answer.result()
        finally:
            del self._waiting[number]

    # What others have us ask for.

    def take(self, mail: Errand | Brought) -> None:
        """Another part wants something asked, or tells what came of what we wanted."""
        if isinstance(mail, Errand):
            self._wanted.put_nowait(mail)
            return
        answer = self._waiting.get(mail.number)
        if answer is not None and not answer.done():
            answer.set_result(mail)

    async def serve(self) -> None:
        """Run errands of others, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                errand = await self._wanted.get()
                if self._is_new(errand):
                    group.create_task(self._serve(errand))

    def _is_new(self, errand: Errand) -> bool:
        """Whether it is not being run, nor was a moment ago: then its answer is on its way."""
        known = errand.part, errand.number
        if known in self._met and self._tools.clock.now() - self._met[known] < ON_ITS_WAY:
            return False
        self._met[known] = inf
        if len(self._met) > KNOWN:
            self._met.popitem(last=False)
        return True

    async def _serve(self, errand: Errand) -> None:
        holder = f"errand {errand.part} {errand.number}"
        try:
            answer = await self._ask(errand, holder)
            await self._tools.executor(self._tell, errand, answer)
        finally:
            self._tools.memory.release(holder)
        self._met[errand.part, errand.number] = self._tools.clock.now()

    async def _ask(self, errand: Errand, holder: str) -> Reply | Outcome:
        headers = tuple((_text(name), _text(value)) for name, value in errand.headers)
        task = Task(errand.url, errand.method, headers, errand.body, most=errand.most, wait=errand.wait, holder=holder)
        if not self._others.owns(task.host):
            return Outcome(Code.REFUSED, detail=f"{task.host} belongs to another part")
        fetched = await self._fetcher.fetch(task)
        return fetched.outcome if fetched.reply is None else fetched.reply

    def _tell(self, errand: Errand, answer: Reply | Outcome) -> None:
        if isinstance(answer, Reply):
            brought = Brought(errand.number, errand.url, reply=_packed(answer))
        else:
            why = NoReply(str(answer.code), as_text(answer.detail), answer.retry_after, answer.unsent)
            brought = Brought(errand.number, errand.url, why=why)
        self._others.tell(errand.part, brought)


def _outcome(why: NoReply | None) -> Outcome:
    if why is None:
        return Outcome(Code.INTERNAL_ERROR, detail="another part has said nothing of what came")
    return Outcome(code_of(why.code), detail=why.detail, retry_after=why.retry_after, unsent=why.unsent)


def _packed(reply: Reply) -> BroughtReply:
    return BroughtReply(
        status=reply.status,
        headers=_raw(reply.headers),
        body=compress(reply.body, 1) if reply.body else b"",
        latency=reply.latency,
        address=reply.address,
        sent=_raw(reply.sent),
        challenged=reply.challenged,
    )


def _unpack(found: BroughtReply, url: str) -> Reply:
    return Reply(
        status=found.status,
        headers=_headers(found.headers),
        body=decompress(found.body) if found.body else b"",
        url=url,
        latency=found.latency,
        address=found.address,
        sent=_headers(found.sent),
        challenged=found.challenged,
    )


# A byte of a header that is no UTF-8 stands for itself, which JSON cannot say.


def _raw(headers: Headers) -> RawHeaders:
    return tuple((_bytes(name), _bytes(value)) for name, value in headers)


def _headers(raw: RawHeaders) -> Headers:
    return tuple((_text(name), _text(value)) for name, value in raw)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
