"""Archives are loaded once, wholly, past what is damaged; into ClickHouse and into Parquet alike."""

import importlib
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from small_archives import CRAWLED_AT, LIKE, POST, PROFILE, THREE, Heard, Small, flip, offset_of, write

from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.replay import ReplayBatch, ReplayRules, ReplaySegment, ReplayTotals, RepoReplay
from sanderling.repos.replay_clickhouse import ClickhouseSink
from sanderling.repos.replay_parquet import ParquetSink
from sanderling.stores.clickhouse import Clickhouse, ClickhouseError, open_clickhouse
from sanderling.stores.durable import FolderError

Rows = list[tuple[Any, ...]]
COLUMNS = ("repo", "collection", "rkey", "operation", "record_json", "created_at", "time_us")
CRAWLED = datetime.fromtimestamp(CRAWLED_AT / 1e6, UTC)
EXPECTED: Rows = sorted(
    (repo.did, name, rkey, "create", json.decode(), CRAWLED, CRAWLED_AT)
    for repo in THREE
    for name, records in repo.records.items()
    for rkey, json in records.items()
)
# One record says when it was made.
EXPECTED = [
    (*row[:5], datetime(2024, 3, 1, 0, 0, 0, 500_000, UTC), row[6]) if "createdAt" in row[4] else row
    for row in EXPECTED
]


@pytest.fixture
def store(clickhouse_url: str) -> Iterator[Clickhouse]:
    store = open_clickhouse(clickhouse_url, {})
    yield store
    store.close()


def rows_of(store: Clickhouse) -> Rows:
    found = store.rows(
        "SELECT repo, collection, rkey, toString(operation), record_json, toUnixTimestamp64Micro(created_at), time_us "
        "FROM repo_records FINAL ORDER BY repo, collection, rkey"
    )
    return [(*row[:5], datetime.fromtimestamp(row[5] / 1e6, UTC), row[6]) for row in found]


def replayed(sink: Any, *paths: Path, heard: Heard | None = None, **options: Any) -> ReplayTotals:  # noqa: ANN401 - any sink
    """What comes of it; problems that nobody waits for are an error."""
    said = Heard()
    done = RepoReplay(sink, said if heard is None else heard, **options).run(paths)
    assert said == []
    return done


def test_every_record_is_there_with_the_time_it_was_made(store: Clickhouse, tmp_path: Path) -> None:
    done = replayed(ClickhouseSink(store), write(tmp_path / "segment_0001.rca"))

    assert rows_of(store) == EXPECTED
    assert (done.segments, done.repos, done.records, done.problems) == (1, 3, 7, 0)


def test_a_segment_is_loaded_once(store: Clickhouse, tmp_path: Path) -> None:
    path = write(tmp_path / "segment_0001.rca")
    replayed(ClickhouseSink(store), path)

    again = replayed(ClickhouseSink(store), path)

    assert (again.before, again.segments, again.records) == (1, 0, 0)
    assert store.rows("SELECT count() FROM repo_records") == [(7,)]


def test_again_loads_it_once_more_and_nothing_is_twice(store: Clickhouse, tmp_path: Path) -> None:
    path = write(tmp_path / "segment_0001.rca")
    replayed(ClickhouseSink(store), path)

    again = replayed(ClickhouseSink(store), path, again=True)

    assert (again.before, again.records) == (0, 7)
    assert rows_of(store) == EXPECTED


def test_another_segment_of_the_same_name_is_another(store: Clickhouse, tmp_path: Path) -> None:
    replayed(ClickhouseSink(store), write(tmp_path / "segment_0001.rca", THREE[:1]))

    done = replayed(ClickhouseSink(store), write(tmp_path / "segment_0001.rca", THREE[1:]))

    assert done.segments == 1
    assert rows_of(store) == EXPECTED


def test_another_segment_of_the_same_name_and_size_is_another(store: Clickhouse, tmp_path: Path) -> None:
    sizes = []
    for text in (b'{"n":1}', b'{"n":2}'):
        path = write(tmp_path / "segment_0001.rca", [Small("did:plc:a", {"a.b": {"k": text}})])
        sizes.append(path.stat().st_size)
        done = replayed(ClickhouseSink(store), path)

    assert sizes[0] == sizes[1]
    assert done.segments == 1


