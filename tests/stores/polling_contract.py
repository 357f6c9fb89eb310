"""What every store of `polling` promises: PollingContract. A subclass has the fixture `place` (`polling_play.Place`).

Here, that it does what a slow and obvious twin does, whatever is asked of it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polling_contract_documents import DocumentsContract
from polling_contract_targets import TargetsContract
from polling_contract_touched import TouchedContract
from polling_play import (
    SCHEMA,
    WALL,
    Place,
    Rows,
    all_changes,
    all_due,
    all_rows,
    event,
    found,
    lap,
    note,
    pilot,
    race,
    replayed,
    round_,
    taken,
    told,
    whole,
)

from sanderling.outcome import Code
from sanderling.stores.documents import Document, Parent, SourceError
from sanderling.stores.polling import PollingTarget, Query, Reconciliation, RowChange, TargetRun, WantedTarget
from sanderling.stores.polling_store import PollingStore

EXAMPLES = settings(max_examples=30, deadline=None)

# --- documents, on so few keys that everything happens ---

EVENTS, ROUNDS, RACES, LAPS, TEXTS = (st.sampled_from(keys) for keys in ("ef", "rst", "abc", "1234", ["", "x", "y"]))
NONE = st.none()
ROW = st.one_of(
    st.builds(event, EVENTS, NONE | TEXTS),
    st.builds(pilot, st.sampled_from("pq"), name=NONE | TEXTS, practice=NONE | st.booleans()),
    st.builds(round_, ROUNDS, NONE | EVENTS, NONE | TEXTS),
    st.builds(race, RACES, NONE | ROUNDS, NONE | EVENTS),
    st.builds(lap, LAPS, NONE | RACES, NONE | st.sampled_from("pq"), NONE | st.floats(0, 1, width=16)),
    st.builds(note, LAPS, NONE | TEXTS),
)
WHOLE = st.one_of(
    st.builds(whole, st.just("rounds"), st.just("event"), EVENTS, ROUNDS),
    st.builds(whole, st.just("races"), st.just("event"), EVENTS, RACES),
    st.builds(whole, st.just("races"), st.just("round"), ROUNDS),
    st.builds(whole, st.just("laps"), st.just("race"), RACES, LAPS, LAPS),
    st.builds(whole, st.just("notes"), st.just("target"), TEXTS.filter(bool), LAPS),
)
DOCUMENT = st.builds(
    SCHEMA.document,
    st.lists(ROW, max_size=8, unique_by=lambda row: (row.table, row.key)),
    st.lists(WHOLE, max_size=2, unique_by=lambda each: (each.table, each.column, each.parent)),
)
DOCUMENT_STEP = st.one_of(DOCUMENT, DOCUMENT, DOCUMENT, st.just("purge"), st.integers(0, 20), st.just("open again"))


def after(rows: Rows, document: Document) -> Rows | Code:
    """What a document makes of the rows, the slow way; or why it is not kept."""
    if any(parent not in rows for parent in document.needs):
        return Code.DEFERRED
    now = rows | {Parent(row.table, row.key): row.values for row in document.rows}
    for each in document.whole:
        for place in [place for place, values in now.items() if place.table == each.table]:
            if now[place][each.column] == each.parent and place.key not in each.keys:
                del now[place]
    while orphans := [place for place in now if any(parent not in now for parent in parents(place.table, now[place]))]:
        for place in orphans:
            del now[place]
    there = [*document.needs, *(Parent(row.table, row.key) for row in document.rows)]
    return now if all(place in now for place in there) else Code.INVALID_RESPONSE


def parents(table: str, values: Any) -> Iterator[Parent]:  # noqa: ANN401 - of a row
    for column in next(each for each in SCHEMA.tables if each.name == table).columns:
        if column.references and values[column.name] is not None:
            yield Parent(column.references, values[column.name])


async def play_documents(place: Place, steps: list[Document | str | int]) -> None:
    rows: Rows = {}
    seen: list[RowChange] = []
    await place.wipe()
    for part in parts(steps, "open again"):
        async with place.opens() as store:
            first = (await store.span()).newest if not seen else 0
            for step in part:
                rows = await document_step(store, step, rows, seen)
                assert await all_rows(store) == rows
                assert [each.seq for each in seen] == sorted({each.seq for each in seen})
            assert [each for each in seen if each.seq > first] == seen
            kept = await all_changes(store)
            assert kept == seen[len(seen) - len(kept) :]
            assert replayed(seen) == rows


async def document_step(store: PollingStore, step: Document | str | int, rows: Rows, seen: list[RowChange]) -> Rows:
    if isinstance(step, Document):
        expected = after(rows, step)
        if isinstance(expected, Code):
            with pytest.raises(SourceError) as error:
                await store.keep(told(step))
            assert error.value.outcome.code is expected
            return rows
        seen += await store.keep(told(step))
        return expected
    if isinstance(step, int):
        before = await all_changes(store)
        assert await store.trim(step) == max(0, len(before) - step)
        assert await all_changes(store) == before[max(0, len(before) - step) :]
        return rows
    await store.purge(WALL)
    seen += await all_changes(store, seen[-1].seq if seen else (await store.span()).newest - 1)
    return {}


def parts(steps: list[Any], cut: str) -> list[list[Any]]:
    """The steps between the cuts."""
    pieces: list[list[Any]] = [[]]
    for step in steps:
        if step == cut:
            pieces.append([])
        else:
            pieces[-1].append(step)
    return pieces


# --- targets ---

NAMES = st.sampled_from("abc")
TIMES = st.integers(-20, 20).map(lambda tenths: WALL + tenths / 8)
FOUND = st.builds(
    found,
    NAMES,
    event=st.sampled_from("ef"),
    only=NONE | st.sampled_from([(), ("x",)]),
    seconds=st.sampled_from([0.0, 0.25, 1000.0]),
    priority=st.integers(-1, 1),
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "enabled": NONE | st.booleans(),
        "set_seconds": NONE | st.just(0.5),
        "set_priority": NONE | st.just(3),
    },
)
RAN = st.builds(
    lambda **fields: fields,
    next_due=TIMES,
    until=NONE | TIMES,
    runs=st.integers(0, 9),
    missed=st.integers(0, 9),
    failures=st.integers(0, 2),
    asked=NONE | TIMES,
    fetched=NONE | TIMES,
    status=st.sampled_from(["", "ok"]),
    polls=st.just(0.5),
    hits=st.just(0.25),
)
TARGET_STEP = st.one_of(
    st.tuples(st.just("insert"), FOUND),
    st.tuples(st.just("insert"), FOUND),
    st.tuples(st.just("update"), FOUND),
    st.tuples(st.just("gone"), NAMES),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("write"), st.tuples(NAMES, RAN)),
    st.tuples(st.just("change"), st.tuples(NAMES, FIELDS)),
    st.tuples(st.just("promote"), st.tuples(st.sampled_from("ef"), st.sampled_from([0.0, 2.0]))),
    st.tuples(st.just("take"), TIMES),
    st.tuples(st.just("shift"), st.sampled_from([-1.5, 2.0])),
    st.tuples(st.just("by hand"), NAMES),
)


class Twin:
    """Targets as they should be, by source id; all are of one kind."""

    def __init__(self) -> None:
        self.targets: dict[str, PollingTarget] = {}
        self.edited: set[int] = set()  # differs from what was taken last
        self.touched: set[int] = set()  # was written to, be it with what was there
        self.deleted: set[int] = set()

    def set(self, name: str, *, edit: bool, **fields: Any) -> None:  # noqa: ANN401 - of a target
        before = self.targets[name]
        self.targets[name] = msgspec.structs.replace(before, **fields)
        if edit:
            self.touched.add(before.id)
            if self.targets[name] != before:
                self.edited.add(before.id)

    def discovered(self, wanted: WantedTarget, wall: float) -> None:
        known = self.targets[wanted.source_id]
        fields: dict[str, Any] = {"event": wanted.event, "seconds": wanted.seconds, "priority": wanted.priority}
        again = {} if known.only == wanted.only else {"next_due": wall, "etag": "", "modified": "", "digest": b""}
        self.set(wanted.source_id, edit=True, gone=None, only=wanted.only, **fields, **again)


async def play_targets(place: Place, steps: list[tuple[str, Any]]) -> None:
    twin = Twin()
    await place.wipe()
    async with place.opens() as store:
        await taken(store)
        for what, value in steps:
            await TARGET_STEPS[what](place, store, twin, value)
            expected = sorted(twin.targets.values(), key=lambda each: (each.next_due, each.id))
            assert await store.list(Query(gone=None)) == expected
            assert await store.list(Query()) == [each for each in expected if each.gone is None]
            assert await all_due(store, most=2) == [each for each in expected if each.wanted]
            counts = await store.count(WALL)
            assert counts.targets + counts.gone == len(expected)
            assert counts.due == sum(each.wanted and each.next_due <= WALL for each in expected)
        await take(place, store, twin, WALL)


async def insert(_: Place, store: PollingStore, twin: Twin, wanted: WantedTarget) -> None:
    await store.apply(Reconciliation(insert=(wanted,)), WALL)
    if wanted.source_id in twin.targets:
        twin.discovered(wanted, WALL)
        return
    target = await store.find("race", wanted.source_id)
    assert target is not None
    twin.targets[wanted.source_id] = PollingTarget(id=target.id, next_due=WALL, **wanted._asdict())
    twin.edited.add(target.id)
    twin.touched.add(target.id)


async def update(_: Place, store: PollingStore, twin: Twin, wanted: WantedTarget) -> None:
    if known := twin.targets.get(wanted.source_id):
        await store.apply(Reconciliation(update=((known.id, wanted),)), WALL + 1)
        twin.discovered(wanted, WALL + 1)


async def gone(_: Place, store: PollingStore, twin: Twin, name: str) -> None:
    if known := twin.targets.get(name):
        await store.apply(Reconciliation(gone=(known.id,)), WALL)
        twin.set(name, edit=True, gone=WALL)


async def delete(_: Place, store: PollingStore, twin: Twin, name: str) -> None:
    if known := twin.targets.pop(name, None):
        await store.apply(Reconciliation(delete=(known.id,)), WALL)
        twin.deleted.add(known.id)
        twin.edited.discard(known.id)
        twin.touched.discard(known.id)


async def write(_: Place, store: PollingStore, twin: Twin, value: tuple[str, dict[str, Any]]) -> None:
    name, fields = value
    known = twin.targets.get(name)
    await store.write([TargetRun(known.id if known else 10**12, **fields)])
    if known:
        twin.set(name, edit=False, **fields)


async def change(_: Place, store: PollingStore, twin: Twin, value: tuple[str, dict[Any, Any]]) -> None:
    name, fields = value
    assert await store.change("race", name, fields) is (name in twin.targets)
    if name in twin.targets:
        enabled = {"enabled": fields["enabled"] is not False} if "enabled" in fields else {}
        twin.set(name, edit=True, **fields | enabled)


async def promote(_: Place, store: PollingStore, twin: Twin, value: tuple[str, float]) -> None:
    event, seconds = value
    meant = [name for name, each in twin.targets.items() if each.event == event and each.wanted]
    assert await store.promote(Query(event=event), seconds) == len(meant)
    for name in meant:
        twin.set(name, edit=True, promote=seconds)


async def take(_: Place, store: PollingStore, twin: Twin, wall: float) -> None:
    edits = await taken(store, wall)
    told = {each.id: each for each in edits.targets}
    assert twin.edited <= set(told) <= twin.touched
    assert set(edits.deleted) <= twin.deleted
    for name, each in twin.targets.items():
        if each.promote is not None:
            until = {"until": wall + each.promote} if each.promote > 0 else {}
            twin.set(name, edit=False, next_due=min(each.next_due, wall), **until)
        if each.id in told:
            assert told[each.id] == twin.targets[name]
        twin.set(name, edit=False, promote=None)
    for known in (twin.edited, twin.touched, twin.deleted):
        known.clear()


async def shift(_: Place, store: PollingStore, twin: Twin, seconds: float) -> None:
    await store.shift(seconds)
    for name, each in twin.targets.items():
        until = None if each.until is None else each.until + seconds
        twin.set(name, edit=False, next_due=each.next_due + seconds, until=until)


async def by_hand(place: Place, _: PollingStore, twin: Twin, name: str) -> None:
    await place.sql(f"UPDATE polling_targets SET set_priority = 8, enabled = false WHERE source_id = '{name}'")  # noqa: S608 - ours
    if name in twin.targets:
        twin.set(name, edit=True, set_priority=8, enabled=False)


TARGET_STEPS: dict[str, Callable[[Place, PollingStore, Twin, Any], Coroutine[Any, Any, None]]] = {
    "insert": insert,
    "update": update,
    "gone": gone,
    "delete": delete,
    "write": write,
    "change": change,
    "promote": promote,
    "take": take,
    "shift": shift,
    "by hand": by_hand,
}


class PollingContract(TargetsContract, DocumentsContract, TouchedContract):
    """All of it."""

    def test_documents_in_any_order_make_the_rows_of_a_slow_twin_and_changes_that_lead_there(
        self, place: Place
    ) -> None:
        @EXAMPLES
        @given(st.lists(DOCUMENT_STEP, max_size=25))
        def play(steps: list[Document | str | int]) -> None:
            asyncio.run(play_documents(place, steps))

        play()

    def test_whatever_is_done_to_targets_they_are_as_a_slow_twin_has_them(self, place: Place) -> None:
        @EXAMPLES
        @given(st.lists(TARGET_STEP, max_size=30))
        def play(steps: list[tuple[str, Any]]) -> None:
            asyncio.run(play_targets(place, steps))

        play()
