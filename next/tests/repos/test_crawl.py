"""Archives on virtual time: what becomes of each account, at what pace, through kills, and once each."""

import asyncio
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from repos.world import CAR, JSON, Net, Pds, Person, did_of, error, letters, play

from sanderling.files import Exit, FolderError
from sanderling.formats.rca import RcaReader
from sanderling.formats.segments import segments_in
from sanderling.options import OptionError
from sanderling.repos import system
from sanderling.repos.run import ReposRun

HTML = {"Content-Type": "text/html"}
OK = "archived OK"


def archived(out: Path) -> list[str]:
    found = []
    for path in segments_in(out):
        with RcaReader(path) as reader:
            found += [block.did for block in reader]
    return found


def check(out: Path) -> dict[str, int]:
    """What verify compares; it must find nothing wrong."""
    verified = asyncio.run(system.verify(out))
    assert verified.faults == []
    return verified.counts


def cut(person: Person) -> bytes:
    return person.car()[:-20]


FATES = {
    "archived OK": None,
    "gone not_found": error("RepoNotFound"),
    "gone not_found ": (404, HTML, b"<h1>no</h1>"),
    "gone not_found  ": error("InvalidRequest", message="Could not find repo for DID: did:plc:x"),
    "gone takendown": error("RepoTakendown"),
    "gone deactivated": error("RepoDeactivated"),
    "gone deactivated ": (410, HTML, b"gone"),
    "gone suspended": error("RepoSuspended"),
    "failed http_error": (403, HTML, b"RepoNotFound"),
    "failed http_error ": error("InvalidRequest", message="what?"),
    "failed http_error  ": (200, HTML, b"<html>for sale</html>"),
    "failed http_error   ": (204, {}, b""),
    "failed parse_error": (200, CAR, b"\x01\x02\x03"),
    "failed incomplete": (200, CAR, Person(did_of("x"), {}).car()[:80]),
    "failed did_mismatch": (200, CAR, Person(did_of("other"), {}).car()),
    "failed too_large": (200, CAR, b"\0" * 2000),
    "left_out left_out": (302, {"Location": "https://left.example/x"}, b""),
}


@pytest.mark.parametrize("fate", FATES)
def test_each_answer_has_its_end(fate: str, tmp_path: Path) -> None:
    host = Pds("host.example").add(20)
    special = host.people[did_of("hostaab")]
    special.says = lambda _: FATES[fate]
    given: dict[str, Any] = {"max_repo_size": 1024} if "too_large" in fate else {}
    result = play(Net(host), tmp_path / "out", skip_pds=("left.example",), **given)

    expected = {OK: 20} if fate == OK else {OK: 19, fate.strip(): 1}
    assert result.ends == expected
    assert result.exit is (Exit.FAILED if fate.startswith("failed") else Exit.DONE)
    assert check(tmp_path / "out")["repos"] == expected[OK]


def test_what_fails_for_now_is_tried_again(tmp_path: Path) -> None:
    host = Pds("host.example").add(30)
    for person, said in zip(
        host.people.values(),
        [(502, HTML, b""), TimeoutError(), ConnectionResetError(), (429, {"Retry-After": "2"}, b"")] * 3,
        strict=False,
    ):
        person.says = lambda asked, said=said: said if asked == 1 else None  # type: ignore[misc]
    result = play(Net(host), tmp_path / "out")

    assert result.ends == {OK: 30}
    assert result.exit is Exit.DONE


def test_a_repo_that_lacks_records_is_archived_without_them_at_last(tmp_path: Path) -> None:
    host = Pds("host.example").add(8)
    person = host.people[did_of("hostaad")]
    person.records["app.bsky.feed.post/lost"] = {"text": "lost"}
    person.says = lambda _: (200, CAR, person.car_without("app.bsky.feed.post/lost"))
    result = play(Net(host), tmp_path / "out")

    assert result.ends == {OK: 8}
    assert person.asked == 3
    assert len(asyncio.run(system.show(tmp_path / "out", person.did)).records) == 3


@pytest.mark.parametrize(("accounts", "rate"), [(99, 2), (300, 5), (1300, 10)])
def test_a_host_is_requested_by_its_size(accounts: int, rate: int, tmp_path: Path) -> None:
    net = Net(Pds("host.example").add(accounts))
    result = play(net, tmp_path / "out", page_size=100_000)
    times = net.sent["host.example"]

    assert result.ends == {OK: accounts}
    most = max(sum(at <= other < at + 10 for other in times) for at in times)
    assert 8.5 * rate <= most <= 10 * rate + 3


def test_five_failures_halve_and_ten_block(tmp_path: Path) -> None:
    net = Net(Pds("bad.example", says=lambda _: (500, HTML, b"")).add(300), Pds("good.example").add(40))
    result = play(net, tmp_path / "out", patience=0)
    times = net.sent["bad.example"]

    assert result.exit is Exit.WAITING
    assert result.run.parts.figures.blocked == 1
    assert 10 <= len(times) <= 16  # those in flight when it was blocked end
    assert times[9] - times[5] > 1.5 * (times[4] - times[0])
    assert result.ends == {OK: 40}
    assert result.run.counts.waiting == 300
    net.hosts["bad.example"].says = lambda _: None
    assert play(net, tmp_path / "out").ends == {OK: 340}


