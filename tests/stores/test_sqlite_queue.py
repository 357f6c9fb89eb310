import asyncio
import os
import resource
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from killed import killed
from queue_contract import EMPTY, Opens, QueueContract, drained, keys, letters, played, script

from sanderling.clock import SystemClock
from sanderling.stores import sqlite_queue
from sanderling.stores.queue import Delivery, Depth, Letter, QueueError, WholeQueue, open_queue
from sanderling.stores.sqlite_queue import LEASE_SECONDS, SqliteQueue
from sanderling.testing import FakeClock, LoopClock, run_virtual

T = TypeVar("T")


@pytest.fixture
def name() -> str:
    return "letters"


@pytest.fixture
def path(tmp_path: Path, name: str) -> Path:
    return tmp_path / f"{name}.db"


@pytest.fixture
def opens(path: Path) -> Opens:
    return lambda: SqliteQueue(path, SystemClock())


@pytest.fixture
def child(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return script(f"sqlite:{tmp_path}", name)


class TestSqliteQueue(QueueContract):
    pass


# --- with time that is moved by hand, and nobody waiting ---


async def inline(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk at which everything is done at once."""
    return work(*args)


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """What a call gives that has nothing to wait for."""
    try:
        call.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return] # it is what the coroutine returns
    call.close()
    raise AssertionError("it waits for something")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


Frozen = Callable[[], SqliteQueue]


@pytest.fixture
def frozen(path: Path, clock: FakeClock) -> Frozen:
    return lambda: SqliteQueue(path, clock, inline)


def test_a_letter_that_somebody_keeps_comes_back_after_its_lease(frozen: Frozen, clock: FakeClock) -> None:
    sleepy, awake = frozen(), frozen()
    at_once(sleepy.publish(letters(0, 3)))
    kept = at_once(sleepy.take(2, 0))
    assert keys(at_once(awake.take(9, 0))) == ["2"]

    clock.advance(LEASE_SECONDS - 1)
    assert at_once(awake.take(9, 0)) == []
    clock.advance(1)
    back = at_once(awake.take(9, 0))

    assert [(each.key, each.tries) for each in back] == [("0", 0), ("1", 0), ("2", 0)]
    at_once(sleepy.done(kept))
    at_once(sleepy.later(kept[0], 5, "too late"))
    at_once(sleepy.bury(kept[1], "too late"))
    assert at_once(awake.depth()) == Depth(ready=0, taken=3, delayed=0, dead=0)


def test_who_was_late_may_still_be_done_if_nobody_else_took_it(frozen: Frozen, clock: FakeClock) -> None:
    queue = frozen()
    at_once(queue.publish(letters(0, 1)))
    kept = at_once(queue.take(1, 0))

    clock.advance(2 * LEASE_SECONDS)
    at_once(queue.done(kept))

    assert at_once(queue.take(1, 0)) == []
    assert at_once(queue.depth()) == EMPTY


@pytest.mark.parametrize("back", [5, 3600, 10 * 365 * 86400])
def test_a_wall_clock_that_is_set_back_holds_nothing_up(frozen: Frozen, clock: FakeClock, back: float) -> None:
    queue, other = frozen(), frozen()
    at_once(queue.publish(letters(0, 2)))
    delayed, _ = at_once(queue.take(2, 0))
    at_once(queue.later(delayed, 60, "why"))

    clock.set_wall(clock.wall() - back)
    clock.advance(59)
    assert at_once(queue.take(1, 0)) == []
    clock.advance(60)
    assert keys(at_once(queue.take(1, 0))) == ["0"]
    clock.advance(LEASE_SECONDS)
    assert keys(at_once(other.take(9, 0))) == ["0", "1"]


def test_a_wall_clock_set_back_while_nobody_looked_makes_it_wait_at_most_twice(
    frozen: Frozen, clock: FakeClock
) -> None:
    queue = frozen()
    at_once(queue.publish(letters(0, 1)))
    (delivery,) = at_once(queue.take(1, 0))
    at_once(queue.later(delivery, 60, "why"))

    clock.advance(59)
    clock.set_wall(clock.wall() - 59)
    clock.advance(61)

    assert keys(at_once(queue.take(1, 0))) == ["0"]


def test_an_outage_of_a_whole_queue_comes_back_in_pieces(
    frozen: Frozen, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_queue, "COMEBACKS", 10)
    queue = frozen()
    at_once(queue.publish(letters(0, 35)))
    for each in at_once(queue.take(35, 0)):
        at_once(queue.later(each, 5, "the store is away"))

    clock.advance(5)

    found = [at_once(queue.take(100, 0)) for _ in range(5)]
    assert [len(each) for each in found] == [10, 10, 10, 5, 0]


def test_what_is_handed_out_at_once_is_bounded_in_bytes(frozen: Frozen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_queue, "TAKE_BYTES", 1000)
    queue = frozen()
    at_once(queue.publish([Letter(str(number), bytes(400)) for number in range(7)]))

    found = [at_once(queue.take(100, 0)) for _ in range(3)]

    assert [len(each) for each in found] == [3, 3, 1]
    for delivery in (each for some in found for each in some):
        at_once(queue.bury(delivery, "why"))
    assert len(at_once(queue.dead(100))) == 3


def test_who_waits_does_so_in_virtual_time(path: Path) -> None:
    async def play() -> tuple[list[str], float]:
        clock = LoopClock()
        queue = SqliteQueue(path, clock, inline)
        await queue.publish(letters(0, 1))
        (delivery,) = await queue.take(1, 0)
        await queue.later(delivery, 1000, "why")
        back = await queue.take(1, 2000)
        await queue.close()
        return keys(back), clock.now()

    back, now = run_virtual(play())

    assert back == ["0"]
    assert 1000 <= now < 1001


# --- the same key more than once ---


def test_a_letter_that_waits_is_replaced_by_the_next_of_its_key(frozen: Frozen) -> None:
    queue = frozen()
    at_once(queue.publish([Letter("a", b"old"), Letter("b", b"other")]))

    at_once(queue.publish([Letter("a", b"new")]))

    assert at_once(queue.depth()).ready == 2
    assert [(each.key, each.body) for each in at_once(queue.take(9, 0))] == [("b", b"other"), ("a", b"new")]


def test_a_letter_that_is_delayed_is_replaced_by_the_next_of_its_key(frozen: Frozen) -> None:
    queue = frozen()
    at_once(queue.publish([Letter("a", b"old")]))
    at_once(queue.later(at_once(queue.take(1, 0))[0], 1000, "why"))

    at_once(queue.publish([Letter("a", b"new")]))

    (delivery,) = at_once(queue.take(9, 0))
    assert (delivery.body, delivery.tries) == (b"new", 0)
    assert at_once(queue.depth()) == Depth(ready=0, taken=1, delayed=0, dead=0)


@pytest.mark.parametrize("end", ["done", "later", "lease", "bury and replay"])
def test_a_letter_that_is_taken_gives_way_to_the_next_of_its_key(frozen: Frozen, clock: FakeClock, end: str) -> None:
    queue = frozen()
    at_once(queue.publish([Letter("a", b"old")]))
    (old,) = at_once(queue.take(9, 0))
    at_once(queue.publish([Letter("a", b"new")]))

    if end == "done":
        at_once(queue.done([old]))
    elif end == "later":
        at_once(queue.later(old, 5, "why"))
    elif end == "lease":
        clock.advance(LEASE_SECONDS)
    else:
        at_once(queue.bury(old, "why"))
        assert at_once(queue.replay(["a"])) == 1

    assert [each.body for each in at_once(queue.take(9, 0))] == [b"new"]
    assert at_once(queue.depth()) == Depth(ready=0, taken=1, delayed=0, dead=0)


def test_of_two_that_come_back_the_newer_is_kept(frozen: Frozen, clock: FakeClock) -> None:
    queue = frozen()
    for body in (b"1", b"2", b"3"):
        at_once(queue.publish([Letter("a", body)]))
        at_once(queue.take(1, 0))

    clock.advance(LEASE_SECONDS)

    assert [each.body for each in at_once(queue.take(9, 0))] == [b"3"]


def test_one_buried_again_is_dead_once(frozen: Frozen, clock: FakeClock) -> None:
    queue = frozen()
    for body in (b"old", b"new"):
        at_once(queue.publish([Letter("a", body)]))
        at_once(queue.bury(at_once(queue.take(1, 0))[0], body.decode()))
        clock.advance(1)

    assert [(each.body, each.why) for each in at_once(queue.dead(9))] == [(b"new", "new")]


# --- the file ---


def test_takers_leave_nothing_behind(path: Path, opens: Opens, child: list[str]) -> None:
    killed([*child, "0"], after=2)
    killed([*child, "take"], after=1)
    killed([*child, "take"], after=1)
    assert len(list(path.parent.glob("*-taker-*"))) == 1

    played(opens, drained)

    assert list(path.parent.glob("*-taker-*")) == []


def test_a_lock_file_of_somebody_else_is_left_alone(path: Path, frozen: Frozen) -> None:
    others = [path.with_name(name) for name in (f"{path.name}-taker-x", "other.db-taker-1")]
    for other in others:
        other.touch()
    queue = frozen()
    at_once(queue.publish(letters(0, 1)))

    assert keys(at_once(queue.take(1, 0))) == ["0"]

    assert all(other.exists() for other in others)


def test_fifty_thousand_letters_pass_through_a_small_file(path: Path, frozen: Frozen) -> None:
    queue, largest = frozen(), 0
    for first in range(0, 50_000, 500):
        at_once(queue.publish([Letter(str(number), bytes(1000)) for number in range(first, first + 500)]))
        while deliveries := at_once(queue.take(100, 0)):
            at_once(queue.done(deliveries))
        largest = max(largest, sum(each.stat().st_size for each in path.parent.iterdir()))

    # Five hundred of a kilobyte, a log of 4 MB, and what deletions leave half empty; in all, 50 MB went through.
    assert largest < 8_000_000
    assert at_once(queue.depth()) == EMPTY


@contextmanager
def mounted(path: Path, size: str) -> Iterator[None]:
    """A file system of its own at `path`; skips the test where that is not allowed."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:  # noqa: S603
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)  # noqa: S603, S607 - what was mounted above


def test_a_full_disk_is_said_and_half_of_nothing_is_written(tmp_path: Path, clock: FakeClock) -> None:
    folder, batches = tmp_path / "small", 0

    def fill() -> None:
        nonlocal batches
        while batches < 1000:
            at_once(queue.publish([Letter(f"{batches}.{each}", bytes(9_000)) for each in range(10)]))
            batches += 1

    with mounted(folder, "2m"):
        queue = SqliteQueue(folder / "letters.db", clock, inline)
        with pytest.raises(QueueError, match=r"cannot write to .*letters.db: the disk is full. Nothing is lost"):
            fill()
        subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)  # noqa: S603, S607 - the same

        assert at_once(queue.depth()) == Depth(10 * batches, 0, 0, 0)
        at_once(queue.publish(letters(0, 5)))
        found = at_once(queue.take(10_000, 0))
        assert len(found) == 10 * batches + 5 > 10
        at_once(queue.close())


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_may_not_grow_is_said_and_loses_nothing(frozen: Frozen) -> None:
    """As good as a full disk, and needs no mount."""
    queue = frozen()
    at_once(queue.publish(letters(0, 5)))
    with files_of_at_most(200_000):
        with pytest.raises(QueueError, match=r"cannot write to .*letters.db"):
            at_once(queue.publish([Letter("large", bytes(1_000_000))]))
        assert at_once(queue.depth()) == Depth(5, 0, 0, 0)

    at_once(queue.publish(letters(5, 5)))
    assert keys(at_once(queue.take(99, 0))) == [str(number) for number in range(10)]


