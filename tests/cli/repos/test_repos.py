"""The crawl of repos as a person runs it: real processes against a real fleet, their signals, exit codes and words."""

import asyncio
import json
import re
import signal
from pathlib import Path
from urllib.request import urlopen

import pytest
from command_line import called, commands, finish, here, run, running, sanderling, start
from fleet_commands import archived, flags, live, served
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import ScriptedServer, answer

from sanderling.apis.atproto import AtprotoCategory
from sanderling.cli.loop import TOGETHER
from sanderling.formats.rca import encode_block
from sanderling.repos.segments import Segments
from sanderling.stores.ports import Finished
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.words import parse_size

ROOT = Path(__file__).parents[3]
KEYS = [
    *("complete", "seconds", "run", "archived", "bytes_written", "dropped", "unchanged", "gone", "failed"),
    *("scheduled", "due", "hosts_aside", "aside", "segments", "output_dir"),
]


def test_a_fleet_is_archived_and_what_came_of_it_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            done = await sanderling("repos", "crawl", *flags(tmp_path, server))

            assert (done.code, done.err) == (0, "")
            assert archived(tmp_path / "out") == live(server.fleet)
            assert "Archived 6 repos with " in done.out
            assert " from 3 hosts in " in done.out
            assert "The archive holds 6 repos, " in done.out
            named = [command for command in commands(done.out) if "replay" not in command]  # which takes seconds
            assert [command[:-1] for command in named] == [["repos", "inspect"], ["status"]]
            inspected, status = [await here(*command) for command in named]
            assert (inspected.code, status.code) == (0, 0)
            assert "The next run begins with the first DID." in status.out

    run(main)


def test_as_json_there_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        async with served("leading") as server:
            done = await here("repos", "crawl", *flags(tmp_path, server), "--json")

        summary = json.loads(done.out)
        assert (done.code, done.err) == (0, "")
        assert list(summary) == KEYS
        assert (summary["complete"], summary["archived"], summary["failed"]) == (True, 6, {})
        assert summary["gone"] == {"refused": 4}
        assert summary["run"]["archived"] == 6

    run(main)


def test_what_is_left_makes_the_exit_code_3_and_the_next_run_asks_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            given = flags(tmp_path, server)
            nobody = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa http://127.0.0.1:1\n"
            (tmp_path / "dids.txt").write_text((tmp_path / "dids.txt").read_text() + nobody)
            first = await here("repos", "crawl", *given, "--patience", "1")
            why = await here("why", "127.0.0.1:1", "--out", str(tmp_path / "out"))
            status = await here("status", str(tmp_path / "out"))
            (tmp_path / "dids.txt").write_text((tmp_path / "dids.txt").read_text().replace(nobody, ""))
            second = await here("repos", "crawl", *given, "--patience", "1")

            assert (first.code, second.code) == (3, 3), "it is not in the directory any more, and still left"
            assert "1 repo not archived for now: 1 no connection, or it was cut." in first.out
            assert "127.0.0.1:1  no connection, or it was cut (connection_error), due in " in first.out
            assert "127.0.0.1:1  no connection, or it was cut (connection_error), due in " in status.out
            assert "1 repo left; the first is due in " in status.out
            assert "It was set aside, by no fault of its repos: no connection, or it was cut" in why.out
            assert "1 repo of it still to be asked for: the host is set aside" in why.out
            assert ["repos", "crawl", "--out", str(tmp_path / "out")] == next(
                command[:4] for command in commands(first.out) if command[1] == "crawl"
            )
            assert archived(tmp_path / "out") == live(server.fleet), "once"
            assert "Archived 0 repos" in second.out

    run(main)


def test_a_host_that_only_refuses_is_left_after_our_patience_and_that_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        dids = [f"did:plc:{letter * 24}" for letter in "abcde"]
        paths = [f"/xrpc/com.atproto.sync.getRepo?did={did}" for did in dids]
        async with ScriptedServer({path: [answer(429, Retry_After="60")] for path in paths}) as server:
            (tmp_path / "dids.txt").write_text("".join(f"{did} {server.url('')}\n" for did in dids))
            given = ["--out", str(tmp_path / "out"), "--did-file", str(tmp_path / "dids.txt"), "--private"]
            done = await here("repos", "crawl", *given, "--patience", "30")
            status = await here("status", str(tmp_path / "out"))

            assert (done.code, len(server.requests)) == (3, 1)
            assert "5 repos not archived for now: 5 refused for now: rate limited." in done.out
            assert any("--patience" in command for command in commands(done.out)), "the same crawl again"
            assert "5  refused for now: rate limited (rate_limited)" in status.out

    run(main)