def test_refusals_block_only_if_that_is_wanted(tmp_path: Path) -> None:
    for wanted in (False, True):
        net = Net(Pds("full.example", says=lambda now: (429, {}, b"") if now < 60 else None).add(60))
        result = play(net, tmp_path / str(wanted), patience=0, block_on_429=wanted)

        assert (result.run.parts.figures.blocked, result.ends) == ((1, {}) if wanted else (0, {OK: 60}))


KINDS = {
    "dead": ConnectionRefusedError(),
    "unresolved": OSError("no such host"),
    "silent": TimeoutError(),
    "failing": (503, HTML, b""),
    "refusing": (429, {"Retry-After": "3"}, b""),
    "parked": (200, HTML, b"<html>this domain is for sale</html>"),
}


def fleet(spoiled: bool) -> Net:
    """Thirty hosts; those of each kind do no harm if they are not spoiled."""
    hosts = [Pds(f"h{number}.example").add(100) for number in range(24)]
    for name, said in KINDS.items():
        silent = 29.0 if name == "silent" else 0.05
        said_now = (lambda _, said=said: said) if spoiled else (lambda _: None)
        hosts.append(Pds(f"{name}.example", seconds=silent if spoiled else 0.05, says=said_now).add(100))
    return Net(*hosts)


def test_a_bad_host_costs_itself_only(tmp_path: Path) -> None:
    alone, beside = fleet(spoiled=False), fleet(spoiled=True)
    play(alone, tmp_path / "alone", workers=50)
    result = play(beside, tmp_path / "beside", workers=50)

    def last(net: Net) -> float:
        return max(max(net.sent[name]) for name in net.sent if name.startswith("h"))

    assert last(beside) <= 1.2 * last(alone)
    assert result.ends[OK] == 2400
    assert result.exit is Exit.WAITING
    assert len(beside.sent["refusing.example"]) < 40


