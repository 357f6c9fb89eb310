"""The dashboard over HTTP: what is told every second, of the hosts, and what is sent of the page."""

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dashboard_house import TOKEN, Answer, Dashboard, dashboard, polled, queued, watching
from known_reports import ALL, EVENTS, HOSTILE, PAGES, POLLING, changed, many_hosts, put
from looping import in_loop

from sanderling.clock import SystemClock
from sanderling.web.access import Token
from sanderling.web.app import ROUTES
from sanderling.web.assets import POLICY, Assets
from sanderling.web.dashboard import DashboardOptions, Dependencies, dashboard_app
from sanderling.web.dashboard import dashboard as served
from sanderling.web.house_reach import Reach
from sanderling.web.problems import ProblemError

MANUAL = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text()


def a_home(folder: Path) -> Path:
    """With one system of each sort, which have said something by a clock that is ahead: they run for this hour."""
    for name, status in ALL.items():
        put(folder / name, status, at=SystemClock().wall() + 3600)
    return folder


# What is told.


@in_loop
async def test_the_house_has_all_systems_the_running_ones_first(tmp_path: Path) -> None:
    put(a_home(tmp_path) / "a-crawl", changed(PAGES, running=False))
    async with dashboard(tmp_path) as house:
        answer = await house.ask("GET", "/api/house")

    told = answer.data
    assert (told["home"], told["version"], told["secured"]) == (tmp_path.name, "1.2.3", False)
    assert [(each["name"], each["running"]) for each in told["systems"]] == [
        *((name, True) for name in sorted(ALL)),
        ("a-crawl", False),
    ]
    assert all(
        {"every", "from", "asked", "kept", "failed", "waiting"} <= set(each["history"]) for each in told["systems"]
    )
    assert all("points" not in each for each in told["systems"])


async def events(house: Dashboard, number: int) -> list[tuple[str, str, Any]]:
    """The first events of the stream: name, id and data."""
    found: list[tuple[str, str, Any]] = []
    async with house.client.get(f"{house.address.url}/api/stream") as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        fields: dict[str, str] = {}
        async for line in answer.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "data" in fields:
                found.append((fields["event"], fields["id"], msgspec.json.decode(fields["data"])))
                fields = {}
            if len(found) == number:
                break
    return found


@in_loop
async def test_the_stream_tells_the_house_and_then_ticks(tmp_path: Path) -> None:
    put(a_home(tmp_path) / "hostile", changed(POLLING, current=HOSTILE, problems=(HOSTILE,)))
    async with dashboard(tmp_path) as house:
        told = await events(house, 3)

    assert [name for name, _, _ in told] == ["house", "tick", "tick"]
    assert [int(data["wall"]) for _, _, data in told] == [int(position) for _, position, _ in told]
    for name, _, data in told:
        assert len(data["systems"]) == 1 + len(ALL)
        assert all(("history" in each) == (name == "house") for each in data["systems"])
        assert all(("points" in each) == (name == "tick") for each in data["systems"])
    assert told[2][2]["systems"][0]["points"].keys() >= {"asked", "kept", "failed", "waiting"}
    assert HOSTILE in next(each for each in told[1][2]["systems"] if each["name"] == "hostile")["troubles"]


@in_loop
async def test_a_history_grows_while_the_dashboard_runs(tmp_path: Path) -> None:
    a_home(tmp_path)
    async with dashboard(tmp_path) as house:
        await events(house, 3)
        history = (await house.ask("GET", "/api/house")).data["systems"][0]["history"]

    assert len(history["waiting"]) >= 3
    assert history["waiting"][-1] == 47
    assert history["from"] == pytest.approx(SystemClock().wall() - len(history["waiting"]) + 1, abs=30)


@in_loop
async def test_streams_end_with_the_server(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as house, watching(house) as following:
        house.streams.close()
        await following
        count = house.streams.count

    assert count == 0


@in_loop
async def test_settings_and_dead_letters_are_asked_for_while_somebody_looks(tmp_path: Path) -> None:
    async with polled(tmp_path / "polling"), queued(tmp_path / "events", "one"):
        put(tmp_path / "server", EVENTS)
        async with dashboard(tmp_path) as house:
            facts: dict[str, Any] = {}
            while not (
                facts and facts["polling"]["settings"] and facts["events"]["dead"] and facts["server"]["elsewhere"]
            ):
                told = (await house.ask("GET", "/api/house")).data["systems"]
                facts = {each["name"]: each["facts"] for each in told}
                await asyncio.sleep(0.02)

    keys = {each["key"]: each["value"] for each in facts["polling"]["settings"]}
    assert keys["scheduler.raceActiveMs"] == "200"
    assert [(each["key"], each["why"]) for each in facts["events"]["dead"]] == [("one", "it makes no sense")]
    assert facts["server"]["dead"] is None
    assert "--dashboard PORT" in facts["server"]["elsewhere"]


# Hosts.


@in_loop
async def test_ten_thousand_hosts_are_searched_sorted_and_paged(tmp_path: Path) -> None:
    status = many_hosts(10_000)
    put(tmp_path / "wide", status)
    put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path) as house:
        first = (await house.ask("GET", "/api/hosts?system=wide&sort=rate")).data
        third = (await house.ask("GET", "/api/hosts?system=wide&sort=rate&offset=200&limit=100")).data
        names = "/api/hosts?system=wide&search=host-099&sort=host&descending=false&limit=1000"
        found = (await house.ask("GET", names)).data
        every = (await house.ask("GET", "/api/hosts?search=b.example")).data
        last = (await house.ask("GET", "/api/hosts?offset=1000000")).data

    by_rate = sorted(status.hosts, key=lambda each: (-each.rate, each.host))
    assert (first["total"], first["matching"], len(first["hosts"])) == (10_000, 10_000, 100)
    assert [each["host"] for each in first["hosts"]] == [each.host for each in by_rate[:100]]
    assert [each["host"] for each in third["hosts"]] == [each.host for each in by_rate[200:300]]
    assert [each["host"] for each in found["hosts"]] == [f"host-{number:05}.example" for number in range(9900, 10_000)]
    assert [(each["system"], each["host"]) for each in every["hosts"]] == [("pages", "b.example")]
    assert (last["total"], last["hosts"]) == (10_002, [])