def test_ctrl_c_finishes_what_is_in_flight_and_says_how_to_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(hosts=4, repos=16) as server:
            async with running("repos", "crawl", *flags(tmp_path, server)) as process:
                while sum(tally.asked for tally in server.tallies.values()) < 3:  # noqa: ASYNC110 - a number
                    await asyncio.sleep(0.02)
                process.send_signal(signal.SIGINT)
                stopped = await finish(process)
            (again,) = (command for command in commands(stopped.out) if command[1] == "crawl")
            kept = archived(tmp_path / "out")

            assert stopped.code == 130
            assert "in flight; once more stops at once" in stopped.err
            assert 0 < len(kept) < 16
            assert not list((tmp_path / "out").glob("*.part")), "the segment is finished"
            done = await here(*again, "--resume", "--rps", "50")
            assert done.code == 0, done.err
            assert archived(tmp_path / "out") == live(server.fleet)

    run(main)


def test_ctrl_c_twice_stops_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        async with served("mute", hosts=1, repos=2) as server:
            process = await start("repos", "crawl", *flags(tmp_path, server))
            while server.tallies["mute.example"].asked < 1:  # noqa: ASYNC110 - a number
                await asyncio.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            while b"once more" not in await process.stderr.readline():
                pass
            await asyncio.sleep(TOGETHER)  # sooner it would count as the same
            process.send_signal(signal.SIGINT)
            stopped = await finish(process)

        assert stopped.code == 130
        assert "stopped at once; what was kept is safe" in stopped.err
        assert [command[:2] for command in commands(stopped.err)] == [["repos", "crawl"]]
        status = await here("status", str(tmp_path / "out"), "--json")
        assert json.loads(status.out)["kept"]["cursor"] == ""

    run(main)


def test_two_crawls_in_one_folder_are_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with served("mute", hosts=1, repos=2) as server:
            given = flags(tmp_path, server)
            async with running("repos", "crawl", *given):
                while server.tallies["mute.example"].asked < 1:  # noqa: ASYNC110 - a number
                    await asyncio.sleep(0.02)
                second = await here("repos", "crawl", *given)
                reset = await here("repos", "reset", "--out", str(tmp_path / "out"), "--yes")
                status = await here("status", str(tmp_path / "out"))

        assert (second.code, reset.code, status.code) == (2, 1, 0)
        assert "another crawl is running in " in second.err
        assert "another crawl is running in " in reset.err

    run(main)


def test_ones_own_machine_is_refused_and_the_way_out_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            given = [flag for flag in flags(tmp_path, server) if flag != "--private"]
            done = await here("repos", "crawl", *given)

        assert done.code == 2
        assert "the directory is empty; 6 endpoints in it not taken" in done.err

    run(main)


def test_a_skipped_host_is_left_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            skipped = server.fleet.pds[0]
            done = await here("repos", "crawl", *flags(tmp_path, server), "@skip-pds", f"{skipped.origin}/")

            assert done.code == 0
            assert server.tallies[skipped.name].asked == 0
            assert len(archived(tmp_path / "out")) == 6 - skipped.size
            assert f"{skipped.size} left out, as --leave-out or skip-pds says" in done.out

    run(main)


def test_who_is_listed_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            did = min(live(server.fleet))
            (tmp_path / "out.txt").write_text(f"# who wrote to us\n{did}\n{server.fleet.pds[0].origin}\n")
            given = (*flags(tmp_path, server), "--leave-out", str(tmp_path / "out.txt"))
            done = await here("repos", "crawl", *given, "--json")

            summary = json.loads(done.out)
            out = {each for each, host in server.fleet.directory() if each == did or host == server.fleet.pds[0].origin}
            assert (done.code, summary["gone"], summary["failed"]) == (0, {"left_out": len(out)}, {})
            assert archived(tmp_path / "out") == [each for each in live(server.fleet) if each not in out]
            assert server.tallies[server.fleet.pds[0].name].asked == 0

    run(main)


