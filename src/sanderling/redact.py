"""Texts and URLs without the secrets in them: passwords, keys, tokens. Whatever people are shown goes through here.

A secret is known by the name of what holds it, a field, a header or a parameter, or by its place in a URL.
"""

import re
from collections.abc import Collection
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


def redact_url(url: str, names: Collection[str] = ()) -> str:
    """A URL with its user and without the password; what is no URL stays.

    Parameters that hold secrets are `***`: those that sound like it, and those of these names, in lower case.
    """
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    user = ""
    if _has_login(rest, web=scheme.lower() in _WEB):
        login, _, rest = rest.rpartition("@")
        user = f"{login.partition(':')[0]}@"
        if "@" in login and "?" in login.rpartition("@")[2]:
            rest = HIDDEN  # one @ before a question mark and one behind: nobody knows where the password ends
    rest, hash_, fragment = rest.partition("#")
    where, query, options = rest.partition("?")
    return f"{scheme}://{user}{where}{query}{_options(options, names)}{hash_}{_options(fragment, names)}"


def _has_login(rest: str, *, web: bool) -> bool:
    """Whether there is a user before the host. A password that was not escaped may hold what ends a host: / ? or #."""
    before, _, options = rest.partition("?")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in (authority if web else before):
        return True
    # What stands where a port should, or an option that is none, is the rest of a password.
    odd = not _PLAIN_HOST.fullmatch(authority) or (not web and "=" not in options.partition("@")[0])
    return odd and "@" in rest


def _options(options: str, names: Collection[str]) -> str:
    return "&".join(_option(option, names) for option in options.split("&"))


def _option(option: str, names: Collection[str]) -> str:
    name, equals, value = option.partition("=")
    secret = is_secret_parameter(name) or unquote_plus(name).lower() in names
    return f"{name}={HIDDEN}" if equals and value and secret else option
