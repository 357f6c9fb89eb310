"""What every store of `polling` promises about rows and changes."""

import asyncio
from collections.abc import Callable

import pytest
from looping import in_loop
from polling_play import (
    SCHEMA,
    WALL,
    Place,
    add,
    all_changes,
    all_rows,
    brief,
    document,
    event,
    found,
    get,
    keep,
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
from sanderling.stores.documents import (
    Column,
    ColumnKind,
    Document,
    Parent,
    Schema,
    SourceError,
    SourceRow,
    SourceTable,
)
from sanderling.stores.polling import ChangeSpan, Op, PollingStoreError, RowChange
from sanderling.stores.polling_rows import LARGEST_PAGE

LONG = "t" * 63


class DocumentsContract:
    """A subclass has the fixture `place`."""

    # --- what is stored ---

    @in_loop
    async def test_rows_of_a_document_are_stored_and_told_as_changes(self, place: Place) -> None:
        async with place.opens() as store:
            said = document(event(name="Finals"), round_("r"), race("a", "r", start="12:00"))
            changes = await store.keep(told(said, kind="race", source_id="a", event="e", at=WALL))

            assert changes == [
                RowChange(seq=number, at=WALL, op=Op.INSERT, table=row.table, key=row.key, values=row.values,
                       kind="race", source_id="a", event="e")
                for number, row in enumerate(said.rows, 1)
            ]  # fmt: skip
            assert await store.changes(0, 10) == changes

        async with place.opens() as store:
            assert await store.changes(0, 10) == changes
            assert await all_rows(store) == {(row.table, row.key): row.values for row in said.rows}

    @in_loop
    async def test_the_same_again_changes_nothing(self, place: Place) -> None:
        rows = [event(), pilot("p", name="x", points=-3, speed=0.1, practice=False), round_("r"), race("a", "r")]
        async with place.opens() as store:
            await keep(store, *rows, lap("l", "a", "p", 3.0), whole=[whole("laps", "race", "a", "l")])

            assert await keep(store, *rows, lap("l", "a", "p", 3.0), whole=[whole("laps", "race", "a", "l")]) == []

            assert len(await all_changes(store)) == 5

    @in_loop
    async def test_an_update_tells_the_whole_row_and_which_columns_differ(self, place: Place) -> None:
        async with place.opens() as store:
            await keep(store, pilot("p", name="x", points=1, speed=2.0, practice=True), pilot("q"))

            (change,) = await keep(store, pilot("p", name="x", points=2, speed=None, practice=True), pilot("q"))

            assert change.op is Op.UPDATE
            assert set(change.fields) == {"points", "speed"}
            assert change.values == {"name": "x", "points": 2, "speed": None, "practice": True}
            assert replayed(await all_changes(store)) == await all_rows(store)

    @in_loop
    async def test_values_come_back_as_they_were(self, place: Place) -> None:
        texts = [
            "",
            " ",
            "it's; --",
            '"',
            "\\",
            "\n",
            "Ω \N{WAVING HAND SIGN}",
            "\x01\x7f",
            "x" * 100_000,
            "NULL",
            "%s",
        ]
        rows = [pilot(f"t{number:02}", name=text) for number, text in enumerate(texts)]
        rows += [pilot(f"i{n}", points=value) for n, value in enumerate((0, -1, 2**53 + 1, 2**63 - 1, -(2**63)))]
        rows += [pilot(f"f{n}", speed=value) for n, value in enumerate((0.0, 0.1, -1.5, 3.0, 1e300, 5e-324, 2.0**53))]
        rows += [pilot(f"b{value}", practice=value) for value in (True, False)]
        async with place.opens() as store:
            changes = await keep(store, *rows)

            stored = await all_rows(store)
            assert stored == {("pilots", row.key): row.values for row in rows}
            for row in rows:
                back = stored[Parent("pilots", row.key)]
                assert [type(value) for value in back.values()] == [type(back[name]) for name in row.values]
                assert [type(back[name]) for name in row.values] == [type(value) for value in row.values.values()]
            assert await all_changes(store) == changes
            assert [[*map(type, each.values.values())] for each in await all_changes(store)] == [
                [*map(type, row.values.values())] for row in rows
            ]
            assert await keep(store, *rows) == []

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"practice": None}, {"practice": False}),
            ({"practice": True}, {"practice": False}),
            ({"points": None}, {"points": 0}),
            ({"speed": 0.1}, {"speed": 0.1 + 2**-55}),
            ({"points": 2**53}, {"points": 2**53 + 1}),
            ({"name": ""}, {"name": None}),
            ({"name": "a"}, {"name": "a "}),
            ({"name": "é"}, {"name": "e\N{COMBINING ACUTE ACCENT}"}),
        ],
    )
    @in_loop
    async def test_small_differences_are_differences(
        self, place: Place, before: dict[str, str], after: dict[str, str]
    ) -> None:
        async with place.opens() as store:
            await keep(store, pilot("p", **before))

            (change,) = await keep(store, pilot("p", **after))

            assert change.fields == tuple(after)

    @in_loop
    async def test_keys_are_told_apart_and_are_in_the_order_of_their_characters(self, place: Place) -> None:
        keys = ["Z", "a", "B", "a ", "A", "é", "e\N{COMBINING ACUTE ACCENT}", "10", "9", "a/b", "a-b", "ab"]
        keys += ["\N{WAVING HAND SIGN}", "\uffee"]
        async with place.opens() as store:
            await keep(store, *(pilot(key) for key in keys))

            assert [row.key for row in await store.rows("pilots")] == sorted(keys)
            assert [row.key for row in await store.rows("pilots", after="a", most=2)] == ["a ", "a-b"]

    @in_loop
    async def test_rows_are_of_one_event_where_the_table_knows_events(self, place: Place) -> None:
        async with place.opens() as store:
            await keep(store, event("e"), event("f"), round_("r1", "e"), round_("r2", "f"), round_("r3", "e"))

            assert [row.key for row in await store.rows("rounds", event="e")] == ["r1", "r3"]
            assert [row.key for row in await store.rows("rounds", event="e", after="r1")] == ["r3"]
            assert await store.rows("rounds", event="g") == []
            assert [row.key for row in await store.rows("events", event="e")] == ["e", "f"]

    @in_loop
    async def test_a_table_that_is_none_is_said(self, place: Place) -> None:
        async with place.opens() as store:
            for name in ("nothing", "polling_targets", "", 'events"; --'):
                with pytest.raises(KeyError):
                    await store.rows(name)

    # --- what goes ---

    @in_loop
    async def test_children_that_are_not_listed_go_and_others_stay(self, place: Place) -> None:
        async with place.opens() as store:
            await keep(store, note("1", "x"), note("2", "x"), note("3", "y"), note("4", None))

            changes = await keep(store, note("2", "x"), whole=[whole("notes", "target", "x", "2")])

            assert brief(changes) == ["delete notes 1"]
            assert {key for _, key in await all_rows(store)} == {"2", "3", "4"}
            assert brief(await keep(store, whole=[whole("notes", "target", "y")])) == ["delete notes 3"]

    @in_loop
    async def test_a_listed_child_need_not_be_in_the_document(self, place: Place) -> None:
        async with place.opens() as store:
            await keep(store, event(), race("a"), race("b"))

            changes = await keep(store, event(), whole=[whole("races", "event", "e", "b", "c")])

            assert brief(changes) == ["delete races a"]

    @in_loop
    async def test_a_row_that_goes_takes_along_those_that_refer_to_it_children_first(self, place: Place) -> None:
        async with place.opens() as store:
            await keep(store, event(), pilot("p"), round_("r"), round_("s"), race("a", "r"), race("b", "s"))
            await keep(store, lap("l1", "a", "p"), lap("l2", "a"), lap("l3", "b", "p"))

            changes = await keep(store, event(), whole=[whole("rounds", "event", "e", "s")])

            assert brief(changes) == ["delete laps l1", "delete laps l2", "delete races a", "delete rounds r"]
            assert [each.seq for each in changes] == list(range(changes[0].seq, changes[0].seq + 4))
            assert {(each.kind, each.source_id, each.event) for each in changes} == {("race", "a", "e")}
            assert replayed(await all_changes(store)) == await all_rows(store)

    @in_loop
    async def test_then_all_other_targets_of_the_event_are_read_again(self, place: Place) -> None:
        known = {"etag": '"1"', "modified": "today", "digest": b"1"}
        async with place.opens() as store:
            await add(store, found("a"), found("b"), found("c", event="f"), found("r", kind="rounds"))
            for source_id, of in (("a", "e"), ("b", "e"), ("c", "f")):
                await store.keep(told(document(), source_id, event=of, **known))
            await keep(store, event(), round_("r"), race("a", "r"), lap("l", "a"))
            await taken(store)

            said = document(event(), whole=[whole("rounds", "event", "e")])
            await store.keep(told(said, "a", etag="new", modified="now", digest=b"new"))

            seen = [(each.etag, each.modified, each.digest) for each in [await get(store, key) for key in "abc"]]
            assert seen == [("new", "now", b"new"), ("", "", b""), ('"1"', "today", b"1")]
            # Whoever polls has them in memory, and must hear of it.
            assert {each.source_id for each in (await taken(store)).targets} >= {"b"}

    @in_loop
    async def test_what_goes_within_a_document_makes_nobody_else_read_again(self, place: Place) -> None:
        async with place.opens() as store:
            await add(store, found("a"), found("b"))
            await store.keep(told(document(), "b", digest=b"1"))
            await keep(store, event(), race("a"), lap("l1", "a"), lap("l2", "a"))
            await taken(store)

            gone = [whole("laps", "race", "a", "l1"), whole("races", "event", "e", "a")]
            assert brief(await keep(store, event(), race("a"), lap("l1", "a"), whole=gone)) == ["delete laps l2"]
            # The race goes, and its lap too: but the document says so of both.
            both = [whole("laps", "race", "a"), whole("races", "event", "e")]
            assert brief(await keep(store, event(), whole=both)) == ["delete laps l1", "delete races a"]

            assert (await get(store, "b")).digest == b"1"
            assert not any(await taken(store))

    @in_loop
    async def test_a_row_may_move_away_from_a_parent_that_goes(self, place: Place) -> None:
        async with place.opens() as store:
            await keep(store, event(), round_("r"), race("a", "r"), lap("l", "a"))

            changes = await keep(
                store, event(), round_("s"), race("a", "s"), whole=[whole("rounds", "event", "e", "s")]
            )

            assert brief(changes) == ["insert rounds s", "update races a", "delete rounds r"]
            assert replayed(await all_changes(store)) == await all_rows(store)

    @in_loop
    async def test_a_row_may_move_from_one_list_to_another(self, place: Place) -> None:
        lists = [whole("notes", "target", "x"), whole("notes", "target", "y", "1")]
        async with place.opens() as store:
            await keep(store, note("1", "x"))

            assert brief(await keep(store, note("1", "y"), whole=lists)) == ["update notes 1"]
            assert await keep(store, note("1", "y"), whole=lists) == []

    # --- what must be there ---

    @in_loop
    async def test_a_document_waits_for_what_it_needs_and_nothing_is_written(self, place: Place) -> None:
        async with place.opens() as store:
            await add(store)
            await keep(store, event())
            before = await all_rows(store)

            said = document(pilot("p"), race("a", "r"), whole=[whole("rounds", "event", "e")])
            with pytest.raises(SourceError, match="waiting for rounds:r") as error:
                await store.keep(told(said, etag="x", digest=b"x"))

            assert error.value.outcome.code is Code.DEFERRED
            assert await all_rows(store) == before
            assert await store.span() == ChangeSpan(1, 1)

            await keep(store, event(), round_("r"))
            assert brief(await keep(store, race("a", "r"))) == ["insert races a"]

    @in_loop
    async def test_a_document_that_waits_leaves_its_target_as_it_is(self, place: Place) -> None:
        async with place.opens() as store:
            (before,) = await add(store, found("a"))

            with pytest.raises(SourceError):
                await store.keep(told(document(race("a", "r")), etag="x", modified="x", digest=b"x"))

            assert await get(store) == before

    @pytest.mark.parametrize(
        "said",
        [
            document(event(), race("a"), whole=[whole("races", "event", "e")]),
            document(round_("r"), race("a", "r"), whole=[whole("events", "name", "x")]),
            document(race("a", "r", None), whole=[whole("rounds", "name", "x")]),
        ],
    )
    @in_loop
    async def test_a_document_that_takes_away_what_it_says_is_refused(self, place: Place, said: Document) -> None:
        async with place.opens() as store:
            await keep(store, event("e", "x"), round_("r", "e", "x"))
            before = await all_rows(store)

            with pytest.raises(SourceError, match=r"is in the document, and is gone by") as error:
                await store.keep(told(said))

            assert error.value.outcome.code is Code.INVALID_RESPONSE
            assert await all_rows(store) == before

    @pytest.mark.parametrize(
        "row",
        [
            pilot("p", name="a\0b"),
            pilot("p", name="\ud800"),
            pilot("p", points=2**63),
            pilot("p", points=-(2**63) - 1),
            pilot("p", speed=float("nan")),
            pilot("p", speed=float("-inf")),
            pilot("a\0b"),
            pilot("\udfff"),
            pilot(""),
            pilot("k" * 2501),
            pilot("é" * 1300),
        ],
    )
    @in_loop
    async def test_what_no_database_holds_is_refused_and_nothing_is_written(self, place: Place, row: SourceRow) -> None:
        async with place.opens() as store:
            with pytest.raises(SourceError, match="pilots") as error:
                await keep(store, event(), row)

            assert error.value.outcome.code is Code.INVALID_RESPONSE
            assert await all_rows(store) == {}

    @pytest.mark.parametrize("parent", ["a\0b", "\ud800"])
    @in_loop
    async def test_what_no_database_holds_is_refused_in_lists_too(self, place: Place, parent: str) -> None:
        async with place.opens() as store:
            for each in (whole("notes", "target", parent), whole("notes", "target", "x", parent)):
                with pytest.raises(SourceError, match="notes"):
                    await keep(store, whole=[each])

    @in_loop
    async def test_the_longest_keys_are_held(self, place: Place) -> None:
        key = "é" * 1250
        async with place.opens() as store:
            await keep(store, event(key), round_(key, key), race(key, key, key), lap(key, key))

            assert {each.key for each in await all_rows(store)} == {key}
            assert len(await keep(store, whole=[whole("rounds", "event", key)])) == 3

    # --- who said so ---

    @in_loop
    async def test_a_target_knows_its_document_again(self, place: Place) -> None:
        async with place.opens() as store:
            await add(store, found("a"), found("b"))
            (changed,) = await store.keep(told(document(event()), etag='W/"1"', modified="today", digest=b"\0\xff"))

            seen = await get(store)
            assert (seen.etag, seen.modified, seen.digest, seen.changed) == ('W/"1"', "today", b"\0\xff", WALL)
            assert changed.at == WALL

            await store.keep(told(document(event()), etag="2", modified="", digest=b"2", at=WALL + 9))
            seen = await get(store)
            assert (seen.etag, seen.modified, seen.digest) == ("2", "", b"2")
            assert seen.changed == WALL, "nothing was different"
            assert (await get(store, "b")).digest == b""
            assert (seen.fetched, seen.runs, seen.status) == (None, 0, ""), "that is written after the run"

    @in_loop
    async def test_an_etag_that_cannot_be_stored_is_forgotten(self, place: Place) -> None:
        async with place.opens() as store:
            await add(store, found("a"))

            await store.keep(told(document(event()), etag="\udcff", modified="\0", digest=b"1"))

            seen = await get(store)
            assert (seen.etag, seen.modified, seen.digest) == ("", "", b"1")

    @in_loop
    async def test_a_document_of_a_target_that_is_no_more_is_kept(self, place: Place) -> None:
        async with place.opens() as store:
            assert brief(await store.keep(told(document(event()), "gone", digest=b"1"))) == ["insert events e"]

            assert await store.known() == []

    @in_loop
    async def test_keeping_is_no_edit(self, place: Place) -> None:
        async with place.opens() as store:
            await add(store, found("a"))
            await taken(store)

            await store.keep(told(document(event()), etag="1", digest=b"1"))

            assert not any(await store.take_edits(WALL))

    # --- changes ---

    @in_loop
    async def test_numbers_only_grow_through_trimming_purging_and_opening_again(self, place: Place) -> None:
        async with place.opens() as store:
            assert await store.span() == ChangeSpan(0, 0)
            assert await store.trim(0) == 0
            await keep(store, event("1"), event("2"), event("3"))
            assert await store.span() == ChangeSpan(1, 3)
            assert await store.trim(2) == 1
            assert await store.span() == ChangeSpan(2, 3)
            assert [each.seq for each in await store.changes(0, 9)] == [2, 3]
            assert await store.trim(0) == 2
            assert await store.span() == ChangeSpan(0, 3)

        async with place.opens() as store:
            assert await store.span() == ChangeSpan(0, 3)
            assert [each.seq for each in await keep(store, event("4"))] == [4]
            await store.purge(WALL)
            assert await store.span() == ChangeSpan(4, 5)
            await store.trim(0)

        async with place.opens() as store:
            assert [each.seq for each in await keep(store, event("4"))] == [6]
            assert await store.trim(10) == 0
            assert await store.span() == ChangeSpan(6, 6)

    @in_loop
    async def test_changes_are_read_from_any_number_on(self, place: Place) -> None:
        async with place.opens() as store:
            await keep(store, *(event(str(number)) for number in range(5)))

            assert [each.seq for each in await store.changes(2, 2)] == [3, 4]
            assert await store.changes(5, 9) == []
            assert await store.changes(2**63, 9) == []
            assert [each.seq for each in await store.changes(-(2**70), 2**70)] == [1, 2, 3, 4, 5]

    @in_loop
    async def test_of_large_changes_few_are_read_at_once_and_of_one_that_is_too_large_that_one(
        self, place: Place
    ) -> None:
        async with place.opens() as store:
            for number, size in enumerate(
                (LARGEST_PAGE // 3, LARGEST_PAGE // 2, LARGEST_PAGE // 2, LARGEST_PAGE + 1, 1)
            ):
                await keep(store, event(str(number), "x" * size))

            assert [each.seq for each in await store.changes(0, 9)] == [1, 2, 3]
            assert [each.seq for each in await store.changes(3, 9)] == [4]
            assert [each.seq for each in await store.changes(4, 9)] == [5]

    @in_loop
    async def test_a_purge_removes_rows_and_targets_and_says_so(self, place: Place) -> None:
        async with place.opens() as store:
            targets = await add(store, found("a"), found("b"))
            await taken(store)
            await store.set("scheduler.enabled", "false")
            await store.advance("x", 1)
            await keep(store, event(), round_("r"), race("a", "r"), lap("l", "a"), lap("m", "a"))

            counts = await store.purge(WALL + 5)

            assert counts == {"events": 1, "pilots": 0, "rounds": 1, "races": 1, "laps": 2, "notes": 0, "targets": 2}
            assert await all_rows(store) == {}
            assert await store.known() == []
            assert await store.settings() == {"scheduler.enabled": "false"}
            assert await store.position("x") == 1
            assert set((await taken(store)).deleted) == {each.id for each in targets}
            *_, last = await all_changes(store)
            assert last == RowChange(seq=6, at=WALL + 5, op=Op.PURGE, table="", key="")
            assert replayed(await all_changes(store)) == {}

    @in_loop
    async def test_a_purge_of_nothing_is_one_too(self, place: Place) -> None:
        async with place.opens() as store:
            assert set((await store.purge(WALL)).values()) == {0}
            assert brief(await all_changes(store)) == ["purge"]

    @in_loop
    async def test_ids_of_targets_are_never_used_again(self, place: Place) -> None:
        async with place.opens() as store:
            (before,) = await add(store, found("a"))
            await store.purge(WALL)

        async with place.opens() as store:
            (after,) = await add(store, found("a"))
            assert after.id > before.id

    # --- tables ---

    @in_loop
    async def test_columns_that_a_source_has_now_are_added(self, place: Place) -> None:
        (events, *_), extra = SCHEMA.tables, (Column("won", ColumnKind.BOOLEAN), Column("best", references="events"))
        grown = Schema(
            (events, SourceTable("pilots", SCHEMA.tables[1].columns + extra), SourceTable("clubs", (Column("name"),)))
        )
        async with place.opens(Schema((events, SCHEMA.tables[1]))) as store:
            await keep(store, pilot("p", name="x"))

        for _ in range(2):
            async with place.opens(grown) as store:
                before = pilot("p", name="x")
                assert [row.values for row in await store.rows("pilots")] == [
                    {**before.values, "won": None, "best": None}
                ]

        async with place.opens(grown) as store:
            now = SourceRow("pilots", "p", {**before.values, "won": True, "best": "e"})
            (*_, change) = await store.keep(
                told(grown.document([event(), now, SourceRow("clubs", "c", {"name": "y"})]))
            )
            assert change.fields == ("won", "best")
            assert [row.values for row in await store.rows("pilots")] == [now.values]
            # A reference that came later takes along as the others do.
            gone = grown.document([], [whole("events", "name", "z")])
            assert await store.keep(told(gone)) == []
            await store.keep(told(grown.document([event(name="z")])))
            assert brief(await store.keep(told(gone))) == ["delete pilots p", "delete events e"]

    @pytest.mark.parametrize(
        "column",
        [
            Column("points"),
            Column("points", ColumnKind.REAL),
            Column("points", ColumnKind.BOOLEAN),
            Column("points", references="events"),
            Column("name", references="events"),
            Column("speed", ColumnKind.INTEGER),
            Column("practice", ColumnKind.INTEGER),
        ],
    )
    @in_loop
    async def test_a_column_of_another_kind_is_said(self, place: Place, column: Column) -> None:
        async with place.opens():
            pass

        other = Schema((SCHEMA.tables[0], SourceTable("pilots", (column,))))
        with pytest.raises(PollingStoreError, match=rf"pilots.*{column.name}") as error:
            async with place.opens(other):
                pass
        assert not error.value.transient
        async with place.opens() as store:
            assert len(await keep(store, pilot("p", points=5))) == 1

    @in_loop
    async def test_who_has_no_schema_uses_the_tables_that_are_there(self, place: Place) -> None:
        async with place.opens() as store:
            rows = [
                event(),
                pilot("p", practice=True, points=1, speed=1.0),
                round_("r"),
                race("a", "r"),
                lap("l", "a", "p"),
            ]
            await keep(store, *rows)

            async with place.opens(None) as other:
                assert await all_rows(other) == {(row.table, row.key): row.values for row in rows}
                assert type((await other.rows("pilots"))[0].values["practice"]) is bool
                changes = await keep(other, event(), whole=[whole("rounds", "event", "e")])
                assert brief(changes) == ["delete laps l", "delete races a", "delete rounds r"]
                assert sum((await other.purge(WALL)).values()) == 2
                with pytest.raises(KeyError):
                    await other.rows("polling_targets")

            assert await all_rows(store) == {}
            assert brief(await keep(store, event())) == ["insert events e"]

    @in_loop
    async def test_the_store_of_another_source_is_left_alone(self, place: Place) -> None:
        async with place.opens(source="race") as store:
            await keep(store, event())

        with pytest.raises(PollingStoreError, match=r"'race'.*'other'") as error:
            async with place.opens(Schema((SourceTable("others", (Column("x"),)),)), source="other"):
                pass

        assert not error.value.transient
        async with place.opens(None, source="") as store:
            assert len(await all_rows(store)) == 1
            with pytest.raises(KeyError):
                await store.rows("others")

    @pytest.mark.parametrize("name", ["polling_targets", "polling_x", "sqlite_x"])
    @in_loop
    async def test_tables_with_names_of_ours_are_refused(self, place: Place, name: str) -> None:
        with pytest.raises(PollingStoreError, match=name) as error:
            async with place.opens(Schema((SourceTable(name, (Column("x"),)),))):
                pass
        assert not error.value.transient

    @in_loop
    async def test_names_may_be_long_alike_and_words_of_a_database(self, place: Place) -> None:
        columns = (Column("select"), Column(f"{LONG[1:]}a"), Column(f"{LONG[1:]}b", ColumnKind.REAL))
        schema = Schema(
            (
                SourceTable("table", columns),
                SourceTable("order", (Column("group", references="table"), Column("index"))),
                SourceTable(f"{LONG[1:]}a", (Column(LONG, references="order"), Column("event"))),
                SourceTable(f"{LONG[1:]}b", (Column(LONG, references="order"), Column("event"))),
                SourceTable("a_b", (Column("c", references="table"),)),
                SourceTable("a", (Column("b_c", references="table"),)),
            )
        )
        rows = [
            SourceRow("table", "1", {"select": "x", f"{LONG[1:]}a": None, f"{LONG[1:]}b": 1.5}),
            SourceRow("order", "2", {"group": "1", "index": "y"}),
            SourceRow(f"{LONG[1:]}a", "3", {LONG: "2", "event": "e"}),
            SourceRow(f"{LONG[1:]}b", "4", {LONG: "2", "event": "f"}),
        ]
        gone = schema.document([], [whole("table", "select", "x")])
        for _ in range(2):
            async with place.opens(schema) as store:
                await store.keep(told(schema.document(rows)))
                assert await all_rows(store, schema) == {(row.table, row.key): row.values for row in rows}
                assert len(await store.rows(f"{LONG[1:]}b", event="f")) == 1
                assert await store.rows(f"{LONG[1:]}a", event="f") == []

        async with place.opens(schema) as store:
            assert len(await store.keep(told(gone))) == 4

    # --- more than one at a time ---

    @in_loop
    async def test_documents_that_are_kept_at_once_are_numbered_one_after_the_other(self, place: Place) -> None:
        async with place.opens() as store, place.opens() as other:
            kept: list[list[RowChange]] = []

            async def keep_some(store_of: Callable[[int], object], name: str) -> None:
                for number in range(10):
                    rows = [event(name, str(number)), *(note(f"{name}{number}{each}", name) for each in range(3))]
                    kept.append(await keep((store, other)[bool(store_of(number))], *rows))

            async with asyncio.TaskGroup() as group:
                for name in "abc":
                    group.create_task(keep_some(lambda number: number % 2, name))

            assert [each.seq for each in await all_changes(store)] == list(range(1, 121))
            for changes in kept:
                numbers = [each.seq for each in changes]
                assert numbers == list(range(numbers[0], numbers[0] + 4))
            assert replayed(await all_changes(store)) == await all_rows(store)
