"""What was acknowledged survives a power cut at every write, a failed fsync, and flipped bits are found."""

import asyncio
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kit.power import Disk, noted

from sanderling import files
from sanderling.clock import FakeClock
from sanderling.files import AppendFile, Exit, FolderError, write_file
from sanderling.ids import url_key
from sanderling.records.rows import RowReader, RowWriter
from sanderling.stores import Batch, EndedUrl, FoundUrl, HostNote, StoredUrl, open_ledger, sqlite_file

pytestmark = pytest.mark.real  # 30 s of files
HOST = "host.example"


def url(number: int) -> FoundUrl:
    return FoundUrl(f"https://{HOST}/{number}", HOST)


async def short_run(folder: Path, acknowledged: Callable[[set[str], int], None], *, rows_last: bool = False) -> None:
    """Two processes, one after the other; `acknowledged` hears of rows that are stored, and how many URLs are known."""
    for start in (0, 100):
        async with open_ledger(folder / "crawl.db", plan={}, clock=FakeClock()) as ledger:
            await ledger.commit(Batch(found=[url(start + number) for number in range(6)]))
            acknowledged(set(), (await ledger.counts()).known)
            writer = RowWriter(folder, "pages", await ledger.row_files())
            for step in range(3):
                items = (await ledger.take(HOST, 4)).items
                for item in items[1:]:
                    writer.append(item.key, [item.url.encode()], ledger.run)
                stored = [StoredUrl(item) for item in items[1:]]
                ended = [EndedUrl(item, "failed", "TIMEOUT") for item in items[:1]]
                found = [url(start + 10 * step + number) for number in range(9)]
                counted = [] if rows_last else writer.write()
                await ledger.commit(Batch(stored, ended, found=found, files=counted))
                acknowledged({item.url for item in items[1:]}, (await ledger.counts()).known)
                if rows_last:
                    await ledger.commit(Batch(files=writer.write()))
                write_file(folder / "status.json", b"%d" % step * 3000)
            writer.close()


async def look(folder: Path) -> tuple[Counter[bytes], int, list[Any]]:
    """The rows that count, how many URLs are known, and what is wrong."""
    async with open_ledger(folder / "crawl.db", plan={}, clock=FakeClock()) as ledger:
        counted = await ledger.row_files()
        RowWriter(folder, "pages", counted).close()
        with RowReader(folder, "pages", counted) as rows:
            stored = Counter(line for entry in rows.entries() for line in entry.lines)
            known = (await ledger.counts()).known
            return stored, known, [*rows.damage(), *await ledger.verify(rows.keys(ledger.run))]


def lose_power_at_every_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **faults: bool) -> None:
    monkeypatch.setattr(sqlite_file, "_CHECKPOINT_PAGES", 20)
    folder, after = tmp_path / "run", tmp_path / "after"
    folder.mkdir()
    promised: list[tuple[int, set[str], int]] = []
    with noted(folder, monkeypatch) as disk:
        asyncio.run(short_run(folder, lambda *what: promised.append((len(disk.events), *what)), **faults))
    assert len(disk.events) > 150
    assert {event[0] for event in disk.events} > {"create", "write", "sync", "sync folder", "rename"}
    for number in range(len(disk.events) + 1):
        leave(disk, number, after, Random(number))
        stored, known, wrong = asyncio.run(look(after))
        assert not wrong, (number, disk.events[number - 1][:2])
        assert max(stored.values(), default=1) == 1
        before = [each for each in promised if each[0] <= number]
        assert {each.encode() for _, urls, _ in before for each in urls} <= stored.keys()
        assert known >= max((each for *_, each in before), default=0)
        status = after / "status.json"
        assert not status.exists() or len(set(status.read_bytes())) == 1


def leave(disk: Disk, number: int, after: Path, random: Random) -> None:
    shutil.rmtree(after, ignore_errors=True)
    after.mkdir()
    for path, content in disk.after(number, random).items():
        (after / Path(path).name).write_bytes(content)


