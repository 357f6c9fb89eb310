"""The directory in ClickHouse: every DID with a host once, in order, page by page."""

import importlib
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sanderling.repos.directory import Directory, DirectoryEntry, DirectoryError
from sanderling.repos.directory_clickhouse import CHUNK, ClickhouseDirectory
from sanderling.repos.plc import ImportTally
from sanderling.stores.clickhouse import PLC_DID_STATE, Clickhouse, open_clickhouse

pa = importlib.import_module("pyarrow")
Row = tuple[str, str, int]  # did, endpoint, time


@pytest.fixture
def store(clickhouse_url: str) -> Iterator[Clickhouse]:
    store = open_clickhouse(clickhouse_url, {})
    store.execute(PLC_DID_STATE)
    yield store
    store.close()


def put(store: Clickhouse, *rows: Row) -> None:
    dids, hosts, times = zip(*rows, strict=True)
    store.insert("plc_did_state", pa.table({"did": dids, "pds": hosts, "time_us": pa.array(times, pa.int64())}))


def all_of(directory: Directory, limit: int) -> list[DirectoryEntry]:
    """Every page, as a crawl asks for them."""
    found: list[DirectoryEntry] = []
    while page := directory.page(found[-1].did if found else "", limit):
        assert len(page) <= limit
        found += page
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_give_every_did_once_in_bytewise_order(store: Clickhouse, limit: int) -> None:
    dids = ["did:plc:b", "did:plc:B", "did:plc:\xe9", "did:web:a", "did:plc:a2", "did:plc:a"]
    put(store, *((did, "https://a.example", 1) for did in dids))

    found = all_of(ClickhouseDirectory(store, ImportTally()), limit)

    assert [entry.did for entry in found] == sorted(dids, key=str.encode)


def test_the_last_word_on_a_did_counts_and_a_tombstone_is_one(store: Clickhouse) -> None:
    put(store, ("did:plc:a", "https://new.example", 2), ("did:plc:b", "", 2))
    put(store, ("did:plc:a", "https://old.example", 1), ("did:plc:b", "https://b.example", 1))
    directory = ClickhouseDirectory(store, ImportTally())

    assert directory.page("", 10) == [DirectoryEntry("did:plc:a", "https://new.example")]
    assert directory.hosts_of(["did:plc:b", "did:plc:a"]) == {"did:plc:a": "https://new.example"}
    assert directory.count() == 1


def test_hosts_are_spelled_as_we_spell_them(store: Clickhouse) -> None:
    put(store, ("did:plc:a", "https://A.Example:443/", 1))

    assert ClickhouseDirectory(store, ImportTally()).page("", 1) == [DirectoryEntry("did:plc:a", "https://a.example")]


BAD: Sequence[str] = (
    "http://plain.example",
    "not a url",
    "https://a.example/path",
    "ftp://a.example",
    "https://u@a.example",
)


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_endpoints_that_are_no_host_are_left_out_made_up_for_and_counted(store: Clickhouse, limit: int) -> None:
    bad = [(f"did:plc:{number}", endpoint, 1) for number, endpoint in enumerate(BAD)]
    put(store, *bad, ("did:plc:y", "https://y.example", 1), ("did:plc:z", "https://z.example", 1))
    tally = ImportTally()
    directory = ClickhouseDirectory(store, tally)

    assert [entry.did for entry in directory.page("", limit)] == ["did:plc:y", "did:plc:z"][:limit]
    assert tally.refused.total() == len(BAD)
    assert directory.count() == 2
    assert directory.hosts_of([did for did, _, _ in bad]) == {}


def test_hosts_without_tls_are_there_if_asked_for(store: Clickhouse) -> None:
    put(store, ("did:plc:a", "http://127.0.0.1:8080", 1))

    assert ClickhouseDirectory(store, ImportTally(), plain=True).page("", 1) == [
        DirectoryEntry("did:plc:a", "http://127.0.0.1:8080")
    ]


def test_many_dids_may_be_asked_about_at_once(store: Clickhouse) -> None:
    dids = [f"did:plc:{number:024}" for number in range(2 * CHUNK + 1)]
    put(store, *((did, "https://a.example", 1) for did in dids))

    found = ClickhouseDirectory(store, ImportTally()).hosts_of([*dids, "did:plc:nobody", "it's"])

    assert found == dict.fromkeys(dids, "https://a.example")


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["", "https://a.example", "https://b.example"])), min_size=1
    )
)
def test_it_says_what_a_dict_would_say(store: Clickhouse, changes: list[tuple[str, str]]) -> None:
    store.execute("TRUNCATE TABLE plc_did_state")
    for time, (did, host) in enumerate(changes):
        put(store, (did, host, time))
    directory = ClickhouseDirectory(store, ImportTally())

    expected = {did: host for did, host in sorted(dict(changes).items()) if host}
    assert dict(directory.page("", 10)) == directory.hosts_of("abc") == expected
    assert directory.count() == len(expected)


def test_a_database_without_the_table_is_said_to_be_one(clickhouse_url: str) -> None:
    store = open_clickhouse(clickhouse_url, {})

    with pytest.raises(DirectoryError, match="has no table plc_did_state"):
        ClickhouseDirectory(store, ImportTally())
    store.close()


def test_what_clickhouse_refuses_is_a_directory_error(store: Clickhouse) -> None:
    directory = ClickhouseDirectory(store, ImportTally())
    store.execute("DROP TABLE plc_did_state")

    for ask in (lambda: directory.page("", 1), lambda: directory.hosts_of(["a"]), directory.count):
        with pytest.raises(DirectoryError, match="plc_did_state"):
            ask()
