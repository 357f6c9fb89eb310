"""Auth, declared: which secret lets a job in, where it goes, and how it is got anew. `credentials.py` sends it.

A secret is written as `env:NAME` (a variable of the environment), `file:PATH` (a file, without its last line break) or
as it is. No repr, message, row or record ever shows one.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode

import msgspec

from sanderling.apis.conditions import check_setting, parse_subject, reply_condition
from sanderling.apis.request_parts import FORM, put_cookie, put_header, put_param
from sanderling.ids import Host, host_of
from sanderling.task import SECRET_BODY, Headers, Task

LONGEST_SECRET = 16_384  # characters
EXPIRED = "status = 401"
Place = Literal["header", "query", "cookie"]
PLACES = ("header", "query", "cookie")
Json: TypeAlias = Mapping[str, Any]

_PRINTABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def reveal(name: str, text: str, environment: Mapping[str, str]) -> str:
    """The secret that a setting names. Raises ValueError, without the secret."""
    kind, _, rest = text.partition(":")
    if kind == "env":
        if rest not in environment:
            raise ValueError(f"{name}: the environment has no variable {rest[:80]!r}, expected the secret there")
        text = environment[rest]
    elif kind == "file":
        try:
            text = FilePath(rest).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise ValueError(
                f"{name}: the file {rest[:200]!r} cannot be read ({why}), expected the secret there"
            ) from None
    if not 0 < len(text) <= LONGEST_SECRET or not text.isprintable():
        found = (
            "is empty" if not text else "is too long" if len(text) > LONGEST_SECRET else "has a line break or the like"
        )
        raise ValueError(f"{name}: the secret {found}, expected up to {LONGEST_SECRET} printable characters")
    return text


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a secret goes."""

    in_: Place = "header"
    name: str = "Authorization"
    prefix: str = ""

    def __post_init__(self) -> None:
        if self.in_ not in PLACES:
            raise ValueError(f"in_ is {str(self.in_)[:40]!r}, expected one of {', '.join(PLACES)}")
        try:
            self.put(Task("http://host.example/"), "x")
        except ValueError as error:
            raise ValueError(f"name is {self.name[:80]!r}: {error}") from None
        if not re.fullmatch(r"[^\s;,=&]+", self.name):
            raise ValueError(f"name is {self.name[:80]!r}, expected one without spaces and = & ; ,")

    def put(self, task: Task, secret: str) -> Task:
        """The task with the secret in it. Raises ValueError for one that cannot be sent, without it."""
        if not _PRINTABLE.fullmatch(secret):
            raise ValueError(f"the secret for {self.name} has a character beyond ASCII or a space at an end")
        if self.in_ == "cookie" and re.search(r'[\s",;\\]', secret):
            raise ValueError(f'the secret for the cookie {self.name} has one of space " , ; \\ in it')
        match self.in_:
            case "query":
                signed = put_param(task, self.name, self.prefix + secret)
            case "cookie":
                signed = put_cookie(task, self.name, self.prefix + secret)
            case _:
                signed = put_header(task, self.name, self.prefix + secret)
        return replace(signed, secrets=task.secrets | {self.name.lower()})


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key that never changes, in a header, the query or a cookie."""

    name: str
    value: str = field(repr=False)
    in_: Place = "header"

    def __post_init__(self) -> None:
        _ = self.placement  # raises for a name that cannot be sent

    @property
    def placement(self) -> Placement:
        """Where it goes."""
        return Placement(self.in_, self.name)

    def secret(self, environment: Mapping[str, str]) -> str:
        """The key. Raises ValueError."""
        return reveal("value of ApiKey", self.value, environment)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token that never changes: `Authorization: Bearer …`."""

    token: str = field(repr=False)

    @property
    def placement(self) -> Placement:
        """Where it goes."""
        return Placement(prefix="Bearer ")

    def secret(self, environment: Mapping[str, str]) -> str:
        """The token. Raises ValueError."""
        return reveal("token of Bearer", self.token, environment)