def test_some_collections_are_not_all(store: Clickhouse, tmp_path: Path) -> None:
    path, sink = write(tmp_path / "segment_0001.rca"), ClickhouseSink(store)

    likes = replayed(sink, path, collections=[LIKE])
    feed = replayed(sink, path, collections=["app.bsky.feed.*", PROFILE])
    every = replayed(sink, path)
    after_all = replayed(sink, path, collections=[POST])

    assert [likes.records, feed.records, every.records, after_all.records] == [4, 7, 7, 0]
    assert after_all.before == 1, "whoever has all has some"
    assert rows_of(store) == EXPECTED


def test_of_two_crawls_of_a_repo_the_later_counts(store: Clickhouse, tmp_path: Path) -> None:
    old, new = (
        [
            Small(
                "did:plc:a",
                {"a.b": {"k": f'{{"createdAt":"2024-03-01T00:00:00Z","n":{at}}}'.encode()}},
                CRAWLED_AT + at,
            )
        ]
        for at in (0, 1)
    )
    paths = [write(tmp_path / "segment_0001.rca", new), write(tmp_path / "segment_0002.rca", old)]

    replayed(ClickhouseSink(store), *paths, rules=ReplayRules(threads=1))

    assert [row[4] for row in rows_of(store)] == ['{"createdAt":"2024-03-01T00:00:00Z","n":1}']


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self, fails: Callable[[int], bool] = lambda _: False) -> None:
        self.tables: list[Any] = []
        self.complete: dict[ReplaySegment, bool] = {}
        self._fails = fails
        self._turn = threading.Lock()

    def has(self, segment: ReplaySegment) -> bool:
        return self.complete.get(segment, False)

    def remove_superseded(self) -> int:
        return 0

    @contextmanager
    def loading(self, segment: ReplaySegment) -> Iterator["Kept.One"]:
        one = Kept.One(self)
        yield one
        self.complete[segment] = one.complete

    class One:
        def __init__(self, sink: "Kept") -> None:
            self.complete = False
            self._sink = sink

        def write(self, batch: ReplayBatch) -> None:
            with self._sink._turn:
                self._sink.tables.append(batch.rows)
                if self._sink._fails(len(self._sink.tables)):
                    raise ClickhouseError("the server is gone")

    @property
    def rkeys(self) -> list[str]:
        return sorted(rkey for table in self.tables for rkey in table.column("rkey").to_pylist())


RKEYS = sorted(row[2] for row in EXPECTED)


@pytest.mark.parametrize(("rules", "batches"), [(ReplayRules(rows=1), [2, 2, 3]), (ReplayRules(rows=4), [4, 3])])
def test_a_batch_is_written_when_it_is_large_enough(tmp_path: Path, rules: ReplayRules, batches: list[int]) -> None:
    sink = Kept()

    replayed(sink, write(tmp_path / "segment_0001.rca"), rules=rules)

    assert [table.num_rows for table in sink.tables] == batches


def test_a_batch_is_large_by_its_bytes_too(tmp_path: Path) -> None:
    sink = Kept()

    replayed(sink, write(tmp_path / "segment_0001.rca"), rules=ReplayRules(bytes=70))

    assert len(sink.tables) == 2


@pytest.mark.parametrize("name", ["rows", "bytes", "threads"])
def test_rules_that_would_never_end_cannot_be_made(name: str) -> None:
    with pytest.raises(ValueError, match="expected numbers from 1 up"):
        ReplayRules(**{name: 0})


def test_a_bad_block_is_reported_the_others_are_loaded_and_the_segment_is_not_done(tmp_path: Path) -> None:
    path, sink, heard = write(tmp_path / "segment_0001.rca"), Kept(), Heard()
    offset = offset_of(path, THREE[1])
    flip(path, offset + 60)

    done = replayed(sink, path, heard=heard)

    assert heard.places == [("segment_0001.rca", offset)]
    assert sink.rkeys == [rkey for rkey in RKEYS if rkey not in ("self", "3k4")]
    assert (done.problems, done.repos) == (1, 2)
    assert list(sink.complete.values()) == [False], "next time it is tried again"


