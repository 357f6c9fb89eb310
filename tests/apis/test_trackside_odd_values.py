"""One odd value in a document costs itself: its field, or its record where it is the id."""

import copy
import json
from collections.abc import Iterator, Sequence
from math import inf, nan
from typing import Any

import pytest
from trackside_documents_made import ABOUT, BASE, EVENT, reply, usual_documents

from sanderling.apis.polled import Discovered, Wanted
from sanderling.apis.trackside import Trackside
from sanderling.stores.documents import Document, SourceError, SourceRow
from sanderling.worlds.race import RaceDay, demo

Path = tuple[str | int, ...]
SOURCE = Trackside(BASE)
JUNK: tuple[object, ...] = (
    7,
    -1.5,
    nan,
    inf,
    10**400,
    True,
    "",
    "junk \ud800",
    "2026-13-45T99:99",
    [],
    [[{}]],
    {"ID": [None]},
    None,
)


def paths(value: Any, at: Path = ()) -> Iterator[Path]:  # noqa: ANN401 - JSON
    """The way to every value in a document, but for the document itself."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*at, key)
        yield from paths(each, (*at, key))


def at(document: Any, path: Path) -> Any:  # noqa: ANN401 - JSON
    for key in path:
        document = document[key]
    return document


def changed(document: object, path: Path, junk: object) -> bytes:
    copied = copy.deepcopy(document)
    at(copied, path[:-1])[path[-1]] = junk
    return json.dumps(copied).encode()


def rows_of(document: Document) -> dict[tuple[str, str], SourceRow]:
    return {(row.table, row.key): row for row in document.rows}


def touched(document: Any, path: Path) -> set[str]:  # noqa: ANN401 - JSON
    """The ids of the record that the path leads into, and of what is there."""
    ids: list[str] = []
    value = document
    for key in path:
        value = value[key]
        ids += [value["ID"].lower()] if isinstance(value, dict) and "ID" in value else []
    return {*ids[-1:], str(value).lower()}


def speaks_of(row: SourceRow, ids: set[str]) -> bool:
    return bool(ids & {row.key, *row.key.split("/"), *(str(row.values.get(name)) for name in ("detection", "channel"))})


def is_fatal(kind: str, path: Path, document: Sequence[object]) -> bool:
    """Whether the value is all that the document is, or what it is known by."""
    alone = len(document) == 1
    return alone and (len(path) == 1 or path[1:] == ("ID",) or (kind == "race" and path[1:] == ("Event",)))


def documents() -> Iterator[tuple[str, Wanted, list[Any]]]:
    for kind, said in usual_documents().items():
        yield f"made-{kind}", ABOUT[kind], said
    day = RaceDay(1, demo())
    heat = day.heats[0]
    flown = heat.start / 1000 + 4.0
    for kind, path in (("event", day.path("Event")), ("race", day.race_path(heat.id)), ("pilots", day.path("Pilots"))):
        wanted = Wanted(kind, heat.id if kind == "race" else day.event, day.event)
        yield f"world-{kind}", wanted, json.loads(day.document(path, flown) or b"")


@pytest.mark.parametrize(("wanted", "said"), [pytest.param(*each[1:], id=each[0]) for each in documents()])
def test_one_odd_value_costs_itself_and_nothing_else(wanted: Wanted, said: list[Any]) -> None:
    good = rows_of(SOURCE.read(wanted, reply(json.dumps(said).encode())))

    for number, path in enumerate(paths(said)):
        if is_fatal(wanted.kind, path, said):
            continue
        junk = JUNK[number % len(JUNK)]
        if junk in (None, []) and isinstance(at(said, path), list):
            continue  # that is no junk, it says that there are none
        found = SOURCE.read(wanted, reply(changed(said, path, junk)))
        rows, ids = rows_of(found), touched(said, path)
        goes = {whole.table for whole in found.whole}
        lost = [row for name, row in good.items() if rows.get(name) != row]
        for row in lost:
            kept = (row.table, row.key) not in rows and row.table not in goes  # as it is stored
            assert kept or speaks_of(row, ids) or len(lost) == 1 or path[:2] == (0, "ChannelColors"), (path, junk, row)
            now = rows.get((row.table, row.key), row).values
            emptied = [name for name, value in row.values.items() if value is not None and now[name] is None]
            assert found.notes or not emptied or junk in (None, "") or isinstance(at(said, path), list), (path, junk)


@pytest.mark.parametrize("junk", JUNK)
def test_no_odd_value_in_an_event_costs_a_target(junk: object) -> None:
    said = usual_documents()["event"]
    before = discovered(json.dumps(said).encode())

    for path in paths(said):
        if is_fatal("event", path, said):
            continue
        found = discovered(changed(said, path, junk))
        lost = {each.name for each in before.wanted} - {each.name for each in found.wanted}
        itself = path[:2] == (0, "Races") and (len(path) == 3 or junk in ([], None))
        assert itself or not lost or found.unread == ("race",), (path, junk, lost)


def discovered(body: bytes) -> Discovered:
    asking = SOURCE.discover()
    next(asking)
    asking.send(reply(f'new EventManager("events/{EVENT}")'.encode()))
    try:
        asking.send(reply(body))
    except StopIteration as end:
        found: Discovered = end.value
        return found
    raise AssertionError("it asks for more")


@pytest.mark.parametrize("body", [b"[1, null, []]", b'[{"ID": 7, "Name": "x"}]', b"{}", b"[NaN]"])
def test_a_document_of_which_nothing_can_be_read_is_refused_as_a_whole(body: bytes) -> None:
    """It would delete what is there, and it is something else."""
    with pytest.raises(SourceError):
        SOURCE.read(ABOUT["pilots"], reply(body))
