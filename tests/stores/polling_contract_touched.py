"""What every store of `polling` promises to those who edit rows of the source by hand: it is noticed, and put right."""

from typing import Any

import pytest
from looping import in_loop
from polling_play import (
    WALL,
    Place,
    add,
    all_rows,
    brief,
    document,
    event,
    found,
    get,
    keep,
    lap,
    note,
    race,
    taken,
    told,
)

from sanderling.stores.polling import Query
from sanderling.stores.polling_store import PollingStore

KNOWN: dict[str, Any] = {"etag": '"1"', "modified": "today", "digest": b"1"}


async def begun(store: PollingStore) -> None:
    """Two targets of an event and one of another, which know their documents, and one of a table with its name."""
    await add(store, found("a"), found("b"), found("c", event="f"), found("n", kind="notes", event="f"))
    await keep(store, event(), event("f"), race("a", start="1"), race("c", event="f"), lap("l", "a"), note("o", "n"))
    for source_id, of, kind in (("a", "e", "race"), ("b", "e", "race"), ("c", "f", "race"), ("n", "f", "notes")):
        await store.keep(told(document(), source_id, event=of, kind=kind, **KNOWN))
    await taken(store)


class TouchedContract:
    """Rows that somebody edits by hand."""

    @pytest.mark.parametrize(
        ("statement", "expected"),
        [
            ("UPDATE races SET start = '9' WHERE id = 'a'", "ab"),
            ("DELETE FROM races WHERE id = 'c'", "cn"),
            ("INSERT INTO races (id, event) VALUES ('new', 'f')", "cn"),
            ("UPDATE races SET event = 'f' WHERE id = 'a'", "abcn"),  # as it was, and as it is
            ("UPDATE pilots SET name = 'x'", ""),  # there is none
            ("INSERT INTO pilots (id) VALUES ('p')", "abcn"),
            ("UPDATE laps SET seconds = 1", "abcn"),
            ("UPDATE notes SET text = 'x'", "n"),
            ("DELETE FROM notes", "n"),
            ("INSERT INTO notes (id, target) VALUES ('x', 'nobody')", ""),
        ],
    )
    @in_loop
    async def test_documents_that_an_edit_by_hand_may_concern_are_due_and_read_again(
        self, place: Place, statement: str, expected: str
    ) -> None:
        async with place.opens() as store:
            await begun(store)

            await place.sql(statement)

            edits = await taken(store, WALL + 5)
            assert sorted(each.source_id for each in edits.targets) == sorted(expected)
            assert {(each.promote, each.etag, each.modified, each.digest) for each in edits.targets} <= {
                (0.0, "", "", b"")
            }
            for each in await store.list(Query()):
                assert bool(each.digest) is (each.source_id not in expected)
                assert each.next_due <= WALL + 5 or each.source_id not in expected
            assert not any(await taken(store))
            assert await place.sql("SELECT * FROM polling_touched") == []

    @in_loop
    async def test_what_the_document_says_then_is_told_as_a_change(self, place: Place) -> None:
        async with place.opens() as store:
            await begun(store)
            before = await all_rows(store)
            await place.sql("UPDATE races SET start = '9' WHERE id = 'a'")
            await place.sql("DELETE FROM laps")

            changes = await keep(store, race("a", start="1"), lap("l", "a"))

            assert brief(changes) == ["insert laps l", "update races a"]
            assert await all_rows(store) == before

    @in_loop
    async def test_what_is_asked_for_beside_that_is_asked_for_still(self, place: Place) -> None:
        async with place.opens() as store:
            await begun(store)
            await store.promote(Query(source_id="a"), 30.0)

            await place.sql("UPDATE races SET start = '9' WHERE id = 'a'")

            edits = await taken(store)
            assert {each.source_id: each.promote for each in edits.targets} == {"a": 30.0, "b": 0.0}

    @in_loop
    async def test_what_is_purged_is_no_edit_by_hand(self, place: Place) -> None:
        async with place.opens() as store:
            await begun(store)
            await store.purge(WALL)
            await add(store, found("a"))
            await store.keep(told(document(event()), **KNOWN))
            await taken(store)

            assert (await get(store)).digest == b"1"

    @in_loop
    async def test_edits_wait_until_somebody_polls(self, place: Place) -> None:
        async with place.opens() as store:
            await begun(store)
        await place.sql("UPDATE notes SET text = 'x'")
        await place.sql("UPDATE notes SET text = 'y'")

        async with place.opens() as store:
            assert [each.source_id for each in (await store.take_edits(WALL)).targets] == ["n"]