def test_a_file_in_use_is_said(path: Path, frozen: Frozen) -> None:
    queue = frozen()
    queue._db.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(QueueError, match=r"letters.db is in use by another program"):
            at_once(queue.publish(letters(0, 1)))

    at_once(queue.publish(letters(0, 1)))


@pytest.mark.parametrize("content", [b"no database" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_none_is_refused_and_left_alone(path: Path, opens: Opens, content: bytes) -> None:
    path.write_bytes(content)

    with pytest.raises(QueueError, match=r"letters.db is damaged, or not one of ours"):
        opens()
    assert path.read_bytes() == content


def test_the_database_of_something_else_is_refused(path: Path, opens: Opens) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")

    with pytest.raises(QueueError, match=r"letters.db is no queue; choose another file"):
        opens()


def test_a_later_version_is_refused(path: Path, frozen: Frozen) -> None:
    at_once(frozen().close())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9")

    with pytest.raises(QueueError, match=r"is of format 9, this version reads 1; use a newer version"):
        frozen()


def test_a_torn_file_is_said(path: Path, frozen: Frozen) -> None:
    queue = frozen()
    at_once(queue.publish([Letter(str(number), bytes(5000)) for number in range(50)]))
    at_once(queue.close())
    path.write_bytes(path.read_bytes()[:60_000])

    with pytest.raises(QueueError, match=r"letters.db is damaged, or not one of ours"):
        at_once(frozen().take(100, 0))


def test_no_letter_is_looked_for_among_all(frozen: Frozen) -> None:
    queue, statements = frozen(), list[str]()
    queue._db.set_trace_callback(statements.append)
    at_once(queue.publish(letters(0, 5)))
    one, two, three, *_ = at_once(queue.take(4, 0))
    at_once(queue.later(one, 0, "why"))
    at_once(queue.bury(two, "why"))
    at_once(queue.done([three]))
    at_once(queue.take(1, 0))
    at_once(queue.dead(2, two.key))
    at_once(queue.replay([two.key]))
    queue._db.set_trace_callback(None)

    words = ("SELECT", "UPDATE", "DELETE", "INSERT")
    plans = [
        (each, step)
        for each in {each for each in statements if each.startswith(words)}
        for (*_, step) in queue._db.execute(f"EXPLAIN QUERY PLAN {each}").fetchall()
    ]

    assert any("SEARCH letter USING INDEX letter_waiting (key=?)" in step for _, step in plans), plans
    assert not [each for each in plans if "SCAN letter" in each[1] or "SCAN body" in each[1] or "ORDER BY" in each[1]]


def test_the_delivery_of_another_queue_is_a_mistake(frozen: Frozen) -> None:
    with pytest.raises(TypeError, match="letter 'a' is of another queue"):
        at_once(frozen().done([Delivery("a", b"", 0, tag=None)]))


def test_a_url_names_a_folder_and_queues_are_files_in_it(tmp_path: Path) -> None:
    async def play(queue: WholeQueue) -> Depth:
        await queue.publish(letters(0, 2))
        other = open_queue(f"sqlite://{tmp_path}/deep", "other", SystemClock())
        depth = await other.depth()
        await other.close()
        return depth

    assert played(lambda: open_queue(f"sqlite:{tmp_path}/deep", "one", SystemClock()), play) == EMPTY
    assert {each.name for each in (tmp_path / "deep").glob("*.db")} == {"one.db", "other.db"}


@pytest.mark.parametrize(
    "url", ["", "sqlite:", "sqlite://", "nowhere", "redis://:secret@h/0", "secret:5@x", "http://a"]
)
def test_what_is_no_url_of_a_queue_is_refused(url: str) -> None:
    with pytest.raises(QueueError, match="is no queue with a place; expected sqlite:FOLDER or amqp://") as refused:
        open_queue(url, "name", SystemClock())
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "x" * 101, "a\n"])
def test_what_is_no_name_of_a_queue_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(QueueError, match="cannot be the name of a queue; expected letters, digits"):
        open_queue(f"sqlite:{tmp_path}", name, SystemClock())
    assert list(tmp_path.iterdir()) == []


