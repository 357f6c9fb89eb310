"""Sends one request of a job and has its reply read by the function that the job names. Nothing here decides when."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sanderling.apis.credentials import Answered
from sanderling.clock import Clock
from sanderling.crawls.session import Logins
from sanderling.engine.ports import Settled
from sanderling.fetch.attempts import Fetched, Fetcher, Read, Sends
from sanderling.fetch.guard import Refused
from sanderling.fetch.render import RenderedPage, RenderError
from sanderling.jobs.aliases import AliasClaims
from sanderling.jobs.calls import Mistake
from sanderling.jobs.functions import Collected, JobFunctions
from sanderling.jobs.page import PageRender
from sanderling.jobs.reply import JobReply
from sanderling.jobs.request import MOST_PRIORITY, Request, StoredRequest, unpack
from sanderling.jobs.source import JobBudget, JobScope, Understood, out_of_scope
from sanderling.limit import Permit
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.pages.extract import extract
from sanderling.pages.hosts import RobotsWork
from sanderling.pages.permissions import Permissions, RobotsAnswer
from sanderling.pages.rendering import PageRendering, needs_scripts
from sanderling.stores.frontier_requests import FoundRequest, QueuedRequest, SpoiledRecords
from sanderling.stores.frontier_rows import SCREENSHOTS, BodyFile, End
from sanderling.task import Blame, Reply, Task

# What a reply is understood as: what a reader made of it, why not, or rules of robots.txt.
Result = Understood | Outcome | End | RobotsAnswer
UNCLAIMED = Outcome(Code.CANCELLED, detail="stopped before it was known who keeps the page")


class ScopedSender:
    """A client that sends to the hosts of a job and to no other, wherever a redirect leads; it counts requests.

    With `permissions`, a redirect is followed where robots.txt allows it, and to what is `open`: a page to log in on.
    `strays` has the holders of tasks that led elsewhere, and what becomes of them.
    """

    def __init__(self, http: Sends, hosts: JobScope, budget: JobBudget, permissions: Permissions | None) -> None:
        self._http = http
        self._hosts = hosts
        self._budget = budget
        self.permissions = permissions
        self.open: Callable[[str], bool] = lambda _: False
        self.strays: dict[str, End] = {}

    async def send(self, task: Task) -> Reply:
        """The reply. Raises Refused, or what the client raises."""
        if task.host not in self._hosts:
            self.strays[task.holder] = End.LEFT_OUT
            raise Refused(out_of_scope(task.host, self._hosts))
        if self.permissions is not None and task.holder and not self.open(task.url):
            origin = f"{task.url.partition(':')[0].lower()}://{task.host}"
            rules = self.permissions.known(origin)
            if rules is None:  # only a redirect leads to where they are not known
                rules = await self.permissions.look_up(origin)
            if not rules.allows(task.url):
                self.strays[task.holder] = End.REFUSED
                raise Refused(rules.why(task.url)[:200])
        try:
            return await self._http.send(task)
        finally:
            self._budget.requests += 1


class JobHandler:
    """Sends requests for which there is leave."""

    def __init__(
        self,
        fetcher: Fetcher | Logins,
        within: ScopedSender,
        functions: JobFunctions,
        memory: Memory,
        clock: Clock,
        stop: Callable[[], None],
    ) -> None:
        self.rendering: PageRendering | None = None
        self.claims: AliasClaims | None = None  # where the job has parts
        self._permissions = within.permissions
        self._strays = within.strays
        self._stop = stop  # called where nothing can be asked: a token was denied
        self._fetcher = fetcher
        self._functions = functions
        self._memory = memory
        self._clock = clock
        self._reading: set[int] = set()

    async def __call__(
        self, work: QueuedRequest | RobotsWork, permit: Permit, blame: Blame
    ) -> Settled[Understood | Outcome | End | RobotsAnswer]:
        """What came of it. No secret is in what is said of it, whoever says it."""
        if isinstance(work, RobotsWork):
            assert self._permissions is not None  # noqa: S101 - whoever asks for robots.txt has them
            learned = await self._permissions.learn(work.key, permit)
            return Settled(learned.outcome, learned, decided=True, of_host=True)
        settled = await self._settle(work, permit, blame)
        settled.outcome = self._masked(settled.outcome)
        if isinstance(settled.result, Outcome):
            settled.result = self._masked(settled.result)
        return settled

    def _masked(self, outcome: Outcome) -> Outcome:
        return replace(outcome, detail=self._functions.mask(outcome.detail)) if outcome.detail else outcome

    async def _settle(
        self, work: QueuedRequest, permit: Permit, blame: Blame
    ) -> Settled[Understood | Outcome | End | RobotsAnswer]:
        key, stored = f"{work.id} {work.url}", unpack(work.data)
        request = Request(
            work.url,
            read=work.reader,
            method=stored.method,
            headers=stored.headers,
            body=stored.body,
            data=stored.data,
            priority=max(work.priority, -MOST_PRIORITY),  # one that was stuck is behind all that a job can say
        )
        try:
            sent = await self._functions.prepare(key, request) if self._functions.before else request
            task = Task(sent.url, sent.method, sent.pairs, sent.content, blame=blame, holder=str(work.id))
        except (Mistake, ValueError) as mistake:
            return Settled(Outcome(Code.PARSE_ERROR, detail=str(mistake)))
        if task.host != work.host:  # for which there is no leave
            said = f"a function before the request has changed its host from {work.host} to {task.host}"
            return Settled(Outcome(Code.PARSE_ERROR, detail=said))
        try:
            fetched = await self._fetch(task, permit, self._judging(key, request))
            if (end := self._strays.get(str(work.id))) is not None:
                return Settled(fetched.outcome, end)
            if fetched.outcome.code is Code.NOT_MODIFIED:
                return Settled(
                    replace(fetched.outcome, code=Code.HTTP_ERROR, detail="304 Not Modified: it has no body")
                )
            if fetched.reply is None or not fetched.outcome.ok:
                return Settled(fetched.outcome)
            self._reading.add(work.id)
            return await self._read(key, work, request, stored, fetched)
        finally:
            self._reading.discard(work.id)
            self._strays.pop(str(work.id), None)
            self._memory.release(str(work.id))

    async def _fetch(self, task: Task, permit: Permit, read: Read | None) -> Fetched | Answered:
        if self._functions.credentials is None:
            return await self._fetcher.fetch(task, permit, read)
        answered = await self._functions.credentials.fetch(self._fetcher, task, permit, read)
        if self._functions.credentials.denied:
            self._stop()
        return answered

    def received(self, work: QueuedRequest | RobotsWork) -> int | None:
        """Bytes of the answer so far; None while it is read, which sends nothing."""
        if isinstance(work, RobotsWork):
            return self._memory.held(work.url)
        return None if work.id in self._reading else self._memory.held(str(work.id))

    def _judging(self, key: str, request: Request) -> Read | None:
        """What the job makes of a reply, where it has a word on that."""
        if self._functions.after or self._functions.answers is not None or request.read in self._functions.statuses:
            return partial(self._judge, key, request)
        return None

    async def _judge(self, key: str, request: Request, raw: Reply, outcome: Outcome) -> Outcome:
        reply = JobReply(raw, request, self._functions.arguments)
        if raw.status in self._functions.statuses.get(request.read or "", ()):
            outcome = Outcome(Code.OK, raw.status)
        if self._functions.answers is not None:
            outcome = self._functions.answers.read(reply.parsed, outcome, self._clock.wall())
        try:
            return await self._functions.judge(key, reply, outcome)
        except Mistake as mistake:
            return Outcome(Code.PARSE_ERROR, outcome.status, str(mistake))

    async def _read(
        self, key: str, work: QueuedRequest, request: Request, stored: StoredRequest, fetched: Fetched | Answered
    ) -> Settled[Understood | Outcome | End | RobotsAnswer]:
        """Have a good answer rendered, if need be, and read."""
        assert fetched.reply is not None  # noqa: S101 - it is good
        made, size = await self._render(work, fetched.reply), len(fetched.reply.body)
        if isinstance(made, Outcome):
            return Settled(made, size=size, flawed=True)
        result = await self._understand(key, work, request, stored, made)
        if isinstance(result, Understood) and result.alias is not None and self.claims is not None:
            claimed = await self._claim(work, result, result.alias, self.claims)
            if claimed is None:
                return Settled(UNCLAIMED, size=size)
            result = claimed
        return Settled(fetched.outcome, result, size=size)

    @staticmethod
    async def _claim(
        work: QueuedRequest, read: Understood, alias: FoundRequest, claims: AliasClaims
    ) -> Understood | None:
        """What of a page is kept that a redirect led to, where another part may have it; None if nobody says."""
        if claims.owns(alias.host):
            return read  # the ledger says
        granted = await claims.ask(alias, work.id)
        if granted is None:
            return None
        return read._replace(alias=None) if granted else Understood((), (), read.body)

    async def _render(self, work: QueuedRequest, reply: Reply) -> Reply | RenderedPage | Outcome:
        """What a browser makes of the page, if its function wants that; or why nothing."""
        wanted = self._functions.renders.get(work.reader, False)
        if self.rendering is None or not wanted or not self.rendering.renders(reply):
            return reply
        if wanted == "empty":
            text = extract(reply.body, content_type=reply.header("Content-Type") or "", url=reply.url).text
            if not needs_scripts(text, reply.body):
                return reply
        try:
            return await self.rendering.render(reply)
        except RenderError as error:
            # The host has answered, so it is the page that has failed, or the browser: it is tried again like others.
            return Outcome(Code.INTERNAL_ERROR, reply.status, str(error)[:200])

    async def _understand(
        self, key: str, work: QueuedRequest, request: Request, stored: StoredRequest, made: Reply | RenderedPage
    ) -> Understood | Outcome:
        raw, rendered, picture = (made, None, None) if isinstance(made, Reply) else _rendered(work, made)
        try:
            reply = self._functions.reply_for(work.reader, raw, request, rendered)
            reply.depth = work.depth
        except Mistake as mistake:
            return Outcome(Code.PARSE_ERROR, raw.status, str(mistake))
        collected = Collected(self._functions, work, raw.url, stored.only)
        following = self._functions.next_page(work, stored, reply)  # first: readers may change the document
        if isinstance(following, Outcome):
            return following
        try:
            await self._functions.readers[work.reader].each(key, collected.add, reply)
        except Mistake as mistake:
            return Outcome(Code.PARSE_ERROR, raw.status, str(mistake))
        found = (*collected.found, *(() if following is None else (following,)))
        wrong = collected.wrong(raw.status)
        alias = self._functions.alias_of(work, stored, raw.url)
        if wrong is None or not (collected.records or (found and not stored.only)):
            return wrong or Understood(tuple(collected.records), found, picture, alias=alias)
        spoiled = SpoiledRecords(collected.spoiled(stored), replace(wrong, detail=self._functions.mask(wrong.detail)))
        return Understood(tuple(collected.records), found, picture, spoiled, alias)


def _rendered(work: QueuedRequest, made: RenderedPage) -> tuple[Reply, PageRender, BodyFile | None]:
    """The page, what its function is told of how it was made, and its picture."""
    picture = None
    if made.screenshot is not None:
        picture = BodyFile.of(made.screenshot, ".png", f"{SCREENSHOTS}/{work.id}.png")
    path = None if picture is None else picture.path
    return made.reply, PageRender(made.requests, made.blocked, made.onward, made.cut, path), picture
