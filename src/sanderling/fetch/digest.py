"""HTTP Digest authentication by RFC 7616: proof of a password that is never sent. Pure, but for one random number.

Terms. *Challenge*: what a host sends with a 401. *Nonce*: a word of the host's, good for many requests, which are
counted (`nc`). *Stale*: the nonce is too old, and the password may well be right.

aiohttp has a middleware for it, which sends the second request itself: one that no limiter gave leave for.
"""

import hashlib
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from sanderling.task import Headers

LONGEST = 8192  # characters of a challenge
MOST_SESSIONS = 10_000  # hosts; the longest unused are forgotten
UNAUTHORIZED = 401
_HASHES = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}
_PART = re.compile(r'([\w!#$%&\'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?[\s,]*')


@dataclass(frozen=True, slots=True)
class DigestUser:
    """Who asks. The repr has no password."""

    name: str
    password: str = field(repr=False)


class DigestChallenge(NamedTuple):
    """What a host wants to be answered with."""

    realm: str
    nonce: str
    algorithm: str  # as in _HASHES, in upper case, perhaps with -SESS
    counted: bool = True  # qop=auth; without it, as in RFC 2069
    opaque: str | None = None
    stale: bool = False
    userhash: bool = False
    said: str = ""  # the algorithm as the host spells it; nothing if it names none


def read_challenges(headers: Headers) -> Iterator[DigestChallenge]:
    """The challenges of a reply that can be answered, in its order."""
    lines = (value[:LONGEST] for name, value in headers if name.lower() == "www-authenticate")
    found = (_challenge(said) for line in lines for said in _schemes(line))
    return (challenge for challenge in found if challenge is not None)


def _schemes(text: str) -> Iterator[dict[str, str]]:
    """The parameters of each Digest in a header that may have several schemes."""
    said: dict[str, str] | None = None
    for found in _PART.finditer(text):
        name, quoted, plain = found.groups()
        if quoted is None and plain is None:  # a scheme begins
            if said is not None:
                yield said
            said = {} if name.lower() == "digest" else None
        elif said is not None:
            said.setdefault(name.lower(), plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
    if said is not None:
        yield said


def _challenge(said: dict[str, str]) -> DigestChallenge | None:
    algorithm = said.get("algorithm", "MD5").upper()
    offers = {each.strip().lower() for each in said["qop"].split(",")} if said.get("qop") else set[str]()
    usable = _HASHES.get(algorithm.removesuffix("-SESS")) in hashlib.algorithms_available
    # It is repeated in a header of ours.
    plain = all(each.isprintable() for each in said.values())
    if "nonce" not in said or not usable or not plain or (offers and "auth" not in offers):
        return None
    return DigestChallenge(
        said.get("realm", ""),
        said["nonce"],
        algorithm,
        bool(offers),
        said.get("opaque"),
        said.get("stale", "").lower() == "true",
        said.get("userhash", "").lower() == "true",
        said.get("algorithm", ""),
    )


def answer(challenge: DigestChallenge, user: DigestUser, asked: tuple[str, str], cnonce: str, count: int) -> str:
    """The Authorization header for a request of this method and target, the `count`-th with its nonce. 3.4."""
    method, target = asked

    def hashed(*parts: str) -> str:
        kind = _HASHES[challenge.algorithm.removesuffix("-SESS")]
        return hashlib.new(kind, ":".join(parts).encode(), usedforsecurity=False).hexdigest()

    who = hashed(user.name, challenge.realm, user.password)
    if challenge.algorithm.endswith("-SESS"):
        who = hashed(who, challenge.nonce, cnonce)
    what, number = hashed(method, target), f"{count:08x}"
    middle = (number, cnonce, "auth") if challenge.counted else ()
    said = {"realm": challenge.realm, "nonce": challenge.nonce, "uri": target}
    said["response"] = hashed(who, challenge.nonce, *middle, what)
    if challenge.opaque is not None:
        said["opaque"] = challenge.opaque
    parts = [_user(challenge, user, hashed(user.name, challenge.realm))]
    parts += [f'{name}="{_escaped(value)}"' for name, value in said.items()]
    parts += [f"algorithm={challenge.said}"] if challenge.said else []
    parts += [f"qop=auth, nc={number}"] if challenge.counted else []
    parts += [f'cnonce="{cnonce}"'] if challenge.counted or challenge.algorithm.endswith("-SESS") else []
    parts += ["userhash=true"] if challenge.userhash else []
    return "Digest " + ", ".join(parts)


def _user(challenge: DigestChallenge, user: DigestUser, hashed: str) -> str:
    if challenge.userhash:
        return f'username="{hashed}"'
    if user.name.isascii():
        return f'username="{_escaped(user.name)}"'
    return f"username*=UTF-8''{quote(user.name, safe='')}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class DigestSession:
    """How a user is known to one host: its last challenge, and how many requests were answered for that."""

    def __init__(self, user: DigestUser) -> None:
        self._user = user
        self._challenge: DigestChallenge | None = None
        self._cnonce = ""
        self._count = 0
        self._accepted = False  # whether the host has let in a request with this nonce

    def prove(self, method: str, target: str) -> tuple[str, str]:
        """The Authorization header of the next request and the nonce in it; nothing while there is no challenge."""
        if self._challenge is None:
            return "", ""
        self._count += 1
        line = answer(self._challenge, self._user, (method, target), self._cnonce, self._count)
        return line, self._challenge.nonce

    def learn(self, status: int, headers: Headers, used: str) -> bool:
        """Take in the reply to a request with the nonce `used`: whether it should be asked once more.

        Not if the host has refused the proof, which another would not help.
        """
        if status != UNAUTHORIZED:
            self._accepted = self._accepted or (self._challenge is not None and used == self._challenge.nonce)
            return False
        challenge = next(read_challenges(headers), None)
        if challenge is None:
            return False
        known = None if self._challenge is None else self._challenge.nonce
        again = not used or challenge.stale or used != known or self._accepted
        if challenge.nonce != known:
            self._challenge, self._count, self._accepted = challenge, 0, False
            self._cnonce = secrets.token_hex(8)
        return again


class DigestSessions:
    """The sessions of all hosts that are asked with Digest."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, DigestUser], DigestSession] = OrderedDict()

    def of(self, host: str, user: DigestUser) -> DigestSession:
        """The session of a host, which may be new."""
        key = host, user
        session = self._known.pop(key, None) or DigestSession(user)
        self._known[key] = session
        if len(self._known) > MOST_SESSIONS:
            self._known.popitem(last=False)
        return session
