"""A job that several real processes share: whoever is killed, every record is there once."""

import json
import os
import signal
from pathlib import Path
from textwrap import dedent

from command_line import here, rows, run, start
from leading_hosts import LeadingHosts, leading_hosts
from part_processes import asked, children, is_free, is_there, site, until

from sanderling.crawls.parts import folders_of
from sanderling.crawls.verify import verify_parts
from sanderling.jobs.verify import verify_job
from sanderling.jobs.watchdog import STUCK
from sanderling.worlds.site import SiteServer

JOB = """
from sanderling import Job

job = Job("sites", start=lambda arguments: URLS, hosts=HOSTS, rps=1000)

@job.page("/**")
def any_page(page):
    yield {"url": page.url, "part": "of the site"}
    yield from page.follow_all("a")
"""


def write(folder: Path, server: SiteServer, text: str = JOB) -> str:
    urls = [server.url(host.name) for host in server.world.hosts]
    path = folder / "job.py"
    names = sorted({url.split("/")[2] for url in urls})
    text = text.replace("HOSTS", repr(tuple(names)))
    path.write_text(dedent(text).replace("URLS", repr(urls)))
    return str(path)


def command(job: str, out: Path, processes: int, *more: str) -> list[str]:
    return ["run", job, "--out", str(out), "--private", "--processes", str(processes), *more]


def kept(out: Path) -> list[str]:
    return sorted(row["url"] for part in folders_of(out) for row in rows(part, "records.jsonl"))