def test_two_loops_do_not_share_a_queue_but_two_lives_do(opens: Opens) -> None:
    played(opens, lambda queue: queue.publish(letters(0, 2)))

    assert len(asyncio.run(drained(opens()))) == 2


# --- against the obvious ---


class Entry(NamedTuple):
    number: int
    letter: Letter
    tries: int
    at: float  # 0 if ready


SOME_KEYS = st.sampled_from("abcd")


class Twin(RuleBasedStateMachine):
    """A queue, and lists that say what should be in it. A letter comes back when somebody takes, not before."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="sanderling-")
        self.clock = FakeClock()
        self.queue = self.open()
        self.number = 0
        self.waiting: dict[str, Entry] = {}
        self.taken: list[tuple[Delivery, Entry]] = []
        self.dead: dict[str, Entry] = {}
        self.stale: list[Delivery] = []

    def open(self) -> SqliteQueue:
        return SqliteQueue(Path(self.folder.name) / "q.db", self.clock, inline)

    def teardown(self) -> None:
        at_once(self.queue.close())
        self.folder.cleanup()

    @rule(keys=st.lists(SOME_KEYS, max_size=4))
    def publish(self, keys: list[str]) -> None:
        batch = [Letter(key, f"{self.number}.{place}".encode()) for place, key in enumerate(keys)]
        at_once(self.queue.publish(batch))
        for letter in dict(batch).items():
            self.number += 1
            self.waiting[letter[0]] = Entry(self.number, Letter(*letter), 0, 0)

    @rule(most=st.integers(1, 5))
    def take(self, most: int) -> None:
        wall = self.clock.wall()
        back = [pair for pair in self.taken if pair[1].at <= wall]
        self.taken = [pair for pair in self.taken if pair[1].at > wall]
        self.stale += (delivery for delivery, _ in back)
        self.come_back([entry for _, entry in back])
        self.waiting = {key: each._replace(at=0 if each.at <= wall else each.at) for key, each in self.waiting.items()}
        # A letter may be published again while it is delayed: its number is new then, so numbers are the order.
        expected = sorted(each for each in self.waiting.values() if not each.at)[:most]

        found = at_once(self.queue.take(most, 0))

        assert [(Letter(each.key, each.body), each.tries) for each in found] == [each[1:3] for each in expected]
        for delivery, entry in zip(found, expected, strict=True):
            del self.waiting[entry.letter.key]
            self.taken.append((delivery, entry._replace(at=wall + LEASE_SECONDS)))

    def come_back(self, entries: list[Entry]) -> None:
        for entry in sorted(entries, reverse=True):
            self.waiting.setdefault(entry.letter.key, entry._replace(at=0))

    def pick(self, data: st.DataObject) -> tuple[Delivery, Entry]:
        pair = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        self.stale.append(pair[0])
        return pair

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        at_once(self.queue.done([self.pick(data)[0]]))

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), seconds=st.sampled_from([0, 1, 60]))
    def later(self, data: st.DataObject, seconds: int) -> None:
        delivery, entry = self.pick(data)
        at_once(self.queue.later(delivery, seconds, "why"))
        due = self.clock.wall() + seconds
        self.waiting.setdefault(entry.letter.key, entry._replace(tries=entry.tries + 1, at=due))

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def bury(self, data: st.DataObject) -> None:
        delivery, entry = self.pick(data)
        at_once(self.queue.bury(delivery, "why"))
        self.dead.pop(entry.letter.key, None)
        self.dead[entry.letter.key] = entry._replace(at=self.clock.wall())

    @rule(keys=st.none() | st.sets(SOME_KEYS))
    def replay(self, keys: set[str] | None) -> None:
        chosen = set(self.dead) if keys is None else keys & set(self.dead)
        assert at_once(self.queue.replay(keys)) == len(chosen)
        self.come_back([self.dead.pop(key)._replace(tries=0) for key in chosen])

    @rule()
    def say_what_is_over(self) -> None:
        at_once(self.queue.done(self.stale))
        for each in self.stale:
            at_once(self.queue.later(each, 0, "too late"))
            at_once(self.queue.bury(each, "too late"))

    @rule(seconds=st.sampled_from([0.5, 30, 60, LEASE_SECONDS]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def reopen(self) -> None:
        at_once(self.queue.close())
        self.queue = self.open()
        self.stale += (delivery for delivery, _ in self.taken)
        self.come_back([entry for _, entry in self.taken])
        self.taken = []

    @invariant()
    def they_are_as_many(self) -> None:
        delayed = sum(1 for each in self.waiting.values() if each.at)
        expected = Depth(len(self.waiting) - delayed, len(self.taken), delayed, len(self.dead))
        assert at_once(self.queue.depth()) == expected
        dead = sorted(self.dead.values(), key=lambda each: (each.at, each.number))
        assert [(each.key, each.body, each.tries) for each in at_once(self.queue.dead(9))] == [
            (*each.letter, each.tries) for each in dead
        ]
        ((bodies,),) = self.queue._db.execute("SELECT count(*) FROM body")
        assert bodies == sum(expected)


TestTwin = Twin.TestCase
TestTwin.settings = settings(max_examples=40, stateful_step_count=30)
