"""A job that needs a token: got, renewed, rotated, kept, and in no other file of its folder."""

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote, quote_plus, urlsplit

import pytest
from scripted_server import ScriptedServer, Step, answer
from small_api import API, Api, run
from small_api import answer as reply

from sanderling import HostSettings, Job, JobReply, Page, Reply, Request, Task, run_job
from sanderling.apis.auth import Auth
from sanderling.jobs import Answers, ApiKey, Basic, Bearer, FormLogin, Login, NextUrl, OAuth2
from sanderling.jobs.job import JobError

SECRETS = ("hunter2", "token-1", "token-2", "refresh-1", "refresh-2")


def say(document: object, status: int = 200) -> bytes:
    return answer(status, json.dumps(document).encode(), Content_Type="application/json")


def token(number: int) -> bytes:
    return say({"access_token": f"token-{number}", "refresh_token": f"refresh-{number}", "expires_in": 3600})


def make_job(server: ScriptedServer, auth: Auth | None) -> Job:
    job = Job("guarded", start=server.url("/posts"), paging=NextUrl("next"), auth=auth, rps=200)

    @job.read
    def posts(reply: JobReply) -> list[object]:
        return [{"id": each, "url": reply.url} for each in reply.json()["data"]]

    return job


def written(folder: Path, *, but: str = "") -> str:
    return "".join(
        path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file() and path.name != but
    )


def test_a_token_is_renewed_on_the_way_and_its_refresh_token_outlives_the_run(tmp_path: Path) -> None:
    script: dict[str, list[bytes | list[Step]]] = {
        "/token": [token(1), token(2)],
        "/posts": [say({"data": [1], "next": "/posts?page=2"})],
        "/posts?page=2": [say({}, 401), say({"data": [2], "next": None})],
    }

    async def main() -> list[tuple[str, str | None]]:
        async with ScriptedServer(script) as server:
            auth = OAuth2(server.url("/token"), "me", "hunter2", refresh_token="hunter2-refresh")  # noqa: S106
            result = await run_job(make_job(server, auth), tmp_path / "out", private=True)
            assert (result.complete, result.kept) == (True, 2)
            return [(request.path, request.headers.get("authorization")) for request in server.requests]

    asked = asyncio.run(asyncio.wait_for(main(), 30))

    assert asked == [
        ("/token", None),
        ("/posts", "Bearer token-1"),
        ("/posts?page=2", "Bearer token-1"),
        ("/token", None),
        ("/posts?page=2", "Bearer token-2"),
    ]
    assert "refresh-2" in (tmp_path / "out" / "tokens.json").read_text()
    assert [secret for secret in SECRETS if secret in written(tmp_path / "out", but="tokens.json")] == []


def test_a_key_that_the_host_repeats_in_its_links_is_stored_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script: dict[str, list[bytes | list[Step]]] = {
        "/posts?k=hunter2": [say({"data": [1], "next": "/posts?k=hunter2&page=2"})],
        "/posts?page=2&k=hunter2": [say({"data": [2]})],
    }

    async def main() -> int:
        async with ScriptedServer(script) as server:
            result = await run_job(make_job(server, ApiKey("k", "hunter2", "query")), tmp_path / "out", private=True)
            return result.kept

    assert asyncio.run(asyncio.wait_for(main(), 30)) == 2
    assert "hunter2" not in written(tmp_path / "out")
    assert "hunter2" not in caplog.text


KEY = 'hunter2/"q" z'
SIGNED: dict[str, Auth] = {
    "header": ApiKey("X-Key", KEY),
    "query": ApiKey("k", KEY, in_="query"),
    "bearer": Bearer(KEY),
    "basic": Basic("me", KEY),
    "oauth": OAuth2("https://api.example/token", "me", KEY),
    "login": Login("https://api.example/login", "token", json={"password": KEY}),
}


@pytest.mark.parametrize("kind", SIGNED)
def test_a_secret_that_a_host_repeats_is_neither_stored_nor_said(kind: str, tmp_path: Path) -> None:
    """In messages, in links, in a redirect and in what a function raises; in every spelling, and cut off."""
    issued = "token-of/a user" if kind in ("oauth", "login") else KEY
    pair = b64encode(f"me:{KEY}".encode()).decode() if kind in ("basic", "oauth") else KEY
    spelled = [
        spelling
        for secret in (KEY, issued, pair)
        for spelling in (secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1])
    ]

    def find(task: Task) -> Reply:
        path = urlsplit(task.url).path
        said = spelled[int(path.rpartition("/")[2])] if path.startswith("/said/") else ""
        match path.split("/")[1]:
            case "token" | "login":
                return reply({"access_token": issued, "token": issued})
            case "said":
                return reply({"error": {"message": f"{'x' * (int(path[6:]) * 7)} {said} is wrong for {said}"}})
            case "list" if "page=2" not in task.url:
                return reply({"data": [], "next": f"/list?k={quote_plus(KEY)}&t={quote(issued)}&page=2"})
            case "path":
                return reply({"data": [], "next": f"/{quote(KEY, safe='')}/{quote(issued, safe='')}"})
            case "moved":
                return reply({}, 302, Location=f"/list?page=2&t={quote(issued)}&k={quote_plus(KEY)}")
        return reply({"data": []})

    start: list[str | Request] = [
        *(f"{API}/said/{each}" for each in range(len(spelled))),
        *(Request(f"{API}/{each}", paging=NextUrl("next", items="data")) for each in ("list", "path")),
        *(Request(f"{API}/{each}", read="raises") for each in ("moved", "raised")),
    ]
    answers = Answers(error="error", message="error.message")
    job = Job("echo", start=start, auth=SIGNED[kind], answers=answers)

    @job.read
    def read(found: JobReply) -> object:
        return {"url": found.url, "request": found.request.url}

    @job.read
    def raises(found: JobReply) -> None:
        raise ValueError(f"{found.url} {found.request} {KEY} {issued} {pair}")

    ran = run(job, tmp_path / "out", Api(find))

    assert len(ran.failed) == len(spelled) + 3
    assert ran.records == [{"url": url, "request": url} for url in (f"{API}/list", f"{API}/list?page=2")]
    shown = written(tmp_path / "out", but="tokens.json") + repr(ran.report) + repr(ran.failed)
    assert [each for each in spelled if each[:8] in shown] == []


