import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kept
import pytest
from frontier_urls import FINE, fetched, found, fresh, url
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import MANY, PLAN, crawl, wait

from sanderling.outcome import Code, Outcome
from sanderling.pages import earlier, parquet, record
from sanderling.pages.folder import CrawlFolder, CrawlPlan, FolderState
from sanderling.pages.verify import verify
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import End, Ended

# Where a script finds what tests share.
ABOVE = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}


@pytest.fixture
def path() -> Iterator[Path]:
    with fresh() as folder:
        yield folder / "crawl"


def begin(path: Path, plan: CrawlPlan | None = PLAN, *, resume: bool = False) -> CrawlFolder:
    return CrawlFolder.open(path, plan, resume=resume, wall=1000.0)


def urls_of(path: Path) -> list[str]:
    """The URLs of all rows, pages and failed."""
    lines = [line for name in ("pages.jsonl", "failed.jsonl") for line in (path / name).read_text().splitlines()]
    return sorted(json.loads(line)["url"] for line in lines)


def whole_tree(many: int = MANY) -> list[str]:
    return sorted(url(number) for number in range(1, many + 1))


def test_a_folder_is_made_with_all_above_it(path: Path) -> None:
    with begin(path / "deep") as folder:
        assert (folder.state, folder.crawl, folder.plan) == (FolderState.NEW, 1, PLAN)
        assert folder.ledger.meta.started == 1000.0

    assert sorted(each.name for each in (path / "deep").iterdir()) == ["ledger.db", "lock", "pages.jsonl"]


def test_a_crawl_from_end_to_end(path: Path) -> None:
    assert crawl(path)

    proof = verify(path)
    assert proof.ok, proof.problems
    assert proof.finished
    assert urls_of(path) == whole_tree()


def test_failed_urls_say_why(path: Path) -> None:
    crawl(path, many=4)

    (line,) = (path / "failed.jsonl").read_text().splitlines()
    expected = {"id": 4, "url": url(4), "host": "b.example", "depth": 0, "end": "failed", "status": 404}
    blame = {"requests": 1, "fault": "item"}
    assert json.loads(line) == expected | {"outcome": "CONTENT_NOT_FOUND", "detail": "not there"} | blame


def test_an_unfinished_crawl_is_gone_on_with(path: Path) -> None:
    crawl(path, commits=3)

    with begin(path) as folder:
        assert folder.state is FolderState.RESUMED
        assert folder.put_back == 0
    with begin(path, None, resume=True) as folder:
        assert folder.plan == PLAN
    assert crawl(path)
    assert urls_of(path) == whole_tree()


def test_a_folder_that_was_begun_and_holds_nothing_is_new(path: Path) -> None:
    with begin(path):
        pass

    with begin(path) as folder:
        assert folder.state is FolderState.NEW


def test_twenty_kills_lose_nothing_and_keep_nothing_twice(path: Path) -> None:
    """The child says when it has committed; it is killed some commits later, wherever it is then."""
    chance, midway = random.Random(9), 0
    for _ in range(20):
        command = [sys.executable, kept.__file__, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=ABOVE) as child:  # noqa: S603 - ourselves
            assert child.stdout is not None
            for _ in range(chance.randrange(4)):
                child.stdout.readline()
            child.kill()
        if (path / "ledger.db").exists():
            proof = verify(path)
            assert proof.ok, proof.problems
            midway += proof.rows > 0 and not proof.finished
    assert midway > 5, "hardly anything was killed while it worked"

    assert crawl(path)

    proof = verify(path)
    assert proof.ok, proof.problems
    assert urls_of(path) == whole_tree()


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("torn") / "crawl"
    crawl(path, commits=5)
    return path


@settings(max_examples=25)
@given(st.floats(0, 1))
def test_rows_that_were_lost_are_asked_for_again(torn: Path, part: float) -> None:
    """pages.jsonl was cut anywhere: what is whole stays, the URLs of the rest wait again, and no URL has two rows."""
    with fresh() as folder:
        path = shutil.copytree(torn, folder / "crawl")
        content = (path / "pages.jsonl").read_bytes()
        rest = content[: int(len(content) * part)]
        (path / "pages.jsonl").write_bytes(rest)

        with begin(path) as again:
            assert again.put_back == content.count(b"\n") - rest.count(b"\n")
            assert (path / "pages.jsonl").read_bytes() == content[: rest.rfind(b"\n") + 1]
        proof = verify(path)
        assert proof.ok, proof.problems
        assert crawl(path, many=200)
        assert verify(path).ok
        assert len(urls_of(path)) == len(set(urls_of(path)))