def test_what_was_acknowledged_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_power_at_every_write(tmp_path, monkeypatch)


def nothing(*_: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("where", "name"),
    [(AppendFile, "sync"), (files, "sync_folder"), (sqlite_file, "sync_folder"), (files, "sync")],
)
def test_a_missing_sync_is_noticed(
    where: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(where, name, nothing)

    with pytest.raises((AssertionError, FolderError)):
        lose_power_at_every_write(tmp_path, monkeypatch)


def test_rows_after_the_commit_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((AssertionError, FolderError)):
        lose_power_at_every_write(tmp_path, monkeypatch, rows_last=True)


async def runs_to_its_end(folder: Path, promised: set[bytes]) -> bool:
    try:
        await short_run(folder, lambda urls, _: promised.update(each.encode() for each in urls))
    except FolderError as error:
        return error.code != Exit.LATER
    return True


def test_a_failed_sync_ends_the_run_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 0
    while True:
        folder, after = tmp_path / f"run{number}", tmp_path / "after"
        folder.mkdir()
        promised: set[bytes] = set()
        with noted(folder, monkeypatch) as disk:
            disk.fails_at = number
            if asyncio.run(runs_to_its_end(folder, promised)):
                break
        leave(disk, len(disk.events), after, Random(number))
        stored, _, wrong = asyncio.run(look(after))
        assert not wrong
        assert promised <= stored.keys()
        number += 1
    assert number > 20


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    folder, damaged = tmp_path / "run", tmp_path / "damaged"
    folder.mkdir()
    asyncio.run(short_run(folder, nothing))
    whole, random, found = asyncio.run(dump(folder)), Random(3), 0
    for _ in range(150):
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(folder, damaged)
        path = damaged / random.choice(["crawl.db", "crawl.db", "pages.jsonl", "pages.keys"])
        content = bytearray(path.read_bytes())
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        path.write_bytes(content)
        try:
            wrong = asyncio.run(look(damaged))[2]
        except FolderError:
            wrong = ["refused"]
        # Free space of a page may change, and when a host is due: that may be too early.
        assert wrong or (path.name == "crawl.db" and asyncio.run(dump(damaged)) == whole), path
        found += bool(wrong)
    assert found > 70


CHANGES = (
    "host SET name = 'h' || name", "host SET partition = partition + 1", "host SET due = 1e15", "host SET due = NULL",
    "host SET due = 7e9 WHERE parked", "host SET parked = 7e9 WHERE parked", "host SET parked = NULL WHERE parked",
    "crawl SET plan = '{\"a\":1}'", "crawl SET run = 2", "crawl SET finished = 1", "crawl SET last_id = last_id + 1",
    "crawl SET salt = zeroblob(16)", "crawl SET state = 'x'",
    "forgotten SET hash = zeroblob(16)",
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_as_it_was_is_found(change: str, tmp_path: Path) -> None:
    async def begin() -> None:
        await short_run(tmp_path, nothing)
        async with open_ledger(tmp_path / "crawl.db", plan={}, clock=FakeClock()) as ledger:
            found = [FoundUrl("https://parked.example/", "parked.example")]
            await ledger.commit(Batch(found=found, hosts=[HostNote("parked.example", 8e9)]))
            await ledger.forget([(HOST, url_key(f"https://{HOST}/never"))])

    asyncio.run(begin())
    assert asyncio.run(look(tmp_path))[2] == []
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as db, db:
        assert db.execute(f"UPDATE {change}").rowcount

    try:
        assert asyncio.run(look(tmp_path))[2]
    except FolderError:
        assert "crawl" in change


async def dump(folder: Path) -> list[Any]:
    async with open_ledger(folder / "crawl.db", plan={}, clock=FakeClock()) as ledger:
        db = ledger._db  # type: ignore[attr-defined]
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        tables = sorted({*tables} - {"host"})
        return [db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables]
