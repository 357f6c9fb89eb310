"""What was changed in the folder of a job is found; and what cannot be gone on with is refused."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from small_api import API, answer, api, run

from sanderling import Job, JobReply
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.verify import verify_job
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End


def make(folder: Path) -> Job:
    """A job with three records and a failure."""
    job = Job("small", start=[f"{API}/{each}" for each in range(4)])

    @job.read
    def read(reply: JobReply) -> object:
        return {"url": reply.url}

    run(job, folder, api({"/0": {}, "/1": {}, "/2": {}, "/3": answer({}, 404)}))
    return job


def cut(folder: Path) -> None:
    with (folder / "records.jsonl").open("r+b") as file:
        file.truncate(20)


def swap(folder: Path) -> None:
    path = folder / "records.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))


def add_a_record(folder: Path) -> None:
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"url":"made up"}\n')


def repeat_the_last(folder: Path) -> None:
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])


def repeat_the_first(folder: Path) -> None:
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + path.read_bytes())


def add_half_a_line(folder: Path) -> None:
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b"{")


def break_line(folder: Path) -> None:
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b"{", b"[", 1))


def forget(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "frontier.db")) as db, db:
        db.execute("DELETE FROM url WHERE id = 2")


def change_failures(folder: Path) -> None:
    (folder / "failed.jsonl").write_bytes(b"")


DAMAGE: dict[Callable[[Path], None], str] = {
    cut: "records.jsonl: has 20 bytes, expected 96",
    add_a_record: "records.jsonl: has 114 bytes, expected 96",
    repeat_the_last: "records.jsonl: has 128 bytes, expected 96",
    repeat_the_first: "records.jsonl: has 128 bytes, expected 96",
    add_half_a_line: "records.jsonl: has 97 bytes, expected 96",
    swap: "records.jsonl: its checksum is",
    break_line: "records.jsonl line 1 (byte 0): no JSON",
    forget: "frontier.db: its ends add up to 3, expected 4",
    change_failures: "failed.jsonl: no row of http",
}


def test_a_folder_as_it_was_left_is_proven(tmp_path: Path) -> None:
    make(tmp_path / "out")

    proof = verify_job(tmp_path / "out")

    assert (proof.ok, proof.problems, proof.rows, proof.finished) == (True, [], 3, True)
    assert (proof.counts[End.FETCHED], proof.counts[End.FAILED], proof.counts[End.WAITING]) == (3, 1, 0)


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_damage_is_found(damage: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "out")
    damage(tmp_path / "out")

    proof = verify_job(tmp_path / "out")

    assert not proof.ok
    assert DAMAGE[damage] in "\n".join(proof.problems)


def test_records_behind_the_watermark_are_cut_off_and_missing_ones_refused(tmp_path: Path) -> None:
    job, path = make(tmp_path / "out"), tmp_path / "out" / "records.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + b'{"half')
    run(job, tmp_path / "out", api({}))
    assert path.read_bytes() == before

    cut(tmp_path / "out")
    with pytest.raises(FolderError, match=r"has 20 bytes, expected 96 .* begin anew in another folder"):
        run(job, tmp_path / "out", api({}))


def test_a_folder_without_a_job_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="there is no job in"):
        verify_job(tmp_path)


def test_a_job_that_is_gone_on_with_is_not_finished_until_it_ends_again(tmp_path: Path) -> None:
    job = make(tmp_path / "out")
    assert verify_job(tmp_path / "out").finished

    with JobFolder.open(tmp_path / "out", job, {}, [], wall=0.0):
        pass  # as one that is killed: it never says that it has ended

    proof = verify_job(tmp_path / "out")
    assert (proof.ok, proof.finished) == (True, False), proof.problems
