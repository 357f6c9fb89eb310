"""A simulated API with lists and details: pages by a cursor, a log-in, a search by POST, and one like GraphQL.

Every document is arithmetic over a seed, so that what a job must collect is known record for record. `answer` is a
function of the request and the time; `ApiServer` puts it behind a socket.
"""

import base64
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sanderling.clock import Clock
from sanderling.worlds.server import OneHost, OneHostServer, WorldRequest
from sanderling.worlds.weather import NOT_ALLOWED, WorldAnswer

NAME = "api.example"
USER, PASSWORD = "sander", "low tide"
WORDS = ("tide", "wave", "shore", "sand", "gull", "wind", "dune", "reef")
AUTHORS = 7
MOST = 100  # entries of a page

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiRules:
    """How large it is and how it behaves. Times in seconds."""

    posts: int = 300
    page: int = 20  # entries of a page, unless the request says otherwise
    session: float = 60.0  # how long a log-in is good for
    faults: float = 0.02  # share of questions that get an error or a refusal first
    latency: float = 0.01

    def __post_init__(self) -> None:
        if self.posts < 1 or not 1 <= self.page <= MOST:
            raise ValueError(f"posts is {self.posts} and page {self.page}; expected 1 or more, and 1 to {MOST}")
        if not 0 <= self.faults <= 1:
            raise ValueError(f"faults is {self.faults}, expected a share from 0 to 1")


def _answer(status: int, document: object, *headers: tuple[str, str]) -> WorldAnswer:
    body = json.dumps(document).encode()
    fixed = (("Content-Type", "application/json; charset=utf-8"), ("Content-Length", str(len(body))))
    return WorldAnswer(status, (*fixed, *headers), body, 0.0)


NOT_FOUND = _answer(404, {"error": "no such thing"})
BAD = _answer(400, {"error": "bad request"})
LOG_IN = _answer(401, {"error": "log in first"})
REFUSED = _answer(429, {"error": "too fast"}, ("Retry-After", "1"))
# Refusals are rare: a limiter takes those of a host that refuses at random for a quota.
FAULTS = (*(_answer(status, {"error": "internal"}) for status in (500, 502, 504, 500, 502, 504, 500)), REFUSED)
THROTTLED = _answer(200, {"errors": [{"message": "slow down", "extensions": {"code": "THROTTLED"}}]})


