"""Asks for one URL of a host, or for its robots.txt, and understands the answer. Nothing here decides when."""

from dataclasses import replace
from http import HTTPStatus
from urllib.parse import unquote, urljoin, urlsplit

from sanderling.apis.credentials import Answered
from sanderling.clock import Clock
from sanderling.crawls.session import Logins
from sanderling.engine.ports import Settled
from sanderling.executor import Executor
from sanderling.fetch.attempts import MOST_HOPS, Fetched, moves
from sanderling.fetch.classify import Relayed
from sanderling.fetch.guard import Refused
from sanderling.fetch.render import RenderedPage, RenderError
from sanderling.limit import Permit
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.discovery import LinkDiscovery, MovedUrl
from sanderling.pages.extract import ReadRules
from sanderling.pages.files import FileDownload, FileDownloads, FileRules, StoredFile
from sanderling.pages.hosts import RobotsWork
from sanderling.pages.permissions import Permissions, RobotsAnswer
from sanderling.pages.record import ReadPage
from sanderling.pages.rendering import PageRendering, needs_scripts
from sanderling.pages.urls import normalise, origin_of
from sanderling.stores.frontier_rows import Ended, QueuedUrl
from sanderling.task import Blame, Reply, Task

MOST_DETOUR = 5  # hops by which a page may lead back to itself
MOST_WALLS = 1000  # pages that are known not to
BIG = 2**20  # bytes of a body that is read in a thread

# What a reply is understood as: rules of robots.txt, a page, one that is unchanged, a redirect, or a reason why not.
Understood = RobotsAnswer | ReadPage | Ended | MovedUrl | Outcome


class PageReader:
    """Reads documents by the rules of a crawl."""

    def __init__(self, executor: Executor, rules: ReadRules) -> None:
        self._executor = executor
        self._rules = rules

    async def read(
        self, queued: QueuedUrl, outcome: Outcome, reply: Reply, wall: float, *, announced: bool
    ) -> ReadPage:
        """What is kept of a reply; see `record.read`."""
        # A page takes a moment to read, what a stranger makes of 30 MB may take seconds: not on the loop.
        given = queued, outcome, reply, wall, announced, self._rules
        return await self._executor(record.read, *given) if len(reply.body) > BIG else record.read(*given)

    async def read_rendered(self, queued: QueuedUrl, outcome: Outcome, rendered: RenderedPage, wall: float) -> ReadPage:
        """The same of a page as its scripts made it."""
        return await self._executor(record.read_rendered, queued, outcome, rendered, wall, self._rules)