@pytest.mark.parametrize("seed", range(4))
def test_through_ten_kills_each_repo_is_archived_once(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    net = Net(*(Pds(f"h{number}.example").add(120, f"h{number}x") for number in range(5)))
    net.hosts["h1.example"].says = lambda now: (500, HTML, b"") if 10 < now < 12 else None
    out = tmp_path / "out"
    for _ in range(10):
        killed = play(net, out, until=random.uniform(0.2, 3), segment_size=8_000, page_size=random.choice((50, 5000)))
        assert killed.exit is None
    result = play(net, out, segment_size=8_000)

    assert result.exit is Exit.DONE
    assert result.ends == {OK: 600}
    assert sorted(archived(out)) == sorted(did for host in net.hosts.values() for did in host.people)
    assert check(out)["segments"] > 3
    assert play(net, out).ends == {OK: 600}
    assert max(net.good.values()) <= 12


def test_the_feed_keeps_ahead_and_no_further(tmp_path: Path) -> None:
    net = Net(*(Pds(f"h{number:02}.example").add(60, f"h{number:02}x") for number in range(60)))
    waiting: list[int] = []

    async def watch(run: ReposRun) -> None:
        while True:
            waiting.append(run.counts.waiting)
            await run.parts.clock.sleep(1)

    result = play(net, tmp_path / "out", page_size=20, workers=20, act=watch)

    assert result.ends == {OK: 3600}
    assert 200 <= max(waiting) <= 1020
    assert min(min(times) for times in net.sent.values()) < 3


def test_lists_are_heeded_and_can_change(tmp_path: Path) -> None:
    net = Net(Pds("one.example").add(10), Pds("two.example").add(10))
    names = tmp_path / "names.txt"
    names.write_text(f"# wanted gone\n{did_of('oneaaa')}\nhttps://two.example\n")
    result = play(net, tmp_path / "out", leave_out=names)

    assert result.ends == {OK: 9}
    assert not net.sent["two.example"]
    assert play(net, tmp_path / "out", skip_pds=("two.example",)).ends == {OK: 10}
    assert play(net, tmp_path / "out").ends == {OK: 20}


def test_a_list_that_comes_later_ends_what_waits(tmp_path: Path) -> None:
    net = Net(Pds("one.example").add(60))
    play(net, tmp_path / "out", until=5)
    before = len(net.sent["one.example"])
    result = play(net, tmp_path / "out", skip_pds=("one.example",))

    assert len(net.sent["one.example"]) == before
    assert result.ends["left_out left_out"] + result.ends[OK] == 60
    assert play(net, tmp_path / "out").ends == {OK: 60}


def test_refresh_fetches_what_has_changed_and_notes_what_is_gone(tmp_path: Path) -> None:
    host, out = Pds("host.example").add(20), tmp_path / "out"
    net = Net(host)
    play(net, out)
    one, two, three = (host.people[did_of(f"host{letters(number)}")] for number in (1, 2, 3))
    one.records["app.bsky.feed.post/new"], one.rev = {"text": "new"}, "3kbbbbbbbbb2a"
    two.says = lambda _: error("RepoDeactivated")
    net.good.clear()
    result = play(net, out, refresh=True)

    assert result.ends == {OK: 1, "unchanged unchanged": 18, "gone deactivated": 1}
    assert net.good == {one.did: 1}
    check(out)
    with system.records(out) as rows:
        found = [msgspec.json.decode(line) for entry in rows.entries() for line in entry.lines]
    assert {"new"} == {each["rkey"] for each in found if each["did"] == one.did} - {f"3k{letters(0)}"}
    assert two.did not in {each["did"] for each in found}
    assert three.did in {each["did"] for each in found}

    async def gone() -> list[str]:
        return [task.key async for task in system.tasks(out, "gone", None, None)]

    assert asyncio.run(gone()) == [two.did]
    assert "deactivated" in asyncio.run(system.show(out, two.did)).said
    two.says = lambda _: None
    assert play(net, out, refresh=True).ends == {OK: 1, "unchanged unchanged": 19}
    assert asyncio.run(gone()) == []
    assert asyncio.run(system.show(out, two.did)).records
    check(out)


def test_refresh_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    net, out = Net(Pds("host.example").add(60)), tmp_path / "out"
    play(net, out)
    play(net, out, refresh=True, until=10)
    result = play(net, out, refresh=True)

    assert result.ends == {"unchanged unchanged": 60}
    assert sum(person.asked for person in net.hosts["host.example"].people.values()) <= 2 * 60 + 20


def test_an_account_that_has_moved_is_followed(tmp_path: Path) -> None:
    from sanderling.repos.directory import SqliteDirectory

    old, new, out = Pds("old.example").add(5), Pds("new.example"), tmp_path / "out"
    moved = list(old.people)[-1]
    net, path = Net(old, new), tmp_path / "directory.db"

    async def fill(host: str, dids: list[str], at: int) -> None:
        async with SqliteDirectory(path, read_only=False) as directory:
            await directory.add([(did, host, at) for did in dids], str(at), len(dids), 0)

    asyncio.run(fill("https://old.example", list(old.people), 1))

    async def move(run: ReposRun) -> None:
        await run.parts.clock.sleep(0.6)
        new.people[moved] = old.people.pop(moved)
        async with SqliteDirectory(path, read_only=False) as directory:
            await directory.add([(moved, "https://new.example", 2)], "2", 1, 0)

    result = play(net, out, did_file=None, directory=path, act=move)

    assert result.ends == {OK: 5, "moved moved": 1}
    assert len(net.sent["new.example"]) == 1
    check(out)


def test_a_deleted_account_gets_a_tombstone(tmp_path: Path) -> None:
    from sanderling.repos.directory import SqliteDirectory

    host, out, path = Pds("host.example").add(5), tmp_path / "out", tmp_path / "directory.db"
    first = next(iter(host.people))

    async def fill(url: str, dids: list[str], at: int) -> None:
        async with SqliteDirectory(path, read_only=False) as directory:
            await directory.add([(did, url, at) for did in dids], str(at), len(dids), 0)

    asyncio.run(fill("https://host.example", list(host.people), 1))
    net = Net(host)
    play(net, out, did_file=None, directory=path)
    asyncio.run(fill("", [first], 2))
    play(net, out, did_file=None, directory=path)

    assert "deleted" in asyncio.run(system.show(out, first)).said
    with system.records(out) as rows:
        assert first not in {msgspec.json.decode(line)["did"] for e in rows.entries() for line in e.lines}
    check(out)


def test_what_cannot_begin_is_said(tmp_path: Path) -> None:
    net = Net(Pds("host.example").add(1))
    bad = tmp_path / "bad.txt"
    bad.write_text("did:plc:abc https://ok.example\nnonsense\n")
    with pytest.raises(OptionError, match=r"bad.txt line 2"):
        play(net, tmp_path / "a", did_file=bad)
    bad.write_text("did:plc:abc http://plain.example\n")
    with pytest.raises(OptionError, match="--private allows http"):
        play(net, tmp_path / "a", did_file=bad)
    with pytest.raises(OptionError, match="HOST:8123, --did-file"):
        play(net, tmp_path / "a", did_file=None)
    with pytest.raises(FolderError, match="no archive to resume"):
        play(net, tmp_path / "a", resume=True)
    play(net, tmp_path / "b")
    (tmp_path / "b" / "repos.db").unlink()
    with pytest.raises(FolderError, match="has segments, and nothing says"):
        play(net, tmp_path / "b")


@pytest.mark.parametrize("where", ["header", "block", "part"])
def test_verify_names_a_flipped_bit(where: str, tmp_path: Path) -> None:
    net, out = Net(Pds("host.example").add(30)), tmp_path / "out"
    play(net, out, until=8 if where == "part" else None)
    (path,) = segments_in(out)
    content = bytearray(path.read_bytes())
    content[{"header": 21, "block": 200, "part": 150}[where]] ^= 4
    path.write_bytes(content)

    faults = asyncio.run(system.verify(out)).faults
    assert len(faults) == 1
    assert path.name in faults[0]
    assert ceil(len(faults[0]) / 100) < 5
    assert JSON
