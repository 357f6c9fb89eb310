"""What every store of `polling` promises about targets, settings and positions."""

import asyncio
import itertools
from typing import Any

import pytest
from looping import in_loop
from polling_play import (
    WALL,
    Place,
    add,
    all_due,
    document,
    event,
    found,
    get,
    holding,
    keep,
    ran,
    taken,
    told,
)

from sanderling.stores.polling import (
    LONGEST_PAUSE,
    ChangeSpan,
    Edits,
    KnownTarget,
    PollingStoreError,
    PollingTarget,
    Query,
    Reconciliation,
    StoredTargetCounts,
    TargetRun,
)
from sanderling.stores.polling_lease import PolledElsewhereError
from sanderling.stores.polling_rows import MOST_EDITS
from sanderling.stores.polling_store import PollingStore

LONG_AGO = (float("-inf"), 0)


def ids(targets: list[PollingTarget] | tuple[PollingTarget, ...]) -> list[str]:
    return [each.source_id for each in targets]


class TargetsContract:
    """A subclass has the fixture `place`."""

    @in_loop
    async def test_it_begins_with_nothing(self, place: Place) -> None:
        async with place.opens() as store:
            assert await store.due(LONG_AGO, WALL, 10) == []
            assert await store.find("race", "a") is None
            assert await store.take_edits(WALL) == Edits((), ())
            assert await store.known() == []
            assert await store.fetched() == set()
            assert await store.list(Query()) == []
            assert await store.count(WALL) == StoredTargetCounts(0, 0, 0, 0, 0, 0)
            assert await store.settings() == {}
            assert await store.position("x") is None
            assert await store.span() == ChangeSpan(0, 0)
            await store.write([])
            await store.apply(Reconciliation(), WALL)

    # --- discovery ---

    @in_loop
    async def test_a_new_target_is_due_at_once(self, place: Place) -> None:
        wanted = found("a", kind="race", event="e", only=("x", "y"), seconds=0.2, priority=-3)
        async with place.opens() as store:
            (target,) = await add(store, wanted)

        async with place.opens() as store:
            assert await get(store) == target
            assert target == PollingTarget(id=target.id, next_due=WALL, **wanted._asdict())
            assert target.wanted
            assert await store.known() == [KnownTarget(target.id, wanted, None)]

    @pytest.mark.parametrize("only", [None, (), ("",), ("a,b", 'c"', "Ω", "it's {}")])
    @in_loop
    async def test_what_is_wanted_of_a_document_comes_back_as_it_was(
        self, place: Place, only: tuple[str, ...] | None
    ) -> None:
        async with place.opens() as store:
            (target,) = await add(store, found("a", only=only))

            assert target.only == only
            assert [each.found.only for each in await store.known()] == [only]

    @pytest.mark.parametrize(
        "text", ["Ω \N{WAVING HAND SIGN}", "it's; --", '"', "\\", "%", "x" * 128, "NULL", "A", " "]
    )
    @in_loop
    async def test_odd_ids_are_only_ids(self, place: Place, text: str) -> None:
        async with place.opens() as store:
            (target, _) = await add(store, found(text, kind=text, event=text), found("a", kind=text))

            assert (target.kind, target.source_id, target.event) == (text, text, text)
            assert ids(await store.list(Query(kind=text, source_id=text, event=text))) == [text]
            assert await store.change(text, text, {"enabled": False})
            assert not (await get(store, text, text)).enabled

    @in_loop
    async def test_discovery_writes_its_columns_and_leaves_all_others(self, place: Place) -> None:
        async with place.opens() as store:
            (target, other) = await add(store, found("a"), found("b"))
            await store.change("race", "a", {"enabled": False, "set_seconds": 3.0, "set_priority": 7})
            await store.write([TargetRun(target.id, WALL + 5, WALL + 9, 1, 2, 3, WALL, WALL, "ok", 0.5, 0.25)])
            await store.keep(told(document(event()), etag="1", modified="2", digest=b"3"))
            before = await get(store)

            new = found("a", event="f", seconds=20.0, priority=1)
            await store.apply(Reconciliation(update=((target.id, new),)), WALL + 1)

            expected = {"event": "f", "seconds": 20.0, "priority": 1}
            after = await get(store)
            assert {
                name for name in PollingTarget.__struct_fields__ if getattr(before, name) != getattr(after, name)
            } == {*expected}
            assert {name: getattr(after, name) for name in expected} == expected
            assert await get(store, "b") == other

    @in_loop
    async def test_if_other_parts_are_wanted_a_document_is_due_and_read_again(self, place: Place) -> None:
        async with place.opens() as store:
            (target,) = await add(store, found("a", only=("x",)))
            await store.write([ran(target, next_due=WALL + 100)])
            await store.keep(told(document(event()), etag="1", modified="2", digest=b"3"))

            await store.apply(Reconciliation(update=((target.id, found("a", only=("x",), seconds=5.0)),)), WALL + 1)
            assert (await get(store)).digest == b"3"
            await store.apply(Reconciliation(update=((target.id, found("a", only=("y",))),)), WALL + 1)

            seen = await get(store)
            assert (seen.next_due, seen.etag, seen.modified, seen.digest) == (WALL + 1, "", "", b"")
            await store.keep(told(document(event()), digest=b"4"))
            await store.apply(Reconciliation(update=((target.id, found("a", only=None)),)), WALL + 2)
            assert ((await get(store)).next_due, (await get(store)).digest) == (WALL + 2, b"")

    @in_loop
    async def test_a_target_that_is_gone_and_comes_back_has_what_an_admin_set(self, place: Place) -> None:
        async with place.opens() as store:
            (target, _) = await add(store, found("a"), found("b"))
            await store.change("race", "a", {"set_seconds": 3.0, "enabled": False})

            await store.apply(Reconciliation(gone=(target.id,)), WALL + 1)
            assert (await get(store)).gone == WALL + 1
            assert [each.gone for each in await store.known()] == [WALL + 1, None]
            await store.apply(Reconciliation(update=((target.id, found("a")),)), WALL + 2)

            seen = await get(store)
            assert (seen.gone, seen.set_seconds, seen.enabled) == (None, 3.0, False)

    @in_loop
    async def test_one_that_is_gone_keeps_the_time_since_when(self, place: Place) -> None:
        async with place.opens() as store:
            (target,) = await add(store, found("a"))
            await store.apply(Reconciliation(gone=(target.id,)), WALL + 1)

            await store.apply(Reconciliation(gone=(target.id,)), WALL + 5)

            assert (await get(store)).gone == WALL + 1

    @in_loop
    async def test_targets_are_deleted(self, place: Place) -> None:
        async with place.opens() as store:
            (target, _) = await add(store, found("a"), found("b"))
            await taken(store)

            await store.apply(Reconciliation(delete=(target.id, 10**15)), WALL)

            assert await store.find("race", "a") is None
            assert len(await store.known()) == 1
            assert await store.take_edits(WALL) == Edits((), (target.id,))

    @in_loop
    async def test_to_find_one_that_somebody_else_has_put_in_is_no_trouble(self, place: Place) -> None:
        async with place.opens() as store:
            (before,) = await add(store, found("a"))
            await store.change("race", "a", {"set_priority": 5})
            await store.apply(Reconciliation(gone=(before.id,)), WALL)

            await store.apply(Reconciliation(insert=(found("a", seconds=3.0), found("b"))), WALL + 1)

            seen = await get(store)
            assert (seen.id, seen.seconds, seen.set_priority, seen.gone) == (before.id, 3.0, 5, None)
            assert len(await store.known()) == 2

    @in_loop
    async def test_a_plan_is_done_all_of_it_or_nothing(self, place: Place) -> None:
        async with place.opens() as store:
            with pytest.raises(PollingStoreError) as error:
                await store.apply(Reconciliation(insert=(found("a"), found("b", seconds=-1.0))), WALL)

            assert not error.value.transient
            assert await store.known() == []

    @pytest.mark.parametrize("text", ["a\0b", "\ud800"])
    @in_loop
    async def test_a_name_that_no_database_holds_is_refused_and_never_found(self, place: Place, text: str) -> None:
        async with place.opens() as store:
            for each in (found(text), found("a", kind=text), found("a", event=text), found("a", only=("x", text))):
                with pytest.raises(PollingStoreError) as error:
                    await store.apply(Reconciliation(insert=(each,)), WALL)
                assert not error.value.transient

            assert await store.known() == []
            assert await store.find("race", text) is None
            assert await store.list(Query(kind=text)) == []
            assert await store.promote(Query(event=text), 5) == 0
            assert not await store.change(text, "a", {"enabled": True})
            assert await store.rows("races", event=text) == []

    @in_loop
    async def test_what_was_fetched_is_known_by_event_and_kind(self, place: Place) -> None:
        async with place.opens() as store:
            targets = await add(store, found("a"), found("b"), found("c", event="f"), found("d", kind="rounds"))
            assert await store.fetched() == set()

            await store.write(
                [ran(targets[1], fetched=WALL), ran(targets[3], fetched=WALL), ran(targets[2], asked=WALL)]
            )

            assert await store.fetched() == {("e", "race"), ("e", "rounds")}

    @in_loop
    async def test_many_targets_are_found_at_once(self, place: Place) -> None:
        async with place.opens() as store:
            await store.apply(Reconciliation(insert=tuple(found(str(number)) for number in range(20_000))), WALL)

            assert len(await store.known()) == 20_000
            await store.apply(Reconciliation(gone=tuple(each.id for each in await store.known())), WALL)
            assert (await store.count(WALL)).gone == 20_000

    # --- what is due ---

    @in_loop
    async def test_targets_are_due_in_order_page_by_page_and_none_twice(self, place: Place) -> None:
        async with place.opens() as store:
            targets = await add(store, *(found(f"{number:02}") for number in range(20)))
            # Some at the same time, so that a page ends between them.
            await store.write([ran(each, next_due=WALL + each.id % 4) for each in targets])

            expected = sorted((WALL + each.id % 4, each.id) for each in targets)
            for most in (1, 3, 7, 100):
                assert [(each.next_due, each.id) for each in await all_due(store, most=most)] == expected
            assert await store.due(expected[5], WALL + 1, 100) == await store.due(expected[5], WALL + 1.5, 100)
            due = [(each.next_due, each.id) for each in await store.due(expected[5], WALL + 1, 100)]
            assert due == [each for each in expected[6:] if each[0] <= WALL + 1]
            assert await store.due(expected[5], expected[5][0] - 0.5, 100) == []

    @in_loop
    async def test_only_what_is_wanted_is_due(self, place: Place) -> None:
        async with place.opens() as store:
            targets = await add(
                store, found("a"), found("off", seconds=0.0), found("paused"), found("gone"), found("set", seconds=0.0)
            )
            await store.change("race", "paused", {"enabled": False, "set_seconds": 5.0})
            await store.change("race", "set", {"set_seconds": 5.0})
            await store.apply(Reconciliation(gone=(targets[3].id,)), WALL)

            assert ids(await all_due(store)) == ["a", "set"]

            await store.change("race", "paused", {"enabled": True})
            assert ids(await all_due(store)) == ["a", "paused", "set"]
            assert all(each.wanted for each in await all_due(store))

    # --- writing back ---

    @in_loop
    async def test_what_is_written_back_is_there(self, place: Place) -> None:
        async with place.opens() as store:
            a, b, c = await add(store, found("a"), found("b"), found("c"))
            runs = [
                TargetRun(a.id, WALL + 10.125, WALL + 30.5, 2**40, 2, 3, WALL, WALL - 1, "ok", 0.97, 0.5),
                TargetRun(b.id, WALL + 20, None, 1, 0, 0, None, None, "Ω error: \N{WAVING HAND SIGN}", 0.0, 1e-9),
                TargetRun(10**15, WALL, None, 1, 0, 0, None, None, "", 0.0, 0.0),
            ]
            await store.write(runs)

        async with place.opens() as store:
            assert [ran(await get(store, "a")), ran(await get(store, "b"))] == runs[:2]
            assert await get(store, "c") == c
            assert len(await store.known()) == 3
            await store.write([ran(a)])
            assert await get(store, "a") == a

    @in_loop
    async def test_a_status_that_cannot_be_stored_is_made_legible(self, place: Place) -> None:
        async with place.opens() as store:
            (a, b) = await add(store, found("a"), found("b"))

            await store.write([ran(a, status="error: \0\ud800!"), ran(b, status="ok")])

            assert [(await get(store, "a")).status[:7], (await get(store, "a")).status[-1]] == ["error: ", "!"]
            assert (await get(store, "b")).status == "ok"

    # --- edits ---

    @in_loop
    async def test_what_discovery_and_admins_write_is_an_edit_once(self, place: Place) -> None:
        async with place.opens() as store:
            (a, b, _) = await add(store, found("a"), found("b"), found("c"))
            assert sorted(ids((await store.take_edits(WALL)).targets)) == ["a", "b", "c"]
            assert await store.take_edits(WALL) == Edits((), ())

            await store.change("race", "a", {"enabled": False})
            await store.change("race", "a", {"set_seconds": 3.0})
            assert await store.take_edits(WALL) == Edits((await get(store, "a"),), ())
            await store.apply(Reconciliation(gone=(b.id,)), WALL)
            assert await store.take_edits(WALL) == Edits((await get(store, "b"),), ())
            await store.apply(Reconciliation(update=((a.id, found("a", seconds=4.0)),), delete=(b.id,)), WALL)
            assert await store.take_edits(WALL) == Edits((await get(store, "a"),), (b.id,))

    @in_loop
    async def test_what_whoever_polls_writes_is_no_edit(self, place: Place) -> None:
        async with place.opens() as store:
            (target,) = await add(store, found("a"))
            await taken(store)

            await store.claim(WALL)
            await store.write([TargetRun(target.id, WALL + 5, WALL + 9, 1, 2, 3, WALL, WALL, "ok", 0.5, 0.25)])
            await keep(store, event())
            await store.shift(5)

            assert await store.take_edits(WALL) == Edits((), ())

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE polling_targets SET enabled = false",
            "UPDATE polling_targets SET set_seconds = 0.5 WHERE kind = 'race' AND event = 'e'",
            "UPDATE polling_targets SET set_priority = -2 WHERE source_id IN ('a', 'z')",
            "UPDATE polling_targets SET promote = 30 WHERE source_id = 'a'",
            "UPDATE polling_targets SET seconds = 99, priority = 5, event = 'f' WHERE source_id = 'a'",
            "UPDATE polling_targets SET gone = 1 WHERE source_id = 'a'",
        ],
    )
    @in_loop
    async def test_plain_sql_by_hand_just_works(self, place: Place, statement: str) -> None:
        async with place.opens() as store:
            await add(store, found("a"))
            await taken(store)
            before = await get(store)

            await place.sql(statement)

            (target,) = (await store.take_edits(WALL)).targets
            assert target != before
            assert not any(await store.take_edits(WALL))

    @in_loop
    async def test_targets_may_be_put_in_and_taken_out_by_hand(self, place: Place) -> None:
        async with place.opens() as store:
            await place.sql("INSERT INTO polling_targets (kind, source_id, seconds) VALUES ('race', 'mine', 5)")

            (target,) = (await store.take_edits(WALL)).targets
            assert target == PollingTarget(
                id=target.id, kind="race", source_id="mine", event="", seconds=5.0, next_due=WALL
            )
            assert await all_due(store) == [target]

            await place.sql("DELETE FROM polling_targets WHERE source_id = 'mine'")
            assert await store.take_edits(WALL) == Edits((), (target.id,))

    @in_loop
    async def test_one_that_was_put_in_by_hand_while_nobody_polled_is_due_when_somebody_does(
        self, place: Place
    ) -> None:
        async with place.opens() as store:
            await place.sql("INSERT INTO polling_targets (kind, source_id, seconds) VALUES ('race', 'mine', 5)")

            await store.claim(WALL)

            assert [each.next_due for each in await all_due(store)] == [WALL]

    @pytest.mark.parametrize(
        "value",
        [
            "enabled = NULL",
            "set_seconds = 0",
            "set_seconds = -1",
            "set_seconds = 1e300 * 1e10",
            "promote = -1",
            "seconds = -1",
        ],
    )
    @in_loop
    async def test_nonsense_by_hand_is_refused(self, place: Place, value: str) -> None:
        async with place.opens() as store:
            (before,) = await add(store, found("a"))

            with pytest.raises(Exception, match=r"(?i)constraint|null|range|numeric"):
                await place.sql(f"UPDATE polling_targets SET {value}")  # noqa: S608 - ours

            assert await get(store) == before

    @in_loop
    async def test_edits_wait_for_somebody_who_polls(self, place: Place) -> None:
        async with place.opens() as store:
            (target, _) = await add(store, found("a"), found("b"))
            await store.change("race", "b", {"set_priority": 9})
            await store.apply(Reconciliation(delete=(target.id,)), WALL)

        async with place.opens() as store:
            await store.claim(WALL)
            edits = await store.take_edits(WALL)

            assert [(each.source_id, each.set_priority) for each in edits.targets] == [("b", 9)]
            assert edits.deleted in {(target.id,), ()}, "nobody has ever heard of it"

    @in_loop
    async def test_very_many_edits_are_taken_in_parts(self, place: Place) -> None:
        count = MOST_EDITS + 500
        async with place.opens() as store:
            await store.apply(Reconciliation(insert=tuple(found(str(number)) for number in range(count))), WALL)

            parts = [await store.take_edits(WALL) for _ in range(3)]

            assert [len(each.targets) for each in parts] == [MOST_EDITS, 500, 0]
            assert len({each.id for part in parts for each in part.targets}) == count

    # --- promotions ---

    @in_loop
    async def test_a_promotion_becomes_a_due_time_when_it_is_taken(self, place: Place) -> None:
        async with place.opens() as store:
            (a, b) = await add(store, found("a"), found("b"))
            await store.write([ran(a, next_due=WALL + 500), ran(b, next_due=WALL - 5)])
            await taken(store)

            assert await store.promote(Query(kind="race", source_id="a"), 30) == 1
            assert await store.promote(Query(source_id="b"), 0) == 1
            assert ((await get(store)).next_due, (await get(store)).promote) == (WALL + 500, 30)
            edits = await store.take_edits(WALL + 1)

            asked = {each.source_id: (each.promote, each.next_due, each.until) for each in edits.targets}
            assert asked == {"a": (30.0, WALL + 1, WALL + 31), "b": (0.0, WALL - 5, None)}
            assert not any(await store.take_edits(WALL + 2)), "to take it is no edit"

        async with place.opens() as store:
            seen = [(each.promote, each.next_due, each.until) for each in [await get(store, key) for key in "ab"]]
            assert seen == [(None, WALL + 1, WALL + 31), (None, WALL - 5, None)]

    @in_loop
    async def test_it_may_be_asked_for_again(self, place: Place) -> None:
        async with place.opens() as store:
            await add(store, found("a"))
            for wall in (WALL, WALL + 5):
                await store.promote(Query(), 10)
                (*_, target) = (await store.take_edits(wall)).targets
                assert (target.promote, target.until) == (10, wall + 10)

    @in_loop
    async def test_what_is_not_polled_is_not_promoted(self, place: Place) -> None:
        async with place.opens() as store:
            targets = await add(store, found("a"), found("paused"), found("off", seconds=0.0), found("gone"))
            await store.change("race", "paused", {"enabled": False})
            await store.apply(Reconciliation(gone=(targets[3].id,)), WALL)

            assert await store.promote(Query(gone=None), 5) == 1
            assert await store.promote(Query(source_id="paused"), 5) == 0
            assert await store.promote(Query(source_id="nobody"), 5) == 0

            assert [each.promote for each in await store.list(Query(gone=None))] == [5, None, None, None]

    @in_loop
    async def test_all_that_a_query_means_are_promoted_not_only_a_page_of_them(self, place: Place) -> None:
        async with place.opens() as store:
            await add(store, *(found(str(number)) for number in range(7)), found("f", event="f"))

            assert await store.promote(Query(event="e", most=3), 5) == 7

    @pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e300])
    @in_loop
    async def test_an_acceleration_that_never_ends_is_refused(self, place: Place, seconds: float) -> None:
        async with place.opens() as store:
            await add(store, found("a"))
            with pytest.raises(ValueError, match="expected"):
                await store.promote(Query(), seconds)

    # --- for people ---

    @in_loop
    async def test_an_admin_sets_and_takes_back(self, place: Place) -> None:
        async with place.opens() as store:
            (before,) = await add(store, found("a"))

            assert await store.change("race", "a", {"enabled": False, "set_seconds": 3, "set_priority": -(2**63)})
            seen = await get(store)
            assert (seen.enabled, seen.set_seconds, seen.set_priority) == (False, 3.0, -(2**63))
            assert (seen.interval, seen.weight, seen.wanted) == (3.0, -(2**63), False)

            assert await store.change("race", "a", {"set_seconds": None})
            assert ((await get(store)).enabled, (await get(store)).interval) == (False, 10.0)
            assert await store.change("race", "a", {"enabled": None, "set_priority": None})
            assert await get(store) == before

    @in_loop
    async def test_whether_there_is_such_a_target_is_said(self, place: Place) -> None:
        async with place.opens() as store:
            await add(store, found("a"))

            assert await store.change("race", "a", {})
            assert not await store.change("race", "b", {"enabled": True})
            assert not await store.change("rounds", "a", {"enabled": True})
            assert not await store.change("rounds", "a", {})

    @pytest.mark.parametrize(
        "fields",
        [
            {"enabled": 2},
            {"set_seconds": 0},
            {"set_seconds": -1.0},
            {"set_seconds": float("nan")},
            {"set_seconds": float("inf")},
            {"set_seconds": True},
            {"set_seconds": "5"},
            {"set_priority": 1.5},
            {"set_priority": 2**63},
            {"set_priority": False},
            {"next_due": 5.0},
            {"enabled = 0 --": True},
            {"enabled": False, "set_seconds": 0.0},
        ],
    )
    @in_loop
    async def test_what_an_admin_cannot_set_is_said(self, place: Place, fields: dict[Any, Any]) -> None:
        async with place.opens() as store:
            (before,) = await add(store, found("a"))

            with pytest.raises(ValueError, match="expected"):
                await store.change("race", "a", fields)

            assert await get(store) == before

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (Query(), "b a p o"),
            (Query(gone=None), "g b a p o"),
            (Query(gone=True), "g"),
            (Query(enabled=True), "b a o"),
            (Query(enabled=False), "p"),
            (Query(kind="rounds"), "o"),
            (Query(kind="nothing"), ""),
            (Query(source_id="a"), "a"),
            (Query(kind="race", source_id="b"), "b"),
            (Query(kind="rounds", source_id="b"), ""),
            (Query(event="f"), "b"),
            (Query(event="e", kind="race"), "a p"),
            (Query(due_before=WALL + 2), "b a"),
            (Query(due_before=WALL + 1.5, gone=None), "g b"),
            (Query(accelerated_at=WALL), "b"),
            (Query(accelerated_at=WALL, gone=None), "g b"),
            (Query(accelerated_at=WALL + 9), ""),
            (Query(most=2), "b a"),
            (Query(most=0), ""),
            (Query(most=2**70), "b a p o"),
        ],
    )
    @in_loop
    async def test_targets_are_listed(self, place: Place, query: Query, expected: str) -> None:
        async with place.opens() as store:
            o, p, a, b, g = await add(
                store, found("o", kind="rounds", seconds=0.0), found("p"), found("a"), found("b", event="f"), found("g")
            )
            times = {o: 4, p: 3, a: 2, b: 1, g: 0}
            until = {b: WALL + 9, g: WALL + 9, a: WALL}
            await store.write([ran(each, next_due=WALL + at, until=until.get(each)) for each, at in times.items()])
            await store.change("race", "p", {"enabled": False})
            await store.apply(Reconciliation(gone=(g.id,)), WALL)

            listed = await store.list(query)

            assert " ".join(ids(listed)) == expected
            for each in listed:
                assert each == await get(store, each.source_id, each.kind)

    @pytest.mark.parametrize(
        "query", [Query(), Query(kind="race"), Query(event="e"), Query(enabled=True), Query(gone=None)]
    )
    @in_loop
    async def test_a_list_is_read_page_by_page(self, place: Place, query: Query) -> None:
        async with place.opens() as store:
            targets = await add(store, *(found(str(number), seconds=float(number % 3)) for number in range(20)))
            await store.write([ran(each, next_due=WALL + each.id % 4) for each in targets])
            expected = [each.id for each in sorted(targets, key=lambda each: (each.id % 4, each.id))]

            for most in (1, 6, 20):
                seen: list[int] = []
                after: tuple[float, int] | None = None
                fields = {name: getattr(query, name) for name in Query.__struct_fields__}
                while page := await store.list(Query(**fields | {"after": after, "most": most})):
                    seen += [each.id for each in page]
                    after = page[-1].next_due, page[-1].id
                assert seen == expected

    @in_loop
    async def test_targets_are_counted(self, place: Place) -> None:
        async with place.opens() as store:
            targets = await add(store, *(found(key) for key in "abcdefg"), found("off", seconds=0.0), wall=WALL + 50)
            a, b, c, d, e, f, _, off = targets
            await store.write(
                [
                    ran(a, next_due=WALL),
                    ran(b, next_due=WALL - 5, failures=3, until=WALL + 1),
                    ran(c, next_due=WALL + 1, until=WALL),
                    ran(d, next_due=WALL - 5, until=WALL + 9),
                    ran(e, next_due=WALL - 5, until=WALL + 9, failures=1),
                    ran(f, failures=1),
                    ran(off, next_due=WALL - 5),
                ]
            )
            await store.change("race", "d", {"enabled": False})
            await store.change("race", "e", {"enabled": False})
            await store.apply(Reconciliation(gone=(e.id,)), WALL)

            assert await store.count(WALL) == StoredTargetCounts(
                targets=7, paused=1, due=2, accelerated=1, failing=2, gone=1
            )

    # --- settings and positions ---

    @in_loop
    async def test_settings_are_texts(self, place: Place) -> None:
        async with place.opens() as store:
            await store.set("scheduler.enabled", "false")
            await store.set("scheduler.enabled", " TRUE ")
            await store.set("ui.title", "Ω it's \N{WAVING HAND SIGN}" * 500)
            await store.set("", "")
            await store.set("x", "1")
            await store.set("x", None)
            await store.set("never", None)

        async with place.opens() as store:
            assert await store.settings() == {
                "scheduler.enabled": " TRUE ",
                "ui.title": "Ω it's \N{WAVING HAND SIGN}" * 500,
                "": "",
            }
            await place.sql("DELETE FROM polling_settings WHERE key = ''")
            await place.sql("INSERT INTO polling_settings (key, value) VALUES ('by', 'hand')")
            assert {*await store.settings()} == {"scheduler.enabled", "ui.title", "by"}

    @pytest.mark.parametrize(("key", "value"), [("a\0", "x"), ("x", "a\0"), ("x", "\ud800")])
    @in_loop
    async def test_a_setting_that_no_database_holds_is_refused(self, place: Place, key: str, value: str) -> None:
        async with place.opens() as store:
            with pytest.raises(PollingStoreError) as error:
                await store.set(key, value)
            assert not error.value.transient
            assert await store.settings() == {}

    @in_loop
    async def test_subscribers_positions_are_kept(self, place: Place) -> None:
        async with place.opens() as store:
            await store.advance("a", 5)
            await store.advance("b", 0)
            await store.advance("a", 2**62)

        async with place.opens() as store:
            assert [await store.position(name) for name in "abc"] == [2**62, 0, None]

    # --- who polls ---

    @in_loop
    async def test_one_at_a_time_polls(self, place: Place) -> None:
        async with place.opens() as store, place.opens() as other:
            await store.claim(WALL)

            async with holding(store):
                with pytest.raises(PolledElsewhereError, match="polls") as error:
                    await other.claim(WALL)
            assert not error.value.transient
            assert store.database.may_send()
            assert not other.database.may_send()
            assert await other.settings() == {}, "all else may be done"

        async with place.opens() as store:
            await store.claim(WALL)
            await store.close()
            async with place.opens() as other:
                await other.claim(WALL)

    @in_loop
    async def test_due_times_of_another_clock_are_now(self, place: Place) -> None:
        async with place.opens() as store:
            times = {
                "soon": (10.0, LONGEST_PAUSE),
                "late": (10.0, LONGEST_PAUSE + 1),
                "rare": (3600.0, 3600),
                "never": (3600.0, 3601),
                "past": (10.0, -1e9),
                "off": (0.0, 1e9),
                "set": (3600.0, 3600),
                "huge": (10.0, 1e300),
            }
            targets = await add(store, *(found(key, seconds=seconds) for key, (seconds, _) in times.items()))
            await store.write([ran(each, next_due=WALL + times[each.source_id][1]) for each in targets])
            await store.change("race", "set", {"set_seconds": 5.0})

            await store.claim(WALL)

            now = {each.source_id for each in await store.list(Query()) if each.next_due == WALL}
            assert now == {"late", "never", "off", "set", "huge"}
            assert (await get(store, "rare")).next_due == WALL + 3600
            assert (await get(store, "past")).next_due == WALL - 1e9

    @pytest.mark.parametrize("seconds", [3600.0, -0.5])
    @in_loop
    async def test_all_times_move_with_the_clock(self, place: Place, seconds: float) -> None:
        async with place.opens() as store:
            a, b, c = await add(store, found("a"), found("b"), found("c"))
            await store.write([ran(a, next_due=WALL + 1, until=WALL + 2, asked=WALL), ran(b, next_due=WALL - 1)])
            await store.change("race", "c", {"enabled": False})

            await store.shift(seconds)

            seen = [(each.next_due, each.until, each.asked) for each in [await get(store, key) for key in "abc"]]
            assert seen == [
                (WALL + 1 + seconds, WALL + 2 + seconds, WALL),
                (WALL - 1 + seconds, None, None),
                (c.next_due + seconds, None, None),
            ]

    @in_loop
    async def test_edits_by_others_meanwhile_are_all_heard_of(self, place: Place) -> None:
        async with place.opens() as store, place.opens(None) as admin:
            targets = await add(store, *(found(str(number)) for number in range(10)))
            await store.claim(WALL)
            heard = {each.id: each for each in (await taken(store)).targets}
            busy = 2

            async def edit() -> None:
                nonlocal busy
                for number in range(40):
                    await admin.change("race", str(number % 10), {"set_seconds": 1.0 + number})
                busy -= 1

            async def edit_by_hand() -> None:
                nonlocal busy
                for number in range(20):
                    where = f"WHERE source_id = '{number % 7}'"
                    await place.sql(f"UPDATE polling_targets SET set_priority = {number} {where}")  # noqa: S608 - ours
                busy -= 1

            async def poll(store: PollingStore) -> None:
                for number in itertools.count():
                    over = not busy
                    heard.update({each.id: each for each in (await store.take_edits(WALL)).targets})
                    if over:
                        return
                    await store.write([ran(each, runs=number) for each in targets])
                    await keep(store, event(name=str(number)))

            async with asyncio.TaskGroup() as group:
                group.create_task(edit())
                group.create_task(edit_by_hand())
                group.create_task(poll(store))

            for each in targets:
                now, last = await get(store, each.source_id), heard[each.id]
                assert (last.set_seconds, last.set_priority) == (now.set_seconds, now.set_priority)
                assert now.set_seconds == 31.0 + int(each.source_id), "nobody undid it"
