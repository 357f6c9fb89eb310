"""ClickHouse, embedded and over HTTP: the same tables, the same answers, and errors that say what to do."""

import importlib
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sanderling.stores.clickhouse import PLC_DID_STATE, REPO_RECORDS, Clickhouse, ClickhouseError, open_clickhouse

pa = importlib.import_module("pyarrow")


@pytest.fixture
def store(clickhouse_url: str) -> Iterator[Clickhouse]:
    store = open_clickhouse(clickhouse_url, {})
    yield store
    store.close()


def states(*rows: tuple[str, str, int]) -> object:
    dids, hosts, times = zip(*rows, strict=True)
    return pa.table({"did": dids, "pds": hosts, "time_us": pa.array(times, pa.int64())})


def test_the_tables_are_made_once_and_keep_what_they_hold(store: Clickhouse) -> None:
    store.execute(PLC_DID_STATE)
    store.insert("plc_did_state", states(("did:plc:a", "https://a.example", 1)))

    store.execute(PLC_DID_STATE)

    assert store.rows("SELECT did, handle, pds FROM plc_did_state") == [("did:plc:a", "", "https://a.example")]


@pytest.mark.parametrize(
    ("table", "order", "partition", "columns"),
    [
        (
            REPO_RECORDS,
            "collection, repo, rkey, operation",
            "least(greatest(toYear(created_at), 2022), 2040)",
            {
                "repo": "String",
                "collection": "String",
                "rkey": "String",
                "operation": "Enum8('create' = 1, 'update' = 2, 'delete' = 3)",
                "record_json": "String",
                "created_at": "DateTime64(6)",
                "indexed_at": "DateTime64(6)",
                "time_us": "Int64",
            },
        ),
        (
            PLC_DID_STATE,
            "did",
            "",
            {
                "did": "String",
                "handle": "String",
                "pds": "String",
                "created_at": "DateTime64(6)",
                "indexed_at": "DateTime64(6)",
                "time_us": "Int64",
            },
        ),
    ],
    ids=["repo_records", "plc_did_state"],
)
def test_the_tables_are_those_that_others_know(
    store: Clickhouse, table: str, order: str, partition: str, columns: dict[str, str]
) -> None:
    store.execute(table)

    ((name, engine, sorting, partitions),) = store.rows(
        "SELECT name, engine_full, sorting_key, partition_key FROM system.tables WHERE database = currentDatabase()"
    )
    found = store.rows(
        "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {name:String}", name=name
    )
    assert engine.startswith("ReplacingMergeTree(time_us)")
    assert (sorting, partitions) == (order, partition)
    assert dict(found) == columns


def test_of_two_rows_the_later_counts_whichever_came_first(store: Clickhouse) -> None:
    store.execute(PLC_DID_STATE)
    store.insert("plc_did_state", states(("did:plc:a", "https://new.example", 2)))
    store.insert("plc_did_state", states(("did:plc:a", "https://old.example", 1)))

    assert store.rows("SELECT pds FROM plc_did_state FINAL") == [("https://new.example",)]


@pytest.mark.parametrize("text", ["it's", "a\\b", "tab\tline\n", "é \N{SNOWMAN}", "{x:String}", ""])
def test_parameters_arrive_as_they_are(store: Clickhouse, text: str) -> None:
    assert store.rows("SELECT {one:String}, {all:Array(String)}", one=text, all=[text, "b"]) == [(text, [text, "b"])]


def test_an_insert_may_have_records_of_more_than_a_hundred_months(store: Clickhouse) -> None:
    store.execute(REPO_RECORDS)
    months = [f"{year}-{month:02}-01" for year in range(2000, 2013) for month in range(1, 13)]
    times = pa.array([f"{month}T00:00:00" for month in months]).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))

    store.insert("repo_records", pa.table({"rkey": months, "created_at": times}))

    assert store.rows("SELECT count(), uniqExact(toYYYYMM(created_at)) FROM repo_records") == [(156, 156)]


def test_what_the_engine_refuses_is_one_kind_of_error_that_says_where(store: Clickhouse) -> None:
    with pytest.raises(ClickhouseError, match=r"^(chdb|clickhouse):.*UNKNOWN_TABLE"):
        store.rows("SELECT * FROM nothing_of_that_name")
    with pytest.raises(ClickhouseError, match=r"^(chdb|clickhouse):.*nothing_of_that_name"):
        store.insert("nothing_of_that_name", states(("a", "b", 1)))


# --- the embedded one ---


def test_what_was_inserted_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    first = open_clickhouse(f"chdb:{tmp_path / 'data'}")
    first.execute(PLC_DID_STATE)
    first.insert("plc_did_state", states(("did:plc:a", "https://a.example", 1)))
    first.close()

    second = open_clickhouse(f"chdb://{tmp_path / 'data'}")
    rows = second.rows("SELECT did FROM plc_did_state")
    second.close()

    assert rows == [("did:plc:a",)]


