"""A job in parts, under virtual time: what one process brings, each record once, whoever is killed."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from parts_in_one_loop import PartsInOneLoop
from plays import seeds
from small_api import Api, answer, inline, lines
from small_api import api as by_url
from small_api import run as run_alone
from small_shop import html

from sanderling import Job, JobReply, Page, Request
from sanderling.apis.auth import OAuth2
from sanderling.crawls.errands import Brought, Errand
from sanderling.crawls.exchange import exchange_files
from sanderling.crawls.part_folders import BegunParts
from sanderling.crawls.parts import part_folder, part_of
from sanderling.crawls.verify import CrawlProof, verify_parts
from sanderling.fetch.transport import Transport
from sanderling.jobs.aliases import AliasClaim, AliasVerdict, JobMail, judge_claims, url_in
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.parts import begin_job_parts
from sanderling.jobs.request import key_of
from sanderling.jobs.rules import JobRules
from sanderling.jobs.run import JobRun, hosts_of
from sanderling.jobs.verify import verify_job
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.limit.slices import Slices
from sanderling.outcome import Code, Outcome
from sanderling.stores.board import Board
from sanderling.stores.frontier_requests import EndedRequest, FoundRequest, JobProgress, RequestFrontier
from sanderling.stores.frontier_rows import End
from sanderling.testing import LoopClock, run_virtual

HOSTS, ITEMS = 24, 6


class JobParts(PartsInOneLoop):
    """All parts of a job."""

    def __init__(self, root: Path, job: Job, of: Api) -> None:
        super().__init__(root)
        self.job, self.api, self.slices = job, of, Slices()
        self.logins: tuple[str, ...] = ()

    def begin(self, clock: LoopClock) -> BegunParts:
        return begin_job_parts(self.root, self.job, self.job.arguments_with({}), clock.wall(), None, retry=False)

    def open_run(self, part: int, board: Board, clock: LoopClock) -> JobRun:
        path, hosts = part_folder(self.root, part), hosts_of(self.job)
        folder = JobFolder.open(path, self.job, self.job.arguments_with({}), hosts, clock.wall())
        folder.join(exchange_files(self.root, part, board, JobMail, folder.ledger.meta))
        rules = LimiterRules(pace=PaceRules(initial_rps=10, max_rps=10)).with_logins(self.logins)
        limiter = Limiter(rules, clock=clock, rng=Random(1), slices=self.slices)
        transport = Transport(self.sender(self.api, part), limiter, Memory(2**30))
        return JobRun(folder, transport, inline, rules=JobRules(), clock=clock)

    @property
    def records(self) -> list[dict[str, object]]:
        return [each for part in range(self.number) for each in lines(part_folder(self.root, part) / "records.jsonl")]

    @property
    def proof(self) -> CrawlProof:
        return verify_parts(self.root, verify_job)


def host(number: int) -> str:
    return f"http://h{number % HOSTS}.example"


def job_of_lists(**options: Any) -> Job:  # noqa: ANN401 - of a job
    """Lists of hosts that lead to each other; each entry is asked for at another host, by priority, with data."""
    job = Job("lists", start=_start, hosts=("*.example",), rps=10, **options)

    @job.read
    def listing(reply: JobReply) -> Iterator[object]:
        for each in reply.json()["entries"]:
            yield Request(f"{host(each)}/entry/{each}", read="entry", priority=each % 3, data={"seen": each})

    @job.read
    def entry(reply: JobReply) -> Iterator[object]:
        yield {"id": reply.json()["id"], "seen": reply.request.data["seen"]}

    return job


starts: Counter[str] = Counter()


def _start(_: object) -> Iterator[Request]:
    starts["lists"] += 1
    for number in range(HOSTS):
        yield Request(f"{host(number)}/list/{number}", read="listing")


def lists() -> Api:
    answers: dict[str, object] = {}
    for number in range(HOSTS):
        entries = [(number * ITEMS + each) * 7 % (HOSTS * ITEMS) for each in range(ITEMS)]
        answers[f"{host(number)}/list/{number}"] = {"entries": entries}
        answers |= {f"{host(each)}/entry/{each}": {"id": each} for each in entries}
    return by_url(answers)


EVERY = sorted(({"id": each, "seen": each} for each in range(HOSTS * ITEMS)), key=str)


def test_parts_bring_what_one_process_brings_and_start_once(tmp_path: Path) -> None:
    alone = run_alone(job_of_lists(), tmp_path / "one", lists())
    world = lists()
    parts = JobParts(tmp_path / "many", job_of_lists(), world)
    before = starts["lists"]
    parts.run()

    assert sorted(parts.records, key=str) == sorted(alone.records, key=str) == EVERY
    assert sorted(world.urls) == sorted(set(world.urls))
    assert starts["lists"] == before + 1
    assert (parts.proof.ok, parts.proof.finished, parts.proof.rows) == (True, True, HOSTS * ITEMS)
    assert set(parts.complete.values()) == {True}
    assert len([1 for part in range(8) if lines(part_folder(tmp_path / "many", part) / "records.jsonl")]) > 4


@pytest.mark.parametrize("seed", seeds(6))
def test_whoever_is_killed_every_record_is_there_once(tmp_path: Path, seed: int) -> None:
    """Also the part that starts the job, while it does."""
    chance = Random(seed)
    parts = JobParts(tmp_path, job_of_lists(), lists())
    kills = {chance.uniform(0.0, 4): chance.randrange(8) for _ in range(12)}
    parts.run(kills | {0.0: 0})

    assert sorted(parts.records, key=str) == EVERY
    assert parts.proof.ok, parts.proof.problems
    assert set(parts.complete.values()) == {True}


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    world = lists()
    parts = JobParts(tmp_path, job_of_lists(), world)
    parts.run(stop_after=0.4)
    assert 0 < len(world.urls) < HOSTS * ITEMS
    parts.run()

    assert sorted(parts.records, key=str) == EVERY
    assert sorted(world.urls) == sorted(set(world.urls))


@pytest.mark.parametrize(("limit", "number"), [("max_requests", 60), ("max_records", 50)])
def test_a_budget_is_that_of_all_parts_and_more_is_had_with_a_larger_one(
    tmp_path: Path, limit: str, number: int
) -> None:
    world = lists()
    parts = JobParts(tmp_path, job_of_lists(**{limit: number}), world)
    parts.run()
    parts.run()  # which has nothing left to spend

    assert (len(world.urls) if limit == "max_requests" else len(parts.records)) == number
    assert not all(parts.complete.values())
    parts.job = job_of_lists()
    parts.run()
    assert sorted(parts.records, key=str) == EVERY


def apart(first: str, second: str) -> bool:
    return part_of(first, 8) != part_of(second, 8)


OLD = [f"old{each}.example" for each in range(40)]
NEW = next(f"new{each}.example" for each in range(99) if all(apart(f"new{each}.example", old) for old in OLD[:3]))
FROM = [each for each in OLD if apart(each, NEW)][:3]
SAME = next(each for each in (f"same{n}.example" for n in range(99)) if not apart(each, NEW))


def job_of_moves(*urls: str) -> Job:
    job = Job("moves", start=list(urls), hosts=("*.example",), rps=10)

    @job.page("/item/{number}")
    def item(page: Page, number: int) -> Iterator[object]:
        yield {"number": number, "at": page.url}

    return job


def moved(*old: str, **more: object) -> Api:
    """All that is at the old hosts has moved to the new one."""
    answers: dict[str, object] = {
        f"http://{each}/item/1": answer(status=302, Location=f"http://{NEW}/item/1") for each in old
    }
    return by_url(answers | {f"http://{NEW}/item/1": html("<h1>One</h1>")} | more)


@pytest.mark.parametrize("seed", seeds(4))
def test_a_page_that_redirects_of_several_parts_lead_to_is_kept_once(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    urls = [f"http://{each}/item/1" for each in (*FROM, SAME, NEW)][: 3 + seed % 3]
    parts = JobParts(tmp_path, job_of_moves(*urls), moved(*FROM, SAME))
    parts.run({chance.uniform(0.0, 1.5): chance.randrange(8) for _ in range(seed * 3)})

    assert parts.records == [{"number": "1", "at": f"http://{NEW}/item/1"}]
    assert parts.strangers() == []
    assert parts.proof.ok, parts.proof.problems
    assert (parts.proof.counts[End.FETCHED], parts.proof.counts[End.WAITING]) == (len(urls), 0)


def job_of_leads() -> Job:
    """What many hosts lead to is at one, which has entries of its own. Records say what was asked, and what came."""
    urls = [f"{host(each)}/lead/{each}" for each in range(HOSTS)] + [f"http://{NEW}/own/{each}" for each in range(12)]
    job = Job("leads", start=urls, hosts=("*.example",), rps=10)

    @job.read
    def entry(reply: JobReply) -> Iterator[object]:
        yield {"asked": reply.request.url, "came": reply.url, "id": reply.json()["id"]}
        if reply.url.endswith("/more"):
            yield Request(f"/only/{reply.json()['id']}", read="entry")

    return job


def leads() -> Api:
    """Some by way of a third host, some with an answer that is refused first, one that leads back and forth."""
    answers: dict[str, object] = {f"http://{NEW}/own/{each}": {"id": -each} for each in range(12)}
    for each in range(HOSTS):
        final = f"http://{NEW}/entry/{each}{'/more' if each % 4 == 0 else ''}"
        by = f"{host(each + 1)}/by/{each}" if each % 3 == 0 else final
        answers |= {f"{host(each)}/lead/{each}": answer(status=307, Location=by), final: {"id": each}}
        answers |= {f"{host(each + 1)}/by/{each}": answer(status=302, Location=final)}
        answers |= {f"http://{NEW}/only/{each}": {"id": each * 100}}
    answers[f"http://{NEW}/entry/7"] = [answer(status=503), answer({"id": 7})]
    answers[f"http://{NEW}/entry/11"] = answer(status=302, Location=f"{host(11)}/lead/11")
    return by_url(answers)


@pytest.mark.parametrize("seed", seeds(5))
def test_where_redirects_of_all_parts_lead_one_asks_at_its_pace_and_records_are_those_of_one_process(
    tmp_path: Path, seed: int
) -> None:
    alone = run_alone(job_of_leads(), tmp_path / "one", leads())
    chance = Random(seed)
    parts = JobParts(tmp_path / "many", job_of_leads(), leads())
    parts.run({chance.uniform(0.0, 6): chance.randrange(8) for _ in range(seed * 2)})

    assert sorted(parts.records, key=str) == sorted(alone.records, key=str)
    assert len(parts.records) == HOSTS - 1 + 12 + HOSTS // 4
    assert parts.strangers() == []
    assert seed or parts.closest(NEW) > 0.0999  # whoever is killed begins with what its limiter does not know here
    assert parts.proof.ok, parts.proof.problems
    assert parts.proof.counts[End.WAITING] == 0


def test_robots_txt_of_where_a_redirect_leads_is_asked_by_the_part_of_the_host(tmp_path: Path) -> None:
    rules = answer(body=b"User-agent: *\nDisallow: /item/2\n", Content_Type="text/plain")
    of = moved(*FROM, **{f"http://{NEW}/robots.txt": rules})
    parts = JobParts(tmp_path, job_of_moves(*(f"http://{each}/item/1" for each in FROM)), of)
    parts.run()

    assert len(parts.records) == 1
    assert f"http://{NEW}/robots.txt" in of.urls
    assert parts.strangers() == []


def test_of_what_arrives_once_a_part_has_ended_requests_are_kept_and_nothing_else(tmp_path: Path) -> None:
    url = f"{host(3)}/entry/3"
    found = FoundRequest(url, host(3).removeprefix("http://"), 1, key_of("GET", url, None), "entry")
    mail = [AliasVerdict(7, granted=True), found, Errand(1, 2, url), Brought(2, url)]
    parts = JobParts(tmp_path, job_of_lists(), lists())

    async def main() -> dict[str, int]:
        clock = LoopClock()
        parts.begin(clock)
        run = parts.open_run(part_of(found.host, 8), Board(tmp_path / "board", 8, make=True), clock)
        run._keep_rest(mail, {})
        waiting = run.folder.ledger.waiting()
        run.folder.__exit__()
        return waiting

    assert run_virtual(main()) == {found.host: 1}


def test_an_address_is_found_in_all_that_parts_write_to_each_other() -> None:
    url = f"http://{NEW}/item/1"
    mail = [claim(1, 2).alias, claim(1, 2), Errand(1, 2, url), Brought(2, url), AliasVerdict(2, granted=True)]

    assert [url_in(msgspec.json.encode(each)) for each in mail] == [url] * 4 + [""]


TOKENS = "tokens.example"


@pytest.mark.parametrize("wait", ["", "20"])
def test_a_host_that_gives_tokens_to_all_parts_has_its_pace_and_is_left_alone_by_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: str
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    job = Job(
        "let-in",
        start=[f"{host(each)}/entry/{each}" for each in range(HOSTS)],
        hosts=("*.example",),
        auth=OAuth2(f"http://{TOKENS}/token", "me", "env:SECRET"),
    )

    @job.read
    def entry(reply: JobReply) -> Iterator[object]:
        yield {"id": reply.json()["id"]}

    refused = [answer(status=429, Retry_After=wait)] if wait else []
    answers: dict[str, object] = {f"{host(each)}/entry/{each}": {"id": each} for each in range(HOSTS)}
    answers[f"http://{TOKENS}/token"] = [*refused, answer({"access_token": "t", "expires_in": 3600})]
    parts = JobParts(tmp_path, job, by_url(answers))
    parts.logins = (TOKENS,)
    parts.run()

    assert sorted(each["id"] for each in parts.records) == list(range(HOSTS))  # type: ignore[type-var]
    asked = sorted(each.begun for each in parts.log if each.host == TOKENS)
    assert len({each.part for each in parts.log if each.host == TOKENS}) > 4
    assert parts.closest(TOKENS) > 0.0999
    assert not wait or not [at for at in asked if asked[0] + 0.3 < at < asked[0] + 20]


@pytest.mark.parametrize("after", [each / 10 for each in range(16)])
def test_one_that_is_stopped_while_it_waits_for_another_part_asks_again_later(tmp_path: Path, after: float) -> None:
    """For robots.txt of the host that it is led to, for the page there, or for who keeps it."""
    parts = JobParts(tmp_path, job_of_moves(f"http://{FROM[0]}/item/1"), moved(*FROM))
    parts.run(stop_after=after)
    parts.run()

    assert len(parts.records) == 1
    assert parts.proof.counts[End.FAILED] == parts.proof.counts[End.REFUSED] == 0
    assert set(parts.complete.values()) == {True}


def claim(part: int, request: int, number: int = 1) -> AliasClaim:
    url = f"http://{NEW}/item/{number}"
    return AliasClaim(FoundRequest(url, NEW, 0, key_of("GET", url, None), "item"), part, request)


def test_who_claims_an_address_first_keeps_its_page_however_often_it_asks(tmp_path: Path) -> None:
    with closing(RequestFrontier(tmp_path / "frontier.db", ("item",))) as ledger:
        first = judge_claims(ledger, [claim(1, 7), claim(2, 7), claim(1, 7)])
        ledger.commit_requests([], [], JobProgress(0, 0, 0, 0), claimed=first.claimed)
        again = judge_claims(ledger, [claim(1, 7), claim(1, 8), claim(2, 7)])
        ledger.commit_requests([], [claim(0, 0, 2).alias], JobProgress(0, 0, 0, 0))
        asked_for = judge_claims(ledger, [claim(1, 7, 2)])
        (waiting,) = ledger.take_requests([(NEW, 0, 0, 9)])[0]
        ledger.commit_requests(
            [EndedRequest(id=waiting.id, url=waiting.url, end=End.FAILED, outcome=Outcome(Code.TIMEOUT), depth=0)],
            [],
            JobProgress(0, 0, 0, 0),
        )
        failed = judge_claims(ledger, [claim(1, 7, 2)])

    said = [[(part, verdict.granted) for part, verdict in each.verdicts] for each in (first, again, asked_for, failed)]
    assert said == [[(1, True), (2, False), (1, True)], [(1, True), (1, False), (2, False)], [(1, False)], [(1, True)]]
    assert (len(first.claimed), again.claimed, failed.claimed) == (1, [], [])
