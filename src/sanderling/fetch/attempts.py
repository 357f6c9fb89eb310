"""Ask until there is an answer worth having: leave, send, learn, follow redirects, try again within seconds.

Each hop and each retry asks for leave of the host it goes to, and waits a few seconds for it at most. What must wait
longer comes back as an outcome with a time, for whoever schedules: a worker is never put to sleep for it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urljoin, urlsplit, urlunsplit

import aiohttp
import msgspec

from sanderling.clock import Clock, SystemClock
from sanderling.fetch.classify import (
    BadEncoding,
    NotHttp,
    RedirectLoop,
    Relayed,
    TooLarge,
    feedback,
    of_error,
    of_reply,
    retry_soon,
)
from sanderling.fetch.cookies import CookieJar
from sanderling.fetch.guard import HeldBack, Refused
from sanderling.ids import HostError
from sanderling.limit import CircuitOpen, Feedback, Limiter, Permit, hints
from sanderling.outcome import Code, Outcome
from sanderling.redact import is_secret
from sanderling.task import SECRET_BODY, Reply, Task

REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_HOPS = 20  # as browsers have it
PARTIAL = 206
MOST_CHALLENGES = 2  # of a host that wants proof of who asks: its first, and one for a nonce that is too old
LONGEST_WAIT = 5.0  # seconds; a hop or a retry that is due later is somebody else's to schedule
# What a host, or the way to it, can make a client raise. Anything else is a bug of ours, and loud.
EXPECTED = (
    *(aiohttp.ClientError, OSError, EOFError, ValueError),
    *(Refused, HeldBack, Relayed, TooLarge, BadEncoding, NotHttp),
)
# Seconds to wait for the answer to a probe to begin, whatever the client's own times are: so probes leave at most 30 s
# apart. A host whose answers take long when it is well gets three times as long as they take.
PROBE_WAIT, SLOWEST = 10.0, 3.0

# What an API makes of a reply whose status and headers mean this much: some say "not found" with a 500.
Read = Callable[[Reply, Outcome], Outcome | Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Fetched:
    """How it ended: the outcome, the reply if one was read, and how many requests it took."""

    outcome: Outcome
    reply: Reply | None
    requests: int


class Sends(Protocol):
    """One exchange and nothing more: `fetch.http.Http`, or a simulated network."""

    async def send(self, task: Task) -> Reply:
        """The reply. Raises what `classify.of_error` understands."""


class LeavingOut:
    """A client that does not send what is left out, wherever a redirect leads: `why` says so in words, or nothing."""

    def __init__(self, http: Sends, why: Callable[[Task], str]) -> None:
        self._http = http
        self._why = why

    async def send(self, task: Task) -> Reply:
        """The reply. Raises Refused, or what the client raises."""
        if why := self._why(task):
            raise Refused(f"left out: {why}")
        return await self._http.send(task)


class LeasedSender:
    """A client that sends nothing once `may_send` says no: a lease is over, and others may have our hosts."""

    def __init__(self, http: Sends, may_send: Callable[[], bool]) -> None:
        self._http = http
        self._may_send = may_send

    async def send(self, task: Task) -> Reply:
        """The reply. Raises HeldBack, or what the client raises."""
        if not self._may_send():
            raise HeldBack("not sent: the lease of its host is over, or about to be")
        return await self._http.send(task)


class CookieSender:
    """A client that sends the cookies of a jar, by the host and the path of each request alone, and takes new ones."""

    def __init__(self, http: Sends, jar: CookieJar, clock: Clock) -> None:
        self._http = http
        self._jar = jar
        self._clock = clock

    async def send(self, task: Task) -> Reply:
        """The reply. Raises what the client raises."""
        reply = await self._http.send(self._jar.put(task, self._clock.wall()))
        self._jar.learn(task, reply.headers, self._clock.wall())
        return reply

    def cookies_for(self, task: Task) -> str:
        """The cookies that a task would be sent with now."""
        return self._jar.header(task, self._clock.wall())


class Fetcher:
    """Fetches tasks through one client and one limiter."""

    def __init__(
        self,
        http: Sends,
        limiter: Limiter,
        *,
        clock: Clock | None = None,
        job: str = "",
        follow: bool = True,
        retry: bool = True,
    ) -> None:
        self._http = http
        self._limiter = limiter
        self._clock = clock or SystemClock()
        self._job = job
        self._follow = follow  # redirects; who does not want that gets them as they are
        self._retry = retry  # within seconds; who asks again soon anyway need not
        self.patient = True  # a first request waits its turn, however long; others never do

    async def fetch(self, task: Task, permit: Permit | None = None, read: Read | None = None) -> Fetched:
        """The end of `task`, after redirects and retries. Never raises for anything a host may do.

        Who has leave for the first request already hands in its permit; one that is spent stands for the same item, and
        gives further requests as any permit does. `read` has the last word on each reply but redirects, and the limiter
        learns from that.
        """
        requests = hops = challenges = 0
        seen = {(task.url, self.cookies_for(task))} if self._follow else set()
        while True:
            leave: Permit | Outcome
            if permit is not None and permit.live:
                leave = permit
            else:
                leave = await self._leave(task, permit, first=not requests)
            if isinstance(leave, Outcome):
                if task.attempt > 1:
                    self._limiter.refund_retry(task.host)  # it was never sent
                return Fetched(leave, None, requests)
            leave.charge(self._limiter.cost(task.host, task.url))
            outcome, reply = await self._once(task, leave, permit, read)
            requests += 1
            if reply is not None and reply.challenged and challenges < MOST_CHALLENGES:
                challenges += 1
                continue
            if self._follow and reply is not None and moves(reply):
                hops += 1
                following = self._following(task, reply, seen, hops)
                if isinstance(following, Task):
                    task = following
                    continue
                return Fetched(following, reply, requests)
            if task.attempt > 1 and outcome.ok:
                self._limiter.refund_retry(task.host)  # a retry that was worth it costs nothing
            wait = self._retry_in(task, outcome)
            if wait is None:
                return Fetched(outcome, reply, requests)
            await self._pause(task, wait)
            task = _again(task, outcome)

    def cookies_for(self, task: Task) -> str:
        """The cookies that a task would be sent with now."""
        return self._http.cookies_for(task) if isinstance(self._http, CookieSender) else ""

    def _following(self, task: Task, reply: Reply, seen: set[tuple[str, str]], hops: int) -> Task | Outcome:
        """The next hop, or the outcome that ends the chase. An address with another cookie is another question."""
        following = _next_task(task, reply)
        if isinstance(following, Outcome):
            return following
        question = following.url, self.cookies_for(following)
        if question in seen or hops > MOST_HOPS:
            where = "back to a page on the way" if question in seen else "and no end in sight"
            return of_error(RedirectLoop(f"{hops} redirects, {where}"))
        seen.add(question)
        return following

    async def _pause(self, task: Task, seconds: float) -> None:
        """Wait for a planned retry; one that is given up meanwhile was never sent, and is not paid for."""
        try:
            await self._clock.sleep(seconds)
        except asyncio.CancelledError:
            self._limiter.refund_retry(task.host)
            raise

    async def _leave(self, task: Task, permit: Permit | None, *, first: bool) -> Permit | Outcome:
        """Leave for the next request, or why there is none for now. A first one without a permit waits its turn."""
        try:
            if permit is None and first and self.patient:
                return await self._acquire(task, permit)
            return await self._acquire_soon(task, permit)
        except CircuitOpen as closed:
            return self._defer("its host does not answer, and is probed until it does", closed.until)
        except TimeoutError:
            return self._defer("its host is not ready", self._limiter.ready_at(task.host))

    async def _acquire(self, task: Task, permit: Permit | None) -> Permit:
        if permit is not None:
            return await permit.more(task.host)
        return await self._limiter.acquire(task.host, job=self._job)

    async def _acquire_soon(self, task: Task, permit: Permit | None) -> Permit:
        """Leave within LONGEST_WAIT. Raises TimeoutError, at once if the host says already that it will not be."""
        if self._limiter.ready_at(task.host) - self._clock.now() > LONGEST_WAIT:
            raise TimeoutError
        async with asyncio.timeout(None) as limit:
            # By this clock, which may not be the loop's.
            timer = self._clock.call_later(LONGEST_WAIT, lambda: limit.reschedule(0.0))
            try:
                return await self._acquire(task, permit)
            finally:
                timer.cancel()

    def _defer(self, why: str, until: float) -> Outcome:
        return Outcome(Code.DEFERRED, detail=why, retry_after=max(0.0, until - self._clock.now()))

    async def _once(
        self, task: Task, permit: Permit, handed: Permit | None, read: Read | None
    ) -> tuple[Outcome, Reply | None]:
        """One exchange: how it ended, and what came back."""
        reply: Reply | None = None
        started = self._clock.now()
        asked = task
        if permit.probe:
            asked = replace(task, wait=max(PROBE_WAIT, SLOWEST * permit.gate.mean))
        try:
            reply = await self._http.send(asked)
            if reply.address:
                self._limiter.locate(permit, reply.address)
            outcome = of_reply(reply.status, reply.headers, wall=self._clock.wall())
            if reply.status == PARTIAL and (part := _unasked_part(asked, reply)):
                outcome = Outcome(Code.INVALID_RESPONSE, PARTIAL, part)
            if read is not None and not moves(reply) and not reply.challenged:
                said = read(reply, outcome)
                outcome = said if isinstance(said, Outcome) else await said
        except EXPECTED as error:
            outcome = of_error(error)
        except BaseException:
            # Who says whose fault a failure is cuts a request short as a failure, and reports that itself.
            if permit is not handed or task.blame is None:
                permit.release(sent=True)
            raise
        lesson = self._lesson(outcome, reply, self._clock.now() - started)
        unsent = outcome.unsent
        if unsent or (task.blame is not None and (task.blame.failures or not outcome.code.ok)):  # else it says nothing
            lesson = msgspec.structs.replace(lesson, blame=task.blame, unsent=unsent)
        self._limiter.feedback(permit, lesson)
        return outcome, reply

    def _lesson(self, outcome: Outcome, reply: Reply | None, took: float) -> Feedback:
        if reply is None:
            return feedback(outcome, took)
        return feedback(outcome, reply.latency, hints.quota(dict(reply.headers), now=self._clock.wall()))

    def _retry_in(self, task: Task, outcome: Outcome) -> float | None:
        """Seconds to the next try, if it is worth one, affordable, and soon."""
        if not self._retry or not retry_soon(outcome) or not outcome.code.retry.allows(task.attempt):
            return None
        if self._limiter.ready_at(task.host) - self._clock.now() > LONGEST_WAIT:
            return None
        return self._limiter.plan_retry(task.host, task.attempt)


def _again(task: Task, outcome: Outcome) -> Task:
    """The same question once more; that it failed is known of it, and a refusal is no failure."""
    if task.blame is None or not outcome.blames_host:
        return task.again()
    return replace(task.again(), blame=task.blame._replace(failures=task.blame.failures + 1))


def _unasked_part(task: Task, reply: Reply) -> str:
    """What of a body came, in words, if nobody asked for a part and it is not all of it."""
    if any(name.lower() == "range" for name, _ in task.headers):
        return ""
    found = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", (reply.header("Content-Range") or "").strip())
    if found is None:
        return "a part that was not asked for, and no Content-Range to say which"
    first, last, size = found.groups()
    if int(first) == 0 and size != "*" and int(last) + 1 == int(size):
        return ""
    return f"bytes {first} to {last} of {size}, though no part was asked for"


def moves(reply: Reply) -> bool:
    """Whether the reply is a redirect that says where to."""
    return reply.status in REDIRECTS and bool(reply.header("Location"))


def location_of(reply: Reply) -> str:
    """The Location of a reply; a byte of it that is no UTF-8 stands for itself, percent-encoded as browsers have it."""
    text = reply.header("Location") or ""
    return text if text.isascii() else re.sub("[\udc80-\udcff]", lambda found: f"%{ord(found[0]) - 0xDC00:02X}", text)


def _next_task(task: Task, reply: Reply) -> Task | Outcome:
    """Where a redirect leads, or why that cannot be asked."""
    try:
        return _next_hop(task, reply)
    except Refused as refused:
        return of_error(refused)
    except ValueError as error:  # HostError is one
        return of_error(HostError(f"redirect to what is no http address: {type(error).__name__}"))


def _next_hop(task: Task, reply: Reply) -> Task:
    location = urljoin(task.url, location_of(reply).strip())
    target = urlunsplit(urlsplit(location)._replace(fragment=""))  # a fragment is for browsers
    keeps = reply.status in (307, 308) or task.method in ("GET", "HEAD")
    method, body = (task.method, task.body) if keeps else ("GET", None)
    following = replace(task, url=target, method=method, body=body, attempt=1)
    if following.host == task.host and not _opens(task.url, target):
        return following
    if SECRET_BODY in task.secrets and body is not None:
        raise Refused(f"redirect of a request with secrets from {task.host} to {following.host}")
    # Secrets were meant for the first host only.
    kept = tuple(pair for pair in task.headers if not is_secret(pair[0]) and pair[0].lower() not in task.secrets)
    return replace(following, headers=kept)


def _opens(url: str, target: str) -> bool:
    """Whether the way from one address to the next leads from https to http, where everyone can listen."""
    return url[:6].lower() == "https:" and target[:5].lower() == "http:"
