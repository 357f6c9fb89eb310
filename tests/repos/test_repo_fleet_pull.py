"""Repos of a fleet's part in a plain folder: in segments of the usual size, each repo once, whenever one was killed."""

import asyncio
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from appending import blocks, did
from fake_objects import MemoryObjects
from fleet_commands import archived
from plays import seeds

from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.crawls.fleet_copy import LedgerCopy
from sanderling.crawls.fleet_log import ObjectPlace, PartLog
from sanderling.crawls.fleet_pull import PulledPart
from sanderling.repos import fleet_pull
from sanderling.repos.fleet import PendingSegment, create_ledger
from sanderling.repos.fleet_pull import PULLED, bring_segments, finish_pulled
from sanderling.repos.parts import PROGRESS
from sanderling.repos.segments import Segments, segments_in
from sanderling.stores.durable import FolderError
from sanderling.stores.fleet import FleetCrawl, WorkerIdentity
from sanderling.stores.fleet_memory import FleetMemory, MemoryFleet
from sanderling.stores.leases import HeldLease
from sanderling.stores.ports import Finished
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.testing import FakeClock

CRAWL = FleetCrawl(
    name="sky", id="1", system="repos", plan="{}", parts=1, seconds=30.0, ledger="1", objects="", started=0.0
)


class KilledError(Exception):
    """Nothing more is done."""


class SharedPart:
    """The only part of a crawl, whose owner commits repos; and folders to which it is pulled."""

    def __init__(self, folder: Path) -> None:
        self.objects = MemoryObjects()
        self._folder, self._clock, self._call = folder, FakeClock(), DirectStoreCaller()
        self.place = ObjectPlace(cast("Any", self.objects), "rows", "sky/")
        self.server = MemoryFleet(FleetMemory(self._clock.wall), "sky", WorkerIdentity("w", "", ""))
        self._call.wait_for(self.server.begin(CRAWL, range(1)))
        (lease,) = self._call.wait_for(self.server.acquire(1))
        held = HeldLease(lease, CRAWL.seconds, self._clock.now, 0.0)
        create_ledger(folder / PROGRESS, CRAWL)
        self._progress = SqliteProgress(folder / PROGRESS)
        self._segment = PendingSegment(0, lambda: 5)
        fleet = FleetStores([self.server], self._call)
        self._progress.share(PartLog(fleet, held, self.place, self._segment, bytes, tuple))
        self._dids = 0

    def commit(self, repos: int) -> None:
        """Repos that no other commit has."""
        numbers = range(self._dids, self._dids + repos)
        self._dids += repos
        repos_of = blocks(*numbers)
        number = self._segment.append(repos_of)
        done = [Finished(name, len(block)) for name, block in repos_of]
        self._progress.record(done, [], cursor=None, segment=number)

    @property
    def dids(self) -> Counter[str]:
        return Counter(map(did, range(self._dids)))

    def pull(self, folder: Path) -> int:
        """What `fleet pull` does for a part; how many bytes are new."""
        folder.mkdir(exist_ok=True)
        path = folder / PROGRESS
        create = lambda path: create_ledger(path, CRAWL)  # noqa: E731 - what a copy begins with
        LedgerCopy(path, self.server, 0, self.place, create, lambda ask: self._call.wait_for(ask())).bring_up()
        new = asyncio.run(bring_segments(PulledPart(folder, 0, self.server, self.place)))
        finish_pulled(folder, 0.0, complete=False)
        return new


@pytest.fixture
def part(tmp_path: Path) -> SharedPart:
    (tmp_path / "owner").mkdir()
    return SharedPart(tmp_path / "owner")


