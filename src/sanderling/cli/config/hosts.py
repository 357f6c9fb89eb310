"""What is set for hosts by pattern: the tables below [hosts] of sanderling.toml; EXAMPLE has all settings."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches

import msgspec

from sanderling.apis.auth import Basic, Bearer, Digest, FormLogin
from sanderling.cli.config.lines import TomlLines
from sanderling.cli.config.settings import found_words
from sanderling.crawls.session import HostPatterns, HostSettings
from sanderling.limit.sharing import EACH, host_pattern
from sanderling.redact import HIDDEN, is_secret, redact_url

EXAMPLE = """\
[hosts."*.example.org"]             # it and all below it; "*" is each host; the longest pattern counts most
rps = 0.5                           # requests a second to each of them at most
cookies = 100                       # that each may set, 50 by default; 0 for none
proxy = "http://proxy.example:3128" # or "env:PROXY", for one with a password
headers = { Accept-Language = "en", X-Api-Key = "env:API_KEY" }

[hosts."intranet.example.org"]
auth = { user = "crawler", password = "env:INTRANET_PASSWORD" }  # or { token = "file:token.txt" }
plain-http = true                   # secrets go to http:// as well; by default to https:// alone

[hosts."shop.example.org".login]    # a form to log in with
page = "https://shop.example.org/login"
fields = { email = "env:SHOP_USER", password = "env:SHOP_PASSWORD" }
success = "Log out"                 # what the page after it holds
"""

Wrong = Callable[[int, str], None]


class _Auth(msgspec.Struct, forbid_unknown_fields=True):
    user: str | None = None
    password: str | None = None
    token: str | None = None
    digest: bool = False

    def auth(self) -> Basic | Bearer | Digest:
        if self.token is not None and self.user is None and self.password is None and not self.digest:
            return Bearer(self.token)
        if self.token is None and self.user is not None and self.password is not None:
            return (Digest if self.digest else Basic)(self.user, self.password)
        raise ValueError("auth: expected user and password, or token alone")


class _Login(msgspec.Struct, forbid_unknown_fields=True):
    page: str
    fields: dict[str, str]
    success: str = ""
    expired: str | None = None

    def login(self) -> FormLogin:
        try:
            more = {} if self.expired is None else {"expired": self.expired}
            return FormLogin(self.page, self.fields, self.success, **more)
        except ValueError as error:
            raise ValueError(f"login: {error}") from None


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    headers: dict[str, str] = {}
    auth: _Auth | None = None
    login: _Login | None = None
    rps: float | None = None
    proxy: str | None = None
    cookies: int | None = None
    plain_http: bool | None = None

    def settings(self) -> HostSettings:
        return HostSettings(
            self.headers,
            None if self.auth is None else self.auth.auth(),
            None if self.login is None else self.login.login(),
            self.rps,
            self.proxy,
            self.cookies,
            self.plain_http,
        )


def read(content: object, written: str, lines: TomlLines, wrong: Wrong) -> HostPatterns:
    """What a file sets for hosts; `wrong` is told, with its line, of all that is not as it should be."""
    if not isinstance(content, Mapping):
        wrong(lines[(written,)], f'hosts: found {found_words(content)}, expected tables like [hosts."*.example.org"]')
        return {}
    found: dict[str, HostSettings] = {}
    for pattern, table in content.items():
        try:
            spelled = pattern if pattern == EACH else host_pattern(pattern)
            if not isinstance(table, Mapping):
                raise ValueError(f"found {found_words(table)}, expected a table")  # noqa: TRY004, TRY301 - a setting
            named = {key.replace("-", "_"): value for key, value in table.items()}
            _check_names(named)
            found[spelled] = msgspec.convert(named, _Settings).settings()
        except ValueError as error:  # msgspec's, which name types and no values, are that too
            wrong(lines.first_in((written, pattern)), f'[hosts."{pattern[:60]}"]: {error}')
    return found


def _check_names(named: Mapping[str, object]) -> None:
    known = _Settings.__struct_fields__
    for name in named:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(known)}"
            raise ValueError(f"found {name}; {hint}".replace("_", "-"))


def as_tables(hosts: HostPatterns) -> dict[str, dict[str, object]]:
    """The settings as the tables of a file, without secrets."""
    return {f'hosts."{pattern}"': _shown(settings) for pattern, settings in hosts.items()}


def _shown(settings: HostSettings) -> dict[str, object]:
    said: dict[str, object] = {
        "rps": settings.rps,
        "cookies": settings.cookies,
        "proxy": None if settings.proxy is None else redact_url(settings.proxy),
        "plain-http": settings.plain_http,
        **{f"headers.{name}": _value(value, secret=is_secret(name)) for name, value in settings.headers.items()},
    }
    match settings.auth:
        case Basic(user, password):
            said |= {"auth.user": user, "auth.password": _value(password, secret=True)}
        case Digest(user, password):
            said |= {"auth.user": user, "auth.password": _value(password, secret=True), "auth.digest": True}
        case Bearer(token):
            said["auth.token"] = _value(token, secret=True)
    if (login := settings.login) is not None:
        said |= {"login.page": redact_url(login.page), "login.success": login.success or None}
        said |= {f"login.fields.{name}": _value(value, secret=True) for name, value in login.fields.items()}
    return {key: value for key, value in said.items() if value is not None}


def _value(text: str, *, secret: bool) -> str:
    """A value as it may be shown: where a secret is may be seen, the secret not."""
    return HIDDEN if secret and not text.startswith(("env:", "file:")) else text
