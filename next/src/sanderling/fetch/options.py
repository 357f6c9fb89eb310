"""How hosts are requested: the options of every command that sends requests, and the tables [hosts."…"]."""

import re
from base64 import b64encode
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Literal

import ada_url

from sanderling.clock import Clock
from sanderling.fetch.messages import Headers, check_headers
from sanderling.forms import Seconds, SecretOrText, Url
from sanderling.ids import host_of
from sanderling.limit import Limiter, LimitOptions
from sanderling.limit.rules import normalise_pattern, patterns_of
from sanderling.observe.log import log
from sanderling.options import OptionError, Options, option
from sanderling.redact import Secret

_CONTACT = re.compile(r"(https?://|mailto:)[!-'*-~]+")


class LoginOptions(Options):
    """How to log in at a host by a form, or at an endpoint for tokens."""

    url: Url = option("", "The page with the form, or the endpoint that gives tokens.")
    fill: dict[str, SecretOrText] = option({}, "What to fill in, or to send for a token, by the names of the fields.")
    token: str = option("", "Where the endpoint's response has the token: body.access_token. Without it, a form.")

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        if not self.url or not self.fill:
            raise OptionError(
                "login: url and fill go together; name the page of the form or the endpoint, and what it is sent"
            )


class HostOptions(LimitOptions):
    """What is set for the hosts that one pattern names; every key of [limits] too."""

    rps: float | None = option(None, "Requests per second at most.", low=1e-4)
    headers: dict[str, SecretOrText] = option({}, "Headers of each request; no other host gets them.")
    bearer: Secret | None = option(None, "A token for the header Authorization.")
    user: str | None = option(None, "The user of a log-in by HTTP (Basic).")
    password: Secret | None = option(None, "The password of that user.")
    login: LoginOptions | None = option(None, "A log-in by a form, or by tokens.")
    proxy: SecretOrText | None = option(None, "The proxy to request it through, as in http://proxy.example:3128.")
    cookies: bool | None = option(None, "Whether cookies are kept and sent; they are by default.")
    cookie_file: Path | None = option(None, "Cookies to begin with, in a file that a browser wrote (cookies.txt).")
    plain_http: bool | None = option(None, "Whether secrets may go over http:// too, where anybody can read them.")

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        try:
            check_headers((name, value) for name, value in self.headers.items() if isinstance(value, str))
            check_headers((name, "") for name in self.headers)
        except ValueError as error:
            raise OptionError(f"headers: {error}") from None
        if (self.user is None) != (self.password is None):
            raise OptionError("user and password go together; give both")
        if self.bearer is not None and self.user is not None:
            raise OptionError("bearer and user both set the header Authorization; give one of them")
        if isinstance(self.proxy, str):
            proxy_parts(self.proxy, "proxy")
        by_cookies = self.cookie_file or (self.login and not self.login.token)
        if by_cookies and self.cookies is False:
            raise OptionError("cookies is false, and a log-in is kept by them; leave it out")
        if self.login and self.login.token and (self.bearer or self.user):
            raise OptionError("login gets tokens for the header Authorization, which bearer or user sets; give one")

    @property
    def has_secrets(self) -> bool:
        """Whether a request to it carries what nobody else may read."""
        return bool(
            self.bearer
            or self.user
            or self.login
            or self.cookie_file
            or any(isinstance(each, Secret) for each in self.headers.values())
        )

    def sent(self) -> Headers:
        """The headers of each request to it. Raises SecretError."""
        pairs = {name: _revealed(value) for name, value in self.headers.items()}
        if self.bearer is not None:
            pairs["Authorization"] = f"Bearer {self.bearer.reveal()}"
        elif self.password is not None:
            pairs["Authorization"] = _basic(self.user or "", self.password.reveal())
        return tuple(pairs.items())

    def through(self) -> tuple[str, Headers]:
        """The address of the proxy, without a user in it, and the headers for it. Raises SecretError, OptionError."""
        return proxy_parts(_revealed(self.proxy), "proxy") if self.proxy else ("", ())

    def limits(self, general: LimitOptions, origin: str) -> LimitOptions:
        """The limits of these hosts, where `general` are those of all; `origin` is who names them."""
        own = LimitOptions(**{name: value for name, value in self.given.items() if name in LimitOptions.fields})
        return _capped(own.over(general, origin), self.rps)

    def under(self, other: "HostOptions") -> "HostOptions":
        """The same, where `other`, which names fewer hosts, says nothing else."""
        merged = self.given | {name: value for name, value in other.given.items() if value is not None}
        if other.bearer or other.user:
            merged |= {"bearer": other.bearer, "user": other.user, "password": other.password}
        own = {name.lower() for name in other.headers}
        kept = {name: value for name, value in self.headers.items() if name.lower() not in own}
        return HostOptions(**merged | {"headers": kept | other.headers})


