"""Sends requests with the secret that a job declares, to the job's hosts and no other, and gets tokens anew.

One request for a token serves all that wait for it. It passes limiter and fetcher like any other, and whoever waits
holds no permit. A rotated refresh token is on disk before the new token is used.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Protocol
from urllib.parse import urljoin

import msgspec

from sanderling.apis.auth import Auth, FormLogin, Login, OAuth2, reveal
from sanderling.apis.conditions import Condition, JsonReply, find_value, reply_condition
from sanderling.apis.html_forms import FormError, fill_form, has_form
from sanderling.apis.json_paths import show_value
from sanderling.apis.request_parts import drop_param
from sanderling.apis.secrets import Secrets, secrets_of
from sanderling.apis.token_replies import cookie_in, error_name, lifetime
from sanderling.clock import Clock
from sanderling.limit import Permit
from sanderling.limit.memory import Memory
from sanderling.outcome import Code, Outcome
from sanderling.task import Reply, Task

MARGIN = 60.0  # seconds before its end at which a token is replaced; a tenth of its life, if that is less
LONGEST_TOKEN = 8192  # characters
REJECTED_PAUSE = 60.0  # seconds until a host is asked again for a token that it has denied
FAILED_PAUSE = 5.0  # and one that gave no answer
# A form that pages show after so many log-ins is their own: a search, or the log-in of another account.
MOST_VAIN = 3
LONGEST_DETAIL = 200
HOLDER = "token"  # under what name the reply takes up memory

Read = Callable[[Reply, Outcome], Outcome | Awaitable[Outcome]]


class EndedFetch(Protocol):
    """How a request ended."""

    @property
    def outcome(self) -> Outcome:
        """What it means."""

    @property
    def reply(self) -> Reply | None:
        """What came back."""


class Fetches(Protocol):
    """`fetch.attempts.Fetcher`."""

    async def fetch(self, task: Task, permit: Permit | None = None, read: Read | None = None) -> EndedFetch:
        """The end of a task; one whose permit is spent takes its leave by `permit.more`."""


class TokenStore(Protocol):
    """Keeps the latest refresh token: `stores.token_file.TokenFile`."""

    def held(self, clock: Clock) -> AbstractAsyncContextManager[None]:
        """Entered by one at a time of all that share the store: whoever exchanges the token."""

    def load(self, owner: str) -> str | None:
        """The token that was kept for this owner."""

    def save(self, owner: str, token: str) -> None:
        """Keep it; durable when this returns."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How a request with credentials ended. The reply's address is without the secret."""

    outcome: Outcome
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    until: float  # by the clock that only goes forward


