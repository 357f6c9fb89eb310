"""What is asked of an upstream, and what is made of its answer."""

import json  # another writer than the one that is tested
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from race_polling import at_once
from scheduled import entry

from sanderling.apis.json_source import JsonSource
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.outcome import Code
from sanderling.polling.handler import NOWHERE, PolledAnswer, PollingHandler, canonical
from sanderling.polling.targets import ScheduledTarget
from sanderling.task import Headers, Reply, Task
from sanderling.testing import LoopClock, run_virtual

SOURCE = JsonSource.from_settings(
    {
        "name": "scores",
        "headers": {"Accept": "application/json"},
        "kinds": {
            "match": {
                "url": "https://scores.example/match/{id}",
                "seconds": 10.0,
                "ids_url": "https://scores.example/ids",
            }
        },
    }
)


class Upstream:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self, body: bytes, headers: Headers = (), status: int = 200) -> None:
        self.answer = Reply(status, headers, body, "https://scores.example/match/1", 0.01)
        self.asked: list[Task] = []

    async def send(self, task: Task) -> Reply:
        self.asked.append(task)
        return replace(self.answer, url=task.url)


def ask(upstream: Upstream, each: ScheduledTarget) -> tuple[PolledAnswer, Memory]:
    async def main() -> tuple[PolledAnswer, Memory]:
        clock, memory = LoopClock(), Memory(2**20)
        limiter = Limiter(clock=clock, rng=Random(1))
        fetcher = Fetcher(upstream, limiter, clock=clock, follow=False, retry=False)
        return await PollingHandler(SOURCE, fetcher, memory, clock, at_once).ask(each, None), memory

    return run_virtual(main())


def match(**given: Any) -> ScheduledTarget:  # noqa: ANN401 - of a Target
    return entry(1, kind="match", source_id="1", **given)


def test_a_document_comes_with_what_it_is_known_by() -> None:
    headers = (
        ("ETag", '"v1"'),
        ("Last-Modified", "Sun, 15 Nov 2026 10:00:00 GMT"),
        ("Date", "Sun, 15 Nov 2026 10:00:01 GMT"),
    )
    answer, memory = ask(Upstream(b'{"id": 1, "state": "live"}', headers), match())

    assert answer.outcome.code is Code.OK
    assert answer.document is not None
    assert len(answer.document.rows) == 1
    assert (answer.etag, answer.modified) == ('"v1"', "Sun, 15 Nov 2026 10:00:00 GMT")
    assert answer.digest
    assert memory.total == 0


@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ({"ETag": 'W/"v1"'}, ('W/"v1"', "")),
        ({"ETag": "v1"}, ("v1", "")),
        ({"ETag": "*"}, ("", "")),
        ({"ETag": '"a", "b"'}, ("", "")),
        ({"ETag": '"' + "x" * 1000 + '"'}, ("", "")),
        ({"Last-Modified": "Sun, 15 Nov 2026 10:00:00 GMT"}, ("", "")),
        (
            {"Last-Modified": "Sun, 15 Nov 2026 10:00:00 GMT", "Date": "Sun, 15 Nov 2026 10:00:00 GMT"},
            ("", ""),
        ),
        ({"Last-Modified": "today", "Date": "Sun, 15 Nov 2026 10:00:05 GMT"}, ("", "")),
    ],
)
def test_only_what_tells_versions_apart_is_sent_back(headers: dict[str, str], known: tuple[str, str]) -> None:
    answer, _ = ask(Upstream(b'{"id": 1, "state": "live"}', tuple(headers.items())), match())

    assert (answer.etag, answer.modified) == known


def test_what_is_the_same_brings_what_it_is_known_by_now() -> None:
    first, _ = ask(Upstream(b'{"id": 1}'), match())

    again, _ = ask(Upstream(b'{ "id": 1 }', (("ETag", '"v2"'),)), match(digest=first.digest))

    assert (again.outcome.code, again.document, again.etag) == (Code.NOT_MODIFIED, None, '"v2"')