class RequestOptions(Options, table="", title="How hosts are requested"):
    """What each command takes that sends requests."""

    rps: float | None = option(
        None, "Requests per second to each host at most; less where a host allows less. 8 by default.", low=1e-4
    )
    policy: Literal["governor", "aimd", "fixed", "none"] = option(
        "governor",
        "How the pace is found: governor learns each host's limit; aimd grows slowly, and halves when refused.",
    )
    contact: str | None = option(
        None, "Where a host's owner reaches you: https://…, mailto:… or an e-mail address; sent with each request."
    )
    private: bool = option(default=False, help="Request private addresses too: your own machine and network.")
    timeout: Seconds = option(30.0, "How long a host may be silent within a response.", low=0.1, high=3600)
    patience: Seconds = option(
        6 * 3600.0, "How long a host may go without a good response before it is set aside.", low=1
    )
    hosts: dict[str, HostOptions] = option(
        {}, "What is set for some hosts, by pattern: api.example.org, *.example.org."
    )
    limits: LimitOptions = option(LimitOptions(), "Where a host's rate begins and may go.")

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        if self.contact is not None:
            mail = "@" in self.contact and ":" not in self.contact and "/" not in self.contact
            self.__dict__["contact"] = f"mailto:{self.contact}" if mail else self.contact
            if not _CONTACT.fullmatch(self.contact):
                raise OptionError(
                    f"--contact: found {self.contact[:60]!r}, expected https://…, mailto:… or an e-mail address"
                )
        self.__dict__["hosts"] = {normalise_pattern(pattern): each for pattern, each in self.hosts.items()}
        for pattern, each in self.hosts.items():
            if each.login and self.of_host(host_of(each.login.url)).login is not each.login:
                raise OptionError(f'[hosts."{pattern}"] login: {each.login.url} is a page of another host')

    def of_host(self, host: str) -> HostOptions:
        """What is set for a host; of several patterns that name it, the one that says most counts most."""
        found = _NOTHING
        for pattern in reversed([*patterns_of(host)] if self.hosts else ()):
            if pattern in self.hosts:
                found = found.under(self.hosts[pattern])
        return found

    @property
    def user_agent(self) -> str:
        """Our own name, and never another's."""
        return f"sanderling/{version('sanderling')}" + (f" (+{self.contact})" if self.contact else "")


def limiter_for(options: RequestOptions, *, clock: Clock | None = None, random: Random | None = None) -> Limiter:
    """A limiter by these options."""
    limits = _capped(options.limits, options.rps)
    hosts = {name: options.of_host(name).limits(limits, f'[hosts."{name}"]') for name in options.hosts}
    policy = options.policy if limits.enabled else "none"
    if policy == "none":
        log.warning("unpaced", say="Policy none: requests are not paced; for hosts of your own only.")
    return Limiter(limits, policy=policy, hosts=hosts, clock=clock, random=random)


def _capped(limits: LimitOptions, rps: float | None) -> LimitOptions:
    """The same limits with another `max_rps`; what lies above it comes down."""
    if rps is None:
        return limits
    lower = {name: min(getattr(limits, name), rps) for name in ("min_rps", "initial_rps") if name in limits.given}
    return LimitOptions(**limits.given | lower | {"max_rps": rps})


def proxy_parts(text: str, origin: str) -> tuple[str, Headers]:
    """The address of a proxy, without a user in it, and the headers for it; `origin` is who names it."""
    try:
        url = ada_url.URL(text)
    except ValueError:
        url = None
    if url is None or url.protocol not in ("http:", "https:") or not url.hostname:
        raise OptionError(f"{origin}: found another text, expected one like http://proxy.example:3128")
    headers = (("Proxy-Authorization", _basic(url.username, url.password)),) if url.username else ()
    return f"{url.protocol}//{url.host}", headers


def _basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def _revealed(value: Secret | str) -> str:
    return value.reveal() if isinstance(value, Secret) else value


_NOTHING = HostOptions()