@dataclass(frozen=True, slots=True)
class Basic:
    """A user and a password: `Authorization: Basic …`."""

    user: str
    password: str = field(repr=False)

    @property
    def placement(self) -> Placement:
        """Where they go."""
        return Placement(prefix="Basic ")

    def secret(self, environment: Mapping[str, str]) -> str:
        """Both, as they are sent. Raises ValueError."""
        user = reveal("user of Basic", self.user, environment)
        return encode_basic(user, reveal("password of Basic", self.password, environment))


@dataclass(frozen=True, slots=True)
class Digest:
    """A user and a password that is never sent: HTTP Digest, RFC 7616. It is set for hosts, in `HostSettings`."""

    user: str
    password: str = field(repr=False)

    def secrets(self, environment: Mapping[str, str]) -> tuple[str, str]:
        """Both. Raises ValueError."""
        user = reveal("user of Digest", self.user, environment)
        return user, reveal("password of Digest", self.password, environment)


@dataclass(frozen=True, slots=True)
class OAuth2:
    """Tokens from `token_url`: for the client itself, or with a refresh token, which the host may rotate.

    `expires_in` counts where the host names no lifetime. `expired` is a condition about a reply: what it holds for is
    asked once more with a new token.
    """

    token_url: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    scopes: Sequence[str] = ()
    extra: Json = field(default_factory=dict, repr=False)  # further fields of the request for a token
    client_in: Literal["body", "header"] = "body"  # where the client's id and secret go
    expires_in: float = 3600.0
    expired: str = EXPIRED

    def __post_init__(self) -> None:
        check_setting("token_url", self.token_url, Task)
        _check_lifetime("expires_in", self.expires_in)
        check_setting("expired", self.expired, reply_condition)
        if self.client_in not in ("body", "header"):
            raise ValueError(f"client_in is {str(self.client_in)[:40]!r}, expected body or header")
        if not self.client_secret and not self.refresh_token:
            raise ValueError("OAuth2 has neither client_secret nor refresh_token, expected one or both")
        if isinstance(self.scopes, str):
            raise ValueError("scopes is a text, expected a tuple of texts")  # noqa: TRY004 - a setting

    @property
    def placement(self) -> Placement:
        """Where the token goes."""
        return Placement(prefix="Bearer ")

    @property
    def host(self) -> Host:
        """Where tokens come from."""
        return host_of(self.token_url)

    def ask(self, refresh_token: str, environment: Mapping[str, str]) -> Task:
        """The request for a token. Raises ValueError for a secret that is not there."""
        client = reveal("client_id of OAuth2", self.client_id, environment)
        secret = reveal("client_secret of OAuth2", self.client_secret, environment) if self.client_secret else ""
        fields = {"grant_type": "refresh_token" if refresh_token else "client_credentials"}
        fields |= {"refresh_token": refresh_token} if refresh_token else {}
        fields |= {"scope": " ".join(self.scopes)} if self.scopes else {}
        fields |= reveal_all("extra of OAuth2", dict(self.extra), environment)
        if self.client_in == "body":
            fields |= {"client_id": client} | ({"client_secret": secret} if secret else {})
        task = _form_task(self.token_url, fields, (("Accept", "application/json"),))
        if self.client_in == "body":
            return task
        return put_header(task, "Authorization", f"Basic {encode_basic(client, secret)}")


