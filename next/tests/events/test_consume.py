"""What happens to a message, row by row of the table in consume.py; on virtual time."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from events.plays import PROJECT, Play, event, inline, item, make_consumer

from sanderling.clock import run_virtual
from sanderling.events import consume
from sanderling.events.consume import Modes, Room
from sanderling.events.queues import DEAD, PARKED
from sanderling.files import Exit
from sanderling.observe.report import Histogram
from sanderling.readers.pool import ReaderError


def run(play: Play, beside: Callable[[Play], Any] | None = None) -> Exit:
    async def both() -> Exit:
        async with play.readers, asyncio.TaskGroup() as group:
            work = group.create_task(play.consumer.run())
            other = group.create_task(beside(play)) if beside else None
            code = await work
            if other is not None:
                other.cancel()
            return code

    return run_virtual(both())


def put_batch(play: Play, number: int, *items: Any) -> None:
    play.objects.there[f"bucket/{number}.json"] = json.dumps(list(items)).encode()
    play.queue.waiting.append(event(number))


def test_each_form_becomes_rows_and_is_acknowledged() -> None:
    play = make_consumer()
    put_batch(play, 1, item("a"), item("b"))
    play.objects.there["bucket/old.json"] = json.dumps(item("c", job_id=f"{PROJECT}-brand-1")).encode()
    play.queue.waiting += [b'{"data_ref": {"bucket": "bucket", "path": "old.json"}}', inline("d")]

    code = run(play)

    assert code is Exit.DONE
    assert play.store.ids == ["a", "b", "c", "d"]
    assert len(play.queue.ended) == 3
    assert not play.queue.taken
    assert {row[1] for rows in play.store.batches.values() for row in rows.posts} == {PROJECT, None} - {None} | {
        PROJECT
    }
    assert play.store.tries == {}


def test_what_comes_again_is_stored_once_and_told_again() -> None:
    play = make_consumer(tells=True)
    put_batch(play, 1, item("a"))
    play.queue.waiting += [event(1)]

    run(play)

    assert play.consumer.figures.known == 1
    assert [json.loads(each)["success_count"] for each in play.told] == [1, 1]
    assert len(play.queue.ended) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "0 bytes that are no JSON"),
        (b"null", "the message is nothing, expected an object"),
        (b'{"payload": {"minio_path": 17}}', "payload.minio_path is 17, expected bucket/key"),
        (b'{"payload": {"minio_path": "../../etc/passwd"}}', "expected bucket/key"),
        (b'{"payload": {"minio_path": "b/../x"}}', "plain characters"),
        (b'{"data_ref": "x"}', "data_ref.path is 'x', expected bucket/key"),
        (b'{"hello": 1}', "the message has 'hello'; expected payload.minio_path"),
        (b"[" * 50_000, "no JSON"),
        (b'{"x": "' + b"y" * 1_100_000 + b'"}', "expected at most 1,048,576"),
    ],
)
def test_what_is_no_message_of_ours_is_a_dead_letter(body: bytes, said: str) -> None:
    play = make_consumer()
    play.queue.waiting = [body, inline("good")]

    run(play)

    assert play.queue.beside == {DEAD: [body]}
    assert said in play.queue.whys[0]
    assert play.store.ids == ["good"]


@pytest.mark.parametrize("content", [b"42", b"\x28\xb5\x2f\xfd\x00rest", b"\x1f\x8b", b"<html>403</html>", b""])
def test_an_object_that_cannot_be_read_is_a_dead_letter(content: bytes) -> None:
    play = make_consumer(missing_tries=1)
    play.objects.there["bucket/1.json"] = content
    play.queue.waiting = [event(1), inline("good")]

    run(play)

    assert play.queue.beside == {DEAD: [event(1)]}
    assert play.store.ids == ["good"]


def test_an_object_that_comes_late_is_waited_for_and_nothing_waits_behind_it() -> None:
    play = make_consumer(workers=2)
    play.queue.waiting = [event(1), event(2), event(3), event(4), inline("good")]
    seen: list[list[str]] = []

    async def later(play: Play) -> None:
        await play.clock.sleep(2.5)
        seen.append(play.store.ids)
        for number in (1, 2, 3):
            play.objects.there[f"bucket/{number}.json"] = json.dumps([item(str(number))]).encode()

    run(play, later)

    assert seen == [["good"]]
    assert play.store.ids == ["1", "2", "3", "good"]
    assert play.queue.beside == {DEAD: [event(4)]}
    assert play.objects.looks.count("4.json") == 5
    assert play.store.tries == {}


@pytest.mark.parametrize("service", ["database", "objects", "broker"])
def test_a_service_that_is_away_is_waited_for_and_nothing_is_blamed(service: str) -> None:
    play = make_consumer(drain=False)
    for number in range(6):
        put_batch(play, number, item(str(number)))
    part: Any = {"database": play.store, "objects": play.objects, "broker": play.queue}[service]
    part.away = True
    told: list[dict[str, str]] = []

    async def repair(play: Play) -> None:
        await play.clock.sleep(300)
        told.append(dict(play.consumer.troubles))
        part.away = False
        await play.clock.sleep(100)
        play.consumer.stop()

    code = run(play, repair)

    assert code is Exit.DONE
    assert told[0]
    assert play.consumer.troubles == {}
    assert play.store.ids == [str(number) for number in range(6)]
    assert play.queue.beside == {}


def test_who_is_stopped_while_a_service_is_away_gives_its_messages_back() -> None:
    play = make_consumer(drain=False)
    play.queue.waiting = [inline(str(number)) for number in range(4)]
    play.store.away = True

    async def stop(play: Play) -> None:
        await play.clock.sleep(20)
        play.consumer.stop()

    run(play, stop)

    assert sorted(play.queue.waiting) == sorted(inline(str(number)) for number in range(4))
    assert play.queue.taken == []


def test_after_a_crash_a_message_is_processed_alone_and_the_third_time_it_is_dead() -> None:
    play = make_consumer(workers=4)
    play.store.slow = 1.0
    bodies = [inline(str(number)) for number in range(6)]

    async def begun(times: int, body: bytes) -> None:
        for _ in range(times):
            await play.store.begin(__import__("hashlib").blake2b(body, digest_size=16).hexdigest(), 0.0)

    run_virtual(begun(3, bodies[0]))
    run_virtual(begun(1, bodies[3]))
    play.queue.waiting = list(bodies)
    alone: list[int] = []
    keep = play.store.keep

    async def watched(message: str, rows: Any, wall: float) -> bool:
        if rows.posts[0][0] == "3":
            alone.append(play.store.at_once)
        return await keep(message, rows, wall)

    play.store.keep = watched  # type: ignore[method-assign]
    run(play)

    assert play.queue.beside == {DEAD: [bodies[0]]}
    assert "this process ended, 3 times" in play.queue.whys[0]
    assert play.store.ids == ["1", "2", "3", "4", "5"]
    assert alone == [0]
    assert play.store.most_at_once > 1


def test_a_reader_that_dies_costs_its_message_three_tries() -> None:
    play = make_consumer()
    play.queue.waiting = [inline("bad"), inline("good")]
    answer = play.readers.run

    async def dying(host: str, head: bytes, body: bytes) -> bytes:
        if b'"bad"' in body and b"evt" not in head and b"identity" in head:
            raise ReaderError("crash", "SIGSEGV")
        return await answer(host, head, body)

    play.readers.run = dying  # type: ignore[method-assign,assignment]
    run(play)

    assert play.queue.beside == {DEAD: [inline("bad")]}
    assert "SIGSEGV" in play.queue.whys[0]
    assert play.consumer.figures.retried == 3
    assert play.store.ids == ["good"]


def test_rows_that_the_database_refuses_are_a_dead_letter() -> None:
    play = make_consumer()
    play.queue.waiting = [inline("a")]
    play.store.refuses = True

    run(play)

    assert play.queue.beside == {DEAD: [inline("a")]}


def test_what_is_switched_off_stays_in_its_queue_and_the_rest_goes_on() -> None:
    play = make_consumer(modes=Modes(new=False), workers=2)
    for number in range(20):
        put_batch(play, number, item(str(number)))
    play.queue.waiting += [inline("old")]

    code = run(play)

    assert code is Exit.WAITING
    assert play.store.ids == ["old"]
    assert play.queue.waiting == [event(number) for number in range(20)]


def test_ten_thousand_held_messages_cost_little_and_stay_in_order() -> None:
    play = make_consumer(modes=Modes(new=False), workers=5, drain=False)
    play.queue.waiting = [event(number) for number in range(10_000)]
    seen: list[tuple[list[str], int, int]] = []

    async def later(play: Play) -> None:
        await play.clock.sleep(600)
        takes = play.queue.takes
        await play.clock.sleep(600)
        seen.append((play.store.ids, len(play.queue.waiting), play.queue.takes - takes))
        play.queue.waiting.append(inline("late"))
        await play.clock.sleep(60)
        seen.append((play.store.ids, len(play.queue.waiting), 0))
        play.consumer.stop()

    run(play, later)

    assert seen[0] == ([], 10_000, 0)  # it rests
    assert seen[1][0] == ["late"]
    assert play.queue.waiting == [event(number) for number in range(10_000)]
    assert play.queue.beside == {}


def test_beyond_the_bound_of_a_queue_that_mixes_formats_messages_are_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume, "MOST_HELD", 5)
    play = make_consumer(modes=Modes(new=False))
    play.queue.waiting = [inline("old"), *(event(number) for number in range(9)), inline("older")]

    run(play)

    assert play.queue.beside == {PARKED: [event(number) for number in range(5, 9)]}
    assert play.queue.waiting == [event(number) for number in range(5)]
    assert play.store.ids == ["old", "older"]


def test_who_is_in_a_tenth_is_in_a_half() -> None:
    shares = [{number for number in range(400) if _taken(number, share)} for share in (0.0, 0.1, 0.5, 1.0)]

    assert shares[0] == set()
    assert shares[1] < shares[2] < shares[3]
    assert 20 < len(shares[1]) < 60
    assert 160 < len(shares[2]) < 240


def _taken(number: int, share: float) -> bool:
    play = make_consumer(modes=Modes(canary=share))
    put_batch(play, number, item("x"))
    return Modes(canary=share).take(_envelope(play.queue.waiting[0]))


def _envelope(body: bytes) -> Any:
    from sanderling.formats.envelope import read_envelope

    return read_envelope(body)[0]


def test_paused_it_takes_nothing() -> None:
    play = make_consumer(drain=False)
    play.consumer.pause(paused=True)
    play.queue.waiting = [inline("a")]

    async def resume(play: Play) -> None:
        await play.clock.sleep(10)
        assert play.store.ids == []
        play.consumer.pause(paused=False)
        await play.clock.sleep(10)
        play.consumer.stop()

    run(play, resume)

    assert play.store.ids == ["a"]


def test_room_is_shared_first_come_first_served() -> None:
    order: list[str] = []

    async def take(room: Room, name: str, size: int) -> None:
        async with room.take(size):
            order.append(name)
            await asyncio.sleep(1)

    async def all_of_them() -> None:
        room = Room(10)
        async with asyncio.TaskGroup() as group:
            for name, size in (("a", 6), ("large", 50), ("b", 3)):
                group.create_task(take(room, name, size))
            gone = group.create_task(take(room, "gone", 5))
            await asyncio.sleep(0.5)
            gone.cancel()
        assert room.free == 10

    run_virtual(all_of_them())
    assert order == ["a", "large", "b"]


def test_a_histogram_counts_what_took_at_most_so_long() -> None:
    histogram = Histogram()
    for seconds in (0.05, 0.1, 3.0, 100.0):
        histogram.add(seconds)

    assert histogram.value() == {
        "0.1": 2, "0.5": 2, "1": 2, "2.5": 2, "5": 3, "10": 3, "30": 3, "+Inf": 4, "sum": 103.15
    }  # fmt: skip