def test_a_lost_file_of_rows_is_asked_for_again(path: Path) -> None:
    crawl(path, commits=4)
    (path / "pages.jsonl").unlink()

    assert crawl(path)
    assert urls_of(path) == whole_tree()
    assert verify(path).ok


def test_what_was_lost_is_asked_for_in_full(path: Path) -> None:
    """Its validators would get a 304, and the page would be nowhere."""
    crawl(path, many=1)
    with begin(path) as folder:
        folder.commit([], found(1))
        folder.commit([fetched(each, etag='"x"') for each in wait(folder)], [])
    (path / "pages.jsonl").write_bytes(b"")

    with begin(path) as folder:
        assert (folder.crawl, folder.put_back) == (2, 1)
        assert [each.etag for each in wait(folder)] == [None]


def test_a_finished_crawl_is_crawled_again_with_its_validators(path: Path) -> None:
    with begin(path) as folder:
        folder.commit([], found(1))
        folder.commit([fetched(each, etag='"x"', links=(url(2),)) for each in wait(folder)], [])
        folder.allow_moved("https://b.example/")
        folder.finish(2.0, complete=True, parquet_too=True)
    before = {each.name for each in path.iterdir()} - {"lock"}

    with begin(path) as folder:
        assert (folder.state, folder.crawl) == (FolderState.AGAIN, 2)
        assert folder.moved_hosts == ()
        folder.commit([], found(1))
        (queued,) = wait(folder)
        assert (queued.id, queued.etag) == (1, '"x"')
        assert folder.ledger.remembered_links(url(1)) == (url(2),)
        folder.commit([fetched(queued, End.UNCHANGED)], [])
        (linked,) = wait(folder)
        assert linked.url == url(2), "it leads where it led"
        folder.commit([fetched(linked)], [])
        folder.finish(3.0, complete=True)

    assert {each.name for each in (path / "earlier" / "0001").iterdir()} == before
    assert verify(path).ok
    assert verify(path / "earlier" / "0001").ok
    with begin(path) as folder:
        assert folder.crawl == 3


def test_bodies_are_shared_with_earlier_crawls(path: Path) -> None:
    crawl(path, many=30)
    crawl(path, many=30)

    assert verify(path).bodies > 0
    assert verify(path).ok
    assert verify(path / "earlier" / "0001").ok


@pytest.mark.parametrize("taken", range(9))
def test_a_move_that_was_cut_short_is_ended_by_the_next_run(path: Path, taken: int) -> None:
    crawl(path, many=30)
    parquet.write_parquet(path)
    before = verify(path)
    meta = FrontierMeta(plan='{"seeds":["https://a.example/0"],"allow":[],"depth":5}', crawl=2)
    steps = earlier.begin(path, meta)
    for _ in range(taken):
        next(steps)

    with begin(path) as folder:
        assert (folder.state, folder.crawl) == (FolderState.AGAIN, 2)

    there = path / "earlier" / "0001"
    assert verify(there) == before
    assert before.ok
    assert len(urls_of(there)) == 30
    assert (path / "pages.jsonl").read_bytes() == b""
    assert not [each.name for each in path.iterdir() if each.name.startswith("ledger.") and each.name != "ledger.db"]


def test_all_steps_of_a_move_are_cut_short_above(path: Path) -> None:
    crawl(path, many=30)
    parquet.write_parquet(path)

    steps = list(earlier.begin(path, FrontierMeta(plan="{}", crawl=2)))

    assert len(steps) == 9


def test_a_draft_of_a_ledger_is_no_ledger(path: Path) -> None:
    crawl(path, many=30)
    (path / "ledger.draft").write_bytes(b"half")
    (path / "ledger.draft-journal").write_bytes(b"half")

    with begin(path) as folder:
        assert folder.crawl == 2