class Credentials:
    """The secret of a job while it runs. Raises ValueError for one that is not there."""

    def __init__(
        self,
        auth: Auth,
        hosts: Container[str],
        clock: Clock,
        store: TokenStore | None = None,
        memory: Memory | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._auth = auth
        self._hosts = hosts
        self._clock = clock
        self._store = store
        self._memory = memory  # what the client's bodies hold of it is let go by whoever gets the reply
        self._environment = environment
        self._placement = auth.placement
        self._token: _Token | None = None
        self._rotated = ""  # the latest refresh token, where there is no store
        self._proven = False  # whether the token was accepted at least once
        self._vain = 0  # log-ins in a row that did not help the page which wanted them
        self._renewal: asyncio.Task[Outcome | None] | None = None
        self._trouble: Outcome | None = None  # why there is no token
        self._asked_again = 0.0  # when a host that gave no token may be asked again
        self._expired: Condition | None = None
        self._secrets = Secrets()
        if isinstance(auth, OAuth2 | Login | FormLogin):
            self._expired = reply_condition(auth.expired)
            self._ask()  # raises for a secret that is not there
        else:
            self._token = _Token(auth.secret(environment), float("inf"))
            self._sign(Task("http://host.example/"), self._token.text)  # raises for one that cannot be sent
        self._secrets.add(*secrets_of(auth, environment))

    @property
    def trouble(self) -> Outcome | None:
        """Why there is no token; None while there is one, or while none was asked for.

        AUTH_FAILED: it was denied, and somebody has to look at the secret. Anything else may pass.
        """
        return self._trouble

    @property
    def denied(self) -> str:
        """Why a token was denied; "" if none was."""
        denied = self._trouble is not None and self._trouble.code is Code.AUTH_FAILED
        return self.mask(self._trouble.detail) if self._trouble is not None and denied else ""

    def mask(self, text: str) -> str:
        """A text without the secrets: hosts repeat them in messages, and messages are stored."""
        return self._secrets.mask(text)

    def clean(self, url: str) -> str:
        """An address without the secrets: hosts repeat them in links, and links are stored.

        Parameters that hold one are removed: it is sent where it belongs. Elsewhere it is ***.
        """
        if self._placement is not None and self._placement.in_ == "query":
            url = drop_param(url, self._placement.name)
        url = self._secrets.drop(url)
        return self._secrets.mask(url) if self._secrets.are_in(url) else url

    def _sign(self, task: Task, secret: str) -> Task:
        return task if self._placement is None else self._placement.put(task, secret)

    async def fetch(
        self, fetcher: Fetches, task: Task, permit: Permit, read: Read | None = None, *, tokens: Fetches | None = None
    ) -> Answered:
        """What came of a task: signed if it goes to a host of the job, and once more if its token has expired.

        `tokens` fetches those, where that is not to be done by `fetcher`: it has to follow redirects.
        """
        if task.host not in self._hosts:
            fetched = await fetcher.fetch(task, permit, read)
            return Answered(fetched.outcome, fetched.reply)
        again = False
        while True:
            token = self._current()
            if token is None:
                permit.release()  # who waits holds nothing back
                if (trouble := await self._renew(tokens or fetcher, permit)) is not None:
                    return Answered(trouble)
                token = self._token
                if token is None:
                    return Answered(Outcome(Code.DEFERRED, detail="the token was replaced meanwhile", retry_after=0.0))
            fetched = await fetcher.fetch(self._sign(task, token.text), permit, read)
            expired = self._is_expired(fetched)
            if again or (expired and not self._proven):
                self._vain = self._vain + 1 if expired else 0
            if not expired:
                accepted = fetched.outcome.ok or fetched.outcome.status == 404
                self._proven = self._proven or (accepted and token is self._token)
                return self._finish(task, fetched, again=again)
            if again or not self._drop(token):
                return self._finish(task, fetched, again=again)
            again = True

    async def close(self) -> None:
        """Wait for a token that is on its way: a rotated one must be kept."""
        if self._renewal is not None:
            await asyncio.wait([self._renewal])

    def _current(self) -> _Token | None:
        token = self._token
        return token if token is not None and self._clock.now() < token.until else None

    def _is_expired(self, fetched: EndedFetch) -> bool:
        if isinstance(self._auth, FormLogin) and fetched.reply is not None:
            form_counts = self._vain < MOST_VAIN and fetched.outcome.ok
            if _leads_to(self._auth, fetched.reply) or (form_counts and _shows_form(self._auth, fetched.reply)):
                return True
        return fetched.reply is not None and self._expired is not None and self._expired.holds(JsonReply(fetched.reply))

    def _drop(self, token: _Token) -> bool:
        """Whether asking again makes sense: another token is there, or this one was accepted before."""
        if self._token is not token:
            return True
        if not self._proven:
            return False
        self._token = None
        return True

    def _finish(self, task: Task, fetched: EndedFetch, *, again: bool) -> Answered:
        outcome, reply = fetched.outcome, fetched.reply
        if reply is None:
            return Answered(outcome)
        reply = replace(reply, url=self.clean(reply.url))
        kind = type(self._auth).__name__
        if self._is_expired(fetched) or outcome.code is Code.AUTH_FAILED:
            said = f"{task.host} does not accept {'a new token of ' if again else ''}{kind}"
            outcome = replace(outcome, code=Code.AUTH_FAILED, detail=said[:LONGEST_DETAIL])
        elif outcome.code is Code.ACCESS_DENIED and not outcome.detail:
            said = f"{task.host} accepts {kind} and does not let it have this"
            outcome = replace(outcome, detail=said[:LONGEST_DETAIL])
        return Answered(outcome, reply)

    async def _renew(self, fetcher: Fetches, permit: Permit) -> Outcome | None:
        """Get a token. All who wait share one request, whoever of them gives up. Without one, nothing was asked."""
        if self._renewal is None and self._clock.now() >= self._asked_again:
            self._renewal = asyncio.get_running_loop().create_task(self._obtain(fetcher, permit))
            self._renewal.add_done_callback(self._renewed)
        trouble = self._trouble if self._renewal is None else await asyncio.shield(self._renewal)
        if trouble is None:
            return None
        wait = max(0.0, self._asked_again - self._clock.now())
        return Outcome(Code.DEFERRED, detail=trouble.detail, retry_after=wait)

    def _renewed(self, renewal: "asyncio.Task[Outcome | None]") -> None:
        self._renewal = None
        if not renewal.cancelled():
            renewal.exception()  # seen, also where nobody waits any more

    async def _obtain(self, fetcher: Fetches, permit: Permit) -> Outcome | None:
        exchanges = isinstance(self._auth, OAuth2) and bool(self._auth.refresh_token)
        if self._store is None or not exchanges:
            return await self._ask_for_token(fetcher, permit)
        async with self._store.held(self._clock):
            return await self._ask_for_token(fetcher, permit)

    async def _ask_for_token(self, fetcher: Fetches, permit: Permit) -> Outcome | None:
        task = replace(self._ask(), holder=HOLDER)
        try:
            fetched = await fetcher.fetch(task, permit)
            if isinstance(self._auth, FormLogin):
                found = await self._log_in(self._auth, task, fetched, partial(fetcher.fetch, permit=permit))
            else:
                found = self._read(task, fetched)
        finally:
            if self._memory is not None:
                self._memory.release(HOLDER)
        if isinstance(found, Outcome):
            self._trouble, self._token = found, None
            pause = REJECTED_PAUSE if found.code is Code.AUTH_FAILED else found.retry_after or FAILED_PAUSE
            self._asked_again = self._clock.now() + pause
            return found
        self._token, self._trouble, self._proven, self._asked_again = found, None, False, 0.0
        return None

    async def _log_in(
        self, auth: FormLogin, task: Task, fetched: EndedFetch, send: Callable[[Task], Awaitable[EndedFetch]]
    ) -> _Token | Outcome:
        """Send the form of a page; a session, or why there is none."""
        if (trouble := self._trouble_of(task, fetched)) is not None or fetched.reply is None:
            return trouble or fetched.outcome
        try:
            form = fill_form(fetched.reply, auth.filled(self._environment))
        except FormError as error:
            return _deny(task, fetched.outcome, str(error), "session")
        if self._memory is not None:
            self._memory.release(HOLDER)
        sent = await send(replace(form, holder=HOLDER))
        if (trouble := self._trouble_of(form, sent)) is not None or sent.reply is None:
            return trouble or sent.outcome
        if has_form(sent.reply, auth.fields):
            return _deny(form, sent.outcome, "the reply has the form again: it was not accepted", "session")
        if auth.success not in sent.reply.body.decode(errors="replace"):
            return _deny(form, sent.outcome, f"the reply lacks {auth.success[:60]!r}, the sign of success", "session")
        return _Token("", float("inf"))

    def _ask(self) -> Task:
        """The request for a token. Raises ValueError for a secret that is not there."""
        if isinstance(self._auth, Login | FormLogin):
            return self._auth.ask(self._environment)
        if not isinstance(self._auth, OAuth2):
            raise TypeError(f"{type(self._auth).__name__} needs no token")
        return self._auth.ask(self._refresh_token(self._auth), self._environment)

    def _refresh_token(self, auth: OAuth2) -> str:
        if not auth.refresh_token:
            return ""
        given = reveal("refresh_token of OAuth2", auth.refresh_token, self._environment)
        kept = self._store.load(_owner(auth, given)) if self._store is not None else self._rotated
        self._secrets.add(kept or given)
        return kept or given

    def _read(self, task: Task, fetched: EndedFetch) -> _Token | Outcome:
        """The token in a reply, or why there is none."""
        outcome, reply = fetched.outcome, fetched.reply
        if (trouble := self._trouble_of(task, fetched)) is not None or reply is None:
            return trouble or outcome
        answer = JsonReply(reply)
        if isinstance(self._auth, Login):
            return self._token_of_login(self._auth, task, answer, outcome)
        return self._token_of_oauth(task, answer, outcome)

    @staticmethod
    def _trouble_of(task: Task, fetched: EndedFetch) -> Outcome | None:
        """Why a request for a token has brought no reply worth reading; None if it has."""
        outcome, reply = fetched.outcome, fetched.reply
        denied = not outcome.ok and not outcome.blames_host and outcome.code is not Code.RATE_LIMITED
        if denied and (outcome.final or reply is not None):
            named = error_name(JsonReply(reply)) if reply is not None else ""
            return _deny(task, outcome, f"{outcome.detail or f'HTTP {outcome.status}'}{named}")
        if reply is None or not outcome.ok:
            wait = FAILED_PAUSE if outcome.retry_after is None else outcome.retry_after
            said = f"no token from {task.host}: {outcome.detail or outcome.code.value}"
            return Outcome(Code.DEFERRED, detail=said[:LONGEST_DETAIL], retry_after=wait)
        return None

    def _token_of_login(self, auth: Login, task: Task, answer: JsonReply, outcome: Outcome) -> _Token | Outcome:
        kind, _, name = auth.token.partition(".")
        value = cookie_in(answer.reply, name) if kind == "cookie" else find_value(auth.token, answer)
        return self._checked(value, auth.token, auth.lasts, task, outcome)

    def _token_of_oauth(self, task: Task, answer: JsonReply, outcome: Outcome) -> _Token | Outcome:
        auth = self._auth
        if not isinstance(auth, OAuth2):
            raise TypeError(f"{type(auth).__name__} has no token_url")
        if (named := error_name(answer)) and find_value("body.access_token", answer) is None:
            return _deny(task, outcome, f"HTTP {answer.reply.status}{named}")
        self._keep(
            auth, find_value("body.refresh_token", answer)
        )  # also if the token is unusable: the old one is spent
        value = find_value("body.access_token", answer)
        return self._checked(value, "access_token", lifetime(auth, answer), task, outcome)

    def _keep(self, auth: OAuth2, rotated: object) -> None:
        usable = isinstance(rotated, str) and 0 < len(rotated) <= LONGEST_TOKEN and rotated.isprintable()
        if not auth.refresh_token or not usable:
            return
        self._rotated = str(rotated)
        self._secrets.add(self._rotated)
        if self._store is not None:
            given = reveal("refresh_token of OAuth2", auth.refresh_token, self._environment)
            self._store.save(_owner(auth, given), self._rotated)

    def _checked(self, value: object, where: str, lasts: float, task: Task, outcome: Outcome) -> _Token | Outcome:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TOKEN:
            # Never the value: a token too long is one as well.
            found = "an unusable text" if isinstance(value, str) else show_value(value)
            return _deny(task, outcome, f"{where} is {found}, expected a text of up to {LONGEST_TOKEN} characters")
        try:
            self._sign(task, text)
        except ValueError as error:
            return _deny(task, outcome, f"{where}: {error}")
        self._secrets.add(text)
        return _Token(text, self._clock.now() + lasts - min(MARGIN, lasts / 10))


def _shows_form(auth: FormLogin, reply: Reply) -> bool:
    """Whether a page has the form to log in with, and no sign that we are logged in."""
    return has_form(reply, auth.fields) and not (auth.success and auth.success.encode() in reply.body)


def _leads_to(auth: FormLogin, reply: Reply) -> bool:
    """Whether a reply is the page to log in on, or leads there."""
    return auth.is_page(reply.url) or auth.is_page(urljoin(reply.url, reply.header("Location") or reply.url))


def _deny(task: Task, outcome: Outcome, why: str, what: str = "token") -> Outcome:
    return Outcome(Code.AUTH_FAILED, outcome.status, f"no {what} from {task.host}: {why}"[:LONGEST_DETAIL])


def _owner(auth: OAuth2, given: str) -> str:
    """Whose refresh token it is: another one in the configuration makes those kept before void."""
    said = msgspec.json.encode((auth.token_url, auth.client_id, given))
    return blake2b(said, digest_size=16).hexdigest()