@dataclass(slots=True)
class ApiWorld:
    """One API. `asked` counts requests by what they asked for."""

    seed: int = 1
    rules: ApiRules = field(default_factory=ApiRules)
    asked: Counter[str] = field(default_factory=Counter)
    logins: dict[str, float] = field(default_factory=dict)  # sessions, and until when each is good

    # What there is: these are the records that a job must have at its end.

    def post(self, number: int) -> Document:
        """One post, with its details."""
        value = self._number("post", number)
        return {
            "id": number,
            "title": f"{WORDS[value % 8]} and {WORDS[value // 8 % 8]}",
            "author": value // 64 % AUTHORS,
            "words": [WORDS[value >> shift & 7] for shift in (10, 13, 16)],
        }

    def posts(self) -> list[Document]:
        """All posts."""
        return [self.post(number) for number in range(1, self.rules.posts + 1)]

    def hits(self, query: str) -> list[Document]:
        """All posts with a word."""
        return [post for post in self.posts() if query in post["words"]]

    def orders(self) -> list[Document]:
        """All orders of the account."""
        numbers = range(1, self.rules.posts + 1)
        return [{"order": number, "total": self._number("order", number) % 10_000 / 100} for number in numbers]

    def books(self) -> list[Document]:
        """All books, as the graph has them."""
        return [
            {"isbn": f"978-{post['id']:06}", "title": post["title"], "author": {"name": f"author {post['author']}"}}
            for post in self.posts()
        ]

    # What it says.

    def answer(self, request: WorldRequest, now: float) -> WorldAnswer:
        """What is said to a request at a time."""
        url = urlsplit(request.path)
        kind = f"{request.method} {url.path}"
        question = f"{kind}?{url.query} {request.body.decode('latin-1')}"
        self.asked[question] += 1
        if self._fails(question):
            fault = FAULTS[self._number(question) % len(FAULTS)]
            return THROTTLED if kind == "POST /graphql" and fault is REFUSED else fault
        return self._reply(request, url.path, dict(parse_qsl(url.query)), now)

    def _reply(self, request: WorldRequest, path: str, fields: Mapping[str, str], now: float) -> WorldAnswer:
        answer = NOT_FOUND
        match request.method, path.strip("/").split("/"):
            case "GET", ["posts"]:
                answer = self._list_posts(fields)
            case "GET", ["posts", number] if number.isdecimal():
                answer = self._detail(int(number))
            case "POST", ["login"]:
                answer = self._log_in(_parse(request.body), now)
            case "GET", ["orders"]:
                answer = self._list_orders(fields, request.headers, now)
            case "POST", ["search"]:
                answer = self._search(_parse(request.body))
            case "POST", ["graphql"]:
                answer = self._graph(_parse(request.body))
        return answer

    def _fails(self, question: str) -> bool:
        """Whether it fails first; the second or third time it is answered."""
        value = self._number("fault", question)
        return value % 10_000 < self.rules.faults * 10_000 and self.asked[question] <= 1 + value // 10_000 % 2

    def _list_posts(self, fields: Mapping[str, str]) -> WorldAnswer:
        first, size = _place_of(fields.get("cursor", "")), _whole(fields.get("limit"), self.rules.page)
        if first is None or size is None:
            return BAD
        numbers = range(first + 1, self.rules.posts + 1)[:size]
        last = numbers[-1] if numbers else self.rules.posts
        return _answer(
            200,
            {"data": [{"id": each} for each in numbers], "next": None if last == self.rules.posts else _cursor(last)},
        )

    def _detail(self, number: int) -> WorldAnswer:
        return _answer(200, self.post(number)) if 1 <= number <= self.rules.posts else NOT_FOUND

    def _log_in(self, given: Document, now: float) -> WorldAnswer:
        if (given.get("user"), given.get("password")) != (USER, PASSWORD):
            return _answer(403, {"error": "wrong user or password"})
        session = f"session-{self._number('session', len(self.logins))}"
        self.logins[session] = now + self.rules.session
        return _answer(200, {"session": {"key": session, "seconds": self.rules.session}})

    def _list_orders(self, fields: Mapping[str, str], headers: Mapping[str, str], now: float) -> WorldAnswer:
        if self.logins.get(headers.get("authorization", "").removeprefix("Session "), 0.0) <= now:
            return LOG_IN
        page = _whole(fields.get("page"), 1, most=self.rules.posts + 1)
        if page is None:
            return BAD
        return _answer(200, {"orders": self.orders()[(page - 1) * self.rules.page : page * self.rules.page]})

    def _search(self, given: Document) -> WorldAnswer:
        query, offset, size = given.get("query"), given.get("offset", 0), given.get("limit", self.rules.page)
        if not isinstance(query, str) or not isinstance(offset, int) or not isinstance(size, int) or offset < 0:
            return BAD
        hits = self.hits(query)
        return _answer(200, {"hits": hits[offset : offset + min(size, MOST)], "total": len(hits)})

    def _graph(self, given: Document) -> WorldAnswer:
        variables = given.get("variables") or {}
        first = _place_of(variables.get("after") or "")
        if "books" not in str(given.get("query")) or first is None:
            return _answer(200, {"data": None, "errors": [{"message": "expected books, and a cursor of ours"}]})
        books = self.books()
        size = min(variables.get("first") or self.rules.page, MOST)
        nodes = books[first : first + size]
        info = {"hasNextPage": first + size < len(books), "endCursor": _cursor(first + len(nodes))}
        return _answer(200, {"data": {"books": {"nodes": nodes, "pageInfo": info}}})

    def _number(self, *about: object) -> int:
        """A number that follows from the seed and what it is about."""
        return int.from_bytes(blake2b(repr((self.seed, about)).encode(), digest_size=6).digest(), "big")


def _cursor(number: int) -> str:
    return base64.urlsafe_b64encode(f"after {number}".encode()).decode()


def _place_of(cursor: str) -> int | None:
    """How many entries are before a cursor; None for one that is not ours."""
    try:
        word, _, number = base64.urlsafe_b64decode(cursor).decode().partition(" ")
    except ValueError:
        return None
    if not cursor:
        return 0
    return int(number) if word == "after" and number.isdecimal() else None


def _whole(text: str | None, otherwise: int, most: int = MOST) -> int | None:
    """A whole number from 1; None for what is none."""
    if text is None:
        return otherwise
    return min(int(text), most) if text.isdecimal() and int(text) else None


def _parse(body: bytes) -> Document:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class ApiServer(OneHostServer):
    """`async with ApiServer(api, clock) as server`: the API, at `server.url()`."""

    most_body = 2**20

    def __init__(self, api: ApiWorld, clock: Clock, *, port: int = 0) -> None:
        super().__init__(OneHost(NAME, f"http://{NAME}", lambda _path, _headers: NOT_ALLOWED), clock, first_port=port)
        self.api = api

    def _ask(self, _name: str, request: WorldRequest) -> WorldAnswer:
        return replace(self.api.answer(request, self._clock.now()), latency=self.api.rules.latency)
