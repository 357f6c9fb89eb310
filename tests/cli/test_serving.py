"""Where the API of a system is served, and to whom."""

import asyncio
import socket
from pathlib import Path

import pytest
from aiohttp.web import Application

from sanderling.cli.command_error import CommandError
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.clock import SystemClock
from sanderling.web.access import VARIABLE
from sanderling.web.app import CLOCK


def an_app() -> Application:
    app = Application()
    app[CLOCK] = SystemClock()
    return app


def never() -> Application:
    raise AssertionError("nobody wants it")


def said(serving: Serving) -> list[str]:
    """What is said while it is served."""
    lines: list[str] = []

    async def main() -> None:
        async with serving.serve(an_app, lines.append):
            lines.append("served")

    asyncio.run(main())
    return lines


def test_without_a_port_nothing_is_made() -> None:
    async def main() -> None:
        async with UNSERVED.serve(never, never):  # type: ignore[arg-type] # which nobody calls
            pass

    asyncio.run(main())


def test_with_one_its_address_is_said_first() -> None:
    address, served = said(Serving(port=0))

    assert address.startswith("API: http://127.0.0.1:")
    assert served == "served"


def test_an_address_that_others_reach_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "token").write_text("open-sesame-and-be-quick-about-it\n")

    with pytest.raises(CommandError, match=r"bind: 0\.0\.0\.0 can be reached from other machines") as caught:
        said(Serving(port=0, bind="0.0.0.0"))  # noqa: S104 - which it must not be

    assert caught.value.code == 2
    assert said(Serving(port=0, bind="0.0.0.0", token_file=tmp_path / "token"))[-1] == "served"  # noqa: S104


def test_a_port_that_is_taken_is_said_with_its_flag() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(CommandError, match=f"--port: port {port} of 127.0.0.1: ") as caught:
            said(Serving(port=port))

    assert caught.value.code == 2


def test_a_token_s_file_is_named_without_what_could_act() -> None:
    with pytest.raises(CommandError, match=r"the token's file a.\[2Jb: No such file") as caught:
        said(Serving(port=0, token_file=Path("a\x1b[2Jb")))

    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(("bind", "why"), [("192.0.2.1", "is no address of this machine"), ("no such host", "host '")])
def test_an_address_that_is_not_ours_is_not_blamed_on_the_port(tmp_path: Path, bind: str, why: str) -> None:
    (tmp_path / "token").write_text("open-sesame-and-be-quick-about-it\n")

    with pytest.raises(CommandError, match=f"bind: .*{why}") as caught:
        said(Serving(port=0, bind=bind, token_file=tmp_path / "token"))

    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("serving", "flag"), [(Serving(bind="::1"), "bind"), (Serving(token_file=Path("token")), "token-file")]
)
def test_no_flag_is_given_in_vain(serving: Serving, flag: str) -> None:
    with pytest.raises(CommandError, match=f"{flag} is for the API, and nothing is served; expected --port as well"):
        serving.check()