def test_what_is_in_the_way_of_a_move_is_not_written_over(path: Path) -> None:
    crawl(path, many=30)
    (path / "earlier" / "0001").mkdir(parents=True)

    with pytest.raises(FolderError, match=r"earlier/0001 is in the way"):
        begin(path)
    assert verify(path).ok


def test_finishing_incompletely_is_not_finishing(path: Path) -> None:
    with begin(path) as folder:
        folder.commit([], found(1))
        folder.finish(2.0, complete=False)
    with begin(path) as folder:
        assert folder.state is FolderState.RESUMED


def test_what_failed_or_was_left_can_be_resumed_when_all_is_finished(path: Path) -> None:
    with begin(path) as folder:
        folder.commit([], found(1, 2))
        (queued,) = folder.ledger.take([("b.example", 0, 1)])[0]
        folder.commit([record.unfetched(queued, Outcome(Code.TIMEOUT), End.FAILED, 4)], [])
        folder.ledger.leave()
        folder.finish(2.0, complete=True)

    with begin(path, None, resume=True) as folder:
        assert folder.state is FolderState.RESUMED
        assert folder.ledger.reopen(End.FAILED) == {"b.example": 1}
        assert folder.ledger.reopen(End.LEFT) == {"c.example": 1}

    assert not verify(path).finished


def test_hosts_that_seeds_live_at_are_remembered(path: Path) -> None:
    with begin(path) as folder:
        folder.allow_moved("https://www.a.example/")
        folder.allow_moved("https://www.a.example/")
        folder.commit([], found(1))

    with begin(path) as folder:
        assert folder.moved_hosts == ("www.a.example",)


def test_the_files_of_something_else_are_left_alone(path: Path) -> None:
    path.mkdir()
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        (path / name).touch()

    with pytest.raises(FolderError, match=r"holds files of something else: a.txt, b.txt, c.txt and 1 more; choose"):
        begin(path)
    assert len(list(path.iterdir())) == 4


def test_what_a_run_left_that_was_killed_at_once_is_nothing(path: Path) -> None:
    path.mkdir()
    for name in ("lock", "ledger.draft", "ledger.draft-journal"):
        (path / name).touch()
    (path / "lost+found").mkdir()

    with begin(path) as folder:
        assert folder.state is FolderState.NEW


OTHER = {
    "seeds https://b.example/ was not there; seeds https://a.example/0 is missing": CrawlPlan(
        ("https://b.example/",), (), 5
    ),
    "allow b.example was not there": CrawlPlan(PLAN.seeds, ("b.example",), 5),
    "depth was 5, not 6": CrawlPlan(PLAN.seeds, (), 6),
}


@pytest.mark.parametrize("difference", OTHER)
@pytest.mark.parametrize(("commits", "which"), [(1, "an unfinished"), (99, "a finished")])
def test_the_crawl_of_another_plan_is_left_alone(path: Path, difference: str, commits: int, which: str) -> None:
    crawl(path, commits=commits, many=10)

    with pytest.raises(FolderError, match=f"holds {which} crawl of another plan: {difference}. Choose another"):
        begin(path, OTHER[difference])


def test_the_order_of_a_plan_is_no_difference(path: Path) -> None:
    with begin(path, CrawlPlan(("https://a.example/", "https://b.example/"), ("c.example", "d.example"), 1)):
        pass
    with begin(path, CrawlPlan(("https://b.example/", "https://a.example/"), ("d.example", "c.example"), 1)):
        pass


def test_nothing_to_resume(path: Path) -> None:
    with pytest.raises(FolderError, match=r"nothing to resume in .*: it holds no ledger.db"):
        begin(path, None, resume=True)
    assert not path.exists()

    crawl(path, many=3)
    with pytest.raises(FolderError, match=r"nothing to resume in .*: its crawl is finished"):
        begin(path, None, resume=True)


def test_a_run_needs_a_plan_or_something_to_resume(path: Path) -> None:
    with pytest.raises(ValueError, match="neither a plan"):
        begin(path, None)


def test_a_file_is_no_folder(path: Path) -> None:
    path.touch()

    with pytest.raises(FolderError, match="is a file, expected a folder"):
        begin(path)
    with pytest.raises(FolderError, match="Not a directory"):
        begin(path / "below")


