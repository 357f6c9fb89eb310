import io
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plc import CREATED, DID, ENDED, line, moved, sequenced

from sanderling.repos import directory as directory_module
from sanderling.repos.directory import (
    DirectoryEntry,
    DirectoryError,
    SqliteDirectory,
    lines_of,
    read_did_file,
)
from sanderling.repos.plc import LONGEST_LINE, ImportTally, Operation

HOSTS = ("https://a.example", "https://b.example", "")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "directory.db"


@pytest.fixture
def directory(path: Path) -> Iterator[SqliteDirectory]:
    with closing(SqliteDirectory(path)) as opened:
        yield opened


def did(number: int) -> str:
    return f"did:plc:{number:024}"


def operation(number: int, at: int, host: str = HOSTS[0], *, nullified: bool = False) -> Operation:
    return Operation(did(number), f"cid{number}-{at}", at, 0, host, nullified)


def everything(directory: SqliteDirectory, limit: int = 3) -> list[DirectoryEntry]:
    found: list[DirectoryEntry] = []
    while page := directory.page(found[-1].did if found else "", limit):
        found += page
    return found


def test_it_begins_empty(directory: SqliteDirectory) -> None:
    assert directory.page("", 10) == []
    assert directory.hosts_of([did(1)]) == {}
    assert (directory.count(), directory.cursor()) == (0, "")


def test_pages_are_in_bytewise_order(directory: SqliteDirectory) -> None:
    dids = ["did:plc:b", "did:plc:B", "did:plc:1", "did:web:é", "did:plc:a", "did:plc:aa"]
    directory.put(DirectoryEntry(each, HOSTS[0]) for each in dids)

    assert [each.did for each in everything(directory, 2)] == sorted(dids, key=str.encode)
    assert directory.page("did:plc:a", 2) == [
        DirectoryEntry("did:plc:aa", HOSTS[0]),
        DirectoryEntry("did:plc:b", HOSTS[0]),
    ]
    assert directory.count() == 6


def test_operations_are_folded(directory: SqliteDirectory) -> None:
    directory.apply(
        [operation(1, 1), operation(1, 2, HOSTS[1]), operation(2, 1), operation(2, 2, ""), operation(3, 1)], "5"
    )

    assert everything(directory) == [DirectoryEntry(did(1), HOSTS[1]), DirectoryEntry(did(3), HOSTS[0])]
    assert directory.hosts_of([did(3), did(2), did(9), did(1)]) == {did(3): HOSTS[0], did(1): HOSTS[1]}
    assert (directory.count(), directory.cursor()) == (2, "5")


def test_what_is_nullified_later_is_undone(directory: SqliteDirectory, path: Path) -> None:
    directory.apply([operation(1, 1), operation(1, 2, HOSTS[1]), operation(2, 1), operation(2, 2, "")])

    with closing(SqliteDirectory(path)) as again:
        again.apply([operation(1, 2, HOSTS[1], nullified=True), operation(2, 2, "", nullified=True)])

    assert everything(directory) == [DirectoryEntry(did(1), HOSTS[0]), DirectoryEntry(did(2), HOSTS[0])]
    assert directory.count() == 2
    directory.apply([operation(1, 1, nullified=True)])
    assert everything(directory) == [DirectoryEntry(did(2), HOSTS[0])]
    assert directory.count() == 1


def test_a_word_counts_until_an_operation_says_otherwise(directory: SqliteDirectory) -> None:
    directory.put(
        [DirectoryEntry(did(1), HOSTS[0]), DirectoryEntry(did(2), HOSTS[0]), DirectoryEntry(did(1), HOSTS[1])]
    )
    assert everything(directory) == [DirectoryEntry(did(1), HOSTS[1]), DirectoryEntry(did(2), HOSTS[0])]

    directory.apply([operation(1, 1)])
    assert directory.hosts_of([did(1)]) == {did(1): HOSTS[0]}

    directory.put([DirectoryEntry(did(1), HOSTS[1])])
    assert directory.hosts_of([did(1)]) == {did(1): HOSTS[1]}
    directory.apply([operation(1, 2, "")])
    assert directory.hosts_of([did(1)]) == {}
    assert directory.count() == 1
    directory.put([DirectoryEntry(did(1), HOSTS[1])])
    directory.apply([operation(1, 2, "", nullified=True)])
    assert directory.hosts_of([did(1)]) == {did(1): HOSTS[0]}, "what to undo with is not forgotten"


@settings(max_examples=30)
@given(
    st.lists(
        st.builds(operation, st.integers(0, 5), st.integers(0, 4), st.sampled_from(HOSTS), nullified=st.booleans()),
        unique_by=lambda each: (each.cid, each.nullified),
    ),
    st.randoms(use_true_random=False),
)
def test_any_order_and_any_cut_gives_the_same(every: list[Operation], chance: random.Random) -> None:
    hosts = {each.cid: each.host for each in every}
    every = [Operation(each.did, each.cid, each.created_at, 0, hosts[each.cid], each.nullified) for each in every]
    undone = {each.cid for each in every if each.nullified}
    latest: dict[str, Operation] = {}
    for each in sorted(every, key=lambda each: each.created_at):
        if each.cid not in undone:
            latest[each.did] = each
    expected = [DirectoryEntry(name, last.host) for name, last in sorted(latest.items()) if last.host]

    chance.shuffle(every)
    with closing(SqliteDirectory(None)) as directory:
        size = chance.randint(1, 5)
        for start in range(0, len(every), size):
            directory.apply(every[start : start + size])
        directory.apply(every[:3])

        assert everything(directory) == expected
        assert directory.count() == len(expected)