def test_what_an_earlier_archive_has_is_left_out_of_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            given = flags(tmp_path, server)
            await here("repos", "crawl", *given)
            later = [*given[2:], "--out", str(tmp_path / "later"), "--since-archive", str(tmp_path / "out")]
            done = await here("repos", "crawl", *later, "--json")

            revs = [end.rev for end in server.fleet.expected().values()]
            summary = json.loads(done.out)
            assert (done.code, summary["unchanged"]) == (0, sum(map(bool, revs)))
            assert summary["archived"] == revs.count("")

    run(main)


def test_metrics_are_served_while_it_runs(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            served("mute", hosts=1, repos=3) as server,
            running("repos", "crawl", *flags(tmp_path, server), "--metrics-port", "0") as process,
        ):
            assert process.stderr is not None
            said = (await process.stderr.readline()).decode()
            url = said.split()[1]
            text = ""
            while 'crawler_repos_processed_total{result="success"} 3.0' not in text:
                await asyncio.sleep(0.1)
                text = await asyncio.to_thread(lambda: urlopen(url, timeout=300).read().decode())  # noqa: S310 - our own

        assert 'crawler_http_requests_total{status_code="200"} 3.0' in text
        assert "crawler_repo_records_count 3.0" in text
        assert "crawler_pages_fetched_total 1.0" in text
        assert "sanderling_limiter_permits_total" in text

    run(main)


def test_settings_may_come_from_the_environment_and_flags_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"OUTPUT_DIR": str(tmp_path / "there"), "ZSTD_LEVEL": "99", "SEGMENT_SIZE": "nothing", "PAGE_SIZE": "0"}
    said = {}
    (tmp_path / "dids.txt").write_text("did:plc:a https://a.example\n")
    for name, value in names.items():
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            said[name] = called("repos", "crawl", "--did-file", str(tmp_path / "dids.txt"), "--resume").err

    assert f"nothing to resume in {tmp_path / 'there'}" in said["OUTPUT_DIR"]
    assert "ZSTD_LEVEL" in said["ZSTD_LEVEL"]
    assert "Must be <= 19" in said["ZSTD_LEVEL"]
    assert "Must be >= 1" in said["PAGE_SIZE"]
    monkeypatch.setenv("OUTPUT_DIR", str(tmp_path / "there"))
    assert f"resume in {tmp_path / 'here'}" in called("repos", "crawl", "--resume", "--out", str(tmp_path / "here")).err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--resume"], "nothing to resume in OUT; begin without --resume"),
        ([], "there is no directory of DIDs at OUT/directory.db"),
        (["--directory", "sqlite:OUT/none.db"], "there is no directory of DIDs at OUT/none.db"),
        (["--directory", "mysql:there"], "--directory: mysql:there, expected sqlite:PATH"),
        (["--did-file", "OUT/none"], "cannot use OUT/none: No such file"),
        (["--did-file", "DIDS", "--directory", "sqlite:DIDS"], "expected one of them"),
        (["--did-file", "DIDS", "@segment-size", "2XB"], "segment-size: '2XB', expected a size like 2GB"),
        (["--did-file", "DIDS", "@skip-pds", "ftp://a.example"], "skip-pds: scheme: 'ftp'"),
        (["--did-file", "DIDS", "--leave-out", "OUT/none"], "--leave-out: cannot read OUT/none: No such file"),
        (["--did-file", "DIDS", "--leave-out", "DIDS"], "DIDS, line 1: 'did:plc:a https://a.example' is no DID"),
        (["--did-file", "DIDS", "--contact", "me"], "--contact: contact is 'me'"),
        (["--did-file", "DIDS", "@redis-address", "nowhere"], "redis-address: 'nowhere', expected HOST:PORT"),
        (["--did-file", "DIDS", "@redis-address", "a:b@c:1"], "redis-address: '***@c:1', expected HOST:PORT"),
        (["--did-file", "DIDS", "--since-archive", "OUT"], "is where this crawl writes, expected an earlier one"),
        (["--did-file", "DIDS", "--since-archive", "EMPTY"], "EMPTY holds no segments"),
        (["--workers", "0"], "--workers. Must be >= 1"),
        (["--rps", "0"], "--rps. Must be > 0"),
        (["@zstd-level", "20"], "ZSTD_LEVEL. Must be <= 19"),
        (["@cids", "maybe"], 'Choose from: "strip", "keep"'),
        (
            ["--passes", "3"],
            "--passes is no flag any more: it is now --patience, for how long a host that does not answer",
        ),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "dids.txt").write_text("did:plc:a https://a.example\n")
    places = {"OUT": tmp_path / "out", "DIDS": tmp_path / "dids.txt", "EMPTY": tmp_path / "empty"}

    def placed(text: str) -> str:
        return re.sub("OUT|DIDS|EMPTY", lambda found: str(places[found[0]]), text)

    done = called("repos", "crawl", "--out", str(places["OUT"]), *map(placed, arguments))

    assert (done.code, done.out) == (2, "")
    assert placed(says) in done.err