@contextmanager
def mounted(path: Path, options: str) -> Iterator[None]:
    """A file system of its own at `path`; skips the test where that is not allowed."""
    path.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:  # noqa: S603
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)  # noqa: S603, S607 - what was mounted above


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """For whoever we are: root may write wherever a file system can be written."""
    if os.geteuid() == 0:
        with mounted(path, "ro"):
            yield
    else:
        path.mkdir()
        path.chmod(0o555)
        yield
        path.chmod(0o755)


def test_a_folder_that_cannot_be_written_is_refused(path: Path) -> None:
    with read_only(path):
        with pytest.raises(FolderError, match=r"cannot use .*crawl/lock: (Read-only|Permission denied)"):
            begin(path)
        with pytest.raises(FolderError, match=r"cannot use .*crawl/deep: (Read-only|Permission denied)"):
            begin(path / "deep")


def test_a_full_disk_is_said_and_loses_nothing(path: Path) -> None:
    with mounted(path, "size=600k"):
        with pytest.raises(FolderError, match=r"the disk is full. Nothing is lost: .* Free some space and run again"):
            crawl(path)
        subprocess.run(["mount", "-o", "remount,size=64m", str(path)], check=True)  # noqa: S603, S607
        proof = verify(path)
        assert proof.ok, proof.problems
        assert 0 < proof.rows < MANY / 2

        assert crawl(path)

        assert verify(path).ok
        assert urls_of(path) == whole_tree()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_rows_that_do_not_fit_are_said_and_lose_nothing(path: Path) -> None:
    with begin(path) as folder:
        folder.commit([], found(1))
        (queued,) = wait(folder)
        large = Ended(id=1, url=queued.url, end=End.FETCHED, outcome=FINE, depth=0, row=b"x" * 2_000_000)
        with files_of_at_most(1_000_000), pytest.raises(FolderError, match=r"the disk is full. Nothing is lost"):
            folder.commit([large], [])
        folder.commit([fetched(queued)], [])

    assert verify(path).ok


@pytest.mark.parametrize("most", [60_000, 200_000])
def test_a_file_that_may_not_grow_is_said_and_loses_nothing(path: Path, most: int) -> None:
    """As good as a full disk, and needs no mount."""
    with begin(path):
        pass
    with files_of_at_most(most), pytest.raises(FolderError, match="Nothing is lost"):
        crawl(path)
    proof = verify(path)
    assert proof.ok, proof.problems

    assert crawl(path)

    assert verify(path).ok
    assert urls_of(path) == whole_tree()


def test_a_commit_that_failed_can_be_made_again(path: Path) -> None:
    """The rows it had written are taken back."""
    with begin(path) as folder:
        folder.commit([], found(1, 2))
        queued = wait(folder)
        strange = [fetched(queued[0]), fetched(queued[1]._replace(id=7))]
        with pytest.raises(ValueError, match="is known"):
            folder.commit(strange, [])
        assert (path / "pages.jsonl").read_bytes() == b""

        folder.commit([fetched(each) for each in queued], [])
        folder.finish(2.0, complete=True)

    assert verify(path).ok


def test_a_damaged_ledger_is_refused_by_name(path: Path) -> None:
    crawl(path, commits=2)
    (path / "ledger.db").write_bytes(b"no ledger" * 1000)

    with pytest.raises(FolderError, match=r"crawl/ledger.db is damaged"):
        begin(path)


def test_one_run_at_a_time(path: Path) -> None:
    with (
        begin(path),
        pytest.raises(FolderError, match=rf"another crawl is running in .*crawl \(process {os.getpid()}\)"),
    ):
        begin(path)
    with begin(path):
        pass


def test_one_process_at_a_time(path: Path) -> None:
    with begin(path):
        done = subprocess.run(  # noqa: S603 - ourselves
            [sys.executable, kept.__file__, str(path)], check=False, capture_output=True, text=True, env=ABOVE
        )

    assert f"another crawl is running in {path} (process {os.getpid()})" in done.stderr


def test_parquet_that_is_not_asked_for_again_is_removed(path: Path) -> None:
    with begin(path) as folder:
        folder.commit([], found(1))
        folder.finish(1.0, complete=False, parquet_too=True)
    assert len(parquet.files(path)) == 2

    with begin(path) as folder:
        folder.finish(1.0, complete=True)
    assert parquet.files(path) == []