@dataclass(frozen=True, slots=True)
class Login:
    """A session: a request whose reply has a token, at a path of its body, header.x-name or cookie.NAME.

    Texts of `json` or `form` may be secrets. The token is good for `lasts` seconds, or until `expired` holds.
    """

    url: str
    token: str
    json: Json | None = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    headers: Headers = field(default=(), repr=False)
    in_: Place = "header"
    name: str = "Authorization"
    prefix: str = ""
    lasts: float = 3600.0
    expired: str = EXPIRED

    def __post_init__(self) -> None:
        check_setting("url", self.url, Task)
        _check_lifetime("lasts", self.lasts)
        check_setting("expired", self.expired, reply_condition)
        check_setting("token", self.token, parse_subject)
        if (self.json is None) == (self.form is None):
            raise ValueError("Login has both of json and form or none, expected exactly one")
        _ = self.placement

    @property
    def placement(self) -> Placement:
        """Where the token goes."""
        return Placement(self.in_, self.name, self.prefix)

    @property
    def host(self) -> Host:
        """Where one logs in."""
        return host_of(self.url)

    def ask(self, environment: Mapping[str, str]) -> Task:
        """The request that logs in. Raises ValueError for a secret that is not there."""
        headers = tuple((name, reveal(f"header {name} of Login", value, environment)) for name, value in self.headers)
        if self.form is not None:
            return _form_task(self.url, reveal_all("form of Login", dict(self.form), environment), headers)
        body = msgspec.json.encode(reveal_all("json of Login", dict(self.json or {}), environment))
        headers = (*headers, ("Content-Type", "application/json"))
        return Task(self.url, "POST", headers, body, secrets=frozenset({SECRET_BODY}))


@dataclass(frozen=True, slots=True)
class FormLogin:
    """A session by a form: the page that has it, and what goes into its fields, by their names.

    All other fields are sent as the page has them. We are logged in if the reply is good, has no such form any more and
    holds `success`, if that is given. The session is kept by cookies, and begun anew where `expired` holds for a reply,
    or a reply leads to the page of the form, or has the form in it and not `success`.
    """

    page: str
    fields: Mapping[str, str] = field(repr=False)
    success: str = ""
    expired: str = EXPIRED

    def __post_init__(self) -> None:
        check_setting("page", self.page, Task)
        check_setting("expired", self.expired, reply_condition)
        if not self.fields:
            raise ValueError("FormLogin has no fields, expected those of the form that are to be filled in")

    @property
    def placement(self) -> None:
        """Nowhere: cookies are sent by themselves."""

    @property
    def host(self) -> Host:
        """Where one logs in."""
        return host_of(self.page)

    def ask(self, environment: Mapping[str, str]) -> Task:
        """The request for the page. Raises ValueError for a secret that is not there."""
        self.filled(environment)
        return Task(self.page, secrets=frozenset({SECRET_BODY}))  # what it holds is good once, and for no cache

    def filled(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The fields with their secrets. Raises ValueError."""
        return {name: reveal(f"field {name} of FormLogin", value, environment) for name, value in self.fields.items()}

    def is_page(self, url: str) -> bool:
        """Whether an address is that of the page, whatever its query."""
        return url.partition("?")[0].rstrip("/") == self.page.partition("?")[0].rstrip("/")


Auth = ApiKey | Bearer | Basic | OAuth2 | Login | FormLogin


def encode_basic(user: str, password: str) -> str:
    """A user and a password as HTTP sends them."""
    if ":" in user:
        raise ValueError("the user has a colon in it, which separates user and password; expected none")
    return b64encode(f"{user}:{password}".encode()).decode()


def reveal_all(name: str, value: Any, environment: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """A document with its secrets in place. Raises ValueError, without them."""
    match value:
        case dict():
            return {key: reveal_all(f"{name}, {key}", each, environment) for key, each in value.items()}
        case list() | tuple():
            return [reveal_all(name, each, environment) for each in value]
        case str() if value.startswith(("env:", "file:")):
            return reveal(name, value, environment)
    return value


def _form_task(url: str, fields: Mapping[str, object], headers: Headers) -> Task:
    body = urlencode({name: str(value) for name, value in fields.items()}).encode()
    return Task(url, "POST", (*headers, ("Content-Type", FORM)), body, secrets=frozenset({SECRET_BODY}))


def _check_lifetime(name: str, seconds: float) -> None:
    if not 1 <= seconds <= 366 * 86400:
        raise ValueError(f"{name} is {seconds}, expected seconds from 1 to a year")
