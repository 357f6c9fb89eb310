"""Processes that keep batches, replay or claim the outbox until they are killed, and whether all is whole then."""

import asyncio
import subprocess
import sys
from contextlib import ExitStack

from analytics_play import NOW, Place, all_errors, all_messages, all_posts, batch, comment, error, message, post

from sanderling.stores.analytics import AnalyticsBatch, EventFilter
from sanderling.stores.analytics_open import open_analytics

POSTS, EVENTS = 20, 4


def numbered(number: int) -> AnalyticsBatch:
    """Some of its posts are new and some are those of the batch before, crawled later."""
    posts = [post(str(number * POSTS // 2 + n), crawled_at=1e9 + number) for n in range(POSTS)]
    comments = [comment(of, f"{number}-{n}") for of in range(POSTS) for n in range(3)]
    return batch(f"evt_{number}", posts, comments, [error(POSTS)], [message(str(number).encode())])


async def keep_on(url: str, pause: float) -> None:
    store = await open_analytics(url, asyncio.to_thread)
    number = await store.depth()
    while True:
        await store.keep(numbered(number))
        number += 1
        print("kept", flush=True)  # noqa: T201 - for whoever wants to kill it
        await asyncio.sleep(pause)


def nth(number: int, time: int) -> AnalyticsBatch:
    """An event as it is the n-th time: each time another of its items is the error."""
    places = [place for place in range(POSTS) if place != time % POSTS]
    posts = [post(f"{number}-{place}", keyword=str(time), analyzed_at=NOW + time) for place in places]
    comments = [comment(of, f"{time}") for of in range(len(posts))]
    return batch(f"evt_{number}", posts, comments, [error(time % POSTS)], message=f"{number} {time}".encode())


async def replay_on(url: str, pause: float) -> None:
    store = await open_analytics(url, asyncio.to_thread)
    while True:
        await store.replay(EventFilter(from_date=0.0), exchange="x", routing_key="k", most=3)
        for each in await store.waiting(0, 10):
            number, time = map(int, each.body.split())
            await store.keep(nth(number, time + 1))
            await store.sent([each.number])
            print("replayed", flush=True)  # noqa: T201 - for whoever wants to kill it
            await asyncio.sleep(pause)


async def claim_on(url: str, _pause: float) -> None:
    store = await open_analytics(url, asyncio.to_thread)
    async with store.claim() as ours:
        assert ours
        print("claimed", flush=True)  # noqa: T201 - for whoever wants to kill it
        await asyncio.Event().wait()


async def check_claim(place: Place) -> None:
    """Nobody has it any more, or a moment later."""
    async with place.opens() as store, asyncio.timeout(300):
        while True:
            async with store.claim() as ours:
                if ours:
                    return
            await asyncio.sleep(0.01)


def kill(url: str, *, after: int, crowd: int, what: str = "keep") -> None:
    """Kill -9 so many processes that do the same, wherever they are, when they have said so many lines."""
    # Whoever waits for a SQLite file looks only now and then whether it is free.
    command = [sys.executable, __file__, url, "0" if crowd == 1 else "0.02", what]
    with ExitStack() as stack:
        popen = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(crowd)]  # noqa: S603 - ourselves
        children = [stack.enter_context(child) for child in popen]
        for child in children:
            assert child.stdout is not None
            for _ in range(after):
                assert child.stdout.readline(), "it ended by itself"
        for child in children:
            child.kill()


async def check(place: Place, least: int) -> None:
    """Each batch is there with all that belongs to it, or not at all; also when it is kept once more."""
    async with place.opens() as store:
        messages = [int(each.body) async for each in all_messages(store)]
        count = len(messages)
        assert messages == [*range(count)]
        assert count >= least
        for number in range(max(0, count - 2), count + 1):
            assert bool(await store.processed(f"evt_{number}")) == (number < count)
            assert (await store.keep(numbered(number))).new == (number == count)
        assert [row.event_id for row in await all_errors(store)] == sorted(f"evt_{n}" for n in range(count + 1))
        for each in await all_posts(store):
            newest = min(int(each.row.post_id) // (POSTS // 2), count)
            assert each.row.event_id == f"evt_{newest}"
        ((comments,),) = await place.sql("SELECT count(*) FROM post_comments")
        assert comments == 3 * len(await all_posts(store)) == 3 * (POSTS // 2) * (count + 2)


async def fill(place: Place) -> None:
    """Put in what is then replayed."""
    async with place.opens() as store:
        for number in range(EVENTS):
            await store.keep(nth(number, 0))


async def check_replays(place: Place, least: int) -> None:
    """Each event is wholly as it was one time; and those that are marked have a message on its way."""
    async with place.opens() as store:
        rows, errors = {each.row.post_id: each.row for each in await all_posts(store)}, await all_errors(store)
        events = await place.sql("SELECT event_id, message, replayed FROM processed_events")
        waiting = {each.body async for each in all_messages(store)}
        brought = {event: bytes(message) for event, message, _ in events}
        last = {event: nth(*map(int, message.split())) for event, message in brought.items()}
        assert rows == {row.post_id: row for each in last.values() for row in each.posts}
        assert errors == [row for _, each in sorted(last.items()) for row in each.errors]
        assert sum(int(message.split()[1]) for message in brought.values()) >= least
        assert {brought[event] for event, _, marked in events if marked} <= waiting
        comments = await place.sql("SELECT count(*), count(DISTINCT post_id) FROM post_comments")
        assert comments == [(len(rows), len(rows))]


if __name__ == "__main__":
    asyncio.run({"keep": keep_on, "replay": replay_on, "claim": claim_on}[sys.argv[3]](sys.argv[1], float(sys.argv[2])))