def test_a_denied_token_ends_the_run_and_no_item(tmp_path: Path) -> None:
    script: dict[str, list[bytes | list[Step]]] = {
        "/token": [say({"error": "invalid_client"}, 400)],
        "/posts": [say({"data": [1], "next": None})],
    }

    async def main() -> int:
        async with ScriptedServer(script) as server:
            auth = OAuth2(server.url("/token"), "me", "hunter2")
            with pytest.raises(JobError, match=r"HTTP 400 \(invalid_client\)\. Nothing is lost: put the secret right"):
                await run_job(make_job(server, auth), tmp_path / "out", private=True)
            server.script["/token"] = [token(1)]
            return (await run_job(make_job(server, auth), tmp_path / "out", private=True)).kept

    assert asyncio.run(asyncio.wait_for(main(), 30)) == 1


def test_a_job_logs_in_by_a_form_and_its_cookies_outlive_the_run(tmp_path: Path) -> None:
    form = b"<form method=post><input type=hidden name=csrf value=c1><input name=user><input name=password></form>"
    script: dict[str, list[bytes | list[Step]]] = {
        "/login": [
            answer(200, form, Set_Cookie="visit=1"),
            answer(302, Location="/", Set_Cookie="sid=token-1; Path=/"),
        ],
        "/": [answer(200, b"Log out")],
        "/posts": [say({"data": [1], "next": None})],
    }

    async def main() -> list[tuple[str, str, str | None]]:
        async with ScriptedServer(script) as server:
            fields = {"user": "me", "password": "hunter2"}
            auth = FormLogin(server.url("/login"), fields, success="Log out")
            result = await run_job(make_job(server, auth), tmp_path / "out", private=True)
            assert (result.complete, result.kept) == (True, 1)
            return [(request.method, request.path, request.headers.get("cookie")) for request in server.requests]

    asked = asyncio.run(asyncio.wait_for(main(), 30))

    assert asked == [
        ("GET", "/login", None),
        ("POST", "/login", "visit=1"),
        ("GET", "/", "visit=1; sid=token-1"),
        ("GET", "/posts", "visit=1; sid=token-1"),
    ]
    assert not any(secret in written(tmp_path / "out", but="cookies.json") for secret in SECRETS)
    assert "hunter2" not in (tmp_path / "out" / "cookies.json").read_text()


def test_a_job_logs_in_by_what_is_set_for_its_host_though_robots_txt_is_against_the_form(tmp_path: Path) -> None:
    """A page job, whose session is over in the middle: the redirect to the form is followed, and it logs in anew."""
    form = b"<form method=post><input name=user><input name=password></form>"
    entered = answer(302, Location="/in", Set_Cookie="sid=1; Path=/")
    script: dict[str, list[bytes | list[Step]]] = {
        "/robots.txt": [answer(200, b"User-agent: *\nDisallow: /login")],
        "/login": [answer(200, form), entered, answer(200, form), answer(200, form), entered],
        "/in": [answer(200, b"Log out")],
        "/a": [answer(200, b"<h1>a</h1><a href=/b>b</a>", Content_Type="text/html")],
        "/b": [answer(302, Location="/login"), answer(200, b"<h1>b</h1>", Content_Type="text/html")],
    }

    async def main() -> tuple[list[str], list[str]]:
        async with ScriptedServer(script) as server:
            job = Job("pages", start=server.url("/a"))

            @job.page("/*")
            def read(page: Page) -> object:
                return [{"title": page.css("h1").text}, *page.follow_all("a")]

            login = FormLogin(server.url("/login"), {"user": "me", "password": "hunter2"}, success="Log out")
            hosts = {f"127.0.0.1:{server.port}": HostSettings(login=login, plain_http=True)}
            result = await run_job(job, tmp_path / "out", private=True, hosts=hosts, keep="warc")
            assert result.complete
            titles = [json.loads(line)["title"] for line in result.records.read_text().splitlines()]
            return titles, [f"{request.method} {request.path}" for request in server.requests]

    titles, asked = asyncio.run(asyncio.wait_for(main(), 30))

    assert titles == ["a", "b"]
    assert asked.count("POST /login") == 2
    assert not any(secret in written(tmp_path / "out", but="cookies.json") for secret in SECRETS)


def test_what_is_set_for_a_host_goes_with_its_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hunter2")

    async def main() -> dict[str, str]:
        async with ScriptedServer({"/posts": [say({"data": [1], "next": None})]}) as server:
            settings = HostSettings({"X-Team": "a", "X-Key": "env:KEY"}, Basic("me", "env:KEY"), plain_http=True)
            job = make_job(server, None)
            await run_job(job, tmp_path / "out", private=True, hosts={f"127.0.0.1:{server.port}": settings})
            return server.requests[0].headers

    headers = asyncio.run(asyncio.wait_for(main(), 30))

    basic = b64encode(b"me:hunter2").decode()
    assert (headers["x-team"], headers["x-key"], headers["authorization"]) == ("a", "hunter2", f"Basic {basic}")
    assert "hunter2" not in written(tmp_path / "out")
