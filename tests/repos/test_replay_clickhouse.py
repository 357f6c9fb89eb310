"""What is in ClickHouse after several archives: each repo as it was crawled last, in few parts."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from small_archives import CRAWLED_AT, Heard, Small, flip, offset_of, write

from sanderling.repos.replay import ReplayTotals, RepoReplay
from sanderling.repos.replay_clickhouse import ClickhouseSink
from sanderling.stores.clickhouse import REPO_RECORDS, Clickhouse, open_clickhouse

A, B, C = "did:plc:a", "did:plc:b", "did:plc:c"
OLD = [
    Small(A, {"a.b": {"1": b'{"n":1}', "2": b'{"n":2}'}, "c.d": {"3": b"{}"}}, CRAWLED_AT),
    Small(B, {"a.b": {"4": b"{}"}}, CRAWLED_AT),
    Small(C, {"a.b": {"5": b"{}"}}, CRAWLED_AT),
]
NEW = [
    Small(A, {"a.b": {"1": b'{"n":10}'}, "a.c": {"6": b"{}"}}, CRAWLED_AT + 5),
    Small(B, {}, CRAWLED_AT + 5),
]
NEWEST = [(A, "a.b", "1", '{"n":10}'), (A, "a.c", "6", "{}"), (C, "a.b", "5", "{}")]


@pytest.fixture
def store(clickhouse_url: str) -> Iterator[Clickhouse]:
    store = open_clickhouse(clickhouse_url, {})
    yield store
    store.close()


@pytest.fixture
def archives(tmp_path: Path) -> dict[str, Path]:
    return {name: write(tmp_path / name / "segment_0001.rca", repos) for name, repos in (("old", OLD), ("new", NEW))}


def replayed(
    store: Clickhouse, paths: Sequence[Path], collections: Sequence[str] = (), *, again: bool = False
) -> ReplayTotals:
    return RepoReplay(ClickhouseSink(store), Heard(), collections=collections, again=again).run(paths)


def rows_of(store: Clickhouse) -> list[tuple[object, ...]]:
    return store.rows("SELECT DISTINCT repo, collection, rkey, record_json FROM repo_records ORDER BY ALL")


@pytest.mark.parametrize("order", [["old", "new"], ["new", "old"], ["old new"], ["new", "old", "new again"]])
def test_of_each_repo_only_the_newest_crawl_is_there_whatever_was_loaded_when(
    store: Clickhouse, archives: dict[str, Path], order: list[str]
) -> None:
    for _ in range(2):
        for step in order:
            names = [name for name in step.split() if name in archives]
            replayed(store, [archives[name] for name in names], again="again" in step)

    assert rows_of(store) == NEWEST, "without FINAL, so that nothing older is left on disk"


def test_how_many_went_is_said(store: Clickhouse, archives: dict[str, Path]) -> None:
    told = [replayed(store, [archives[name]]).superseded for name in ("old", "new", "new")]

    assert told == [0, 4, 0]


def test_of_some_collections_only_those_are_replaced(store: Clickhouse, archives: dict[str, Path]) -> None:
    replayed(store, [archives["old"]])

    replayed(store, [archives["new"]], ["a.*", "x.y"])
    by_beginning = rows_of(store)
    replayed(store, [archives["new"]], ["c.d"])

    assert by_beginning == sorted([*NEWEST, (A, "c.d", "3", "{}")])
    assert rows_of(store) == NEWEST


def test_a_repo_that_is_damaged_in_the_newer_archive_stays_as_it_was(
    store: Clickhouse, archives: dict[str, Path]
) -> None:
    flip(archives["new"], offset_of(archives["new"], NEW[0]) + 60)
    replayed(store, [archives["old"], archives["new"]])

    assert {row[2] for row in rows_of(store) if row[0] == A} == {"1", "2", "3"}


def test_a_table_of_an_earlier_release_goes_on(store: Clickhouse, archives: dict[str, Path]) -> None:
    """It is partitioned by month, and nothing says which crawls its rows are of but the rows."""
    store.execute(re.sub("PARTITION BY .*", "PARTITION BY toYYYYMM(created_at)", REPO_RECORDS))
    for repo in OLD:
        for collection, records in repo.records.items():
            store.execute(
                "INSERT INTO repo_records (repo, collection, rkey, operation, record_json, created_at, time_us) "
                f"SELECT '{repo.did}', '{collection}', arrayJoin({list(records)}), 'create', '{{}}', now64(6), "
                f"{CRAWLED_AT}"
            )

    sink = ClickhouseSink(store)
    RepoReplay(sink, Heard()).run([archives["new"]])

    assert sink.by_month
    assert rows_of(store) == NEWEST


def test_an_account_that_writes_of_any_times_makes_few_parts(store: Clickhouse, tmp_path: Path) -> None:
    times = [f"{1850 + number // 12}-{1 + number % 12:02}-01T00:00:00Z" for number in range(6_000)]
    odd = ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "-1", "2024-02-30", "", "2024-01-01T00:00:00+23:59"]
    records = {f"{number}": f'{{"createdAt":"{time}"}}'.encode() for number, time in enumerate([*times, *odd])}
    path = write(tmp_path / "segment_0001.rca", [Small(A, {"a.b": records})])
    store.execute(REPO_RECORDS)
    store.execute("SYSTEM STOP MERGES repo_records")

    replayed(store, [path])

    ((parts, partitions),) = store.rows(
        "SELECT count(), uniqExact(partition) FROM system.parts "
        "WHERE database = currentDatabase() AND table = 'repo_records' AND active"
    )
    assert parts == partitions <= 19
    assert store.rows("SELECT count(), uniqExact(created_at) FROM repo_records") == [(6_006, 4_801 + 1)]
