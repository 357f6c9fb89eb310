"""Trackside as a source: what is on, what to ask, and answers of every shape."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackside_documents_made import (
    ABOUT,
    BASE,
    CHANNELS,
    EVENT,
    PAGE,
    RACE,
    ZERO,
    Json,
    event,
    guid,
    race,
    reply,
    round_of_races,
    usual_documents,
)

from sanderling.apis.polled import Discovered, PolledSource, TargetName, Wanted
from sanderling.apis.trackside import Trackside
from sanderling.outcome import Code
from sanderling.stores.documents import MOST_ROWS, Document, SourceError
from sanderling.task import Reply

SOURCE: PolledSource = Trackside(BASE)


def discovered(*replies: Reply) -> tuple[list[str], Discovered]:
    """The addresses that were asked, and what came of it."""
    asking = SOURCE.discover()
    urls = [next(asking).url]
    urls += [asking.send(each).url for each in replies[:-1]]
    with pytest.raises(StopIteration) as ended:
        asking.send(replies[-1])
    found = ended.value.value
    assert isinstance(found, Discovered)
    return urls, found


def test_the_page_says_which_event_is_on_and_the_event_what_there_is_to_poll() -> None:
    urls, found = discovered(reply(PAGE), reply([event(Races=[RACE, None, ZERO, guid("a", 2), RACE])]))

    assert urls == [f"{BASE}/", f"{BASE}/events/{EVENT}/Event.json"]
    assert found.event == EVENT
    assert set(found.wanted) == {
        *(Wanted(kind, EVENT, EVENT) for kind in ("event", "pilots", "rounds", "results")),
        Wanted("channels", EVENT, EVENT, only=tuple(CHANNELS[:2])),
        Wanted("race", RACE, EVENT),
        Wanted("race", guid("a", 2), EVENT),
    }
    assert len({wanted.name for wanted in found.wanted}) == len(found.wanted)
    assert found.document == SOURCE.read(ABOUT["event"], reply([event(Races=[RACE, guid("a", 2)])]))


@pytest.mark.parametrize(
    "page",
    [
        f"var eventManager=new EventManager('events/{EVENT}', 1)",
        f'x = new  EventManager( "events/{EVENT.upper()}" )',
    ],
)
def test_the_page_may_be_spelled_otherwise(page: str) -> None:
    assert discovered(reply(page.encode()), reply([event()]))[1].event == EVENT


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (reply(b""), '/: 0 bytes without an event, expected new EventManager("events/…")'),
        (reply(b"<html>no event</html>"), "/: 21 bytes without an event"),
        (reply(b'new EventManager("events/finals")'), "/: id of the event: found 'finals', expected a GUID"),
        (reply(f'new EventManager("events/{ZERO}")'.encode()), "expected an id of its own"),
        (reply(PAGE, 503), "/: HTTP 503, expected 200"),
    ],
)
def test_a_page_without_an_event_ends_the_search(page: Reply, said: str) -> None:
    asking = SOURCE.discover()
    next(asking)

    with pytest.raises(SourceError) as raised:
        asking.send(page)
    assert said in str(raised.value)


def test_an_event_that_is_half_written_ends_the_search() -> None:
    asking = SOURCE.discover()
    next(asking)
    asking.send(reply(PAGE))

    with pytest.raises(SourceError, match=r"Event\.json: 5 bytes that are no JSON") as raised:
        asking.send(reply(b'[{"ID'))
    assert (raised.value.outcome.code, raised.value.outcome.status) == (Code.PARSE_ERROR, 200)


def test_every_kind_has_its_address() -> None:
    assert {kind: SOURCE.task(wanted).url.removeprefix(BASE) for kind, wanted in ABOUT.items()} == {
        "event": f"/events/{EVENT}/Event.json",
        "pilots": f"/events/{EVENT}/Pilots.json",
        "rounds": f"/events/{EVENT}/Rounds.json",
        "results": f"/events/{EVENT}/Results.json",
        "channels": "/httpfiles/Channels.json",
        "race": f"/events/{EVENT}/{RACE}/Race.json",
    }
    assert {kind.name for kind in SOURCE.kinds} == set(ABOUT)


def test_the_server_may_be_below_a_path() -> None:
    assert Trackside("https://proxy.example/pits/").task(ABOUT["channels"]).url == (
        "https://proxy.example/pits/httpfiles/Channels.json"
    )


@pytest.mark.parametrize(
    "base", ["", "timing.example", "ftp://timing.example", "http://", "http://a/?q=1", "http://a b"]
)
def test_a_base_that_cannot_be_asked_is_refused(base: str) -> None:
    with pytest.raises(ValueError, match=r"base of trackside|host|URL|url"):
        Trackside(base)


def test_what_a_kind_needs_is_a_kind_and_only_races_are_ever_active() -> None:
    kinds = {kind.name: kind for kind in SOURCE.kinds}

    for kind in kinds.values():
        assert set(kind.needs) < set(kinds) - {kind.name}
    assert {name for name, kind in kinds.items() if kind.active_seconds} == {"race"}
    assert kinds["race"].active_seconds == 0.2


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted("weather", EVENT, EVENT),
        Wanted("race", "../../secret", EVENT),
        Wanted("race", RACE, "finals"),
        Wanted("event", ZERO, EVENT),
        Wanted("", "", ""),
    ],
)
def test_a_target_that_cannot_be_one_is_refused_before_anything_is_sent(wanted: Wanted) -> None:
    for ask in (lambda: SOURCE.task(wanted), lambda: SOURCE.read(wanted, reply([]))):
        with pytest.raises(SourceError, match="expected") as raised:
            ask()
        assert raised.value.outcome.code is Code.REFUSED


def test_ids_of_a_target_may_be_in_capitals() -> None:
    wanted = Wanted("race", RACE.upper(), EVENT.upper())

    assert SOURCE.task(wanted) == SOURCE.task(ABOUT["race"])
    assert SOURCE.read(wanted, reply([race()])) == SOURCE.read(ABOUT["race"], reply([race()]))


def test_a_race_that_is_flown_is_active_by_its_stored_rows() -> None:
    rows = [
        *SOURCE.read(ABOUT["race"], reply([race()])).rows,
        *SOURCE.read(ABOUT["rounds"], reply([round_of_races(guid("d", 1))])).rows,
    ]

    found = SOURCE.activity(EVENT, [row for row in rows if row.table in SOURCE.watched])

    assert found.active == {TargetName("race", RACE)}
    assert found.order == {TargetName("race", RACE): 1}


def attempt(kind: str, body: bytes) -> Document | SourceError:
    try:
        return SOURCE.read(ABOUT[kind], reply(body))
    except SourceError as error:
        return error


def read_or_refused(kind: str, body: bytes) -> Document | None:
    """The document, or None if it was refused as it should be."""
    document = attempt(kind, body)
    if isinstance(document, SourceError):
        assert document.outcome.code in (Code.INVALID_RESPONSE, Code.PARSE_ERROR, Code.TOO_LARGE)
        assert 0 < len(document.outcome.detail) <= 200
        return None
    assert len(document.rows) <= MOST_ROWS
    texts = [value for row in document.rows for value in row.values.values() if isinstance(value, str)]
    assert not any("\0" in text for text in texts)
    "".join(texts).encode()  # raises for half a surrogate, which no database takes
    return document


KINDS = st.sampled_from(sorted(ABOUT))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(KINDS, st.binary(max_size=200))
def test_whatever_bytes_come_it_is_a_document_or_an_error(kind: str, body: bytes) -> None:
    read_or_refused(kind, body)


@given(KINDS, VALUES)
def test_whatever_json_comes_it_is_a_document_or_an_error(kind: str, value: object) -> None:
    read_or_refused(kind, json.dumps(value).encode())


@given(KINDS, st.data())
def test_whatever_happens_to_the_bytes_of_a_document_it_is_a_document_or_an_error(
    kind: str, data: st.DataObject
) -> None:
    body = bytearray(json.dumps(usual_documents()[kind], ensure_ascii=False).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))

    read_or_refused(kind, bytes(body))


@given(KINDS, st.data())
def test_a_document_that_is_cut_off_is_an_error_wherever_that_is(kind: str, data: st.DataObject) -> None:
    body = json.dumps(usual_documents()[kind]).encode()

    assert read_or_refused(kind, body[: data.draw(st.integers(1, len(body) - 1))]) is None


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to everything within a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([path] if path else []), *(below for key, each in inner for below in places(each, (*path, key)))]


def replaced(document: list[Json], path: tuple[str | int, ...], value: object) -> list[Json]:
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return document


ODD = VALUES | st.sampled_from(
    [
        "",
        ZERO,
        EVENT,
        "\0",
        "9999/99/99 9:99:99",
        "2026/05/03 9:04:05",
        "99:99:99",
        2**63,
        -(2**63) - 1,
        1e308,
        [[]],
        [None],
    ]
)


@given(KINDS, st.data())
def test_whatever_is_put_into_a_document_it_is_a_document_or_an_error(kind: str, data: st.DataObject) -> None:
    document = usual_documents()[kind]
    path = data.draw(st.sampled_from(places(document)))

    read_or_refused(kind, json.dumps(replaced(document, path, data.draw(ODD))).encode())


def may_be_null(kind: str, path: tuple[str | int, ...]) -> bool:
    """Not the ids, nor the one element of a document; and laps name the detections of this one."""
    whole = len(path) == 1 and kind in ("event", "race")
    named = path[1:2] == ("Detections",) and len(path) < 4
    return path[-1] != "ID" and not whole and not named


def test_all_but_the_ids_may_be_null() -> None:
    for kind, document in usual_documents().items():
        for path in filter(lambda path: may_be_null(kind, path), places(document)):
            changed = replaced(usual_documents()[kind], path, None)
            assert read_or_refused(kind, json.dumps(changed).encode()), path


def first_question(page: bytes) -> str:
    """What is asked after the page, or why nothing is."""
    asking = SOURCE.discover()
    next(asking)
    try:
        return asking.send(reply(page)).url
    except SourceError as error:
        return str(error)


@given(st.binary(max_size=300) | st.binary(max_size=60).map(lambda id_: b'new EventManager("events/' + id_ + b'")'))
def test_whatever_page_comes_there_is_an_event_or_an_error(body: bytes) -> None:
    assert first_question(body).startswith(("/: ", f"{BASE}/events/"))
