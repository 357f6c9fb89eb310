"""Auth, declared: which secret lets a job in, and where it goes. `session.py` sends it.

A secret is written as `env:NAME` or `file:PATH`. It is in no repr, message, row or record.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from sanderling.crawl.meaning import check_expression
from sanderling.ids import UrlError, normalise_url
from sanderling.redact import Secret

Place = Literal["header", "query", "cookie"]
EXPIRED = "status == `401`"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class _Auth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all kinds have."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def secrets(self) -> list[Secret]:
        """All secrets that it names. Raises SecretError for one that is written out."""
        return [Secret(text) for text in _texts(msgspec.to_builtins(self)) if _is_secret(text)]


class ApiKey(_Auth, frozen=True, repr_omit_defaults=True):
    """A key that never changes, in a header, the query or a cookie."""

    name: str
    value: str
    in_: Place = "header"

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _check_place(self.name, self.in_)
        _check_secret("value of ApiKey", self.value)


class Bearer(_Auth, frozen=True):
    """A token that never changes: `Authorization: Bearer …`."""

    token: str

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _check_secret("token of Bearer", self.token)


class Basic(_Auth, frozen=True):
    """A user and a password: `Authorization: Basic …`."""

    user: str
    password: str

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _check_secret("password of Basic", self.password)


class OAuth2(_Auth, frozen=True):
    """Tokens for the client itself from `token_url`: the grant client_credentials.

    `expires_in` counts where the host names no lifetime. Where `expired` holds for a response, the request is sent
    once more with a new token.
    """

    token_url: str
    client_id: str
    client_secret: str
    scopes: tuple[str, ...] = ()
    extra: dict[str, str] = {}  # further fields of the request for a token
    client_in: Literal["body", "header"] = "body"  # where the client's id and secret go
    expires_in: float = 3600.0
    expired: str = EXPIRED

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _check_url("token_url", self.token_url)
        _check_secret("client_secret of OAuth2", self.client_secret)
        _check_seconds("expires_in", self.expires_in)
        check_expression("expired", self.expired)
        if self.client_in not in ("body", "header"):
            raise ValueError(f"client_in is {self.client_in!r:.40}; expected body or header")


class Login(_Auth, frozen=True):
    """A session: a request whose response has a token, at `token`, like body.session or headers."x-token".

    Texts of `json` or `form` may be secrets. The token is good for `lasts` seconds, or until `expired` holds.
    """

    url: str
    token: str
    json: dict[str, Any] | None = None
    form: dict[str, str] | None = None
    in_: Place = "header"
    name: str = "Authorization"
    prefix: str = ""
    lasts: float = 3600.0
    expired: str = EXPIRED

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _check_url("url", self.url)
        check_expression("token", self.token)
        check_expression("expired", self.expired)
        _check_seconds("lasts", self.lasts)
        _check_place(self.name, self.in_)
        if (self.json is None) == (self.form is None):
            raise ValueError("Login has both of json and form or none; expected exactly one")


class FormLogin(_Auth, frozen=True):
    """A session by a form: the page that has it, and what goes into its fields, by their names.

    All other fields are sent as the page has them. We are logged in if the response holds `success`, or has no such
    form any more. The session is kept by cookies, and begun anew where `expired` holds for a response or it leads to
    the page of the form.
    """

    page: str
    fields: dict[str, str]
    success: str = ""
    expired: str = EXPIRED

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _check_url("page", self.page)
        check_expression("expired", self.expired)
        if not self.fields:
            raise ValueError("FormLogin has no fields; expected those of the form that are to be filled in")

    def is_page(self, url: str) -> bool:
        """Whether a URL is that of the page, whatever its query."""
        return url.partition("?")[0].rstrip("/") == self.page.partition("?")[0].rstrip("/")


Auth = ApiKey | Bearer | Basic | OAuth2 | Login | FormLogin


def revealed(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """A document with its secrets in place. Raises SecretError."""
    match value:
        case Mapping():
            return {key: revealed(each) for key, each in value.items()}
        case list() | tuple():
            return [revealed(each) for each in value]
        case str() if _is_secret(value):
            return Secret(value).reveal()
    return value


def _is_secret(text: str) -> bool:
    return text.startswith(("env:", "file:"))


def _texts(value: object) -> list[str]:
    match value:
        case Mapping():
            return [text for each in value.values() for text in _texts(each)]
        case list() | tuple():
            return [text for each in value for text in _texts(each)]
        case str():
            return [value]
    return []


def _check_secret(name: str, text: str) -> None:
    if not isinstance(text, str) or not _is_secret(text):
        raise ValueError(f"{name} is a literal text; expected env:NAME or file:PATH, as in env:API_TOKEN")


def _check_place(name: str, place: str) -> None:
    if place not in ("header", "query", "cookie"):
        raise ValueError(f"in_ is {place!r:.40}; expected header, query or cookie")
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"name is {name!r:.60}; expected one without spaces and signs")


def _check_url(name: str, url: str) -> None:
    try:
        normalise_url(url)
    except UrlError as error:
        raise ValueError(f"{name}: {error}") from None
    if urlsplit(url).hostname is None:
        raise ValueError(f"{name} is {url!r:.100}; expected https://…")


def _check_seconds(name: str, seconds: float) -> None:
    if not 1 <= seconds <= 366 * 86400:
        raise ValueError(f"{name} is {seconds}; expected seconds from 1 to a year")