@in_loop
async def test_a_host_of_any_name_comes_through_unharmed(tmp_path: Path) -> None:
    status = many_hosts(1)
    view = msgspec.structs.replace(status.hosts[0], said=HOSTILE)
    put(tmp_path / "pages", msgspec.structs.replace(status, hosts=(view,)))
    async with dashboard(tmp_path) as house:
        answer = await house.ask("GET", "/api/hosts")

    assert answer.data["hosts"][0]["trouble"] == HOSTILE
    assert answer.headers["Content-Type"].startswith("application/json")


@in_loop
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("sort=colour", 400),
        ("limit=0", 400),
        ("limit=1001", 400),
        ("offset=-1", 400),
        ("descending=maybe", 400),
        ("other=1", 400),
        ("system=nobody", 404),
        ("descending=false&descending=true", 400),
    ],
)
async def test_a_question_about_hosts_must_make_sense(tmp_path: Path, query: str, status: int) -> None:
    put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path) as house:
        answer = await house.ask("GET", f"/api/hosts?{query}")

    assert answer.status == status
    assert answer.headers["Content-Type"].startswith("application/problem+json")


# The page.


def a_page(folder: Path) -> Assets:
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>é</title>")
    (folder / "app.js").write_text("1")
    (folder / "app.css").write_text("a{}")
    (folder / "secret.py").write_text("no")
    (folder / "inner").mkdir()
    return Assets(folder)


@in_loop
async def test_the_page_is_sent_to_everyone_with_a_tag_and_a_policy(tmp_path: Path) -> None:
    async with dashboard(tmp_path, token=TOKEN, bearer=False, assets=a_page(tmp_path / "web")) as house:
        page, script, style = [await house.ask("GET", path) for path in ("/", "/app.js", "/app.css")]
        known = await house.ask("GET", "/", headers={"If-None-Match": f'"other", {page.headers["ETag"]}'})
        other = await house.ask("GET", "/", headers={"If-None-Match": '"other"'})
        paths = ("/secret.py", "/inner", "/..%2fpyproject.toml", "/%2e%2e", "/index.htm", "/.html")
        missing = [(await house.ask("GET", path)).status for path in paths]

    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert page.body.decode() == "<!doctype html><title>é</title>"
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert style.headers["Content-Type"] == "text/css; charset=utf-8"
    assert page.headers["Content-Security-Policy"] == POLICY
    assert (known.status, known.body, other.status) == (304, b"", 200)
    assert missing == [404] * 6


def test_the_policy_lets_only_our_own_files_run() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))

    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "font-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


@in_loop
async def test_without_its_files_the_page_says_so(tmp_path: Path) -> None:
    async with dashboard(tmp_path, assets=Assets(tmp_path / "nowhere")) as house:
        answer = await house.ask("GET", "/")

    assert answer.status == 404
    assert "not part of this installation" in answer.data["detail"]


@in_loop
async def test_what_is_no_page_may_not_be_kept_nor_run(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as house:
        answers: list[Answer] = [await house.ask("GET", path) for path in ("/health", "/api/house", "/api/nothing/x")]

    assert answers[0].data == {"ok": True}
    for answer in answers:
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Server"] == "sanderling"


@in_loop
async def test_requests_that_make_no_sense_are_answered_with_a_problem(tmp_path: Path) -> None:
    async with dashboard(tmp_path, token=TOKEN) as house:
        url = f"{house.address.url}/api/actions"
        answers = []
        for body, kind in ((b"{", "application/json"), (b"x" * 70_000, "application/json"), (b"{}", "text/plain")):
            async with house.client.post(url, data=body, headers={"Content-Type": kind}) as answer:
                answers.append(answer.status)
        method = await house.ask("DELETE", "/api/house")

    assert answers == [400, 413, 415]
    assert method.status == 405


# The whole.


@in_loop
async def test_the_dashboard_is_opened_as_a_whole(tmp_path: Path) -> None:
    a_home(tmp_path)
    async with (
        asyncio.timeout(300),
        served(DashboardOptions(tmp_path, port=0, token=Token(TOKEN)), Reach(), SystemClock()) as address,
    ):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        head = f"GET /api/house HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        answer = await reader.read()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert len(msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])["systems"]) == len(ALL)


@in_loop
async def test_what_ends_the_block_comes_out_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with dashboard(tmp_path):
            raise ZeroDivisionError


def test_a_problem_is_one(tmp_path: Path) -> None:
    """`found` of a house that has nothing says so."""

    async def main() -> None:
        async with dashboard(tmp_path) as house:
            house.live.found("x")

    with pytest.raises(ProblemError, match="there is no system 'x'; there are none in this home yet"):
        asyncio.run(main())


def test_the_manual_has_the_routes_that_are_served(tmp_path: Path) -> None:
    async def routes() -> set[str]:
        async with dashboard(tmp_path) as house:
            behind = Dependencies(house.live, None, None, house.door, house.streams)  # type: ignore[arg-type] # nothing is asked of it
            return {f"{route.method} {route.path}" for route in dashboard_app(behind, SystemClock())[ROUTES]}

    table = MANUAL.partition("\n## Routes\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([A-Z]+ [^`]+)` \|", table, re.MULTILINE)) == asyncio.run(routes())