def test_a_second_process_is_told_that_the_folder_is_in_use(tmp_path: Path) -> None:
    url = f"chdb:{tmp_path / 'data'}"
    code = f"from sanderling.stores.clickhouse import open_clickhouse as o, ClickhouseError\ntry: o({url!r})\n"
    code += "except ClickhouseError as error: print(error)"
    store = open_clickhouse(url)
    store.execute(PLC_DID_STATE)

    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    store.close()

    assert other.stdout == f"{url}: cannot be opened: another process uses it, or this one may not write there\n"


def test_one_process_has_one_folder_at_a_time(tmp_path: Path) -> None:
    store = open_clickhouse(f"chdb:{tmp_path / 'one'}")

    with pytest.raises(ClickhouseError, match="this process has another chDB open"):
        open_clickhouse(f"chdb:{tmp_path / 'two'}")
    store.close()

    open_clickhouse(f"chdb:{tmp_path / 'two'}").close()


def test_a_folder_in_nowhere_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ClickhouseError, match=r"there is no folder .*nowhere; make it first"):
        open_clickhouse(f"chdb:{tmp_path / 'nowhere' / 'data'}")


def test_nothing_is_loaded_before_it_is_opened() -> None:
    code = "import sys, sanderling.stores.clickhouse; print({'chdb', 'clickhouse_connect', 'pyarrow'} & {*sys.modules})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours

    assert done.stdout == "set()\n"


# --- the server ---


def test_a_password_comes_from_the_url_the_environment_or_a_file(clickhouse: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("sesame\n")
    as_reader = clickhouse.replace("://", "://reader@")
    ways = [
        (clickhouse.replace("://", "://reader:sesame@"), {"CLICKHOUSE_PASSWORD": "another"}),
        (as_reader, {"CLICKHOUSE_PASSWORD": "sesame"}),
        (as_reader, {"CLICKHOUSE_PASSWORD_FILE": str(tmp_path / "password")}),
    ]
    if not _has_reader(clickhouse):
        pytest.skip("a server of somebody's own, without the user of the tests")

    for url, environment in ways:
        store = open_clickhouse(url, environment)
        assert store.rows("SELECT 1") == [(1,)]
        assert "sesame" not in f"{store!r} {store.place}"
        store.close()


def _has_reader(url: str) -> bool:
    try:
        open_clickhouse(url.replace("://", "://reader:sesame@"), {}).close()
    except ClickhouseError:
        return False
    return True


def test_a_wrong_password_is_said_to_be_one_and_never_shown(
    clickhouse: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(ClickhouseError, match="user or password are wrong") as told:
        open_clickhouse(clickhouse.replace("://", "://reader:hunter2@"), {})

    heard = "".join(capfd.readouterr()) + caplog.text + str(told.value)
    assert "hunter2" not in heard


def test_a_file_of_a_password_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClickhouseError, match=r"CLICKHOUSE_PASSWORD_FILE: cannot read .*gone \(FileNotFoundError\)"):
        open_clickhouse("clickhouse://127.0.0.1:1/", {"CLICKHOUSE_PASSWORD_FILE": str(tmp_path / "gone")})


def test_nobody_there_is_an_error_that_asks_for_the_port_and_nothing_else_is_said() -> None:
    code = "from sanderling.stores.clickhouse import open_clickhouse as o, ClickhouseError\n"
    code += "try: o('clickhouse://127.0.0.1:1/x')\nexcept ClickhouseError as error: print(error)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours

    assert done.stdout.startswith("clickhouse://127.0.0.1:1/x: nobody listens there")
    assert done.stderr == "", "as the client's own log would be"


def test_a_database_that_is_not_there_is_said(clickhouse: str) -> None:
    url = clickhouse.rpartition("/")[0] + "/nothing_of_that_name"

    with pytest.raises(ClickhouseError, match="there is no such database"):
        open_clickhouse(url, {})


@pytest.mark.parametrize(
    "url",
    [
        "http://reader:hunter2@127.0.0.1/",
        "clickhouse://reader:hunter2@/x",
        "clickhouse://reader:hunter2@host:port/x",
        "clickhouse://reader:hunt/er2@host/x",
        "clickhouse://reader:hunter2@host:99999/x",
        "clickhouse://reader:hunter2@host/x/y",
        "clickhouse://reader:hunter2@host/x?password=hunter2",
        "clickhouse:hunter2",
        "records.db",
        "",
    ],
)
def test_what_is_no_url_of_a_clickhouse_is_refused_and_its_password_not_quoted(url: str) -> None:
    with pytest.raises(ClickhouseError, match="expected chdb:PATH or clickhouse://user@host") as told:
        open_clickhouse(url, {})

    assert "hunt" not in str(told.value)