class PageHandler:
    """Sends requests for which there is leave."""

    def __init__(
        self,
        fetcher: Logins,
        permissions: Permissions,
        discovery: LinkDiscovery,
        memory: Memory,
        reader: PageReader,
        clock: Clock,
    ) -> None:
        self.rendering: PageRendering | None = None
        self.files = FileDownloads(discovery.folder.path, FileRules(), on_disk=False)
        self._rendered: set[str] = set()  # URLs of pages that are in the browser
        self._walls: set[tuple[str, str, str]] = set()  # where redirects lead from an origin, and not back
        self._fetcher = fetcher
        self._permissions = permissions
        self._discovery = discovery
        self._keep = discovery.folder.plan.keep
        self._memory = memory
        self._reader = reader
        self._clock = clock

    async def __call__(self, work: QueuedUrl | RobotsWork, permit: Permit, blame: Blame) -> Settled[Understood]:
        """What came of it."""
        if isinstance(work, RobotsWork):
            learned = await self._permissions.learn(work.key, permit)
            return Settled(learned.outcome, learned, decided=True, of_host=True)
        with self.files.begin(work.url, sitemap=self._discovery.announced(work.url)) as download:
            fetched = await self._fetch(work, permit, blame, download)
        if fetched.reply is None:
            return Settled(fetched.outcome)
        file = download.settle(fetched.reply)
        try:
            understood = await self._understand(work, fetched.outcome, fetched.reply, file)
            if self._keep is not None and (file is None or file.body is not None):
                understood = self._keep_raw(understood, fetched.reply)
        except RenderError as error:
            # The host has answered, so it is the page that has failed, or the browser: it is tried again like others.
            failed = Outcome(Code.INTERNAL_ERROR, fetched.reply.status, str(error)[:200])
            return Settled(failed, size=len(fetched.reply.body), flawed=True)
        finally:
            self._memory.release(fetched.reply.url)
        return Settled(fetched.outcome, understood, size=len(fetched.reply.body) if file is None else file.size)

    def received(self, work: QueuedUrl | RobotsWork) -> int | None:
        """Bytes of the answer so far; None while a browser has it, which has limits of its own."""
        held = self._memory.held(work.url) + self.files.received(work.url)
        return None if work.url in self._rendered else held

    async def _understand(
        self, queued: QueuedUrl, outcome: Outcome, reply: Reply, file: StoredFile | None
    ) -> Understood | None:
        if moves(reply):
            return await self._discovery.resolve(queued, reply)
        wall = self._clock.wall()
        if record.confirmed(queued, outcome):
            return record.unchanged(queued, outcome, reply, wall)
        if outcome.code is not Code.OK:
            return None
        rendering = self.rendering if file is None else None
        if rendering is not None and rendering.chooses(queued.url, reply):
            return await self._render(rendering, queued, outcome, reply)
        announced = self._discovery.announced(queued.url)
        if file is None:
            read = await self._reader.read(queued, outcome, reply, wall, announced=announced)
        else:
            read = record.read_file(queued, outcome, reply, wall, file)
        if rendering is not None and rendering.rules.auto and rendering.renders(reply):
            text = record.text_of(read.ended)
            if needs_scripts(text, reply.body):
                return await self._render(rendering, queued, outcome, reply)
        return read

    def _keep_raw(self, understood: Understood | None, reply: Reply) -> Understood | None:
        if isinstance(understood, ReadPage):
            return understood._replace(ended=record.keep_raw(understood.ended, reply, self._keep))
        return record.keep_raw(understood, reply, self._keep) if isinstance(understood, Ended) else understood

    async def _render(self, rendering: PageRendering, queued: QueuedUrl, outcome: Outcome, reply: Reply) -> ReadPage:
        """The page as its scripts make it."""
        self._rendered.add(queued.url)
        try:
            rendered = await rendering.render(reply)
        finally:
            self._rendered.discard(queued.url)
        return await self._reader.read_rendered(queued, outcome, rendered, self._clock.wall())

    async def _fetch(
        self, queued: QueuedUrl, permit: Permit, blame: Blame, download: FileDownload
    ) -> Fetched | Answered:
        # A 304 is of use to an archive only if that holds what has not changed.
        headers = record.conditions(queued) if self._discovery.folder.holds_earlier(queued.url) else ()
        headers = download.headers or headers  # of what broke off, the rest
        task = Task(queued.url, headers=headers, blame=blame, receive=download.receive)
        for _ in range(MOST_HOPS):
            before = self._fetcher.cookies_for(task)
            fetched = await self._fetcher.fetch(task, permit)
            if fetched.outcome.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and task.headers:
                task = replace(task, headers=())  # there is no such rest
                continue
            if fetched.reply is None or not moves(fetched.reply):
                break
            changed = before != self._fetcher.cookies_for(task)
            same = self._leads_back(queued, fetched.reply, changed=changed)
            if same is None and await self._returns(task, fetched.reply, permit, before):
                same = queued.url
            if same is None:
                break
            task = Task(same, blame=blame, receive=download.receive)
        return fetched

    async def _returns(self, task: Task, reply: Reply, permit: Permit, before: str) -> bool:
        """Whether the page that a reply leads to leads back to this very URL, with other cookies than `before`.

        As a URL of its own it were a loop, so it is asked for here, and what it leads to. Only where the first host
        says that one is to come back: by a cookie, or by where to in the address. Of a wall that did not lead back it
        is known that it does not.
        """
        following = _follows(task, reply)
        changed = before != self._fetcher.cookies_for(task)
        if following is None or not (changed or _names(following.url, task.url)):
            return False
        wall = origin_of(task.url), origin_of(following.url), urlsplit(following.url).path
        if wall in self._walls:
            return False
        for _ in range(MOST_DETOUR):
            found = await self._pass_by(following, permit)
            following = None if found is None else _follows(task, found)
            if following is None:
                break
            if _is_same(task.url, following.url) and before != self._fetcher.cookies_for(task):
                return True
        if len(self._walls) < MOST_WALLS:
            self._walls.add(wall)
        return False

    async def _pass_by(self, task: Task, permit: Permit) -> Reply | None:
        """The redirect that a page answers with, if robots.txt allows it; None for any other answer."""
        try:
            rules = await self._permissions.look_up(origin_of(task.url))
        except (Refused, Relayed):
            return None
        if not rules.allows(task.url):
            return None
        found = (await self._fetcher.fetch(task, permit)).reply
        self._memory.release(task.url)
        return found if found is not None and moves(found) else None

    def _leads_back(self, queued: QueuedUrl, reply: Reply, *, changed: bool) -> str | None:
        """Where the reply leads, if that is this very URL, with a session in it or with a cookie that has `changed`.

        As a URL of its own it were a loop.
        """
        same = record.respelled(queued, reply, itself=changed)
        known = None if same is None else self._permissions.known(origin_of(queued.url))
        return same if same is None or known is None or known.allows(same) else None


def _follows(task: Task, reply: Reply) -> Task | None:
    """Where a redirect leads; None for what is no address."""
    try:
        return Task(urljoin(reply.url, reply.header("Location") or "").partition("#")[0], blame=task.blame)
    except ValueError:
        return None


def _names(address: str, url: str) -> bool:
    """Whether the query of an address says where to come back to."""
    query, parts = unquote(urlsplit(address).query), urlsplit(url)
    back = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return parts.netloc in query or (len(back) > 1 and unquote(back) in query)


def _is_same(url: str, other: str) -> bool:
    try:
        return normalise(other) == normalise(url)
    except ValueError:
        return False