def test_a_collection_that_is_not_what_it_says_is_reported(tmp_path: Path) -> None:
    wrong = Small("did:plc:z", {"a.b": {"k": b"{}"}})
    # Sound in every checksum, and yet not what it says.
    block = wrong.block().replace(b"a.b\x01\x00\x00\x00", b"a.b\x02\x00\x00\x00")
    path, heard, sink = tmp_path / "segment_0001.rca", Heard(), Kept()
    write(path, [_Raw(wrong.did, _summed(block)), THREE[0]])  # type: ignore[list-item]  # has what is needed

    replayed(sink, path, heard=heard)

    assert len(heard) == 1
    assert "not 2 records" in str(heard[0])
    assert sink.rkeys == ["3k2", "3k3"]


class _Raw:
    def __init__(self, did: str, block: bytes) -> None:
        self.did, self._block = did, block

    def block(self) -> bytes:
        return self._block


def _summed(block: bytes) -> bytes:
    body = block.index(b"\x03\x00a.b")
    crc = zlib.crc32(block[body:])
    return block[: body - 4] + crc.to_bytes(4, "little") + block[body:]


def test_a_segment_that_is_not_finished_is_read_to_its_last_whole_block_and_not_remembered(tmp_path: Path) -> None:
    path, sink = write(tmp_path / "segment_0002.rca.part", finalise=False), Kept()
    path.write_bytes(path.read_bytes()[:-5])

    done = replayed(sink, path)

    assert sink.rkeys == ["3k2", "3k3", "3k4", "self"]
    assert done.torn == len(THREE[2].block()) - 5
    assert (done.problems, list(sink.complete.values())) == (0, [False])


def test_what_cannot_be_read_at_all_does_not_keep_the_others_back(tmp_path: Path) -> None:
    (tmp_path / "segment_0001.rca").write_bytes(b"nonsense")
    paths, sink, heard = [tmp_path / "segment_0001.rca", tmp_path / "gone.rca"], Kept(), Heard()

    done = replayed(sink, *paths, write(tmp_path / "segment_0002.rca"), heard=heard)

    assert sorted(heard.places) == [("gone.rca", 0), ("segment_0001.rca", 8)]
    assert sink.rkeys == RKEYS
    assert done.problems == 2


def test_segments_are_loaded_side_by_side(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"segment_{number:04}.rca", [Small(f"did:plc:{number}", {"a.b": {str(number): b"{}"}})])
        for number in range(1, 31)
    ]
    sink, seen = Kept(), list[ReplayTotals]()

    total = RepoReplay(sink, Heard(), rules=ReplayRules(threads=8)).run(paths, seen.append)

    assert sink.rkeys == sorted(map(str, range(1, 31)))
    assert (total.segments, total.repos, total.records) == (30, 30, 30)
    assert sum(more.records for more in seen) == 30


def test_when_the_sink_fails_all_threads_stop_and_the_error_is_told(tmp_path: Path) -> None:
    repos = [Small(f"did:plc:{number}", {"a.b": {"k": b"{}"}}) for number in range(500)]
    paths = [write(tmp_path / f"segment_{number:04}.rca", repos) for number in range(1, 9)]
    sink = Kept(fails=lambda tables: tables == 3)

    with pytest.raises(ClickhouseError, match="the server is gone"):
        RepoReplay(sink, Heard(), rules=ReplayRules(rows=1, threads=2)).run(paths)

    assert len(sink.tables) < 500, "neither what is read beside it nor what waits goes on to its end"


