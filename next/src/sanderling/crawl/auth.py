"""Auth, declared: which secret lets a job in, and where it goes. `session.py` sends it.

A secret is written as `env:NAME` or `file:PATH`. It is in no repr, message, row or record.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from sanderling.crawl.meaning import check_expression
from sanderling.ids import UrlError, normalise_url
from sanderling.redact import Secret

Place = Literal["header", "query", "cookie"]
EXPIRED = "status == `401`"
LONGEST_LIFE = 366 * 86400  # seconds
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class _Auth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all kinds have."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def secrets(self) -> list[Secret]:
        """All secrets that it names. Raises SecretError for one that is written out."""
        return [Secret(text) for text in _texts(msgspec.to_builtins(self)) if _is_secret(text)]


class ApiKey(_Auth, frozen=True):
    """A secret that never changes, in a header, the query or a cookie."""

    name: str
    value: str
    in_: Place = "header"
    prefix: str = ""
    user: str = ""  # whose password it is; both are sent as base64

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _check_place(self.name, self.in_)
        _check_secret("the secret", self.value)

    def sent(self) -> str:
        """What is sent. Raises SecretError."""
        return self.prefix + (encode_pair(self.user, self.value) if self.user else revealed(self.value))


def Bearer(token: str) -> ApiKey:  # noqa: N802 - a kind of auth, as people write it
    """A token that never changes: `Authorization: Bearer …`."""
    return ApiKey("Authorization", token, prefix="Bearer ")


def Basic(user: str, password: str) -> ApiKey:  # noqa: N802
    """A user and a password: `Authorization: Basic …`."""
    return ApiKey("Authorization", password, prefix="Basic ", user=user)


class Login(_Auth, frozen=True):
    """A session: a request whose response has a token, at `token`, like body.session or headers."x-token".

    Texts of `json` or `form` may be secrets. The token is good for `lasts` seconds, for those that the response has at
    `lifetime`, or until `expired` holds for a response: then the request is sent once more with a new token.
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
    lifetime: str = ""
    basic: tuple[str, ...] = ()  # user and password of the request for a token

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        _check_url("url", self.url)
        for field in ("token", "expired", "lifetime"):
            check_expression(field, getattr(self, field))
        if not 1 <= self.lasts <= LONGEST_LIFE:
            raise ValueError(f"lasts is {self.lasts}; expected seconds from 1 to a year")
        _check_place(self.name, self.in_)
        if (self.json is None) == (self.form is None):
            raise ValueError("Login has both of json and form or none; expected exactly one")


def OAuth2(  # noqa: N802
    token_url: str,
    client_id: str,
    client_secret: str,
    *,
    scopes: tuple[str, ...] = (),
    extra: Mapping[str, str] | None = None,
    client_in: Literal["body", "header"] = "body",
    expires_in: float = 3600.0,
    expired: str = EXPIRED,
) -> Login:
    """Tokens for the client itself from `token_url`: the grant client_credentials.

    `extra` are further fields of the request for a token, `client_in` says where the client's id and secret go, and
    `expires_in` counts where the host names no lifetime.
    """
    _check_secret("client_secret of OAuth2", client_secret)
    if client_in not in ("body", "header"):
        raise ValueError(f"client_in is {client_in!r:.40}; expected body or header")
    form = {"grant_type": "client_credentials", **(extra or {}), **({"scope": " ".join(scopes)} if scopes else {})}
    in_body = {"client_id": client_id, "client_secret": client_secret} if client_in == "body" else {}
    return Login(
        token_url, "body.access_token", form=form | in_body, prefix="Bearer ", lasts=expires_in, expired=expired,
        lifetime="body.expires_in", basic=() if in_body else (client_id, client_secret),
    )  # fmt: skip


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


Auth = ApiKey | Login | FormLogin


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


def encode_pair(user: str, password: str) -> str:
    """A user and a password as `Basic` has them. Raises SecretError."""
    return b64encode(f"{revealed(user)}:{revealed(password)}".encode()).decode()


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
