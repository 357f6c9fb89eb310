"""A cache for development: answers that were good are read from disk, and their hosts are not asked again.

Work on how answers are read, and every run asks for the same; with a cache only the first run asks hosts. Nothing in it
gets old: remove the folder to ask anew. An answer from the cache takes no leave, and teaches the limiter nothing.

Secrets stay out of the files. Headers that hold one are left out of the key and of what is kept, so one folder is for
one account. Requests that send a password or a token in their body, and answers to these, are not kept.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec

from sanderling.clock import Clock
from sanderling.fetch.attempts import Fetched, Fetcher, Read, Sends
from sanderling.fetch.classify import of_reply
from sanderling.limit import Limiter, Permit
from sanderling.outcome import Outcome
from sanderling.redact import is_secret, redact_url
from sanderling.stores.durable import plainly, write_new
from sanderling.task import SECRET_BODY, Headers, Reply, Task

VERSION = 1
MOST = 16 * 2**20  # bytes of a body that is kept
# Headers that differ each time a request is made, and change nothing of its answer.
VOLATILE = frozenset(
    ("date", "user-agent", "x-request-id", "x-correlation-id", "traceparent", "tracestate", "idempotency-key")
)
# Fields of a body by which it lets somebody in. Few and exact: many an API calls a place in its list a token.
LETS_IN = re.compile(
    r"(api_?key|jwt|pass(word|wd|phrase)|(client_?)?secret|((access|id|refresh|session)_?)?token)", re.IGNORECASE
)


class _Head(msgspec.Struct, frozen=True):
    """What stands before the body in a file."""

    version: int
    method: str
    url: str  # without its secrets, for people
    status: int
    headers: Headers
    size: int
    digest: str  # SHA-256 of the body
    moved: str | None = None  # where redirects led, if anywhere


class Cache:
    """A folder of answers. Raises FolderError if it cannot be used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with plainly(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (folder / ".gitignore").exists():
                write_new(folder / ".gitignore", [b"*\n"], sync=False)

    def find(self, task: Task) -> Reply | None:
        """The answer to the same question, if there is one that can be read."""
        path = self._path(task)
        with plainly(path):
            try:
                head, _, body = path.read_bytes().partition(b"\n")
                found = msgspec.json.decode(head, type=_Head)
            except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
                return None
        if (found.version, found.size, found.digest) != (VERSION, len(body), _digest(body)):
            return None
        try:
            return Reply(found.status, found.headers, body, found.moved or task.url, 0.0)
        except ValueError:
            return None

    def keep(self, task: Task, reply: Reply) -> None:
        """Keep a good answer, unless it is too large or holds a secret."""
        moved = None if reply.url == task.url else reply.url
        tells = moved is not None and redact_url(moved, task.secrets) != moved
        if len(reply.body) > MOST or sends_secret(task) or tells:
            return
        head = _Head(
            version=VERSION,
            method=task.method,
            url=redact_url(task.url, task.secrets),
            status=reply.status,
            headers=tuple(_public(reply.headers, task)),
            size=len(reply.body),
            digest=_digest(reply.body),
            moved=moved,
        )
        path = self._path(task)
        with plainly(path):
            path.parent.mkdir(exist_ok=True)
            write_new(path, [msgspec.json.encode(head), b"\n", reply.body], sync=False)

    def _path(self, task: Task) -> Path:
        name = key_of(task)
        return self._folder / name[:2] / name[2:]


class CachingFetcher(Fetcher):
    """A fetcher that looks into a cache first, and keeps what was good."""

    def __init__(self, http: Sends, limiter: Limiter, *, clock: Clock, job: str, retry: bool, cache: Cache) -> None:
        super().__init__(http, limiter, clock=clock, job=job, retry=retry)
        self._cache = cache

    async def fetch(self, task: Task, permit: Permit | None = None, read: Read | None = None) -> Fetched:
        """The end of `task`, from the cache if it was good then and is by `read` now. See `Fetcher.fetch`."""
        kept = None if sends_secret(task) else self._cache.find(task)
        if kept is not None:
            outcome = of_reply(kept.status, kept.headers, wall=self._clock.wall())
            outcome = outcome if read is None else await _read_by(read, kept, outcome)
            if outcome.ok:
                if permit is not None:
                    permit.release()
                return Fetched(outcome, kept, 0)
        fetched = await super().fetch(task, permit, read)
        if fetched.outcome.ok and fetched.reply is not None:
            self._cache.keep(task, fetched.reply)
        return fetched


async def _read_by(read: Read, reply: Reply, outcome: Outcome) -> Outcome:
    said = read(reply, outcome)
    return said if isinstance(said, Outcome) else await said


def key_of(task: Task) -> str:
    """By what a question is known: method, URL, body, and the headers that may change its answer."""
    headers = sorted((name.lower(), value) for name, value in task.headers if not _is_ignored(name, task))
    body = None if task.body is None else _digest(task.body)
    return _digest(msgspec.json.encode((VERSION, task.method, task.url, headers, body, task.most)))


def sends_secret(task: Task) -> bool:
    """Whether the body of a request holds what lets somebody in: a log-in, or a token that is to be refreshed."""
    if SECRET_BODY in task.secrets:
        return True
    if not task.body:
        return False
    try:
        fields = msgspec.json.decode(task.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        fields = dict(parse_qsl(task.body.decode("latin-1")))
    return isinstance(fields, dict) and any(_is_letting_in(name) for name in fields)


def _is_letting_in(name: object) -> bool:
    return isinstance(name, str) and LETS_IN.fullmatch(name.replace("-", "_")) is not None


def _public(headers: Headers, task: Task) -> Iterator[tuple[str, str]]:
    """The headers of an answer that hold no secret, and are text."""
    for name, value in headers:
        if not _is_private(name, task) and value.isprintable():
            yield str(name), value  # the client's own kind of text is no JSON


def _is_private(name: str, task: Task) -> bool:
    return is_secret(name) or name.lower() in task.secrets


def _is_ignored(name: str, task: Task) -> bool:
    return _is_private(name, task) or name.lower() in VOLATILE or name.lower().endswith(("timestamp", "nonce"))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