def test_a_redis_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "dids.txt").write_text("did:plc:a https://a.example\n")

    done = called(
        *("repos", "crawl", "--out", str(tmp_path / "out")),
        *("--did-file", str(tmp_path / "dids.txt"), "@redis-address", "127.0.0.1:1"),
    )

    assert done.code == 1
    assert "no Redis answers at 127.0.0.1:1" in done.err


def test_segments_that_were_taken_away_are_missed(tmp_path: Path) -> None:
    """Their numbers would be given again, and what is in them is complete and nowhere."""
    (tmp_path / "dids.txt").write_text("did:plc:a https://a.example\n")
    progress = SqliteProgress(tmp_path / "out" / "progress.db")
    progress.record([Finished("did:plc:b", 10)], [], cursor=None, segment=3)
    progress.close()

    done = called("repos", "crawl", "--out", str(tmp_path / "out"), "--did-file", str(tmp_path / "dids.txt"))

    assert done.code == 2
    assert "speaks of segment 3, but " in done.err


def test_what_a_crash_left_is_not_finished_by_an_error(tmp_path: Path) -> None:
    """Finished, it would not be looked through again for repos that the progress does not know."""
    segments = Segments(tmp_path / "out", size=100, created_at=lambda: 1)
    segments.append([("did:plc:b", encode_block("did:plc:b", "https://a.example", "3a", 1, []))])
    segments.abandon()
    (tmp_path / "dids.txt").write_text("did:plc:a https://a.example\n")

    done = called(
        *("repos", "crawl", "--out", str(tmp_path / "out"), "--did-file", str(tmp_path / "dids.txt")),
        *("--since-archive", str(tmp_path / "nowhere")),
    )

    assert (done.code, "--since-archive: cannot use " in done.err) == (2, True)
    assert [path.name for path in (tmp_path / "out").glob("segment_*")] == ["segment_0001.rca.part"]
    status = called("status", str(tmp_path / "out"), "--json")
    assert json.loads(status.out)["kept"]["total_crawled"] == 1, "what it holds is recorded before anything else"


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 2**30), ("1.5mb", 3 * 2**19), ("10 kb", 10240), ("1tb", 2**40), ("12345", 12345), (".5KB", 512)],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(st.text(max_size=20).filter(lambda text: not re.fullmatch(r"\s*[0-9.]+ *([KMGT]B)?\s*", text, re.IGNORECASE)))
def test_any_other_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size like 2GB"):
        parse_size(text)


@pytest.mark.parametrize("text", ["0", "0.0001KB", "9" * 30, "1e400", "."])
def test_a_size_that_is_nothing_or_beyond_all_disks_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size like 2GB"):
        parse_size(text)


def test_the_flags_in_the_manual_are_those_it_takes() -> None:
    manual = (ROOT / "docs" / "repos.md").read_text()
    table = manual.partition("## Flags of `crawl`")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(--[a-z-]+)`", table, re.MULTILINE))

    done = called("repos", "crawl", "--help")

    assert documented == set(re.findall(r"--[a-z][a-z-]+", done.out.partition("Parameters")[2].partition("Example")[0]))


def test_the_categories_in_the_manual_are_those_of_the_code() -> None:
    manual = (ROOT / "docs" / "repos.md").read_text()
    table = manual.partition("## Categories")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `([a-z_]+)` \| (for good|for now) \|", table, re.MULTILINE))

    assert documented == {each.value: "for good" if each.permanent else "for now" for each in AtprotoCategory}
