"""Sends requests of a job with the secret that it declares, to its own hosts only, and gets tokens anew.

One request for a token serves all that wait for it, and takes leave of its host like any other.
"""

import asyncio
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any
from urllib.parse import urlencode, urljoin

import msgspec

from sanderling.clock import Clock
from sanderling.crawl.auth import ApiKey, Auth, Basic, Bearer, FormLogin, Login, OAuth2, revealed
from sanderling.crawl.form import FormError, fill_form, has_form
from sanderling.crawl.meaning import Seen
from sanderling.crawl.request import FORM
from sanderling.crawl.urls import put_param
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.files import Exit, FolderError
from sanderling.outcome import Code, Outcome
from sanderling.redact import Secret

MARGIN = 60.0  # seconds before its end at which a token is replaced; a tenth of its life, if that is less
PAUSE = 5.0  # seconds until a host that gave no answer is requested again for a token
LONGEST_TOKEN = 8192  # characters
LARGEST_ANSWER = 1 << 20  # bytes
MOST_VAIN = 3  # log-ins in a row that did not help; then the form that pages show is one of their own


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    until: float


class JobSession:
    """The secret of a job while it runs. Raises SecretError for one that is not there."""

    def __init__(self, auth: Auth, has_host: Callable[[str], bool], client: Client, clock: Clock) -> None:
        self._auth = auth
        self._has_host = has_host
        self._client = client
        self._clock = clock
        self._token: _Token | None = None
        self._proven = False  # whether the token was accepted at least once
        self._vain = 0
        self._renewal: asyncio.Task[Outcome | None] | None = None
        self._again_at = 0.0
        self._trouble: Outcome | None = None
        for secret in auth.secrets():
            secret.reveal()
        match auth:
            case ApiKey():
                self._token = _Token(revealed(auth.value), inf)
            case Bearer():
                self._token = _Token(f"Bearer {revealed(auth.token)}", inf)
            case Basic():
                pair = f"{revealed(auth.user)}:{revealed(auth.password)}".encode()
                self._token = _Token(f"Basic {b64encode(pair).decode()}", inf)
        if self._token is not None:
            Secret.of(self._token.text)

    async def send(self, request: HttpRequest, send: Callable[[HttpRequest], Any]) -> HttpResponse:
        """What came of a request: signed, and sent once more if its token has expired."""
        if not self._has_host(request.url.split("/", 3)[2]):
            response: HttpResponse = await send(request)
            return response
        again = False
        while True:
            if (trouble := await self._ready()) is not None:
                return HttpResponse(trouble, request.url)
            token = self._token
            if token is None:
                continue
            response = await send(self._signed(request, token.text))
            expired = self._is_expired(response)
            if again or (expired and not self._proven):
                self._vain = self._vain + 1 if expired else 0
            if not expired:
                self._proven = self._proven or response.outcome.ok or response.status == 404
                return response
            if again or not self._drop(token):
                host, kind = request.url.split("/", 3)[2], type(self._auth).__name__
                said = f"{host} does not accept {'a new' if again else 'this'} {kind}"
                return replace(response, outcome=Outcome(Code.AUTH_FAILED, response.status, said))
            again = True

    async def _ready(self) -> Outcome | None:
        """Have a token; why there is none for now."""
        if self._token is not None and self._clock.now() < self._token.until:
            return None
        if self._renewal is None:
            if self._trouble is not None and self._clock.now() < self._again_at:
                return self._trouble
            self._renewal = asyncio.create_task(self._renew())
        renewal = self._renewal
        try:
            return await asyncio.shield(renewal)
        finally:
            if self._renewal is renewal and renewal.done():
                self._renewal = None

    async def _renew(self) -> Outcome | None:
        found = await self._requested()
        if isinstance(found, Outcome):
            if found.code is Code.AUTH_FAILED:
                raise FolderError(
                    f"no {type(self._auth).__name__}: {found.detail}",
                    "put the secret right, and run it again",
                    Exit.FAILED,
                )
            wait = PAUSE if found.retry_after is None else found.retry_after
            self._again_at = self._clock.now() + wait
            self._trouble = Outcome(Code.DEFERRED, detail=f"no token: {found.detail or found.code}", retry_after=wait)
            return self._trouble
        self._token, self._trouble, self._proven = found, None, False
        return None

    async def _requested(self) -> _Token | Outcome:
        """A new token, or how the request for it ended."""
        auth = self._auth
        if isinstance(auth, FormLogin):
            return await self._log_in(auth)
        response = await self._client.send(self._request())
        if not response.outcome.ok:
            return self._trouble_of(response)
        try:
            seen = Seen(response.url, response.status, response.headers, response.json())
            value = seen.find("body.access_token" if isinstance(auth, OAuth2) else auth.token)  # type: ignore[union-attr]
        except (ValueError, msgspec.DecodeError):
            value, seen = None, Seen(response.url, response.status, response.headers, None)
            if isinstance(auth, Login):
                value = seen.find(auth.token)
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TOKEN or not text.isprintable():
            return Outcome(Code.AUTH_FAILED, response.status, "the response has no usable token")
        lasts = auth.lasts if isinstance(auth, Login) else _lifetime(seen, auth)  # type: ignore[arg-type]
        Secret.of(text)
        prefix = auth.prefix if isinstance(auth, Login) else "Bearer "
        return _Token(prefix + text, self._clock.now() + lasts - min(MARGIN, lasts / 10))

    async def _log_in(self, auth: FormLogin) -> _Token | Outcome:
        page = await self._client.send(HttpRequest(auth.page, largest=LARGEST_ANSWER, cut=True))
        if not page.outcome.ok:
            return self._trouble_of(page)
        try:
            form = fill_form(page, revealed(auth.fields))
        except FormError as error:
            return Outcome(Code.AUTH_FAILED, page.status, str(error))
        sent = await self._client.send(form)
        if not sent.outcome.ok:
            return self._trouble_of(sent)
        if has_form(sent.body, auth.fields):
            return Outcome(Code.AUTH_FAILED, sent.status, "the response has the form again: it was not accepted")
        if auth.success.encode() not in sent.body:
            return Outcome(Code.AUTH_FAILED, sent.status, f"the response lacks {auth.success[:60]!r}")
        return _Token("", inf)

    def _request(self) -> HttpRequest:
        auth = self._auth
        if isinstance(auth, OAuth2):
            fields = {"grant_type": "client_credentials", **auth.extra}
            if auth.scopes:
                fields["scope"] = " ".join(auth.scopes)
            client = revealed(auth.client_id), revealed(auth.client_secret)
            headers: tuple[tuple[str, str], ...] = (("Content-Type", FORM), ("Accept", "application/json"))
            if auth.client_in == "header":
                headers += (("Authorization", f"Basic {b64encode(':'.join(client).encode()).decode()}"),)
            else:
                fields |= {"client_id": client[0], "client_secret": client[1]}
            return HttpRequest(auth.token_url, "POST", headers, urlencode(fields).encode(), largest=LARGEST_ANSWER)
        if not isinstance(auth, Login):
            raise TypeError(type(auth).__name__)
        kind = FORM if auth.form is not None else "application/json"
        body = (
            urlencode(revealed(auth.form)).encode()
            if auth.form is not None
            else msgspec.json.encode(revealed(auth.json))
        )
        return HttpRequest(auth.url, "POST", (("Content-Type", kind),), body, largest=LARGEST_ANSWER)

    def _trouble_of(self, response: HttpResponse) -> Outcome:
        """Whether a response that brings no token denies it, or may pass."""
        outcome = response.outcome
        passes = outcome.blames_host or outcome.code in (Code.RATE_LIMITED, Code.DEFERRED, Code.CANCELLED)
        said = f"{response.url.split('/', 3)[2]}: {outcome.detail or f'status {outcome.status}'}"
        return Outcome(outcome.code if passes else Code.AUTH_FAILED, outcome.status, said, outcome.retry_after)

    def _signed(self, request: HttpRequest, token: str) -> HttpRequest:
        auth = self._auth
        if isinstance(auth, FormLogin):
            return request
        place, name = (auth.in_, auth.name) if isinstance(auth, ApiKey | Login) else ("header", "Authorization")
        if place == "query":
            return replace(request, url=put_param(request.url, name, token))
        if place == "cookie":
            name, token = "Cookie", f"{name}={token}"
        return replace(request, headers=(*request.headers, (name, token)))

    def _is_expired(self, response: HttpResponse) -> bool:
        auth = self._auth
        if isinstance(auth, ApiKey | Bearer | Basic):
            return False
        if isinstance(auth, FormLogin):
            if auth.is_page(urljoin(response.url, response.location or response.url)):
                return True
            shows = response.outcome.ok and self._vain < MOST_VAIN and has_form(response.body, auth.fields)
            if shows and not (auth.success and auth.success.encode() in response.body):
                return True
        if not response.status:
            return False
        try:
            document = response.json() if len(response.body) <= LARGEST_ANSWER else None
        except (ValueError, RecursionError):
            document = None
        return Seen(response.url, response.status, response.headers, document).holds(auth.expired)

    def _drop(self, token: _Token) -> bool:
        """Whether requesting again makes sense: another token is there, or this one was accepted before."""
        if self._token is not token:
            return True
        if not self._proven:
            return False
        self._token = None
        return True


def login_session(client: Client, host: str, clock: Clock) -> JobSession | None:
    """The session of a host whose table in the configuration has a log-in."""
    login = client.options.of_host(host).login
    if login is None:
        return None
    fields = {name: str(value) for name, value in login.fill.items()}  # a secret as where it is
    return JobSession(FormLogin(login.url, fields), lambda name: name == host, client, clock)


def _lifetime(seen: Seen, auth: OAuth2) -> float:
    """Seconds that a token is good for; what cannot be true is ignored."""
    value = seen.find("body.expires_in")
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = int(value)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= 366 * 86400
    return float(value) if usable else auth.expires_in
