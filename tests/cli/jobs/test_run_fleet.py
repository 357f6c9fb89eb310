"""A job that several machines share: whoever is killed or hangs, every record is there once, and it is read as one."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import dedent

import pytest
from command_line import Done, finish, here, rows, run, start
from leading_hosts import LeadingHosts, leading_hosts
from part_processes import asked, site, until
from services.postgres import fresh_database
from warc_files import captured

from sanderling.crawls.parts import folders_of
from sanderling.worlds.site import SiteServer

PARTS = 8
JOB = """
from sanderling import Job

job = Job("sites", start=lambda arguments: URLS, hosts=HOSTS, rps=20, arguments={"since": 1})

@job.page("/**")
def any_page(page):
    yield {"url": page.url, "part": "of the site"}
    yield from page.follow_all("a")
"""
# Of each page of the third host, the function never returns.
HANGS = """
from sanderling import Job

job = Job("sites", start=lambda arguments: URLS, hosts=HOSTS, rps=20)

@job.page("/**")
def any_page(page):
    while page.url == URLS[3]:
        pass
    yield {"url": page.url}
"""


@dataclass(frozen=True)
class Shared:
    """A job of a name of its own; each machine has a folder."""

    root: Path
    name: str
    fleet: tuple[str, ...]
    objects: str

    def command(self, server: SiteServer, machine: str = "one", *more: str, text: str = JOB) -> list[str]:
        """What a machine runs."""
        urls = [server.url(host.name) for host in server.world.hosts]
        names = tuple(sorted({url.split("/")[2] for url in urls}))
        job, out = self.root / f"{machine}.py", self.root / machine / self.name
        job.write_text(dedent(text).replace("URLS", repr(urls)).replace("HOSTS", repr(names)))
        return [
            "run", str(job), "--out", str(out), "--private", "--fleet-parts", str(PARTS), "--lease", "3", *self.fleet,
            "--objects", self.objects, *more,
        ]  # fmt: skip

    def of(self, *words: str) -> list[str]:
        """A command of `sanderling fleet`."""
        return ["fleet", words[0], self.name, *self.fleet, *words[1:]]

    def pull(self, out: Path) -> list[str]:
        """The command that makes a folder of it."""
        return self.of("pull", "--objects", self.objects, "--out", str(out))


@pytest.fixture
def shared(postgres: str, tmp_path: Path) -> Iterator[Shared]:
    """A job whose objects are files."""
    with fresh_database(postgres) as url:
        yield Shared(tmp_path, f"jobs-{secrets.token_hex(4)}", ("--fleet", url), f"file:{tmp_path / 'objects'}")


def kept(out: Path) -> list[str]:
    return sorted(row["url"] for part in folders_of(out) for row in rows(part, "records.jsonl"))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("keep", ["html", "warc"])
def test_whoever_is_killed_every_record_is_there_once_and_it_is_read_as_one(shared: Shared, keep: str) -> None:
    out, alone = shared.root / "pulled", shared.root / "alone"

    async def main() -> dict[str, Done]:
        async with site() as server:
            first = await start(*shared.command(server, "one", "--json", "--keep", keep))
            await until(lambda: asked(server) > 20)
            second = await start(*shared.command(server, "two", "--json", "--keep", keep))
            await until((shared.root / "two" / shared.name / "copies").is_dir)
            before = asked(server)
            await until(lambda: asked(server) > before + 20)
            first.kill()  # -9
            await first.communicate()
            said = {"half": await here(*shared.pull(out))}
            said["second"] = await finish(second)
            url = server.url(server.world.hosts[3].name)
            for name, words in {
                "status": shared.of("status", "--json"),
                "pull": shared.pull(out),
                "pull again": shared.pull(out),
                "verify": ["verify", str(out), "--json"],
                "export": ["export", str(out), "--to", str(shared.root / "all.jsonl")],
                "show": ["show", str(out), url],
                "third": shared.command(server, "three", "--json", "--keep", keep),
            }.items():
                said[name] = await here(*words)
            job = str(shared.root / "one.py")
            said["alone"] = await here("run", job, "--out", str(alone), "--private", "--json")
            said["on"] = await here("run", job, "--out", str(out), "--private", "--json")
            assert url in said["show"].out
            return said

    said = run(main)

    codes = {name: (done.code, done.err) for name, done in said.items() if done.code}
    assert codes.keys() == {"alone", "on", "second", "third"}, codes  # two broken links on each host
    everything = sorted(row["url"] for row in rows(alone, "records.jsonl"))
    assert kept(out) == everything
    assert len(list(out.glob("parts/*/records.jsonl"))) > 4
    ended, status = json.loads(said["second"].out), json.loads(said["status"].out)
    assert (ended["done"], ended["records"], ended["waiting"]) == (True, len(everything), 0)
    assert (status["system"], status["done"], status["records"]) == ("jobs", True, len(everything))
    assert "as far as it is" in said["half"].out
    assert "the whole crawl" in said["pull"].out
    assert said["pull again"].out.startswith("0 bytes of rows")
    proof = json.loads(said["verify"].out)
    assert (proof["ok"], proof["finished"], proof["records"]) == (True, True, len(everything))
    assert proof["kept"] >= len(everything)
    if keep == "warc":
        with_answers = [part for part in folders_of(out) if (part / "kept.jsonl").exists()]
        kept_lines = [row for part in with_answers for row in rows(part, "kept.jsonl")]
        captures = [url for part in folders_of(out) for url in captured(part)]
        assert sorted(captures) == sorted(row["url"] for row in kept_lines)
    exported = [json.loads(line) for line in (shared.root / "all.jsonl").read_text().splitlines()]
    assert sorted(row["url"] for row in exported) == everything
    assert json.loads(said["third"].out)["done"]
    same = ("records", "fetched", "failed", "known", "waiting", "complete", "failed_by")
    on, once = json.loads(said["on"].out), json.loads(said["alone"].out)
    assert ended["failed"] == status["failed"] == once["failed"]
    assert {name: on[name] for name in same} == {name: once[name] for name in same}


@pytest.mark.timeout(180)
def test_a_function_that_hangs_costs_its_page_and_not_the_fleet(shared: Shared) -> None:
    """Two workers end by it; whoever is started then knows that the page has failed, and why."""
    out = shared.root / "pulled"

    async def main() -> tuple[list[Done], Done, str]:
        async with site() as server:
            hung = [await here_in_a_process(server, machine) for machine in ("one", "two")]
            last = await here_in_a_process(server, "three")
            await here(*shared.pull(out))
            return hung, last, server.url(server.world.hosts[3].name)

    async def here_in_a_process(server: SiteServer, machine: str) -> Done:
        return await finish(await start(*shared.command(server, machine, "--json", text=HANGS)))

    hung, last, url = run(main)

    assert [each.code for each in hung] == [75, 75], hung
    assert (last.code, json.loads(last.out)["done"], json.loads(last.out)["failed"]) == (1, True, 1), last
    assert url not in kept(out)
    assert len(kept(out)) == 9
    (failed,) = [row for part in folders_of(out) for row in rows(part, "failed.jsonl")]
    assert (failed["url"], failed["outcome"]) == (url, "PARSE_ERROR")
    assert "held the event loop" in failed["detail"]
    assert "any_page" in failed["detail"]


@pytest.mark.timeout(180)
def test_a_budget_that_is_spent_ends_all_and_a_larger_one_goes_on(shared: Shared) -> None:
    async def main() -> list[Done]:
        async with site() as server:
            bounded = JOB.replace("rps=20", "rps=20, max_records=30")
            workers = [await start(*shared.command(server, name, text=bounded)) for name in ("one", "two")]
            return [*[await finish(each) for each in workers], await here(*shared.command(server, "one", "--json"))]

    first, second, rest = run(main)

    assert {first.code, second.code} <= {0, 1}, (first, second)
    assert rest.code == 1, rest  # some links are broken
    assert "still wait, since max_records is reached" in first.out + second.out
    assert (json.loads(rest.out)["done"], json.loads(rest.out)["waiting"]) == (True, 0)


@pytest.mark.timeout(180)
def test_a_retry_asks_again_for_what_failed_by_as_many_machines_as_there_are(shared: Shared) -> None:
    async def main() -> tuple[list[Done], list[int]]:
        async with site() as server:
            done, counts = [await here(*shared.command(server, "one", "--json"))], [asked(server)]
            workers = [await start(*shared.command(server, name, "--json", "--retry")) for name in ("two", "three")]
            done += [await finish(each) for each in workers]
            counts.append(asked(server))
            done.append(await here(*shared.pull(shared.root / "pulled")))
            return done, counts

    done, counts = run(main)

    assert [each.code for each in done] == [1, 1, 1, 0], done
    assert [json.loads(each.out)["failed"] for each in done[:3]] == [20] * 3
    failed = sum(len(rows(part, "failed.jsonl")) for part in folders_of(shared.root / "pulled"))
    assert failed == 20  # two broken links on each host
    assert failed <= counts[1] - counts[0] <= failed + 10  # and robots.txt of each host
    assert len(kept(shared.root / "pulled")) == json.loads(done[1].out)["records"] == json.loads(done[0].out)["records"]


@pytest.mark.timeout(180)
def test_where_redirects_lead_one_machine_asks_at_the_pace_of_the_host(shared: Shared) -> None:
    out = shared.root / "pulled"

    async def main() -> LeadingHosts:
        async with leading_hosts(12) as hosts:
            job, flags = hosts.write_job(shared.root / "leads.py"), ("--private", "--fleet-parts", str(PARTS))
            shared_by = (*flags, "--lease", "3", *shared.fleet, "--objects", shared.objects)
            workers = [
                await start("run", job, "--out", str(shared.root / each / shared.name), *shared_by)
                for each in ("one", "two")
            ]
            ended = [await finish(each) for each in workers]
            assert [each.code for each in ended] == [0, 0], ended
            await here(*shared.pull(out))
            return hosts

    hosts = run(main)

    records = [row for part in folders_of(out) for row in rows(part, "records.jsonl")]
    assert sorted(records, key=str) == sorted(hosts.expected, key=str)
    assert not hosts.too_fast(), str(hosts.log)
    by_turn = [sender for sender, _ in groupby(sender for _, sender in sorted(hosts.log))]
    assert len(by_turn) <= 2  # the second machine may have taken the part over


OTHER_BODY = JOB.replace("part", "piece")


@pytest.mark.timeout(180)
def test_another_file_is_refused_while_others_work_and_goes_on_when_nobody_does(shared: Shared) -> None:
    async def main() -> list[Done]:
        async with site() as server:
            first = await start(*shared.command(server, "one", "--json"))
            await until(lambda: asked(server) > 5)
            status = await here(*shared.of("status"))
            other = await here(*shared.command(server, "two", "--json", text=OTHER_BODY))
            drained = await here(*shared.of("drain"))
            await finish(first)
            last = await here(*shared.command(server, "two", "--json", text=OTHER_BODY))
            return [status, other, drained, last]

    status, other, drained, last = run(main)

    assert " job " in status.out
    assert other.code == 2, other
    said = " ".join(other.err.split())
    assert "by another file: job " in said
    assert f"sanderling fleet drain {shared.name}" in said
    assert drained.code == 0, drained
    assert (last.code, json.loads(last.out)["done"]) == (1, True), last


OTHER_READERS = JOB.replace("any_page", "each_page")


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (JOB.replace('Job("sites"', 'Job("others"'), (), "it is the job sites, not others"),
        (OTHER_READERS, (), "its readers are any_page, not each_page"),
        (JOB, ("--set", "since=2"), "it has other arguments: since is 1, not 2"),
        (JOB, ("--keep", "html"), "its --keep is not given, not html"),
        (JOB, ("--keep", "warc"), "its --keep is not given, not warc"),
        (JOB, ("--from", "nowhere"), "--from reads what this machine has"),
        (JOB, ("--try", "3"), "--try asks for a few pages, and shares nothing"),
    ],
)
def test_what_is_not_the_same_job_is_refused_and_says_what_differs(
    begun: Shared, text: str, more: tuple[str, ...], said: str
) -> None:
    async def main() -> Done:
        async with site() as server:
            done = await here(*begun.command(server, "other", *more, text=text))
            assert asked(server) == 0
            return done

    done = run(main)

    assert done.code == 2, done
    assert said in " ".join(done.err.split())


@pytest.fixture
def begun(shared: Shared) -> Shared:
    """One that is done, of a single page."""

    async def main() -> None:
        async with site() as server:
            text = JOB.replace("start=lambda arguments: URLS", "start=lambda arguments: URLS[:1], max_depth=0")
            done = await here(*shared.command(server, "one", text=text))
            assert done.code == 0, done

    run(main)
    return shared
