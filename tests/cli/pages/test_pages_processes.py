"""A crawl that several real processes share: whoever is killed, every URL comes to one end, once."""

import json
import os
import signal
from pathlib import Path

from command_line import QUICK, here, rows, run, start
from cookie_wall import PAGES, cookie_wall
from part_processes import asked, children, is_free, is_there, site, until
from warc_files import captured

from sanderling.crawls.parts import folders_of
from sanderling.crawls.verify import verify_parts
from sanderling.pages.verify import verify
from sanderling.worlds.site import SiteServer


def command(server: SiteServer, out: Path, processes: int) -> list[str]:
    urls = [server.url(host.name) for host in server.world.hosts]
    return ["pages", "crawl", *urls, "--out", str(out), "--processes", str(processes), *QUICK]


def test_whoever_is_killed_every_url_comes_to_one_end(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> set[str]:
        async with site() as server:
            process = await start(*command(server, out, 2))
            await until(lambda: asked(server) > 10)
            killed = children(process.pid)[0]
            os.kill(killed, signal.SIGKILL)
            before = asked(server)
            await until(lambda: asked(server) > before + 10 and len(children(process.pid)) == 2)
            left = children(process.pid)
            assert killed not in left
            process.kill()  # the one that people see; the others hear of it, and end
            await process.communicate()
            await until(lambda: not any(map(is_there, left)))
            done = await here(*command(server, out, 3))
            assert done.code == 1, done.err  # two broken links on each host
            return {server.url(host.name, path) for host in server.world.hosts for path, _ in host.ends()}

    expected = run(main)

    parts = folders_of(out)
    kept = [row["url"] for part in parts for row in (*rows(part), *rows(part, "failed.jsonl"))]
    assert sorted(kept) == sorted(expected)
    assert verify_parts(out, verify).ok


def test_a_session_goes_on_in_whichever_process_has_the_host(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> list[str]:
        async with cookie_wall() as wall:
            first = ["pages", "crawl", wall.url, "--out", str(out), "--processes", "2", "--rps", "20", *QUICK]
            process = await start(*first)
            await until(lambda: len(wall.asked) > 4)
            for child in children(process.pid):
                os.kill(child, signal.SIGKILL)  # each is started again
            await until(lambda: len(wall.asked) > 10)
            process.kill()
            await process.communicate()
            await until(lambda: is_free(out))
            assert len(wall.asked) < PAGES
            done = await here(*[{"2": "3"}.get(word, word) for word in first])
            assert done.code == 0, done.err
            return wall.refused

    assert run(main) == []
    assert sum(len(rows(part)) for part in folders_of(out)) == PAGES + 1


def test_a_warc_of_several_processes_has_each_page_once(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> None:
        async with site() as server:
            process = await start(*command(server, out, 2), "--keep", "warc")
            await until(lambda: asked(server) > 20)
            os.kill(children(process.pid)[0], signal.SIGKILL)
            before = asked(server)
            await until(lambda: asked(server) > before + 20)
            process.kill()
            await process.communicate()
            await until(lambda: is_free(out))
            done = await here(*command(server, out, 3), "--keep", "warc")
            assert done.code == 1, done.err  # two broken links on each host

    run(main)

    kept = [row["url"] for part in folders_of(out) for row in rows(part)]
    assert len(kept) > 60
    assert sorted(url for part in folders_of(out) for url in captured(part)) == sorted(kept)
    assert verify_parts(out, verify).ok


def test_one_that_is_stopped_stops_all_and_the_rest_is_asked_by_one_process(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[int, dict[str, object], set[str]]:
        async with site() as server:
            process = await start(*command(server, out, 2))
            await until(lambda: asked(server) > 10)
            process.send_signal(signal.SIGTERM)
            await process.communicate()
            done = await here(*command(server, out, 1), "--json")
            urls = {server.url(host.name, path) for host in server.world.hosts for path, _ in host.ends()}
            return process.returncode or 0, json.loads(done.out), urls

    code, summary, expected = run(main)

    assert code == 130
    assert summary["known"] == len(expected)
    assert summary["waiting"] == 0
    assert summary["complete"]


def test_a_crawl_in_parts_is_read_as_one(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[set[str], set[str], dict[str, int], set[str]]:
        async with site() as server:
            await here(*command(server, out, 2))
            proof = await here("verify", str(out), "--json")
            await here("export", str(out), "--to", str(tmp_path / "all.jsonl"))
            exported = {row["url"] for row in map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())}
            failed = await here("pages", "failed", str(out), "--json")
            broken = {json.loads(line)["url"] for line in failed.out.splitlines()}
            urls = {server.url(host.name, path) for host in server.world.hosts for path, _ in host.ends()}
            return exported, broken, json.loads(proof.out), urls

    exported, broken, proof, urls = run(main)

    assert exported | broken == urls
    assert not exported & broken
    assert proof["ok"]
    assert proof["finished"]
    assert proof["rows"] == len(exported)


def test_what_one_process_began_goes_on_with_two_and_then_with_one(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[set[str], str]:
        async with site() as server:
            process = await start(*command(server, out, 1))
            await until(lambda: asked(server) > 25)
            process.kill()
            await process.communicate()
            process = await start(*command(server, out, 2))
            await until((out / "parts.json").exists)
            process.kill()  # whatever it is at now
            await process.communicate()
            await until(lambda: is_free(out))
            done = await here(*command(server, out, 1))
            assert done.code == 1, done.err  # two broken links on each host
            wrong = await here(*command(server, tmp_path / "none", 0))
            assert wrong.code == 2
            return {server.url(host.name, path) for host in server.world.hosts for path, _ in host.ends()}, wrong.err

    expected, wrong = run(main)

    kept = [row["url"] for part in folders_of(out) for row in (*rows(part), *rows(part, "failed.jsonl"))]
    assert sorted(kept) == sorted(expected)
    assert verify_parts(out, verify).ok
    assert not (out / "ledger.db").exists()
    assert "--processes is '0', expected 1 or more, or auto" in wrong


def test_what_is_forgotten_is_in_no_part_any_more(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[str, str, int]:
        async with site() as server:
            process = await start(*command(server, out, 2))
            await until(lambda: asked(server) > 40)
            process.kill()  # so that something may be on its way between parts
            await process.communicate()
            host = server.url(server.world.hosts[3].name).split("/")[2]
            await until(lambda: is_free(out))
            said = await here("forget", str(out), host)
            assert said.code == 0, said.err
            asked_before = server.tallies[server.world.hosts[3].name].asked
            done = await here("pages", "crawl", "--resume", "--out", str(out), *QUICK)
            return host, done.err, server.tallies[server.world.hosts[3].name].asked - asked_before

    host, said, more = run(main)

    assert more == 0, said
    assert not [row for part in folders_of(out) for row in rows(part) if host in row["url"]]
    # What others say of it is theirs: links are in their rows.
    others = [path for path in out.rglob("*") if path.is_file() and path.name != "pages.jsonl"]
    assert not [path for path in others if host.encode() in path.read_bytes()]
    assert verify_parts(out, verify).ok