def test_not_modified_is_no_answer_where_nobody_asked_if_it_was() -> None:
    answer, _ = ask(Upstream(b"", status=304), match())

    assert (answer.outcome.code, answer.outcome.status) == (Code.INVALID_RESPONSE, 304)


def test_the_next_question_is_conditional_and_keeps_the_headers_of_the_source() -> None:
    upstream = Upstream(b"", status=304)
    answer, _ = ask(upstream, match(etag='"v1"', modified="Sun, 15 Nov 2026 10:00:00 GMT", digest=b"x"))

    assert answer.outcome.code is Code.NOT_MODIFIED
    assert answer.document is None
    assert dict(upstream.asked[0].headers) == {
        "Accept": "application/json",
        "If-None-Match": '"v1"',
        "If-Modified-Since": "Sun, 15 Nov 2026 10:00:00 GMT",
    }


def test_the_same_bytes_are_not_read_again() -> None:
    body = b'{"id": 1}'
    first, _ = ask(Upstream(body), match())
    known = match(digest=first.digest)
    known.raw = first.raw

    again, _ = ask(Upstream(body), known)

    assert (again.outcome.code, again.document) == (Code.NOT_MODIFIED, None)


def test_the_same_document_in_other_bytes_is_the_same() -> None:
    first, _ = ask(Upstream(b'{"id": 1, "state": "live"}'), match())

    again, _ = ask(Upstream(b'{ "state":"live",\n"id":1 }'), match(digest=first.digest))

    assert (again.outcome.code, again.document) == (Code.NOT_MODIFIED, None)
    assert again.raw != first.raw


def test_a_document_whose_digest_was_forgotten_is_read_whatever_it_says() -> None:
    first, _ = ask(Upstream(b'{"id": 1}'), match())
    known = match(digest=b"")
    known.raw = first.raw

    again, _ = ask(Upstream(b'{"id": 1}'), known)

    assert again.document is not None


@pytest.mark.parametrize("tag", ['"' + "x" * 2000 + '"', '"\N{SNOWMAN}"', '"\x07"'])
def test_a_tag_that_cannot_be_sent_back_is_not_kept(tag: str) -> None:
    answer, _ = ask(Upstream(b'{"id": 1}', (("ETag", tag),)), match())

    assert answer.document is not None
    assert answer.etag == ""


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"id": ', 200, Code.INVALID_RESPONSE),
        (b"", 200, Code.INVALID_RESPONSE),
        (b"[" * 10_000, 200, Code.INVALID_RESPONSE),
        (b"oops", 500, None),
        (b"", 404, None),
    ],
)
def test_what_cannot_be_read_is_an_outcome(body: bytes, status: int, code: Code | None) -> None:
    answer, memory = ask(Upstream(body, status=status), match())

    assert answer.document is None
    assert not answer.outcome.ok
    assert code is None or answer.outcome.category == code.category
    assert memory.total == 0


def test_a_target_that_cannot_be_asked_about_asks_nobody() -> None:
    upstream = Upstream(b"{}")
    stranger = entry(1, kind="lottery")
    answer, _ = ask(upstream, stranger)

    assert upstream.asked == []
    assert answer.outcome.code is Code.REFUSED

    async def host() -> str:
        clock = LoopClock()
        fetcher = Fetcher(upstream, Limiter(clock=clock), clock=clock)
        return PollingHandler(SOURCE, fetcher, Memory(2**20), clock, at_once).host(stranger)

    assert run_virtual(host()) == NOWHERE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@given(JSON, JSON)
def test_a_digest_tells_documents_apart_and_nothing_else(one: object, other: object) -> None:
    def digest(document: object, **style: object) -> bytes:
        return canonical(json.dumps(document, **style).encode(), b"")  # type: ignore[arg-type]

    assert digest(one) == digest(one, indent=2, sort_keys=True, ensure_ascii=False)
    assert (digest(one) == digest(other)) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def test_what_is_no_json_goes_by_its_bytes() -> None:
    assert canonical(b"<html>", b"raw") == b"raw"
    assert canonical(b"[" * 100_000, b"raw") == b"raw"
    assert canonical(b"\xff", b"raw") == b"raw"