def test_whoever_is_killed_every_record_is_there_once_and_it_is_read_as_one(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> None:
        async with site() as server:
            job = write(tmp_path, server)
            process = await start(*command(job, out, 2))
            await until(lambda: asked(server) > 20)
            killed = children(process.pid)[0]
            os.kill(killed, signal.SIGKILL)
            before = asked(server)
            await until(lambda: asked(server) > before + 10 and len(children(process.pid)) == 2)
            left = children(process.pid)
            assert killed not in left
            process.kill()  # the one that people see; the others hear of it, and end
            await process.communicate()
            await until(lambda: not any(map(is_there, left)))
            await until(lambda: is_free(out))
            done = await here(*command(job, out, 3, "--json"))
            summary = json.loads(done.out)
            alone = await here("run", job, "--out", str(tmp_path / "one"), "--private", "--json")
            assert (done.code, alone.code) == (1, 1), (done.err, alone.err)  # two broken links on each host
            same = ("records", "fetched", "failed", "known", "waiting", "complete", "failed_by")
            assert {name: summary[name] for name in same} == {name: json.loads(alone.out)[name] for name in same}
            url = server.url(server.world.hosts[3].name)
            shown = await here("show", str(out), url)
            assert (shown.code, url in shown.out) == (0, True), shown
            await read_as_one(out, tmp_path, json.loads(alone.out)["records"])

    run(main)

    assert kept(out) == sorted(row["url"] for row in rows(tmp_path / "one", "records.jsonl"))
    assert len(set(kept(out))) == len(kept(out))


async def read_as_one(out: Path, tmp_path: Path, records: int) -> None:
    """Other commands say of the parts what they say of a folder."""
    proof = json.loads((await here("verify", str(out), "--json")).out)
    assert (proof["ok"], proof["finished"], proof["records"]) == (True, True, records)
    await here("export", str(out), "--to", str(tmp_path / "all.jsonl"))
    exported = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert sorted(row["url"] for row in exported) == kept(out)
    assert {row["part"] for row in exported} == {"of the site"}
    status = json.loads((await here("status", str(out), "--json")).out)
    assert json.dumps(status).count(f'"records": {records}') >= 1, status
    host = exported[0]["url"].split("/")[2]
    why = await here("why", host, "--out", str(out))
    assert (why.code, host in why.out) == (0, True), why


def test_what_is_forgotten_is_in_no_part_any_more_and_budgets_are_those_of_all(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> tuple[str, int]:
        async with site() as server:
            bounded = write(tmp_path, server, JOB.replace("rps=1000", "rps=1000, max_records=30"))
            first = await here(*command(bounded, out, 2, "--json"))
            some = json.loads(first.out)
            assert 30 <= some["records"] <= 38, first.err  # what several processes had in hand at that moment
            assert (some["over_budget"], some["spent"], some["complete"]) == (True, ["max_records"], False)
            host = server.world.hosts[3].name
            named = server.url(host).split("/")[2]
            said = await here("forget", str(out), named)
            assert said.code == 0, said.err
            before = server.tallies[host].asked
            rest = await here(*command(write(tmp_path, server), out, 2))
            assert rest.code == 1, rest.err
            assert "records.jsonl" in rest.out
            return named, server.tallies[host].asked - before

    named, more = run(main)

    assert more == 0
    assert not [url for url in kept(out) if url.split("/")[2] == named]
    assert verify_parts(out, verify_job).ok


def test_what_one_process_began_goes_on_with_two(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> None:
        async with site() as server:
            job = write(tmp_path, server)
            process = await start(*command(job, out, 1, "--keep", "warc"))
            await until(lambda: asked(server) > 25)
            process.kill()
            await process.communicate()
            done = await here(*command(job, out, 2, "--keep", "warc"))
            alone = await here("run", job, "--out", str(tmp_path / "one"), "--private")
            assert (done.code, alone.code) == (1, 1), (done.err, alone.err)
            assert "is taken apart" in done.err

    run(main)

    assert kept(out) == sorted(row["url"] for row in rows(tmp_path / "one", "records.jsonl"))
    proof = verify_parts(out, verify_job)
    assert (proof.ok, proof.finished, proof.kept > 100) == (True, True, True), proof.problems


def test_a_process_that_a_call_held_up_is_started_again(tmp_path: Path) -> None:
    """The watchdog ends it with this code; here the function does."""
    once = f"""
    from pathlib import Path
    if not Path({str(tmp_path / "seen")!r}).exists():
        Path({str(tmp_path / "seen")!r}).touch()
        __import__("os")._exit({STUCK})
"""

    async def main() -> str:
        async with site() as server:
            job = write(tmp_path, server, JOB.replace("def any_page(page):\n", f"def any_page(page):{once}"))
            done = await here(*command(job, tmp_path / "out", 2))
            assert done.code == 1, done.err
            return done.err

    said = run(main)

    assert "was held up by one call, or did not reach its servers, and is started again; nothing is lost" in said
    assert len(kept(tmp_path / "out")) == len(set(kept(tmp_path / "out"))) > 100
    assert verify_parts(tmp_path / "out", verify_job).finished


def test_a_mistake_at_the_start_is_told_and_try_needs_no_processes(tmp_path: Path) -> None:
    async def main() -> tuple[str, str]:
        async with site() as server:
            job = write(tmp_path, server, JOB.replace("lambda arguments: URLS", "lambda arguments: [7]"))
            wrong = await here(*command(job, tmp_path / "out", 2))
            tried = await here("run", job, "--try", "3", "--processes", "2", "--private")
            assert (wrong.code, tried.code) == (2, 2)
            return wrong.err, tried.err

    wrong, tried = run(main)

    assert "ended with code 2; what it said is above" in wrong
    assert "--try asks for a few pages, by one process" in tried


def test_where_redirects_lead_one_process_asks_at_the_pace_of_the_host(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> LeadingHosts:
        async with leading_hosts() as hosts:
            done = await here(*command(hosts.write_job(tmp_path / "leads.py"), out, 2))
            assert done.code == 0, done.err
            return hosts

    hosts = run(main)

    records = [row for part in folders_of(out) for row in rows(part, "records.jsonl")]
    assert sorted(records, key=str) == sorted(hosts.expected, key=str)
    assert len(hosts.senders) == 2
    assert len({sender for _, sender in hosts.log}) == 1
    assert not hosts.too_fast(), str(hosts.log)
