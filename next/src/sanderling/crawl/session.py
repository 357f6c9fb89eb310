"""Sends requests of a job with the secret that it declares, to its own hosts only, and gets tokens anew.

One request for a token serves all that wait for it, and takes leave of its host like any other. The form of a page is
filled in as a browser would.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from math import inf
from typing import Any
from urllib.parse import urlencode, urljoin

import msgspec

from sanderling.clock import Clock
from sanderling.crawl.auth import LONGEST_LIFE, ApiKey, Auth, FormLogin, Login, encode_pair, revealed
from sanderling.crawl.meaning import Seen
from sanderling.crawl.request import FORM
from sanderling.crawl.urls import absolute, put_param
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.fetch.options import LoginOptions
from sanderling.files import Exit, FolderError
from sanderling.ids import UrlError, origin_of
from sanderling.options import OptionError
from sanderling.outcome import Code, Outcome
from sanderling.redact import Secret

MARGIN = 60.0  # seconds before its end at which a token is replaced; a tenth of its life, if that is less
PAUSE = 5.0  # seconds until a host that gave no answer is requested again for a token
LONGEST_TOKEN = 8192  # characters
LARGEST_ANSWER = 1 << 20  # bytes
LARGEST_PAGE = 512 * 1024  # bytes of a page that are looked at
MOST_FIELDS = 1000
_UNSENT = frozenset({"button", "file", "image", "reset"})
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
        if isinstance(auth, ApiKey):
            self._token = _Token(auth.sent(), inf)
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
                host = request.url.split("/", 3)[2]
                said = f"{host} does not accept {'a new token' if again else 'this secret'}"
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
                said = f"the log-in failed: {found.detail}"
                raise FolderError(said, "put the secret right, and run it again", Exit.FAILED)
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
        if isinstance(auth, ApiKey):
            raise TypeError(type(auth).__name__)  # which never ends
        is_form = auth.form is not None
        body = urlencode(revealed(auth.form)).encode() if is_form else msgspec.json.encode(revealed(auth.json))
        headers = [("Content-Type", FORM if is_form else "application/json"), ("Accept", "application/json")]
        if auth.basic:
            headers.append(("Authorization", f"Basic {encode_pair(*auth.basic)}"))
        response = await self._client.send(HttpRequest(auth.url, "POST", tuple(headers), body, largest=LARGEST_ANSWER))
        if not response.outcome.ok:
            return self._trouble_of(response)
        try:
            document = response.json()
        except ValueError:
            document = None
        seen = Seen(response.url, response.status, response.headers, document)
        value = seen.get(auth.token)
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TOKEN or not text.isprintable():
            return Outcome(Code.AUTH_FAILED, response.status, "the response has no usable token")
        lasts = seen.get(auth.lifetime)
        lasts = int(lasts) if isinstance(lasts, str) and lasts.isdecimal() and len(lasts) < 12 else lasts
        if not isinstance(lasts, int | float) or isinstance(lasts, bool) or not 1 <= lasts <= LONGEST_LIFE:
            lasts = auth.lasts  # what cannot be true is ignored
        Secret.of(text)
        return _Token(auth.prefix + text, self._clock.now() + lasts - min(MARGIN, lasts / 10))

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
        name = auth.name
        if auth.in_ == "query":
            return replace(request, url=put_param(request.url, name, token))
        if auth.in_ == "cookie":
            name, token = "Cookie", f"{name}={token}"
        return replace(request, headers=(*request.headers, (name, token)))

    def _is_expired(self, response: HttpResponse) -> bool:
        auth = self._auth
        if isinstance(auth, ApiKey):
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
    return None if login is None else JobSession(host_auth(login), lambda name: name == host, client, clock)


def host_auth(login: LoginOptions) -> Auth:
    """The log-in of a table in the configuration. Raises OptionError."""
    fields = {name: str(value) for name, value in login.fill.items()}  # a secret as where it is
    if not login.token:
        return FormLogin(login.url, fields)
    try:
        return Login(login.url, login.token, form=fields, prefix="Bearer ", lifetime="body.expires_in")
    except ValueError as error:
        raise OptionError(f"login: {error}") from None


class FormError(ValueError):
    """A page has no form that could be sent. The message has no value of any field."""


class _Form:
    def __init__(self, said: Mapping[str, str | None]) -> None:
        self.action = said.get("action") or ""
        self.method = (said.get("method") or "get").upper()
        self.names: set[str] = set()
        self.fields: list[tuple[str, str]] = []
        self.button: tuple[str, str] | None = None  # the first, which Enter presses


class _Forms(HTMLParser):
    """All forms of a page, without texts that people would type into large fields."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self._open = False
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "form":
            self.forms.append(_Form(said))
            self._open = True
        if not self._open or len(self.forms[-1].fields) >= MOST_FIELDS:
            return
        form, name, value = self.forms[-1], said.get("name") or "", said.get("value")
        kind = (said.get("type") or ("submit" if tag == "button" else "text")).lower()
        if (
            tag == "option"
            and self._select
            and ("selected" in said or self._select not in {field for field, _ in form.fields})
        ):
            form.fields = [pair for pair in form.fields if pair[0] != self._select] + [(self._select, value or "")]
        if not name or "disabled" in said:
            return
        if tag in ("input", "button") and kind == "submit":
            form.button = form.button or (name, value or "")
        elif tag in ("input", "select", "textarea") and kind not in _UNSENT:
            form.names.add(name)
            is_box = kind in ("checkbox", "radio")
            self._select = name if tag == "select" else self._select
            if tag != "select" and (not is_box or "checked" in said):
                form.fields.append((name, ("on" if is_box else "") if value is None else value))

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "form"
        self._select = "" if tag in ("form", "select") else self._select


def _forms(body: bytes) -> list[_Form]:
    reader = _Forms()
    reader.feed(body[:LARGEST_PAGE].decode(errors="replace"))
    return reader.forms


def has_form(body: bytes, names: Mapping[str, str]) -> bool:
    """Whether a page has a form with fields of all these names; few pages are read to find out."""
    if b"<form" not in body[:LARGEST_PAGE].lower() or not all(name.encode() in body for name in names):
        return False
    return any(form.names >= set(names) for form in _forms(body))


def fill_form(page: HttpResponse, values: Mapping[str, str]) -> HttpRequest:
    """The request that sends the form of a page with these values; it goes to that page's origin. Raises FormError."""
    forms = _forms(page.body)
    form = next((each for each in forms if each.names >= values.keys()), None)
    if form is None:
        known = ", ".join(sorted({name for each in forms for name in each.names})[:20])
        raise FormError(f"the page has {f'forms with {known}' if known else 'no form'}; expected {', '.join(values)}")
    if form.method != "POST":
        raise FormError("its form is sent by GET, which would put a password into an address")
    fields = [pair for pair in form.fields if pair[0] not in values]
    fields += [*values.items(), *([form.button] if form.button and form.button[0] not in values else [])]
    try:
        target = absolute(form.action.strip() or page.url, page.url)
    except UrlError:
        raise FormError("the address that its form goes to is none") from None
    if origin_of(target) != origin_of(page.url):
        raise FormError("its form goes to another host; name the page of that host instead")
    headers = (("Content-Type", FORM), ("Referer", page.url.partition("?")[0]))
    return HttpRequest(target, "POST", headers, urlencode(fields).encode(), largest=LARGEST_PAGE, cut=True)
