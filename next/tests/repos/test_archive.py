"""What comes out of an archive, and what never does: exports, replays, tombstones, forgetting, and kills on the way."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from repos.world import Net, Pds, did_of, error, letters, play, played

from sanderling.cli.context import Context
from sanderling.cli.main import main
from sanderling.files import FolderError
from sanderling.formats.segments import segments_in
from sanderling.options import OptionError
from sanderling.repos import forget as forgetting
from sanderling.repos import system

FIRST, SECOND = did_of("hostaab"), did_of("hostaac")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An archive of twelve accounts, one of which was archived twice and one is gone."""
    folder = tmp_path / "out"
    host = Pds("host.example").add(12)
    net = Net(host)
    play(net, folder, segment_size=1500)
    host.people[FIRST].records = {"app.bsky.feed.post/new": {"text": "new"}}
    host.people[FIRST].rev = "3kbbbbbbbbb2a"
    host.people[SECOND].says = lambda _: error("RepoTakendown")
    play(net, folder, refresh=True, segment_size=1500)
    return folder


def typed(*words: object) -> int:
    return main(Context(tuple(map(str, words)), dict(os.environ), program="sanderling"))


def dids(folder: Path) -> set[str]:
    with system.records(folder) as rows:
        return {json.loads(line)["did"] for entry in rows.entries() for line in entry.lines}


