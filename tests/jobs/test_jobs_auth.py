"""A job that needs a token: got, renewed, rotated, kept, and in no other file of its folder."""

import asyncio
import json
from pathlib import Path

import pytest

from sanderling import Job, JobReply, run_job
from sanderling.jobs import ApiKey, NextUrl, OAuth2
from sanderling.jobs.job import JobError
from sanderling.testing.scripted import ScriptedServer, Step, answer

SECRETS = ("hunter2", "token-1", "token-2", "refresh-1", "refresh-2")


def say(document: object, status: int = 200) -> bytes:
    return answer(status, json.dumps(document).encode(), Content_Type="application/json")


def token(number: int) -> bytes:
    return say({"access_token": f"token-{number}", "refresh_token": f"refresh-{number}", "expires_in": 3600})


def make_job(server: ScriptedServer, auth: OAuth2 | ApiKey) -> Job:
    job = Job("guarded", start=server.url("/posts"), paging=NextUrl("next"), auth=auth, rps=200)

    @job.read
    def posts(reply: JobReply) -> list[object]:
        return [{"id": each, "url": reply.url} for each in reply.json()["data"]]

    return job


def written(folder: Path, *, but: str = "") -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in folder.iterdir() if path.name != but)


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