def test_a_restart_remembers(directory: SqliteDirectory, path: Path) -> None:
    directory.apply([operation(1, 1)], "17")
    directory.apply((), "18")
    directory.close()

    with closing(SqliteDirectory(path)) as again:
        assert everything(again) == [DirectoryEntry(did(1), HOSTS[0])]
        assert (again.cursor(), again.count()) == ("18", 1)


def test_a_batch_that_fails_changes_nothing(directory: SqliteDirectory) -> None:
    directory.apply([operation(1, 1)], "1")

    with pytest.raises(OverflowError):
        directory.apply([operation(2, 1)], cast("str", 2**70))  # refused when all else was written

    assert (directory.cursor(), directory.count()) == ("1", 1)
    directory.apply([operation(2, 1)], "2")
    assert directory.count() == 2


def test_an_export_is_imported(directory: SqliteDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "BATCH", 2)
    long = line(moved(), note="x" * 3 * LONGEST_LINE)
    lines = [sequenced(3, CREATED), b"nonsense\n", long, sequenced(4, moved()), line(ENDED, did=did(5), cid="x")]
    watched: list[tuple[int, str]] = []

    tally = directory.import_export(
        io.BytesIO(b"".join(lines)), watch=lambda now: watched.append((now.operations, directory.cursor()))
    )

    assert (tally.lines, tally.operations) == (5, 3)
    assert tally.bad == {"not JSON": 1, "too long": 1}
    assert watched == [(2, "4"), (3, "4")]
    assert directory.cursor() == "4"
    assert everything(directory) == [DirectoryEntry(DID, "https://host.example")]


def test_an_export_of_nothing_moves_nothing(directory: SqliteDirectory) -> None:
    directory.apply((), "7")

    assert directory.import_export(io.BytesIO(b"\n\n")).lines == 2

    assert directory.cursor() == "7"


def test_a_file_without_line_ends_is_not_read_into_memory() -> None:
    class Endless(io.BytesIO):
        largest = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            Endless.largest = max(Endless.largest, size or 0)
            return super().readline(size)

    lines = list(lines_of(Endless(b"x" * 1_000_000 + b"\nnext\n")))

    assert [len(each) for each in lines] == [LONGEST_LINE + 1, 5]
    assert Endless.largest == LONGEST_LINE + 1


def test_a_page_reads_no_more_than_a_page(directory: SqliteDirectory) -> None:
    statements: list[str] = []
    directory._db.set_trace_callback(statements.append)
    directory.page(did(1), 5)
    directory.hosts_of([did(1)])
    directory._db.set_trace_callback(None)

    plans = [step for each in statements for (*_, step) in directory._db.execute(f"EXPLAIN QUERY PLAN {each}")]

    assert plans == [
        "SEARCH did USING PRIMARY KEY (did>?)",
        "SEARCH host USING INTEGER PRIMARY KEY (rowid=?)",
        "SCAN json_each VIRTUAL TABLE INDEX 1:",
        "SEARCH did USING PRIMARY KEY (did=?)",
        "SEARCH host USING INTEGER PRIMARY KEY (rowid=?)",
    ]


def test_the_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")

    with pytest.raises(DirectoryError, match=r"x.db is no directory of DIDs"):
        SqliteDirectory(path)


def read(
    path: Path, content: bytes, host: str = "", *, plain: bool = False
) -> tuple[list[DirectoryEntry], ImportTally]:
    path.write_bytes(content)
    tally = ImportTally()
    with closing(read_did_file(path, tally, host=host, plain=plain)) as directory:
        return everything(directory), tally


def test_a_file_of_dids_is_sorted_and_the_last_word_counts(tmp_path: Path) -> None:
    content = (
        b"\xef\xbb\xbf# of yesterday\r\n\r\n"
        b"did:plc:c https://C.example/\r\ndid:plc:a\thttps://a.example\ndid:plc:b  https://b.example\n"
        b"did:plc:c https://d.example"
    )

    found, tally = read(tmp_path / "dids.txt", content)

    assert found == [
        DirectoryEntry("did:plc:a", "https://a.example"),
        DirectoryEntry("did:plc:b", "https://b.example"),
        DirectoryEntry("did:plc:c", "https://d.example"),
    ]
    assert tally.lines == 6


def test_dids_alone_are_at_the_given_host(tmp_path: Path) -> None:
    found, _ = read(tmp_path / "dids.txt", b"did:plc:a\ndid:plc:b http://b.example\n", "http://127.0.0.1:1", plain=True)

    assert found == [DirectoryEntry("did:plc:a", "http://127.0.0.1:1"), DirectoryEntry("did:plc:b", "http://b.example")]


def test_an_endpoint_that_is_none_is_counted(tmp_path: Path) -> None:
    found, tally = read(tmp_path / "dids.txt", b"did:plc:a https://a.example/x\ndid:plc:b https://b.example\n")

    assert found == [DirectoryEntry("did:plc:b", "https://b.example")]
    assert tally.refused == {"path": 1}
    assert tally.shown == [(1, "did:plc:a: path: '/x', expected nothing behind the host")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\nhello world\n", r"dids.txt, line 2: b'hello world\\n', expected `did https://host`"),
        (b"did:plc:a b c\n", r"dids.txt, line 1: "),
        (b"\xff\xd8\xff\xe0 jpeg", r"dids.txt, line 1: "),
        (b"did:plc:a\n", r"dids.txt, line 1: did:plc:a without a host"),
        (b"did:plc:a " + b"x" * LONGEST_LINE, r"dids.txt, line 1: "),
    ],
)
def test_a_line_that_is_none_is_refused_by_number(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(DirectoryError, match=said):
        read(tmp_path / "dids.txt", content)