def is_named(folder: Path, did: str) -> bool:
    """Whether a DID is in any file of the folder."""
    return any(did.encode() in path.read_bytes() for path in folder.iterdir() if path.is_file())


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_of_each_account_the_newest_comes_out(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("repos", "replay", "--input-dir", out, "--to", f"jsonl:{tmp_path / 'x.jsonl'}", "--readers", "0") == 0
    replayed = lines((tmp_path / "x.jsonl").read_text())
    capsys.readouterr()
    assert typed("export", out, "--to", "-") == 0
    exported = lines(capsys.readouterr().out)
    assert typed("repos", "get", FIRST, "--out", out) == 0
    got = lines(capsys.readouterr().out)

    assert replayed == exported
    assert [each["rkey"] for each in replayed if each["did"] == FIRST] == ["new"] == [each["rkey"] for each in got]
    assert SECOND not in {each["did"] for each in replayed}
    assert len(replayed) == sum(number % 4 for number in range(12)) - 2
    assert typed("repos", "get", SECOND, "--out", out) == 2
    assert "gone: takendown" in capsys.readouterr().err
    assert typed("repos", "replay", "--input-dir", out, "--to", "parquet:" + str(tmp_path / "pq"), "--collections",
                 "a.b,c.d", "--readers", "0") == 0  # fmt: skip
    assert "0 records" in capsys.readouterr().out
    assert typed("repos", "get", FIRST, "--out", out, "--collections", "a.b") == 0
    assert "no such records" in capsys.readouterr().err


def test_lists_hold_for_what_comes_out(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "names.txt"
    for name, left in ((FIRST, 11), ("host.example", 0)):
        names.write_text(name)
        words = ("repos", "replay", "--input-dir", out, "--to", f"jsonl:{tmp_path / 'x'}", "--leave-out", names)
        assert typed(*words, "--readers", "0") == 0
        assert FIRST not in (tmp_path / "x").read_text()
        assert typed("repos", "get", FIRST, "--out", out, "--leave-out", names) == 2
        assert "left out" in capsys.readouterr().err
        assert bool(left) == bool((tmp_path / "x").read_text())


def test_a_damaged_segment_is_named_and_the_others_are_written(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = segments_in(out)[1]
    content = bytearray(first.read_bytes())
    content[110] ^= 1
    first.write_bytes(content)
    code = typed("repos", "replay", "--input-dir", out, "--to", f"jsonl:{tmp_path / 'x'}", "--readers", "0")
    said = capsys.readouterr()

    assert code == 1
    assert first.name in said.err
    assert len(lines((tmp_path / "x").read_text())) > 3
    assert typed("repos", "inspect", out) == 1
    assert f"WRONG:         {first}" in capsys.readouterr().out


def test_forget_leaves_nothing_of_an_account(out: Path) -> None:
    before = dids(out)
    assert is_named(out, FIRST)
    assert is_named(out, SECOND)
    asyncio.run(system.forget(out, (FIRST, SECOND)))

    assert not is_named(out, FIRST)
    assert not is_named(out, SECOND)
    assert dids(out) == before - {FIRST}
    assert asyncio.run(system.verify(out)).faults == []
    host = Pds("host.example").add(12)
    net = Net(host)
    net.elapsed = 1000
    play(net, out, refresh=True)
    assert (host.people[FIRST].asked, host.people[SECOND].asked) == (0, 0)


def test_forget_of_a_host_leaves_nothing_of_it(tmp_path: Path) -> None:
    net, out = Net(Pds("one.example").add(9), Pds("two.example").add(9)), tmp_path / "out"
    play(net, out)
    asyncio.run(system.forget(out, ("one.example",)))

    assert not is_named(out, "one.example")
    assert asyncio.run(system.verify(out)).faults == []
    play(net, out)
    assert max(net.good[did] for did in net.hosts["one.example"].people) == 1


def test_forget_gone_removes_their_repos_and_lets_them_come_back(out: Path) -> None:
    before = dids(out)
    archived = sum(1 for path in segments_in(out) for _ in path.read_bytes().split(SECOND.encode())[1:])
    assert archived
    said = asyncio.run(system.forget(out, ("--gone",)))

    assert said == "1 repos of accounts that are gone were removed"
    assert not any(SECOND.encode() in path.read_bytes() for path in segments_in(out))
    assert dids(out) == before
    assert asyncio.run(system.verify(out)).faults == []
    net = Net(Pds("host.example").add(12))
    net.elapsed = 1000
    play(net, out, refresh=True)
    assert SECOND in dids(out)
    assert asyncio.run(system.verify(out)).faults == []


STEPS = ("_take_places", "remove_repos", "rewrite_rows", "sync_folder", "read_tombstones")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("at", range(3))
def test_forget_ends_what_a_killed_one_began(step: str, at: int, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dids(out)
    real, calls = getattr(forgetting, step), 0

    def killed(*values: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at + 1:
            raise KeyboardInterrupt
        return real(*values)

    with monkeypatch.context() as patched:
        patched.setattr(forgetting, step, killed)
        try:
            asyncio.run(system.forget(out, (FIRST,)))
        except KeyboardInterrupt:
            if (out / "forget.json").exists():
                with pytest.raises(FolderError, match="did not end"):
                    system.records(out)
    asyncio.run(system.forget(out, ()) if (out / "forget.json").exists() else system.forget(out, (FIRST,)))

    assert not is_named(out, FIRST)
    assert dids(out) == before - {FIRST}
    assert asyncio.run(system.verify(out)).faults == []


def test_forget_after_a_kill_of_the_crawl(tmp_path: Path) -> None:
    net, out = Net(Pds("host.example").add(40)), tmp_path / "out"
    play(net, out, until=8)
    first = min(did for did, number in net.good.items() if number)
    asyncio.run(system.forget(out, (first,)))
    waiting = did_of(f"host{letters(39)}")
    asyncio.run(system.forget(out, (waiting,)))

    assert not is_named(out, first)
    play(net, out)
    assert len(net.good) == 39
    assert net.good[waiting] == 0
    assert asyncio.run(system.verify(out)).faults == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("did:nonsense",), "expected a DID or a host"),
        (("a b",), "expected a DID or a host"),
        ((), "THING is missing"),
    ],
)
def test_what_cannot_be_forgotten(words: tuple[str, ...], said: str, out: Path) -> None:
    with pytest.raises(OptionError, match=said):
        asyncio.run(system.forget(out, words))
    assert not (out / "forget.json").exists()


def test_exports_that_are_none_are_refused_before_anything_is_removed(out: Path, tmp_path: Path) -> None:
    (tmp_path / "pq").mkdir()
    assert typed("forget", out, FIRST, "--export", tmp_path / "pq") == 2
    assert typed("forget", out, FIRST, "--export", f"chdb:{tmp_path / 'no' / 'folder'}") == 2
    assert is_named(out, FIRST)
    with played(Net()):
        assert typed("forget", tmp_path, FIRST) == 2