def test_ctrl_c_ends_it_soon_and_nothing_half_loaded_counts_as_loaded(tmp_path: Path) -> None:
    repos = [Small(f"did:plc:{number}", {"a.b": {"k": b"{}"}}) for number in range(500)]
    paths = [write(tmp_path / f"segment_{number:04}.rca", repos) for number in range(1, 9)]
    sink, once, others = ParquetSink(tmp_path / "out"), threading.Event(), set(threading.enumerate())

    def watch(done: ReplayTotals) -> None:
        if done.records and not once.is_set():
            once.set()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.01)  # so that no segment comes to its end before a busy machine has told the main thread

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            RepoReplay(sink, Heard(), rules=ReplayRules(rows=1, threads=2)).run(paths, watch)
    finally:
        signal.signal(signal.SIGINT, before)
    assert list((tmp_path / "out").glob("*.parquet")) == []
    for each in set(threading.enumerate()) - others:
        each.join(300)  # the interrupt may have come while it was being waited for
        assert not each.is_alive()


def test_repos_that_are_listed_are_not_loaded(tmp_path: Path) -> None:
    gone = THREE[0].did

    done = replayed(
        ParquetSink(tmp_path / "out"), write(tmp_path / "segment_0001.rca"), leave_out=RepoLeaveOut(frozenset({gone}))
    )

    assert (done.repos, done.left_out) == (2, 1)
    kept = [row for row in EXPECTED if row[0] != gone]
    assert 0 < len(kept) < len(EXPECTED)
    assert read_parquet(tmp_path / "out" / "segment_0001.parquet") == kept


# --- Parquet ---


def read_parquet(*files: Path) -> Rows:
    tables = [importlib.import_module("pyarrow.parquet").read_table(file) for file in files]
    return sorted(tuple(row[name] for name in COLUMNS) for table in tables for row in table.to_pylist())


def test_parquet_has_the_same_rows_as_the_table(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out")

    replayed(sink, write(tmp_path / "segment_0001.rca"), rules=ReplayRules(rows=1))

    assert [path.name for path in (tmp_path / "out").iterdir()] == ["segment_0001.parquet"]
    assert read_parquet(tmp_path / "out" / "segment_0001.parquet") == EXPECTED


def test_parquet_of_a_segment_is_made_once_and_made_anew_when_that_has_changed(tmp_path: Path) -> None:
    sink, path = ParquetSink(tmp_path / "out"), tmp_path / "segment_0001.rca"
    part = write(path.with_suffix(".rca.part"), THREE[:1], finalise=False)

    early = replayed(sink, part)
    whole = replayed(sink, write(path))
    again = replayed(sink, path)
    likes = replayed(sink, path, collections=[LIKE])

    assert [early.records, whole.records, again.records, likes.records] == [2, 7, 0, 4]
    assert again.before == 1
    assert [row[1] for row in read_parquet(tmp_path / "out" / "segment_0001.parquet")] == [LIKE] * 4


def test_parquet_of_another_archive_is_not_written_over(tmp_path: Path) -> None:
    sink, other = ParquetSink(tmp_path / "out"), tmp_path / "other"
    other.mkdir()
    replayed(sink, write(tmp_path / "segment_0001.rca"))

    with pytest.raises(FolderError, match=r"another segment called segment_0001\.rca.*folder of its own"):
        replayed(sink, write(other / "segment_0001.rca", THREE[:1]))

    assert read_parquet(tmp_path / "out" / "segment_0001.parquet") == EXPECTED


def test_parquet_of_a_damaged_segment_is_tried_again(tmp_path: Path) -> None:
    sink, path, heard = ParquetSink(tmp_path / "out"), write(tmp_path / "segment_0001.rca"), Heard()
    flip(path, offset_of(path, THREE[1]) + 60)

    first, again = (replayed(sink, path, heard=heard) for _ in range(2))

    assert (first.records, again.records, again.before, len(heard)) == (5, 5, 0, 2)


def test_parquet_that_could_not_be_ended_leaves_no_file(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out")

    with pytest.raises(RuntimeError, match="boom"), sink.loading(ReplaySegment("segment_0001.rca", 1, 2, "")):
        raise RuntimeError("boom")

    assert list((tmp_path / "out").iterdir()) == []


def test_a_segment_without_records_is_a_file_without_rows(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out")

    replayed(sink, write(tmp_path / "segment_0001.rca", [Small("did:plc:a", {})]))

    assert read_parquet(tmp_path / "out" / "segment_0001.parquet") == []
    assert sink.path_of("segment_0001.rca").is_file()
