"""Progress that machines share: whoever applies its transactions has the same tables, and what is refused is undone."""

import sqlite3
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from frontier_urls import MEMORY
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.stores.leases import LeaseLostError
from sanderling.stores.ledger_log import SharedHead, apply_commits, head_of
from sanderling.stores.ports import FIRST, Finished, HostAside, Unfinished
from sanderling.stores.sqlite_progress import MovedDid, SqliteProgress

DIDS = [f"did:plc:{number}" for number in range(8)]
TABLES = ("crawl", "did", "tally", "aside", "meta", "moved")

Moves = dict[str, int]  # to parts
Step = tuple[list[Finished], list[Unfinished], str | None, list[HostAside]] | list[str] | list[MovedDid] | Moves | str

some = st.sampled_from(DIDS)
finished = st.builds(Finished, some, st.integers(1, 9))
unfinished = st.builds(
    Unfinished, some, st.sampled_from(["timeout", "not_found"]), st.booleans(), st.integers(0, 120),
    st.none() | st.integers(1, 9),
)  # fmt: skip
host = st.builds(HostAside, st.sampled_from(["a.example", "b.example"]), st.sampled_from(["", "timeout"]), st.just(7))
steps = st.lists(
    st.one_of(
        st.tuples(st.lists(finished), st.lists(unfinished), st.none() | some, st.lists(host)),
        st.lists(some),
        st.lists(st.builds(MovedDid, some, st.integers(1, 4), st.just("moved"), st.integers(0, 9), st.integers(1, 9))),
        st.dictionaries(some, st.integers(0, 3)),
        st.sampled_from(["clear", "reset", "look", "sent"]),
    ),
    max_size=12,
)


class KeptCommits:
    """A log; it refuses a commit if it is told to."""

    def __init__(self) -> None:
        self.commits: list[tuple[SharedHead, bytes]] = []
        self.refuses = False

    def __call__(self, body: bytes) -> SharedHead:
        if self.refuses:
            raise LeaseLostError("refused")
        head = SharedHead(len(self.commits) + 1, f"token {len(self.commits)}")
        self.commits.append((head, body))
        return head


def do(progress: SqliteProgress, step: Step) -> None:
    if isinstance(step, dict):
        scheduled = progress.due(FIRST, 99, 99)
        progress.send_away({each: step[each.did] for each in scheduled if each.did in step})
        assert not {each.did for each in progress.due(FIRST, 99, 99)} & step.keys()
        assert {each.did for each in scheduled if each.did in step} <= {each.did for each in progress.unsent(99)}
    elif isinstance(step, list) and step and isinstance(step[0], MovedDid):
        taken = [each for each in step if isinstance(each, MovedDid)]
        progress.take_in(taken)
        assert progress.take_in(taken) == [], "what came twice was taken twice"
    elif isinstance(step, list):
        progress.release([str(each) for each in step])
    elif isinstance(step, tuple):
        done, failed, cursor, hosts = step
        progress.record(done, failed, cursor=cursor, segment=3, hosts=hosts)
    else:
        acts = {"clear": progress.clear_aside, "reset": progress.reset, "look": progress.view}
        acts.get(step, partial(progress.sent, DIDS))()


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as db:
        return {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for name in TABLES}  # noqa: S608 - ours


@settings(max_examples=60)
@given(steps=steps, refused=st.none() | st.integers(0, 11))
def test_a_copy_that_is_made_from_the_commits_alone_is_the_same(steps: list[Step], refused: int | None) -> None:
    with TemporaryDirectory(dir=MEMORY) as folder:
        path, copy, log = Path(folder) / "own.db", Path(folder) / "copy.db", KeptCommits()
        for each in (path, copy):
            SqliteProgress.create_shared(each)
        with closing(SqliteProgress(path)) as progress:
            progress.share(log)
            for number, step in enumerate(steps):
                log.refuses = number == refused
                with suppress(LeaseLostError):
                    do(progress, step)
                assert progress.scheduled == progress.view().scheduled
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            apply_commits(db, log.commits)
            assert head_of(db).number == len(log.commits)

        assert rows(copy) == rows(path)


def test_a_look_is_no_commit(tmp_path: Path) -> None:
    SqliteProgress.create_shared(tmp_path / "own.db")
    log = KeptCommits()
    with closing(SqliteProgress(tmp_path / "own.db")) as progress:
        progress.share(log)
        progress.clear_aside()
        progress.view()
        progress.pending(DIDS)
        assert log.commits == []
        progress.record([], [], cursor=DIDS[0], segment=0)

    assert len(log.commits) == 1
