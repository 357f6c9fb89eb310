"""Secrets, and texts without them. What people are shown and what is logged goes through `redact`.

A secret is known by where it came from, the option that names it, and not by what it looks like. Passwords in URLs and
values of parameters such as `api_key` are hidden as well, since strangers and people put them there.
"""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote, quote_plus, unquote_plus

from sanderling.files import FolderError, read_small

HIDDEN = "***"
HOW = "env:NAME or file:PATH"  # how a secret is named
LONGEST = 1 << 16  # bytes of a file with a secret: a key or a token
# Shorter texts stand in other words by chance.
SHORTEST_HIDDEN = 6

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The texts of all secrets that this process has read, the longest first.
_revealed: list[str] = []


class SecretError(ValueError):
    """A secret cannot be read. The message does not contain it."""


class Secret:
    """A password, key or token, named by where it is: `env:NAME` or `file:PATH`. It is read when it is revealed."""

    def __init__(self, source: str) -> None:
        kind, _, name = source.partition(":")
        if not (kind == "env" and _VARIABLE.fullmatch(name)) and not (kind == "file" and name and "\0" not in name):
            raise SecretError(f"found a literal text, expected {HOW}, as in env:API_TOKEN")
        self.source = source
        self._text = ""

    @classmethod
    def of(cls, text: str, source: str = HIDDEN) -> "Secret":
        """A secret that the program has in hand; `source` says where it is from."""
        secret = cls.__new__(cls)
        secret.source = source
        secret._text = text  # noqa: SLF001 - of this class
        _remember(text)
        return secret

    def reveal(self) -> str:
        """The secret itself. Raises SecretError if it is not where it should be."""
        if not self._text:
            self._text = _read(self.source)
            _remember(self._text)
        return self._text

    def __repr__(self) -> str:
        return f"<Secret {self.source}>"

    def __str__(self) -> str:
        return self.source

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self.source, self._text) == (other.source, other._text)

    __hash__ = None  # type: ignore[assignment] # it is read later, and equal to another then

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


def _read(source: str) -> str:
    kind, _, name = source.partition(":")
    if kind == "env":
        if not (text := os.environ.get(name, "")):
            raise SecretError(f"the variable {name} is not set; type export {name}=…")
    else:
        try:
            text = read_small(Path(name).expanduser(), LONGEST).decode().rstrip("\r\n")
        except FolderError as error:
            raise SecretError(str(error)) from None
        except (UnicodeDecodeError, RuntimeError):
            raise SecretError(f"{name} holds no text in UTF-8") from None
        if not text:
            raise SecretError(f"{name} is empty; write the secret into it")
    if not text.isprintable():
        raise SecretError(f"the secret in {source} has control characters or more than one line")
    return text


def _remember(text: str) -> None:
    found = {form for form in (text, quote(text, ""), quote_plus(text)) if len(form) >= SHORTEST_HIDDEN}
    if not found <= set(_revealed):
        _revealed[:] = sorted(found.union(_revealed), key=len, reverse=True)


def child_environment(environment: Mapping[str, str], secrets: Collection[Secret]) -> dict[str, str]:
    """The variables that a child process may have: those which neither are nor contain one of the secrets."""
    named = {secret.source.removeprefix("env:") for secret in secrets}
    texts = [text for secret in secrets if len(text := secret.reveal()) >= SHORTEST_HIDDEN]
    return {
        name: value
        for name, value in environment.items()
        if name not in named and not any(text in value for text in texts)
    }


# `tokens` is spared: a limiter's bucket holds tokens.
_SECRET = re.compile(
    r"pass(word|wd|phrase)|secret|authorization|cookie|credential|signature|jwt|bearer"
    r"|(api|access|private)_?key|token(?!s(_|$))|(^|_)(dsn|pwd|auth)(_|$)"
)
# In a URL only; elsewhere a key may be that of a row.
_SECRET_IN_URL = re.compile(r"(^|_)(key|sig|pw|pass)$")
_URL = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]*)://([^\s\"<>]+)")
# Without the look-behind a long word would be tried from each of its letters.
_PAIR = re.compile(r"([?&#]|(?<![\w.%-]))([\w.%-]+)=([^\s&#;,'\"]+)")
_HEADER = re.compile(r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie): *[^\r\n]+")
# What stands before the path of a URL without a user: a name or an address, and perhaps a port.
_HOST = re.compile(r"(\[[^\]@]*\]|[^:@]*)(:[0-9]*)?")


def redact(text: str) -> str:
    """`text` with every secret in it as `***`: those that were revealed, users and passwords in URLs, parameters."""
    for secret in _revealed:
        text = text.replace(secret, HIDDEN)
    if "://" in text:
        text = _URL.sub(_without_user, text)
    if "=" in text:
        text = _PAIR.sub(_without_value, text)
    return _HEADER.sub(rf"\1: {HIDDEN}", text)


def looks_secret(name: str, *, in_url: bool = False) -> bool:
    """Whether a field, header or parameter of that name usually holds a secret."""
    spelled = re.sub(r"[-. ]", "_", unquote_plus(name).lower())
    return bool(_SECRET.search(spelled) or (in_url and _SECRET_IN_URL.search(spelled)))


def _without_value(pair: re.Match[str]) -> str:
    lead, name, value = pair.groups()
    # A share or a price is no secret, whatever it is called.
    shown = not looks_secret(name, in_url=bool(lead)) or re.fullmatch(r"[0-9]+\.[0-9]+", value)
    return pair[0] if shown else f"{lead}{name}={HIDDEN}"


def _without_user(url: re.Match[str]) -> str:
    """The URL without user and password. A password that was not escaped may contain what ends a host: / ? or #."""
    scheme, rest = url.groups()
    is_web = scheme.lower() in ("http", "https")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    before, _, parameters = rest.partition("?")
    # What stands where a port should, or a parameter without a value, is the rest of a password.
    odd = not _HOST.fullmatch(authority) or (not is_web and "=" not in parameters.partition("@")[0])
    if "@" not in (authority if is_web else before) and not (odd and "@" in rest):
        return url[0]
    user, _, rest = rest.rpartition("@")
    if "@" in user and "?" in user.rpartition("@")[2]:
        rest = HIDDEN  # one @ before a question mark and one after it: nobody knows where the password ends
    return f"{scheme}://{HIDDEN}@{rest}"
