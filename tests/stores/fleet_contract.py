"""What a server of a fleet promises. A subclass says only where it is: see `FleetPlace`."""

from itertools import product
from typing import Any, Protocol

import msgspec
import pytest
from leases_contract import placed

from sanderling.stores.fleet import (
    QUOTA_OVER,
    CrawlView,
    FleetCrawl,
    FleetStore,
    LoggedCommit,
    PartCommit,
    PartFigures,
    PartState,
    Segment,
    WorkerPace,
)
from sanderling.stores.leases import Lease, LeaseLostError, LeasesError

PARTS, SECONDS, NAME, FIRST = 3, 60.0, "shore", "t1"
CRAWL = FleetCrawl(
    name=NAME, id="1", system="pages", plan="", parts=PARTS, seconds=SECONDS, ledger="7", objects="s3:", started=5.0
)


class FleetPlace(Protocol):
    """Where a server of a fleet is, and a hand on its clock."""

    async def server(self, worker: str, name: str = NAME) -> FleetStore:
        """The server as a worker sees it, which has found no crawl yet."""

    async def pass_time(self, seconds: float) -> None:
        """For the server, so much time has passed."""

    async def tables(self) -> Any:  # noqa: ANN401 - whatever can be compared
        """All that the server knows."""

    async def quotas(self) -> set[str]:
        """The quotas that it knows."""

    async def close(self) -> None:
        """Let go of it."""


async def begun(place: FleetPlace, worker: str = "one") -> FleetStore:
    server = await place.server(worker)
    await server.begin(CRAWL, range(PARTS))
    return server


async def with_part(place: FleetPlace, part: int = 0) -> tuple[FleetStore, Lease]:
    server = await begun(place)
    (lease,) = await server.acquire(1, [part])
    return server, lease


def commit_of(lease: Lease, token: str = FIRST, **more: Any) -> PartCommit:  # noqa: ANN401 - its fields
    return PartCommit(lease, token, b"body of " + token.encode(), **more)


def after(lease: Lease, commits: int = 1) -> Lease:
    return lease._replace(head=lease.head + commits)


def figures(part: int, fetched: int = 0, waiting: int = 0, asked: int = 0, failed: int = 0) -> PartFigures:
    return PartFigures(part, fetched, waiting, asked, failed)


async def messages(server: FleetStore, *parts: int) -> list[bytes]:
    return [each.body for each in await server.receive(parts or range(PARTS), [], 99)]


