"""The secrets that a run knows, and texts and addresses without them, however they are spelled there.

Hosts repeat what they were sent: in messages, in links, in redirects.
"""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

from sanderling.apis.auth import ApiKey, Auth, Basic, Bearer, FormLogin, Login, OAuth2, encode_basic, reveal
from sanderling.redact import HIDDEN, is_secret

SHORTEST = 4  # characters; a shorter one is a part of many words, and keeps nobody out
# Characters by which a secret is known where a text was cut off. Nobody finds out the rest of it by as many.
HEAD = 8


class Secrets:
    """All secrets of a run, of which there may be more from time to time."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._spellings: dict[str, None] = {}
        self._heads: re.Pattern[str] | None = None
        self.add(*texts)

    def add(self, *texts: str) -> None:
        """Know these as well."""
        for text in texts:
            if len(text) >= SHORTEST:
                self._spellings.update(dict.fromkeys(_spell(text)))
        heads = sorted({each[:HEAD] for each in self._spellings}, key=len, reverse=True)
        self._heads = re.compile("|".join(map(re.escape, heads))) if heads else None

    def mask(self, text: str) -> str:
        """The text with *** for each secret, also for the beginning of one."""
        parts, at = [], 0
        while self._heads is not None and (found := self._heads.search(text, at)):
            rest = text[found.start() :]
            parts += [text[at : found.start()], HIDDEN]
            at = found.start() + max(_shared(rest, each) for each in self._spellings)
        return "".join([*parts, text[at:]])

    def are_in(self, text: str) -> bool:
        """Whether one of them is in a text, whole."""
        return any(each in text for each in self._spellings)

    def drop(self, url: str) -> str:
        """An address without the parameters of its query that hold a secret."""
        if not self.are_in(url):
            return url
        parts = urlsplit(url)
        kept = [pair for pair in parts.query.split("&") if not self.are_in(pair)]
        return urlunsplit(parts._replace(query="&".join(kept)))


def secrets_of(auth: Auth, environment: Mapping[str, str]) -> list[str]:
    """The secrets that a job declares. Raises ValueError for one that is not there."""
    match auth:
        case ApiKey() | Bearer():
            return [auth.secret(environment)]
        case Basic():
            return [auth.secret(environment), reveal("password of Basic", auth.password, environment)]
        case OAuth2():
            given = {"client_secret": auth.client_secret, "refresh_token": auth.refresh_token, **auth.extra}
            found = list(_texts("OAuth2", given, environment))
            if not auth.client_secret:
                return found
            client = reveal("client_id of OAuth2", auth.client_id, environment)
            secret = reveal("client_secret of OAuth2", auth.client_secret, environment)
            return [*found, encode_basic(client, secret)] if ":" not in client else found
        case FormLogin():
            return list(auth.filled(environment).values())
        case Login():
            return list(_texts("Login", [auth.json or auth.form or {}, dict(auth.headers)], environment))


def _texts(name: str, value: Any, environment: Mapping[str, str]) -> Iterable[str]:  # noqa: ANN401 - any JSON
    """The texts of a document that are secrets: kept elsewhere, or under a name that says so."""
    match value:
        case dict():
            for key, each in value.items():
                plain = isinstance(each, str) and each and is_secret(str(key))
                yield from [reveal(name, each, environment)] if plain else _texts(name, each, environment)
        case list() | tuple():
            for each in value:
                yield from _texts(name, each, environment)
        case str() if value.startswith(("env:", "file:")):
            yield reveal(name, value, environment)


def _shared(text: str, other: str) -> int:
    """With how many characters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


def _spell(text: str) -> Iterable[str]:
    """A secret as it may be written in a text, a link or a document."""
    escaped = (quote(text, safe=""), quote(text), quote_plus(text))
    in_json = json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    yield text
    yield from escaped
    yield from (re.sub("%..", lambda found: found[0].lower(), each) for each in escaped)
    yield from in_json
    yield from (each.replace("/", r"\/") for each in in_json)