def test_many_commits_are_few_segments_and_what_is_new_is_one_more(part: SharedPart, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(40):
        part.commit(3)
    assert part.pull(out) > 0
    assert [path.name for path in segments_in(out)] == ["segment_0001.rca"]
    assert Counter(archived(out)) == part.dids

    assert part.pull(out) == 0
    part.commit(2)
    asked: list[str] = []
    part.objects.fails = asked.append
    assert part.pull(out) > 0
    assert [path.name for path in segments_in(out)] == ["segment_0001.rca", "segment_0002.rca"]
    assert (Counter(archived(out)), asked) == (part.dids, ["get"])


def test_segments_are_of_the_usual_size(part: SharedPart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_pull, "AT_ONCE", 1)
    monkeypatch.setattr(fleet_pull, "SEGMENT_SIZE", 2_000)
    for _ in range(60):
        part.commit(1)
    part.pull(tmp_path / "out")

    *full, last = [path.stat().st_size for path in segments_in(tmp_path / "out")]
    assert len(full) > 1
    assert all(2_000 <= size < 6_000 for size in [*full, last + 2_000])
    assert Counter(archived(tmp_path / "out")) == part.dids


@pytest.mark.parametrize("seed", seeds(12))
def test_whenever_it_is_killed_each_repo_is_there_once(
    seed: int, part: SharedPart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, out = Random(seed), tmp_path / "out"
    monkeypatch.setattr(fleet_pull, "AT_ONCE", chance.choice((1, 400, 10**9)))
    monkeypatch.setattr(fleet_pull, "SEGMENT_SIZE", chance.choice((1, 1_000, 10**9)))
    left = [0]
    for owner, name in ((Segments, "append"), (Segments, "_finalise"), (fleet_pull, "_write_pulled")):
        real = getattr(owner, name)

        def dying(*args: Any, real: Any = real) -> Any:  # noqa: ANN401 - as it is
            """Before it, or after it."""
            for step in (lambda: None, lambda: real(*args)):
                found = step()
                left[0] -= 1
                if left[0] == 0:
                    raise KilledError
            return found

        monkeypatch.setattr(owner, name, dying)
    for _ in range(6):
        for _ in range(chance.randrange(4)):
            part.commit(chance.randrange(1, 4))
        left[0] = chance.randrange(1, 12)
        with suppress(KilledError):
            part.pull(out)
        left[0] = 0
        if chance.random() < 0.3:
            torn = [path for path in segments_in(out) if path.suffix == ".part"]
            for path in torn:
                with path.open("ab") as file:
                    file.write(b"half a block")
    part.pull(out)

    assert Counter(archived(out)) == part.dids
    assert not [path for path in segments_in(out) if path.suffix == ".part"]


def test_what_was_forgotten_here_does_not_come_back(part: SharedPart, tmp_path: Path) -> None:
    """Also not when `pulled` says less than is true."""
    out = tmp_path / "out"
    part.commit(3)
    part.pull(out)
    segments_in(out)[0].unlink()
    with closing(SqliteProgress(out / PROGRESS)) as progress:
        progress.forget([did(1)])
    (out / PULLED).write_text("0\n")
    part.pull(out)

    assert archived(out) == sorted([did(0), did(2)])


@pytest.mark.parametrize(("said", "words"), [(None, "does not say of what"), ("x", "expected the number of a commit")])
def test_a_folder_that_does_not_say_how_far_it_is_is_refused(
    part: SharedPart, tmp_path: Path, said: str | None, words: str
) -> None:
    part.commit(1)
    part.pull(tmp_path / "out")
    pulled = tmp_path / "out" / PULLED
    pulled.unlink() if said is None else pulled.write_text(said)

    with pytest.raises(FolderError, match=words):
        part.pull(tmp_path / "out")


def test_a_damaged_object_is_named(part: SharedPart, tmp_path: Path) -> None:
    part.commit(1)
    ((path, found),) = part.objects.there.items()
    part.objects.there[path] = found._replace(body=found.body[:-9])

    with pytest.raises(FolderError, match=r"rows/0000/000000/000001-000000001-.* is damaged"):
        part.pull(tmp_path / "out")