class FleetContract:
    # The crawl.

    @placed
    async def test_a_crawl_is_begun_once_and_found(self, place: FleetPlace) -> None:
        one, two = await place.server("one"), await place.server("two")
        assert await one.find(NAME) is None
        assert await one.begin(CRAWL, range(PARTS)) == CRAWL

        assert await two.begin(msgspec.structs.replace(CRAWL, id="2e", parts=99), range(99)) == CRAWL
        assert await two.find(NAME) == CRAWL
        assert [each.part for each in await two.holders()] == list(range(PARTS))

    @placed
    async def test_a_server_has_the_parts_that_it_was_given(self, place: FleetPlace) -> None:
        server = await place.server("one")
        await server.begin(CRAWL, range(1, PARTS, 2))

        assert [each.part for each in await server.acquire(99)] == [1]
        assert (await server.view()).busy == 1

    @placed
    async def test_an_end_is_said_and_taken_back(self, place: FleetPlace) -> None:
        server, lease = await with_part(place)
        await server.say_idle(lease, figures(0), idle=True)
        await server.end(done=True)
        assert (await server.find(NAME) or CRAWL).done
        assert (await server.view()).busy == PARTS - 1

        await server.end(done=False)
        assert not (await server.find(NAME) or CRAWL).done
        assert (await server.view()).busy == PARTS

    @placed
    async def test_a_retry_is_said_once_and_makes_all_busy(self, place: FleetPlace) -> None:
        server, lease = await with_part(place)
        await server.say_idle(lease, figures(0), idle=True)
        await server.end(done=True)
        await server.retry(1)
        assert await server.find(NAME) == msgspec.structs.replace(CRAWL, retries=1)
        assert (await server.beat([lease], [], "", 1)).retries == 1
        assert (await server.view()).busy == PARTS

        await server.say_idle(lease, figures(0), idle=True)
        await server.end(done=True)
        await server.retry(1)
        assert await server.find(NAME) == msgspec.structs.replace(CRAWL, retries=1, done=True)
        assert (await server.view()).busy == PARTS - 1

    @placed
    async def test_what_is_forgotten_is_gone_and_the_next_of_its_name_is_another(self, place: FleetPlace) -> None:
        old, lease = await with_part(place)
        await old.commit(commit_of(lease, segment="rows", size=3))
        await old.send([(1, b"m")])
        await old.beat([lease], [figures(0, 5, 5)], "", 1)
        await old.forget()
        assert await old.find("other") is None
        with pytest.raises(LeasesError, match="forgotten"):
            await old.beat([lease], [], "", 1)

        new = await place.server("two")
        await new.begin(msgspec.structs.replace(CRAWL, id="2e"), range(PARTS))
        before = await place.tables()
        with pytest.raises(LeasesError, match="forgotten"):
            await old.beat([lease], [figures(0, 9, 9)], "", 1)
        with pytest.raises(LeaseLostError):
            await old.commit(commit_of(after(lease)))
        assert not await old.acquire(99)
        assert not await old.renew([lease])
        await old.end(done=True)
        assert await place.tables() == before
        assert await new.view() == CrawlView(PARTS, 0, 0, 0, 0)
        assert not any([await new.workers(), await new.segments(0, 0), await new.log(0, 0, 9)])

    # Commits.

    @placed
    async def test_a_commit_is_logged_with_its_segment(self, place: FleetPlace) -> None:
        server, lease = await with_part(place, 2)
        await server.commit(commit_of(lease, "t1", segment="rows/1", size=10))
        await server.commit(commit_of(after(lease), "t2"))
        await server.commit(commit_of(after(lease, 2), "t3", segment="rows/3", size=7))

        assert await server.log(2, 0, 9) == [
            LoggedCommit(1, "t1", b"body of t1"),
            LoggedCommit(2, "t2", b"body of t2"),
            LoggedCommit(3, "t3", b"body of t3"),
        ]
        assert [each.number for each in await server.log(2, 1, 1)] == [2]
        assert await server.log(0, 0, 9) == []
        assert await server.segments(2, 0) == [Segment(1, "rows/1", 10), Segment(3, "rows/3", 7)]
        assert await server.segments(2, 1) == [Segment(3, "rows/3", 7)]
        assert await server.state(2) == PartState(3, 0, "", b"", b"")
        assert (await server.view()).heads == 3

    @placed
    async def test_who_takes_a_part_over_sees_what_was_committed(self, place: FleetPlace) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        await one.commit(commit_of(lease))
        await place.pass_time(SECONDS + 1)
        (theirs,) = await two.acquire(1, [0])

        assert theirs == Lease(0, 2, 1)
        await two.commit(commit_of(theirs, "t2"))
        assert [each.token for each in await one.log(0, 0, 9)] == ["t1", "t2"]

    @placed
    async def test_a_commit_that_is_not_the_next_of_its_owner_changes_nothing(self, place: FleetPlace) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        await one.say_idle(lease, figures(0), idle=True)
        await one.commit(commit_of(lease, segment="rows/1", size=3))
        await one.send([(0, b"m")])
        (message,) = await one.receive([0], [], 9)
        good = after(lease)
        wrong = [good._replace(epoch=epoch, head=head) for epoch, head in product((0, 1, 2), (0, 1, 2))]
        before = await place.tables()
        for server, each in product((one, two), [*wrong, good._replace(part=1), good._replace(part=77)]):
            if server is one and each == good:
                continue
            with pytest.raises(LeaseLostError, match="is not ours any more"):
                await server.commit(commit_of(each, "t2", segment="rows/2", size=1, read=[message.id]))
            assert await place.tables() == before
            assert not await server.is_committed(commit_of(each, "t2"))

        await one.commit(commit_of(good, "t2", segment="rows/2", size=1, read=[message.id]))
        assert await place.tables() != before

    @placed
    async def test_whether_a_commit_was_made_can_be_asked(self, place: FleetPlace) -> None:
        server, lease = await with_part(place)
        commit = commit_of(lease)
        assert not await server.is_committed(commit)
        await server.commit(commit)

        assert await server.is_committed(commit)
        assert not await server.is_committed(commit_of(lease, "other"))
        assert not await server.is_committed(commit_of(after(lease)))
        with pytest.raises(LeaseLostError):
            await server.commit(commit)

    @placed
    async def test_an_expired_lease_that_nobody_took_still_commits(self, place: FleetPlace) -> None:
        server, lease = await with_part(place)
        await place.pass_time(SECONDS * 3)
        await server.commit(commit_of(lease))

        assert (await server.state(0)).head == 1

    @placed
    async def test_cookies_are_those_of_the_commits_of_their_part(self, place: FleetPlace) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        await one.commit(commit_of(lease, cookies=[(b"a", b"1"), (b"b", b"2"), (b"c", b"")]))
        await one.commit(commit_of(after(lease), "t2"))
        assert sorted(await two.cookies(0)) == [b"1", b"2"]

        await one.commit(commit_of(after(lease, 2), "t3", cookies=[(b"a", b""), (b"b", b"3"), (b"d", b"4")]))
        before = await place.tables()
        with pytest.raises(LeaseLostError):
            await two.commit(commit_of(after(lease, 3), "t4", cookies=[(b"b", b""), (b"e", b"5")]))
        assert await place.tables() == before
        assert sorted(await two.cookies(0)) == [b"3", b"4"]
        assert await two.cookies(1) == await two.cookies(77) == []
        await one.forget()
        assert await one.cookies(0) == []

    # Messages.

    @placed
    async def test_messages_come_in_order_but_for_those_that_were_taken(self, place: FleetPlace) -> None:
        one, two = await begun(place), await begun(place, "two")
        await one.send([(0, b"a"), (1, b"b"), (0, b"c")])
        await two.send([(0, b"d")])
        found = await two.receive([0, 1], [], 99)

        assert sorted(each.body for each in found) == [b"a", b"b", b"c", b"d"]
        assert await messages(two, 0) == [b"a", b"c", b"d"]
        assert await messages(two, 2) == await messages(two, 77) == []
        ids = {each.body: each.id for each in found}
        assert [each.body for each in await two.receive([0], [ids[b"a"]], 1)] == [b"c"]
        assert {each.part for each in found if each.body == b"b"} == {1}

    @placed
    async def test_a_message_is_gone_only_with_the_commit_that_has_it(self, place: FleetPlace) -> None:
        server, lease = await with_part(place)
        await server.send([(0, b"a"), (0, b"b"), (1, b"c")])
        first, second = await server.receive([0], [], 9)
        (other,) = await server.receive([1], [], 9)
        with pytest.raises(LeaseLostError):
            await server.commit(commit_of(after(lease), read=[first.id]))
        assert len(await messages(server)) == 3

        await server.commit(commit_of(lease, read=[first.id, other.id]))
        assert sorted(await messages(server)) == [b"b", b"c"]  # that of another part is not this one's
        await server.commit(commit_of(after(lease), "t2", read=[first.id, second.id]))
        assert await messages(server) == [b"c"]

    # Snapshots, and what limiters know.

    @placed
    async def test_a_snapshot_takes_the_place_of_the_log_before_it(self, place: FleetPlace) -> None:
        server, lease = await with_part(place)
        for number in range(4):
            await server.commit(commit_of(after(lease, number), f"t{number + 1}", segment=f"s{number}", size=1))

        await server.keep_snapshot(lease, 2, "t2", "snap/2")
        assert [each.number for each in await server.log(0, 0, 9)] == [3, 4]
        assert await server.state(0) == PartState(4, 2, "snap/2", b"", b"", "t2")
        await server.keep_snapshot(lease, 4, "t4", "snap/4")
        assert await server.log(0, 0, 9) == []
        assert len(await server.segments(0, 0)) == 4

    @placed
    async def test_a_snapshot_of_who_lost_the_part_or_an_older_one_is_refused(self, place: FleetPlace) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        for number in range(3):
            await one.commit(commit_of(after(lease, number), f"t{number + 1}"))
        await one.keep_snapshot(lease, 2, "t2", "snap/2")
        before = await place.tables()
        for server, each, number in (
            (one, lease._replace(epoch=2), 3),
            (two, lease, 3),
            (one, lease, 2),
            (one, lease, 1),
        ):
            with pytest.raises(LeaseLostError):
                await server.keep_snapshot(each, number, "t", "snap/x")
            assert await place.tables() == before

    @placed
    async def test_what_a_limiter_knows_travels_with_the_part(self, place: FleetPlace) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        await one.keep_limiter(lease, None, b"n1")
        await one.keep_limiter(lease, None, b"n2")
        assert (await two.state(0))[3:5] == (b"", b"n1n2")

        await one.keep_limiter(lease, b"all", b"")
        await one.keep_limiter(lease, None, b"n3")
        assert (await two.state(0))[3:5] == (b"all", b"n3")
        await place.pass_time(SECONDS + 1)
        await two.acquire(1, [0])
        await one.keep_limiter(lease, b"late", b"late")
        assert (await two.state(0))[3:5] == (b"all", b"n3")

    @placed
    async def test_an_object_is_unnamed_unless_a_commit_has_it_or_it_is_the_snapshot(self, place: FleetPlace) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        for number in range(3):
            await one.commit(commit_of(after(lease, number), f"t{number + 1}", segment=f"s{number + 1}", size=1))
        await one.keep_snapshot(lease, 1, "t1", "snap/1")
        await one.keep_snapshot(lease, 2, "t2", "snap/2")
        objects = [(1, "s1"), (2, "s2"), (2, "other"), (9, "s9"), (1, "snap/1"), (2, "snap/2")]
        (other,) = await one.acquire(1, [1])

        assert sorted(await one.unnamed(lease, objects)) == ["other", "s9", "snap/1"]
        assert sorted(await one.unnamed(other, objects)) == sorted(key for _, key in objects)
        assert await two.unnamed(lease, objects) == await one.unnamed(lease._replace(epoch=0), objects) == []
        assert await one.unnamed(lease, []) == []
        await place.pass_time(SECONDS + 1)
        (theirs,) = await two.acquire(1, [0])
        assert await one.unnamed(lease, objects) == []
        assert sorted(await two.unnamed(theirs, objects)) == ["other", "s9", "snap/1"]

    # The end.

    @placed
    async def test_what_parts_say_is_added_up_for_all_and_only_that_of_the_owner_counts(
        self, place: FleetPlace
    ) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        (theirs,) = await two.acquire(1, [1])
        await one.beat([lease], [figures(0, 5, 2, 9)], "", 1)
        beat = await two.beat([theirs], [figures(1, 4, 1, 6), figures(0, 99, 99, 99)], "", 1)

        assert (beat.fetched, beat.asked) == (9, 15)
        assert (await one.view())[3:] == (3, 9, 15, 0)
        await one.say_idle(lease, figures(0, 6, 0, 11), idle=True)
        assert (await two.view())[3:] == (1, 10, 17, 0)

    @placed
    async def test_idle_is_refused_while_a_message_waits_or_something_was_written(self, place: FleetPlace) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        await one.commit(commit_of(lease))
        before = await place.tables()
        for server, each in ((one, lease), (one, after(lease, 2)), (two, after(lease)), (one, lease._replace(epoch=0))):
            assert not await server.say_idle(each, figures(0, 9, 9), idle=True)
            assert await place.tables() == before

        await two.send([(0, b"m")])
        assert not await one.say_idle(after(lease), figures(0, 9, 9), idle=True)
        assert await one.say_idle(after(lease), figures(0, 1, 2), idle=False)
        (message,) = await one.receive([0], [], 9)
        await one.commit(commit_of(after(lease), "t2", read=[message.id]))
        assert await one.say_idle(after(lease, 2), figures(0, 3, 4), idle=True)
        assert await two.view() == CrawlView(PARTS - 1, 0, 2, 4, 3)

    @placed
    async def test_a_commit_makes_a_part_busy_also_that_of_its_next_owner(self, place: FleetPlace) -> None:
        one, lease = await with_part(place)
        two = await begun(place, "two")
        assert await one.say_idle(lease, figures(0), idle=True)
        await one.commit(commit_of(lease))
        assert (await one.view()).busy == PARTS

        assert await one.say_idle(after(lease), figures(0), idle=True)
        await one.release([lease])
        (theirs,) = await two.acquire(1, [0])
        assert (await one.view()).busy == PARTS - 1
        await two.commit(commit_of(theirs, "t2"))
        assert (await one.view()).busy == PARTS

    @placed
    async def test_the_end_is_seen_only_when_nothing_is_left(self, place: FleetPlace) -> None:
        server = await begun(place)
        leases = sorted(await server.acquire(PARTS))
        for number, lease in enumerate(leases, 1):
            assert await server.say_idle(lease, figures(lease.part, 10, 1), idle=True)
            assert (await server.view()).busy == PARTS - number
        await server.send([(1, b"m")])
        assert (await server.view())[:2] == (0, 1)

        (message,) = await server.receive([1], [], 9)
        await server.commit(commit_of(leases[1], read=[message.id]))
        assert await server.view() == CrawlView(1, 0, 1, PARTS, 10 * PARTS)
        assert await server.say_idle(after(leases[1]), figures(1, 11, 0), idle=True)
        assert await server.view() == CrawlView(0, 0, 1, PARTS - 1, 10 * PARTS + 1)

    @placed
    async def test_what_failed_is_told_by_beats_and_when_a_part_is_idle(self, place: FleetPlace) -> None:
        server = await begun(place)
        one, two, _ = sorted(await server.acquire(PARTS))
        await server.beat([one, two], [figures(one.part, failed=2), figures(two.part, failed=3)], "", 2)
        assert (await server.view()).failed == 5

        assert await server.say_idle(two, figures(two.part, failed=4), idle=True)
        assert (await server.view()).failed == 6
        assert await server.say_idle(two, figures(two.part, failed=1), idle=True)
        assert (await server.view()).failed == 3

    # Workers.

    @placed
    async def test_who_beats_is_counted_and_keeps_its_parts(self, place: FleetPlace) -> None:
        one, two = await begun(place), await begun(place, "two")
        mine = await one.acquire(2)
        first = await one.beat(mine, [figures(mine[0].part, 7, 1), figures(mine[1].part, 1, 0)], '{"a":1}', 2)
        assert first[1:6] == (1, True, False, False, 8)
        assert sorted(first.kept) == sorted(each.part for each in mine)

        second = await two.beat([], [figures(mine[0].part, 99, 0)], "", 0)  # of a part that is not its own
        assert second[:6] == ([], 2, True, False, False, 8)
        assert [(each.name, each.parts, each.report) for each in await two.workers()] == [
            ("one", 2, '{"a":1}'),
            ("two", 0, ""),
        ]
        await place.pass_time(SECONDS * 0.9)
        await one.beat(mine, [], "", 2)
        await place.pass_time(SECONDS * 0.9)
        assert sorted((await one.beat(mine, [], "", 2)).kept) == sorted(each.part for each in mine)

    @placed
    async def test_who_does_not_keep_up_counts_for_less(self, place: FleetPlace) -> None:
        one, two = await begun(place), await begun(place, "two")
        await one.beat([], [], "", PARTS - 1, WorkerPace(100, 0.25))
        second = await two.beat([], [], "", 0, WorkerPace(50, 0.75))

        assert (second.weights, second.late, second.lacking) == (150, 0.25, True)
        third = await two.beat([], [], "", PARTS // 3, WorkerPace(50, 0.5))
        assert (third.late, third.lacking) == (0.25, False)
        assert (await one.beat([], [], "", PARTS - 1)).late == 0.5
        assert [(each.weight, each.late) for each in await one.workers()] == [(100, 0.0), (50, 0.5)]

    @placed
    async def test_who_is_not_heard_of_is_not_counted_on(self, place: FleetPlace) -> None:
        one, two = await begun(place), await begun(place, "two")
        mine = await one.acquire(99)
        await one.beat(mine, [], "", PARTS)
        await place.pass_time(SECONDS + 1)
        taken = await two.acquire(1)

        assert (await two.beat(taken, [], "", 1)).workers == 1
        assert len(await two.workers()) == 2
        assert sorted((await one.beat(mine, [], "", PARTS)).kept) == sorted(
            each.part for each in mine if each.part != taken[0].part
        )
        assert (await two.beat(taken, [], "", 1)).workers == 2
        await place.pass_time(SECONDS * 4.5)
        await two.beat(taken, [], "", 1)
        assert [each.name for each in await two.workers()] == ["two"]

    @placed
    async def test_who_leaves_is_gone_at_once(self, place: FleetPlace) -> None:
        one, two = await begun(place), await begun(place, "two")
        await one.beat([], [], "", 0)
        await two.beat([], [], "", 0)
        await one.leave()

        assert (await two.beat([], [], "", 0)).workers == 1
        assert [each.name for each in await two.workers()] == ["two"]

    @placed
    async def test_a_worker_is_told_to_leave_or_all_are(self, place: FleetPlace) -> None:
        servers = [await begun(place, name) for name in ("one", "two", "three")]
        for each in servers:
            await each.beat([], [], "", 0)
        one, two, _ = servers

        assert await two.drain("nobody") == 0
        assert await two.drain("one") == 1
        assert (await one.beat([], [], "", 0))[1:4] == (2, True, True)
        assert not (await two.beat([], [], "", 0)).draining
        assert [each.draining for each in await two.workers()] == [True, False, False]
        assert await two.drain(None) == 3
        assert (await two.beat([], [], "", 0)).draining

    # What workers agree on.

    @placed
    async def test_of_what_workers_agree_on_the_first_word_counts(self, place: FleetPlace) -> None:
        one, _ = await with_part(place)
        two = await place.server("two")
        await two.begin(CRAWL, range(PARTS))

        assert await one.agreed("page") == ""
        assert await two.agree("page", "b") == "b"
        assert await one.agree("page", "a") == "b"
        assert await one.agree("other page", "a") == "a"
        assert [await each.agreed("page") for each in (one, two)] == ["b", "b"]

    # What hosts of several parts share.

    @placed
    async def test_stretches_of_a_quota_follow_each_other(self, place: FleetPlace) -> None:
        one, _ = await with_part(place)
        two = await place.server("two")
        await two.begin(CRAWL, range(PARTS))

        first, second, other = await one.book("key", 2.0), await two.book("key", 3.0), await two.book("another", 1.0)
        assert second.start == pytest.approx(first.start + 2.0)
        assert (await one.book("key", 1.0)).start == pytest.approx(second.start + 3.0)
        assert other.start < second.start

    @placed
    async def test_a_quota_that_is_hushed_is_booked_from_then_on(self, place: FleetPlace) -> None:
        server, _ = await with_part(place)
        until = (await server.book("key", 1.0)).start + 50
        await server.hush("key", until)
        await server.hush("key", until - 20)

        booked = await server.book("key", 1.0)
        assert booked.start == pytest.approx(until)
        assert booked.quiet == pytest.approx(until)

    @placed
    async def test_quotas_that_are_over_for_a_while_are_forgotten_by_who_books(self, place: FleetPlace) -> None:
        server, lease = await with_part(place)

        async def beats() -> None:
            for _ in range(5):
                await server.beat([lease], [], "", 1)

        for number in range(130):
            await server.book(f"old {number:03}", 1.0)
        until = (await server.book("hushed", 1.0)).start + 500
        await server.hush("hushed", until)
        await server.book("long", 500.0)
        await beats()
        assert len(await place.quotas()) == 132

        await place.pass_time(QUOTA_OVER + 2)
        await server.book("new", 1.0)
        await beats()
        assert await place.quotas() == {"hushed", "long", "new"}
        assert (await server.book("hushed", 1.0)).start >= until - QUOTA_OVER - 3
        await beats()
        await place.pass_time(600)
        await beats()
        assert await place.quotas() == set()
