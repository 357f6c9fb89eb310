"""Repos that are forgotten are gone from segments and progress, and the directory has them no more."""

from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest
from small_archives import THREE, write

from sanderling.cli.report_screen import fitting
from sanderling.cli.repos.crawl import open_stores
from sanderling.cli.repos.flags import ArchiveFlags, RepoNetwork
from sanderling.cli.repos.progress import ArchiveFolder
from sanderling.clock import SystemClock
from sanderling.repos import forget
from sanderling.repos.archives import Archive
from sanderling.repos.directory import DirectoryEntry
from sanderling.repos.forget import ForgettingDirectory
from sanderling.stores.durable import FolderError
from sanderling.stores.forgotten import Forgotten
from sanderling.stores.ports import Finished
from sanderling.stores.sqlite_progress import SqliteProgress

AAA = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"


def end(folder: Path) -> forget.ReposRemoved:
    """Remove what is to be removed."""
    with closing(SqliteProgress(folder / "progress.db")) as progress:
        return forget.finish(folder, progress)


def dids_in(path: Path) -> list[str]:
    """The repos of a segment, which must be whole."""
    problems: list[object] = []
    with Archive(path, problems.append) as archive:
        found = [block.did for block in archive.blocks()]
    assert problems == []
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two segments, one of which is being written, and the progress that goes with them."""
    repos = [each._replace(did=AAA) if each.did == "did:plc:aaa" else each for each in THREE]
    write(tmp_path / "segment_0001.rca", repos)
    write(tmp_path / "segment_0002.rca.part", repos[1:], finalise=False)
    (tmp_path / "synced").write_bytes(b"%20d %20d\n" % (2, (tmp_path / "segment_0002.rca.part").stat().st_size))
    with closing(SqliteProgress(tmp_path / "progress.db")) as progress:
        progress.record([Finished(each.did, 10) for each in repos], [], cursor=None, segment=2)
    return tmp_path


def test_a_did_is_gone_from_every_segment_and_from_the_progress(folder: Path) -> None:
    forget.begin(folder, [AAA], [])

    assert end(folder) == (2, 2)
    assert dids_in(folder / "segment_0001.rca") == ["did:plc:ccc", "did:plc:bbb"]
    assert dids_in(folder / "segment_0002.rca.part") == ["did:plc:bbb"]
    with closing(SqliteProgress(folder / "progress.db")) as progress:
        assert progress.view().total_crawled == 2
        assert progress.pending([AAA, "did:plc:bbb"]) == [AAA]
    said = [path.name for path in folder.iterdir() if AAA.encode() in path.read_bytes()]
    assert said == []


def test_killed_it_is_done_again(folder: Path) -> None:
    forget.begin(folder, [AAA], [])
    end(folder)
    forget.begin(folder, [AAA], [])

    assert end(folder) == (0, 0)
    assert dids_in(folder / "segment_0001.rca") == ["did:plc:ccc", "did:plc:bbb"]


def test_a_host_goes_with_all_its_repos(folder: Path) -> None:
    forget.begin(folder, ["host.example"], [])

    assert end(folder).repos == 5
    assert dids_in(folder / "segment_0001.rca") == []


def test_a_damaged_segment_is_left_as_it_is(folder: Path) -> None:
    path = folder / "segment_0001.rca"
    data = bytearray(path.read_bytes())
    data[120] ^= 1
    path.write_bytes(data)
    forget.begin(folder, [AAA], [])

    with pytest.raises(FolderError, match="damaged would be lost"):
        end(folder)
    assert path.read_bytes() == bytes(data)


def test_the_directory_has_them_no_more(folder: Path) -> None:
    class Three:
        entries: ClassVar = [DirectoryEntry(f"did:plc:{name * 24}", f"https://{name}.example") for name in "abc"]

        def page(self, after: str, limit: int) -> list[DirectoryEntry]:
            return [each for each in self.entries if each.did > after][:limit]

        def hosts_of(self, dids: list[str]) -> dict[str, str]:
            return {each.did: each.host for each in self.entries if each.did in dids}

        def count(self) -> int:
            return 3

    forget.begin(folder, [AAA, "b.example"], [])
    directory = ForgettingDirectory(Three(), Forgotten.of(folder))  # type: ignore[arg-type]

    assert [each.host for each in directory.page("", 1)] == ["https://c.example"]
    assert list(directory.hosts_of([each.did for each in Three.entries])) == [f"did:plc:{'c' * 24}"]
    assert AAA not in (folder / "forgotten.json").read_text().partition("removing")[0]


def test_killed_after_any_step_the_progress_lets_go_of_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a host, only the segments say whose its repos are: they must not go first."""
    forget.begin(folder, ["host.example"], [])
    real = Path.replace

    def replace_and_die(self: Path, to: Path) -> None:
        real(self, to)
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", replace_and_die)
            with pytest.raises(KeyboardInterrupt):
                end(folder)
    end(folder)

    with closing(SqliteProgress(folder / "progress.db")) as progress:
        assert progress.view().completed == 0
    assert not any(AAA.encode() in path.read_bytes() for path in folder.iterdir())


def test_what_would_go_is_counted_and_stays(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}

    assert forget.survey(folder, ["host.example"]) == (5, 2)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_crawl_ends_what_was_cut_short_before_it_opens_anything(folder: Path, tmp_path: Path) -> None:
    forget.begin(folder, [AAA], [])
    (tmp_path / "dids.txt").write_text("did:plc:bbbbbbbbbbbbbbbbbbbbbbbb https://host.example\n")
    place, keeping = ArchiveFolder(out=folder), ArchiveFlags(did_file=tmp_path / "dids.txt")
    noted: list[str] = []
    screen = fitting(json=True)
    screen.note = noted.append  # type: ignore[method-assign,assignment]

    with open_stores(place, RepoNetwork(), keeping, screen, SystemClock()) as stores:
        assert stores.progress.pending([AAA]) == [AAA]

    assert "ended what sanderling forget had begun: 2 repos removed" in noted
    assert Forgotten.of(folder).says.removing == ()
    assert not any(AAA.encode() in path.read_bytes() for path in folder.iterdir())
