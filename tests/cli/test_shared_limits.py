"""What hosts share, set in sanderling.toml: real commands against real servers, and what is said of a slip."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from command_line import QUICK, Done, Script, called, page, paths, sanderling, site
from known_reports import published
from scripted_server import ScriptedServer, answer

from sanderling.apis.auth import FormLogin
from sanderling.cli import app
from sanderling.cli.config.file import NAME, hosts_in_force, limits_in_force, parse
from sanderling.cli.config.limits import EXAMPLE, SharedLimits
from sanderling.cli.config.settings import known
from sanderling.cli.limits import make_limiter, slices_in_force
from sanderling.crawls.session import HostSettings
from sanderling.limit import LimiterRules, PaceRules, Shared
from sanderling.limit.slices import Slices


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("SANDERLING_CONFIG", "SANDERLING_HOME"):
        monkeypatch.delenv(name, raising=False)
    yield
    app.config = None
    limits_in_force.set(None)


def write(text: str) -> None:
    Path(NAME).write_text(text)


def credential(rps: float, *servers: ScriptedServer, more: str = "") -> None:
    """Let these servers be called with one key."""
    hosts = json.dumps([f"127.0.0.1:{server.port}" for server in servers])
    write(f"[limits.credential.maps]\nhosts = {hosts}\nrps = {rps}\n{more}")


async def fetched(each: int, rps: float, more: str = "", path: str = "") -> tuple[Done, float, list[int]]:
    """Fetch so many pages of each of two servers that share a key; how long it took, and who was asked, in order."""
    async with AsyncExitStack() as stack:
        asked: list[int] = []
        servers = []
        for number in range(2):

            async def note(_writer: asyncio.StreamWriter, number: int = number) -> None:
                asked.append(number)

            script: Script = {f"/{path}{page}": [[note, answer(200, b"x")]] for page in range(each)}
            servers.append(await stack.enter_async_context(ScriptedServer(script)))
        credential(rps, *servers, more=more.format(servers[0].port, servers[1].port))
        urls = [server.url(f"/{path}{page}") for server in servers for page in range(each)]
        began = time.monotonic()
        done = await sanderling("fetch", *urls, "--private", "--rps", "1000")
        return done, time.monotonic() - began, asked


@pytest.mark.parametrize(("more", "cost"), [("", 1), ('[limits.cost]\n"127.0.0.1:{}/x" = 2\n"127.0.0.1:{}" = 2\n', 2)])
def test_two_hosts_with_one_key_are_asked_no_more_than_it_allows_and_neither_starves(more: str, cost: int) -> None:
    """However slow this machine is, it takes no less time than that."""
    done, seconds, asked = asyncio.run(fetched(8, 10, more, "x"))

    assert done.code == 0, done.err
    assert "credential/maps: 16 requests, 10.00 a second now" in done.err
    assert seconds >= cost * 15 / 10
    assert min(asked[:8].count(0), asked[:8].count(1)) >= 2


@pytest.mark.parametrize("command", ["pages", "run"])
def test_processes_that_share_a_crawl_share_its_quotas_too(command: str, tmp_path: Path) -> None:
    """However slow this machine is, it takes no less time than that; eight parts with a quota each took an eighth."""

    async def main() -> tuple[Done, list[float]]:
        left: list[float] = []

        async def note(_writer: asyncio.StreamWriter) -> None:
            left.append(time.monotonic())

        async with AsyncExitStack() as stack:
            script: Script = {path: [[note, page("/a")]] for path in ("/", "/a", "/robots.txt")}
            servers = [await stack.enter_async_context(ScriptedServer(dict(script))) for _ in range(8)]
            write('[limits.ip."*"]\nrps = 6\n')
            urls = [server.url("/") for server in servers]
            job = 'from sanderling import Job\n\njob = Job("all", start=URLS, rps=100)\n\n\n@job.page("/**")\n'
            job += 'def any_page(page):\n    yield {"url": page.url}\n    yield from page.follow_all("a")\n'
            (tmp_path / "job.py").write_text(job.replace("URLS", repr(urls)))
            words = ["pages", "crawl", *urls, "--no-parquet"] if command == "pages" else ["run", "job.py"]
            done = await sanderling(*words, "--out", "out", "--processes", "2", "--private", "--rps", "100")
        return done, left

    done, left = asyncio.run(main())

    assert done.code == 0, done.err
    assert len(left) == 24
    assert max(left) - min(left) >= (len(left) - 3) / 6 - 0.5
    assert max(sum(start <= each < start + 1.0 for each in left) for start in left) <= 6 + 4  # it is busy here


def test_without_the_limit_the_same_takes_no_such_time() -> None:
    """So that it is the limit that the test above is about."""
    done, _, _ = asyncio.run(fetched(4, 1000))

    assert done.code == 0
    assert "credential/maps: 8 requests, 1000.00 a second now" in done.err


def test_a_refusal_by_one_host_is_that_of_the_key_and_the_other_waits_with_it() -> None:
    async def main() -> tuple[Done, float]:
        at: list[float] = []

        async def note(_writer: asyncio.StreamWriter) -> None:
            at.append(time.monotonic())

        refusal, page = answer(429, Retry_After="2"), answer(200)
        async with (
            ScriptedServer({"/": [[note, refusal], page]}) as first,
            ScriptedServer({"/": [[note, page]]}) as second,
        ):
            credential(4, first, second)
            done = await sanderling("fetch", first.url(), second.url(), "--private")
        return done, at[1] - at[0]

    done, between = asyncio.run(main())

    assert done.code == 0, done.err
    assert between >= 1.99


def test_a_crawl_through_the_engine_is_bound_by_what_its_hosts_share_and_says_so(tmp_path: Path) -> None:
    async def main() -> tuple[Done, float, list[int]]:
        async with ScriptedServer(site(5)) as first, ScriptedServer(site(5)) as second:
            credential(5, first, second)
            began = time.monotonic()
            done = await sanderling("pages", "crawl", first.url(), second.url(), "--out", "out", "--rps", "100", *QUICK)
            return done, time.monotonic() - began, [len(server.requests) for server in (first, second)]

    done, seconds, requests = asyncio.run(main())

    assert done.code == 0, done.err
    assert paths(tmp_path / "out") == sorted(["/", *(f"/{number}" for number in range(5))] * 2)
    assert seconds >= (sum(requests) - 1) / 5
    status = published(Path("out"))
    assert status is not None
    assert [(each.host, each.requests) for each in status.shared] == [("credential/maps", sum(requests))]
    assert {each.shares for each in status.hosts} == {("credential/maps",)}
    assert "shared" in called("status", "out").out
    said = called("why", "credential/maps", "--out", "out")
    assert "5.0 requests a second: as fast as was set for all that share it" in said.out, said.out


def test_addresses_are_shared_by_hosts_that_live_there() -> None:
    async def main() -> tuple[Done, float]:
        script: Script = {f"/?{number}": [answer(200)] for number in range(4)}
        async with ScriptedServer(script) as first, ScriptedServer(script) as second:
            write('[limits.ip."*"]\nrps = 4\n')
            urls = [f"{server.url()}?{number}" for server in (first, second) for number in range(4)]
            began = time.monotonic()
            return await sanderling("fetch", *urls, "--private", "--rps", "1000"), time.monotonic() - began

    done, seconds = asyncio.run(main())

    assert done.code == 0, done.err
    assert "ip/127.0.0.1: 8 requests" in done.err
    assert seconds >= 7 / 4


def test_a_demo_has_hosts_of_its_own_and_no_limits() -> None:
    write('[limits.ip."*"]\nrps = 1\n')

    called("fetch", "--rps", "3")
    assert limits_in_force.get() is not None
    called("demo", "limiter", "--seconds", "0")
    assert limits_in_force.get() is None


# The file.


def test_the_example_is_as_it_should_be_and_in_the_manual() -> None:
    assert EXAMPLE in (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    file = parse(EXAMPLE, NAME, known())

    assert file.problems == ()
    assert file.limits == SharedLimits(
        (
            Shared("credential", "maps", ("api.example.org", "*.tiles.example.org")),
            Shared("domain", "example.org"),
            Shared("ip", "203.0.113.7", refusals=False),
        ),
        {
            "credential/maps": PaceRules.contract(5),
            "domain/example.org": PaceRules.contract(10),
            "ip/203.0.113.7": PaceRules.contract(20),
        },
        {"api.example.org/search": 2.0},
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limits = 5", "line 1: limits: found 5, expected tables like [limits.credential.NAME]"),
        ("[limits]\nrps = 5", "line 2: [limits] has no table rps; expected one of domain, ip, credential, cost"),
        ("\n[limits.planet.x]\nrps = 1", "line 2: [limits] has no table planet; expected one of domain, ip"),
        ("[limits]\nip = 5", "line 2: [limits] ip: found 5, expected a table"),
        ("[limits.ip]\nrps = 5", 'line 2: [limits.ip."rps"]: found 5, expected a table with rps, refusals'),
        ('[limits.ip."*"]', 'line 1: [limits.ip."*"] has no rps; expected a number, more than 0'),
        (
            '[limits.ip."*"]\nrps = 0',
            'line 2: [limits.ip."*"] rps: found 0, expected a number, more than 0 and at most',
        ),
        ('[limits.ip."*"]\nrps = nan', 'line 2: [limits.ip."*"] rps: found nan, expected a number'),
        ('[limits.ip."*"]\nrps = "5"', 'line 2: [limits.ip."*"] rps: found text, expected a number'),
        ('[limits.ip."*"]\nrps = 5\nrefusal = "host"', "line 3: .* has no setting refusal; did you mean refusals?"),
        ('[limits.ip."*"]\nrps = 5\nrefusals = "no"', 'line 3: .* found "no", expected one of "shared", "host"'),
        (
            '[limits.ip."a.example"]\nrps = 5',
            "line 1: .*: found the address 'a.example', expected one like 203.0.113.7",
        ),
        (
            "[limits.domain.example.org]\nrps = 5",
            'has no table org; a name with dots is in quotes, as in [limits.domain."',
        ),
        ("[limits.credential.maps]\nrps = 5", 'line 1: [limits.credential."maps"] has no hosts; expected a list in'),
        ("[limits.credential.maps]\nrps = 5\nhosts = []", "found no hosts of credential maps, expected hosts, as in"),
        ('[limits.credential.maps]\nrps = 5\nhosts = "a.example"', "hosts: found text, expected a list in brackets"),
        (
            '[limits.credential.maps]\nrps = 5\nhosts = ["a b"]',
            "expected a host like api.example.org, or *.example.org",
        ),
        ('[limits.cost]\n"a.example" = "2"', "line 2: [limits.cost] a.example: found text, expected a number"),
        ('[limits.cost]\n"a.example" = true', "line 2: [limits.cost] a.example: found true, expected a number"),
        ('[limits.cost]\n"a.example" = 0.1', "found a cost of 0.1 for a.example, expected a number from 1 to 10,000"),
    ],
)
def test_a_slip_is_said_with_its_line_whichever_command_runs(text: str, words: str) -> None:
    write(text)

    for command in (("config", "check"), ("status",)):
        done = called(*command)
        assert (done.code, done.out) == (2, "")
        assert "Traceback" not in done.err
        for part in words.split(".*"):
            assert part in done.err


def test_they_are_shown_with_all_else_that_holds() -> None:
    write(EXAMPLE)

    shown = called("config", "show").out
    told = json.loads(called("config", "show", "--json").out)["limits"]

    assert '[limits.credential."maps"]\nhosts = ["api.example.org", "*.tiles.example.org"]\nrps = 5.0\n' in shown
    assert told["limits.cost"] == {"api.example.org/search": 2.0}
    assert told['limits.ip."203.0.113.7"'] == {"rps": 20.0, "refusals": "host"}
    assert called("config", "check").out.startswith(f"{NAME}: 0 settings, 4 limits, and ")


def test_processes_that_share_a_crawl_share_the_pace_of_hosts_to_log_in_at() -> None:
    """Those of a job, and those that are set for hosts; a process alone has nobody to share with."""
    login = FormLogin("https://sso.example.org/login", {"user": "u"})
    before = hosts_in_force.set({"*.example.org": HostSettings(login=login), "b.example": HostSettings(rps=2)})
    alone = make_limiter(LimiterRules(), logins=("tokens.example",))
    shares = slices_in_force.set(Slices())
    try:
        together = make_limiter(LimiterRules(), logins=("tokens.example",))
    finally:
        slices_in_force.reset(shares)
        hosts_in_force.reset(before)

    assert alone.rules.shared == ()
    assert [each.hosts for each in together.rules.shared] == [("sso.example.org",), ("tokens.example",)]
