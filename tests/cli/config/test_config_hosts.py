"""What is set for hosts in sanderling.toml: what a slip is told, what is shown, and what a command does with it."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import sanderling
from scripted_server import ScriptedServer, answer

from sanderling.cli import app
from sanderling.cli.config.file import NAME, hosts_in_force, parse
from sanderling.cli.config.hosts import EXAMPLE, as_tables
from sanderling.cli.config.settings import known
from sanderling.fetch.digest import DigestUser


def write(text: str) -> None:
    Path(NAME).write_text(text)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("SANDERLING_CONFIG", "SANDERLING_HOME"):
        monkeypatch.delenv(name, raising=False)
    yield
    app.config = None
    hosts_in_force.set(None)


def test_the_example_is_read_whole() -> None:
    file = parse(EXAMPLE, "x.toml", known())

    assert EXAMPLE in (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
    assert not file.problems
    assert file.hosts is not None
    assert set(file.hosts) == {"*.example.org", "intranet.example.org", "shop.example.org"}
    assert as_tables(file.hosts)['hosts."shop.example.org"']["login.fields.password"] == "env:SHOP_PASSWORD"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts = 1", "line 1: hosts: found"),
        ('[hosts]\n"a.example" = 1', 'line 2: [hosts."a.example"]: found'),
        ('[hosts."a b"]\nrps = 1', '[hosts."a b"]: '),
        ('[hosts."a.example"]\nrsp = 1', "found rsp; did you mean rps?"),
        ('[hosts."a.example"]\nnothing = 1', "found nothing; expected one of headers, auth, login, rps, proxy"),
        ('[hosts."a.example"]\nrps = "1"', "got `str` - at `$.rps`"),
        ('[hosts."a.example"]\nrps = 0', "rps is 0.0, expected a number above 0"),
        ('[hosts."a.example"]\nproxy = "hunter2"', "proxy is none, expected http://host:port"),
        ('[hosts."a.example"]\nheaders = { "a b" = "hunter2" }', "header name is 'a b'"),
        ('[hosts."a.example"]\nauth = { user = "hunter2" }', "expected user and password, or token alone"),
        ('[hosts."a.example"]\nauth = { token = "hunter2", digest = true }', "expected user and password, or token"),
        ('[hosts."a.example"]\nlogin = { page = "x", fields = { password = "hunter2" } }', "login: page"),
        ('[hosts."a.example"]\nlogin = { page = "https://a.example/", fields = {} }', "has no fields"),
    ],
)
def test_a_slip_is_named_and_no_secret_shown(text: str, said: str) -> None:
    (problem,) = parse(text, "x.toml", known()).problems

    assert said in problem
    assert "hunter2" not in problem


def test_digest_is_read_and_shown_without_its_password() -> None:
    file = parse('[hosts."a.example"]\nauth = { user = "me", password = "hunter2", digest = true }', "x.toml", known())

    assert file.hosts is not None
    traffic = file.hosts["a.example"].traffic({})
    assert (traffic.digest, traffic.secrets) == (DigestUser("me", "hunter2"), ())
    assert as_tables(file.hosts)['hosts."a.example"'] == {
        "auth.user": "me",
        "auth.password": "***",
        "auth.digest": True,
    }
    assert "hunter2" not in repr((file.hosts, traffic))


def test_a_command_sends_what_is_set_and_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "hunter2")

    async def main() -> tuple[dict[str, str], str]:
        async with ScriptedServer({"/": [answer(200, b"x")]}) as server:
            write(
                f'[hosts."127.0.0.1:{server.port}"]\nauth = {{ user = "me", password = "env:PASSWORD" }}\n'
                'plain-http = true\nrps = 0.5\nheaders = { X-Token = "hunter2" }\n'
            )
            done = await sanderling("fetch", server.url("/"), "--private")
            said = [await sanderling("config", "show"), await sanderling("config", "show", "--json")]
            return server.requests[0].headers, "".join(f"{each.out}{each.err}" for each in (done, *said))

    headers, shown = asyncio.run(main())

    assert headers["authorization"] == f"Basic {b64encode(b'me:hunter2').decode()}"
    assert headers["x-token"] == "hunter2"
    assert "hunter2" not in shown
    assert 'auth.password = "env:PASSWORD"' in shown
    assert "rps = 0.5" in shown


def test_a_secret_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASSWORD", raising=False)
    Path(NAME).write_text('[hosts."*"]\nauth = { token = "env:PASSWORD" }\n')

    done = asyncio.run(sanderling("fetch", "http://127.0.0.1:9/", "--private"))

    assert done.code == 2
    assert "hosts.\"*\": token of Bearer: the environment has no variable 'PASSWORD'" in done.err
