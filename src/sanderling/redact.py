"""Texts and URLs without the secrets in them: passwords, keys, tokens. Whatever people are shown goes through here.

A secret is known by the name of what holds it, a field, a header or a parameter, or by its place in a URL.
"""

import re
from functools import lru_cache
from urllib.parse import unquote_plus

HIDDEN = "***"
# `tokens` is spared: buckets hold tokens, and operators want to see how many.
_SECRET = re.compile(
    r"pass(word|wd|phrase)|secret|authorization|cookie|credential|signature|jwt|bearer"
    r"|(api|access|private)_?key|token(?!s(_|$))|(^|_)(dsn|pwd|auth)(_|$)"
)
# What holds a secret only as a parameter of a URL; elsewhere a key may be that of a row.
_SECRET_PARAMETER = re.compile(r"(^|_)(key|sig|pw|pass)$")
_USER_INFO = re.compile(r"(?<=://)[^\s/?#]*@")
# The look-behind lets a name begin only at its first letter; without it a long word would be tried from every letter.
_PAIR = re.compile(r"(?P<lead>[?&]|(?<![\w.%-]))(?P<name>[\w.%-]+)=(?P<value>[^\s&#;,'\"]+)")
_FRACTION = re.compile(r"[0-9]+\.[0-9]+")
# What stands before the path of a URL that has no user: a name or an address, and perhaps a port.
_PLAIN_HOST = re.compile(r"(\[[^\]@]*\]|[^:@]*)(:[0-9]*)?")
_WEB = ("http", "https")


@lru_cache(maxsize=1024)
def is_secret(name: str) -> bool:
    """Whether a field, header or parameter of that name holds something that lets its holder in."""
    return _SECRET.search(_spelled(name)) is not None


@lru_cache(maxsize=1024)
def is_secret_parameter(name: str) -> bool:
    """The same of a parameter of a URL, as it is written there."""
    name = unquote_plus(name)
    return is_secret(name) or _SECRET_PARAMETER.search(_spelled(name)) is not None


def _spelled(name: str) -> str:
    return re.sub(r"[-. ]", "_", name.lower())


def redact(text: str) -> str:
    """A text of any kind: what looks like a secret in it is `***`, and so are users and passwords in its URLs."""
    return _PAIR.sub(_hide, _USER_INFO.sub(f"{HIDDEN}@", text))


def _hide(pair: re.Match[str]) -> str:
    secret = is_secret(pair["name"]) or (pair["lead"] and is_secret_parameter(pair["name"]))
    return f"{pair['lead']}{pair['name']}={HIDDEN}" if secret and not _FRACTION.fullmatch(pair["value"]) else pair[0]


def redact_url(url: str) -> str:
    """A URL with its user and without the password; parameters that hold secrets are `***`. What is none stays."""
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    login, at, rest = _parted(rest, web=scheme.lower() in _WEB)
    where, query, options = rest.partition("?")
    options, fragment, anchor = options.partition("#")
    shown = "&".join(map(_option, options.split("&")))
    anchor = "&".join(map(_option, anchor.split("&")))
    return f"{scheme}://{login.partition(':')[0]}{at}{where}{query}{shown}{fragment}{anchor}"


def _parted(rest: str, *, web: bool) -> tuple[str, str, str]:
    """What is before the last @ that belongs to user and password, that @, and what is behind it.

    A password that was not escaped may hold anything, also what ends a host.
    """
    ends = re.search(r"[/?#]" if web else r"\?", rest)
    before = rest[: ends.start()] if ends else rest
    if "@" in before:
        login, at, host = before.rpartition("@")
        return login, at, host + rest[len(before) :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return ("", "", rest) if _PLAIN_HOST.fullmatch(authority) else rest.rpartition("@")


def _option(option: str) -> str:
    name, equals, value = option.partition("=")
    return f"{name}={HIDDEN}" if equals and value and is_secret_parameter(name) else option
