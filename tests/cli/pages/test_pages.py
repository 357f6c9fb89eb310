"""The crawl as a person runs it, against a real server: its exit codes and words, and its signals as a process."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from command_line import (
    QUICK,
    Arrival,
    Script,
    called,
    commands,
    finish,
    here,
    page,
    paths,
    rows,
    run,
    running,
    sanderling,
    site,
)
from scripted_server import ScriptedServer, Step, answer, reset

from sanderling.cli.loop import TOGETHER

KEYS = [
    *(
        "complete",
        "crawl",
        "seconds",
        "known",
        "fetched",
        "unchanged",
        "moved",
        "refused",
        "left_out",
        "cut_off",
        "depth",
        "at_depth",
    ),
    *("failed", "left", "waiting"),
    *("bytes", "hosts", "seeds_fetched", "out", "failed_by"),
    *("set_aside", "set_aside_by"),
]


def test_a_site_is_crawled_and_what_came_of_it_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer(site()) as server:
            done = await sanderling("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK)

        assert (done.code, done.err) == (0, "")
        assert "Fetched 2 pages, " in done.out
        assert " from 1 host in " in done.out
        assert str(tmp_path / "out" / "pages.jsonl") in done.out
        assert commands(done.out) == [["verify", str(tmp_path / "out")]]
        assert paths(tmp_path / "out") == ["/", "/0"]

    run(main)


def test_as_json_there_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer(site()) as server:
            done = await here("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), "--json", *QUICK)

        summary = json.loads(done.out)
        assert (done.code, done.err) == (0, "")
        assert list(summary) == KEYS
        assert (summary["complete"], summary["seeds_fetched"]) == (True, True)
        assert (summary["known"], summary["fetched"], summary["hosts"], summary["crawl"]) == (2, 2, 1, 1)
        assert summary["out"] == str(tmp_path / "out")

    run(main)


@pytest.mark.parametrize(("depth", "lead_on"), [("0", 0), ("1", 1), ("2", 0), ("16", 0)])
def test_that_pages_lead_further_than_the_crawl_goes_is_told(tmp_path: Path, depth: str, lead_on: int) -> None:
    def leads(*links: str) -> bytes:
        return answer(200, "".join(f"<a href={each}>x</a>" for each in links).encode(), Content_Type="text/html")

    async def main() -> None:
        pages: dict[str, list[bytes | list[Step]]] = {
            "/": [leads("/a", "/c")],
            "/a": [leads("/", "/b")],
            "/b": [leads("/", "/a")],
            "/c": [leads("/a")],
        }
        async with ScriptedServer({**site(), **pages}) as server:
            asked = "pages", "crawl", server.url(), "--out", str(tmp_path / "out"), "--depth", depth, "--json"
            done = await here(*asked, *QUICK)

        assert json.loads(done.out)["at_depth"] == lead_on

    run(main)


def test_what_a_budget_cut_off_is_counted_and_asked_for_by_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: Script = {"/": [page("/0")], "/0": [page("/1")], "/1": [page("/2")], "/2": [page()]}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            out = str(tmp_path / "out")
            monkeypatch.setenv("SANDERLING_PAGES_MAX_PER_HOST", "2")
            few = await here("pages", "crawl", server.url(), "--out", out, *QUICK)
            listed, retry = (each for each in commands(few.out) if "--cut-off" in each)
            status = json.loads((await here("status", out, "--json")).out)
            cut = await here(*listed)
            same = await here("pages", "crawl", "--resume", "--out", out, "--json", *QUICK)
            asked = await here(*retry)
            monkeypatch.delenv("SANDERLING_PAGES_MAX_PER_HOST")
            all_of_it = await here("pages", "crawl", "--resume", "--out", out, "--json", *QUICK)

        assert (few.code, same.code, cut.code, asked.code) == (0, 0, 0, 0)
        assert "1 URL cut off by budgets. List them, or ask for them all the same:" in few.out
        assert status["kept"]["cut_off"] == 1
        assert "max-per-host: 2 pages of" in cut.out
        assert (json.loads(same.out)["fetched"], json.loads(same.out)["cut_off"]) == (2, 1)
        assert "The crawl holds 3 pages now" in asked.out
        summary = json.loads(all_of_it.out)
        assert (summary["fetched"], summary["cut_off"], summary["left_out"]) == (4, 0, 0)

    run(main)


def test_what_failed_is_counted_by_reason_and_makes_the_exit_code_1(tmp_path: Path) -> None:
    script: Script = {"/": [page("/gone", "/no")], "/gone": [answer(410)]}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            done = await here("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK)

        assert done.code == 1
        assert "2 URLs of 3 failed: 1 gone, 1 not found." in done.out
        retry = ["pages", "failed", str(tmp_path / "out"), "--retry", "--private"]
        assert retry in commands(done.out)
        assert str(tmp_path / "out" / "failed.jsonl") in done.out

    run(main)


def test_a_first_address_that_cannot_be_had_makes_the_exit_code_1(tmp_path: Path) -> None:
    script: Script = {"/": [page()], "/robots.txt": [answer(200, b"User-agent: *\nDisallow: /shut")]}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            urls = (server.url(), server.url("/shut"))
            done = await here("pages", "crawl", *urls, "--out", str(tmp_path / "out"), *QUICK)

        assert done.code == 1
        assert "robots.txt forbids 1 URL; nothing was sent" in done.out
        assert "Not every first address could be fetched." in done.out

    run(main)


def test_ones_own_machine_is_refused_at_once_and_the_way_out_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer(site()) as server:
            done = await here("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), "--no-parquet")

        assert done.code == 1
        assert "not called: our own guard, see --private" in done.out
        assert server.requests == []

    run(main)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "OUT"], "no address given; try: sanderling pages crawl https://"),
        (["https://a.example/"], "--out"),
        (["ftp://a.example/", "--out", "OUT"], "expected https or http"),
        (["a.example", "--out", "OUT"], "expected it to begin with https://"),
        (["https://user:secret@a.example/", "--out", "OUT"], "user info"),
        (["https://a.example/", "--out", "OUT", "--allow", "https://b.example/"], "expected a bare host"),
        (["https://a.example/", "--out", "OUT", "--depth", "-1"], "--depth. Must be >= 0"),
        (["https://a.example/", "--out", "OUT", "--max-pages", "0"], "--max-pages. Must be >= 1"),
        (["https://a.example/", "--out", "OUT", "--rps", "0"], "--rps. Must be > 0"),
        (["https://a.example/", "--out", "OUT", "--patience", "nan"], "--patience"),
        (["https://a.example/", "--out", "OUT", "--contact", "me"], "--contact"),
        (["--seeds", "OUT/nothing", "--out", "OUT"], "--seeds: cannot read"),
        (["https://a.example/", "--out", "OUT", "--leave-out", "OUT/nothing"], "--leave-out: cannot read"),
        (["https://a.example/", "--out", "OUT", "--leave-out", "FULL/thesis.txt"], "thesis.txt, line 2: host 'my own'"),
        (["https://a.example/", "--out", "FILE"], "is a file, expected a folder"),
        (["https://a.example/", "--out", "FULL"], "holds files of something else: thesis.txt"),
        (["--resume", "--out", "OUT"], "nothing to resume"),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("# who wrote it\nmy own\n")
    places = {"OUT": "out", "OUT/nothing": "out/nothing", "FILE": "file", "FULL": "full"}
    places["FULL/thesis.txt"] = "full/thesis.txt"
    given = [str(tmp_path / places[each]) if each in places else each for each in arguments]

    done = called("pages", "crawl", *given)

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "secret" not in done.err


def test_what_is_listed_is_left_out_and_that_is_said_and_not_forgotten(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer(site(3)) as server:
            listed, out = tmp_path / "out.txt", str(tmp_path / "out")
            listed.write_text(f"# who wrote to us\n{server.url('/1')}\n{server.url('/2')}*\n")
            given = (*QUICK, "--leave-out", str(listed))
            done = await here("pages", "crawl", server.url(), "--out", out, *given, "--max-pages", "1")
            asked = [request.path for request in server.requests]
            again = await here(*commands(done.out)[0])

            assert done.code == 0
            assert asked == ["/robots.txt", "/"]
            assert str(listed) in commands(done.out)[0]
            assert "2 URLs left out, as --leave-out says." in again.out
            assert (again.code, paths(tmp_path / "out")) == (0, ["/", "/0"])
            proof = called("verify", out)
            assert (proof.code, "left_out             2  listed with --leave-out" in proof.out) == (0, True)

    run(main)


def test_a_folder_of_another_crawl_is_not_mixed_with_this_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer({}) as server:
            await here("pages", "crawl", server.url("/a"), "--out", str(tmp_path / "out"), *QUICK)
            done = await here("pages", "crawl", server.url("/b"), "--out", str(tmp_path / "out"), *QUICK)

        assert (done.code, done.out) == (2, "")
        assert "crawl of another plan" in done.err

    run(main)


def test_two_crawls_do_not_share_a_folder(tmp_path: Path) -> None:
    begun = Arrival()
    script: Script = {"/": [[begun, 60.0]]}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK)
            async with running(*crawl) as first:
                await begun.came()
                second = await here(*crawl)

        assert (second.code, second.out) == (2, "")
        assert f"another crawl is running in {tmp_path / 'out'} (process {first.pid})" in second.err

    run(main)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_once_it_keeps_what_is_in_flight_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    begun = Arrival()
    script = site(3) | {"/0": [[begun, 0.5, page("/")]]}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), "--private", "--rps", "4")
            async with running(*crawl, "--no-parquet") as process:
                await begun.came()
                process.send_signal(number)
                stopped = await finish(process)
            kept = paths(tmp_path / "out")
            (again,) = (each for each in commands(stopped.out) if "--resume" in each)
            resumed = await here(*again)

        assert stopped.code == 130
        assert "finishing 1 request in flight; once more stops at once" in stopped.err
        assert "still to ask for. Nothing is lost; go on where it stopped with:" in stopped.out
        assert kept == ["/", "/0"]
        flags = ["--no-parquet", "--rps", "4", "--private"]
        assert again == ["pages", "crawl", "--resume", "--out", str(tmp_path / "out"), *flags]
        assert resumed.code == 0
        assert "The crawl holds 4 pages now" in resumed.out
        assert paths(tmp_path / "out") == sorted(script)

    run(main)


def test_stopped_twice_it_ends_at_once_and_says_how_to_go_on(tmp_path: Path) -> None:
    begun = Arrival()
    script: Script = {"/": [page("/never")], "/never": [[begun, 60.0], page()]}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK)
            async with running(*crawl) as process:
                await begun.came()
                process.send_signal(signal.SIGINT)
                assert process.stderr is not None
                said = await process.stderr.readline()
                await asyncio.sleep(TOGETHER)  # sooner it would count as the same
                process.send_signal(signal.SIGINT)
                stopped = await finish(process)
            (again,) = commands(stopped.err)
            resumed = await here(*again)

        assert said.startswith(b"finishing 1 request in flight")
        assert (stopped.code, stopped.out) == (130, "")
        assert stopped.err.startswith("sanderling: stopped at once; what was kept is safe. Go on with:")
        assert "Traceback" not in stopped.err
        assert resumed.code == 0
        assert paths(tmp_path / "out") == ["/", "/never"]

    run(main)


def test_what_max_pages_left_is_fetched_by_resume(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer(site(3)) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK)
            few = await here(*crawl, "--max-pages", "1")
            (again,) = (each for each in commands(few.out) if "--resume" in each)
            rest = await here(*again)

        assert (few.code, rest.code) == (0, 0)
        assert "3 URLs left because of --max-pages. Ask for them as well with:" in few.out
        assert len(rows(tmp_path / "out")) == 4

    run(main)


def test_the_same_command_again_fetches_only_what_has_changed(tmp_path: Path) -> None:
    script = site()
    body = b"<html><body><p>as ever</p></body></html>"
    script["/0"] = [answer(200, body, Content_Type="text/html", ETag='"1"'), answer(304)]

    async def main() -> None:
        async with ScriptedServer(script) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK)
            await here(*crawl)
            again = await here(*crawl, "--json")

        summary = json.loads(again.out)
        assert (summary["crawl"], summary["fetched"], summary["unchanged"]) == (2, 1, 1)
        assert (tmp_path / "out" / "earlier" / "0001" / "pages.jsonl").is_file()

    run(main)


def test_a_host_that_asked_for_quiet_has_it_from_the_next_run_too(tmp_path: Path) -> None:
    script: Script = {"/": [answer(429, Retry_After="3600")]}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), "--patience=1", "--json", *QUICK)
            await here(*crawl)
            before = len(server.requests)
            again = await here(*crawl)

        assert (len(server.requests), again.code) == (before, 3)
        assert json.loads(again.out)["set_aside_by"] == {"RATE_LIMITED": 1}

    run(main)


def test_broken_pages_do_not_keep_the_others_from_being_fetched(tmp_path: Path) -> None:
    """Two bodies that are cut short, and what is linked behind them; as the command is given, at its usual pace."""
    good = [f"/{number}" for number in range(6)]
    cut: list[bytes | list[Step]] = [[answer(200, b"<p>half of", Content_Length="1000"), reset]]
    script: Script = {"/": [page("/cut", "/cut-too", *good)], "/cut": cut, "/cut-too": cut}
    script |= {name: [page()] for name in good}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            # The broken ones are tried again for a minute and more, behind all others.
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK, "--max-pages", "7")
            done = await sanderling(*crawl, "--json")

        assert (done.code, json.loads(done.out)["failed"]) == (0, 0)
        assert paths(tmp_path / "out") == sorted(["/", *good])

    run(main)


def test_what_waits_for_a_host_that_does_not_answer_has_not_failed(tmp_path: Path) -> None:
    """The exit code is 3, every command says what waits and why, and the same command asks for it again."""
    out = str(tmp_path / "out")

    async def main() -> None:
        async with ScriptedServer({**site(), "/robots.txt": [[reset]]}) as server:
            crawl = ("pages", "crawl", server.url(), "--out", out, *QUICK, "--patience", "1")
            done = await here(*crawl)
            told = [await here(*command, out) for command in (("status",), ("pages", "failed"), ("verify",))]
            server.script["/robots.txt"] = [answer(404)]
            (tmp_path / "out" / "limiter.json").unlink()  # else the host is left alone for 15 seconds more
            again = await here(*crawl)

        assert (done.code, [each.code for each in told], again.code) == (3, [0, 0, 0], 0)
        assert all("1 URL, the connection was cut: robots.txt" in each.out for each in (done, *told[1:]))
        assert "set aside  1 of hosts that did not answer: 1 the connection was cut" in told[0].out
        assert "Nothing failed in " in told[1].out
        assert paths(tmp_path / "out") == ["/", "/0"]

    run(main)


def test_a_full_disk_is_a_message_and_not_a_traceback(tmp_path: Path) -> None:
    """The bodies cannot be written where a file stands in the way: the same road as for a disk that is full."""
    begun = Arrival()
    script: Script = {"/": [[begun, 1.0, page("/a.bin", *(f"/{n}" for n in range(40)))]]}
    script["/a.bin"] = [answer(200, b"\0\1\2\3" * 100, Content_Type="application/octet-stream")]
    script |= {f"/{n}": [[0.2, page()]] for n in range(40)}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK)
            async with running(*crawl) as process:
                await begun.came()
                (tmp_path / "out" / "bodies").write_text("in the way")
                done = await finish(process)

        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("sanderling: cannot use ")
        assert "Traceback" not in done.err
        assert "never awaited" not in done.err

    run(main)


def test_where_the_metrics_are_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer(site()) as server:
            crawl = ("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK, "--metrics-port", "0")
            done = await here(*crawl, "--json")

        assert done.err.startswith("metrics: http://127.0.0.1:")
        assert json.loads(done.out)["fetched"] == 2

    run(main)


def test_a_reader_who_has_gone_is_no_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer(site()) as server:
            command = f"{sys.executable} -m sanderling pages crawl {server.url()} --out {tmp_path / 'out'} --private"
            shell = await asyncio.create_subprocess_shell(f"{command} --no-parquet | true", stdout=PIPE, stderr=PIPE)
            done = await finish(shell)

        assert done.err == ""
        assert len(rows(tmp_path / "out")) == 2

    run(main)
