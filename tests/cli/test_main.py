import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import pytest
from command_line import called

from sanderling import cli

# A command as others will write them, in a file of its own; and a program that knows it besides what we ship.
COMMAND = """
import asyncio
import sys

from sanderling.cli.command_error import CommandError
from sanderling.cli.options import DEFAULT, Options, observe, expose_limiter
from sanderling.limit import Limiter
from sanderling.observe import logs


async def watch(*, options: Options = DEFAULT) -> None:
    '''Wait to be watched.'''
    async with observe(options, expose_limiter(Limiter())) as url:
        logs.get("watch").debug("detail")
        logs.get("watch").info("watched", password="hunter2")
        print(url, flush=True)
        await asyncio.Event().wait()


async def once(*, options: Options = DEFAULT) -> None:
    async with observe(options, expose_limiter(Limiter())) as url:
        print(url)


def fail() -> None:
    raise CommandError("no disk left in /data: free some")
"""
NAMES = ("watch", "once", "fail")
PROGRAM = f"""
from sanderling.cli import app, main

del app["demo"]
for name in {NAMES}:
    app.command("command:" + name, name=name)
main()
"""


def environment(**more: str) -> dict[str, str]:
    # A width of its own keeps the help from wrapping where a test looks.
    return {**os.environ, "COLUMNS": "120", **more}


def sanderling(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "sanderling", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300, check=False)  # noqa: S603


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    (tmp_path / "command.py").write_text(COMMAND)
    (tmp_path / "program.py").write_text(PROGRAM)
    return [sys.executable, "-W", "error", str(tmp_path / "program.py")]


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same commands in this process, which takes a tenth of the time."""
    (tmp_path / "command.py").write_text(COMMAND)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", environment()["COLUMNS"])
    for name in NAMES:
        cli.app.command(f"command:{name}", name=name)
    yield
    for name in NAMES:
        del cli.app[name]
    sys.modules.pop("command", None)


@contextmanager
def running(program: list[str], *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    told = environment() | variables
    with subprocess.Popen([*program, *arguments], stdout=pipe, stderr=pipe, text=True, env=told) as process:  # noqa: S603
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_version_is_that_of_the_package() -> None:
    done = sanderling("--version")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split(".")[0].isdigit()


def test_the_help_names_the_commands_and_has_an_example() -> None:
    done = sanderling("--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert "Crawl documents politely, with nothing lost." in done.stdout
    assert "\n    sanderling demo sequence\n" in done.stdout


@pytest.mark.parametrize(("group", "commands"), [("pages", ["crawl", "failed"]), ("dead", ["list", "show", "replay"])])
def test_the_help_of_a_group_names_its_commands(group: str, commands: list[str]) -> None:
    done = called(group)

    assert (done.code, done.err) == (0, "")
    assert all(re.search(rf"│ {command} +[A-Z]", done.out) for command in commands)


def test_without_a_command_there_is_the_help() -> None:
    assert called().out == called("--help").out


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_asking_for_help_does_not_load_what_commands_need(flag: str) -> None:
    code = f"""
import atexit, sys
atexit.register(lambda: print(*sys.modules))
sys.argv = ["sanderling", {flag!r}]
from sanderling.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)  # noqa: S603

    loaded = set(done.stdout.splitlines()[-1].split())
    assert "cyclopts" in loaded
    assert not loaded & {"asyncio", "prometheus_client", "structlog", "rich.live", "uvloop", "idna", "msgspec"}
    assert not [
        name for name in loaded if name.startswith(("sanderling.limit", "sanderling.observe", "sanderling.pages"))
    ]


@pytest.mark.skipif(
    not find_spec("sanderling.cli.demos.limiter"), reason="cyclopts looks into every command for a suggestion"
)
def test_a_slip_of_the_finger_gets_a_suggestion() -> None:
    done = called("dmeo")

    assert (done.code, done.out) == (2, "")
    assert 'Did you mean "demo"?' in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["wacth"], ['sanderling: Unknown command "wacth". Did you mean "watch"?', "See: sanderling --help"]),
        (["[/]"], ['Unknown command "[/]"', "See: sanderling --help"]),
        (["watch", "--metrics-prot", "1"], ["Did you mean --metrics-port?", "See: sanderling watch --help"]),
        (["watch", "--metrics-port", "70000"], ["--metrics-port. Must be <= 65535", "See: sanderling watch --help"]),
        (["watch", "--log-level", "debug"], ["--log-level is a setting and no flag", "or SANDERLING_LOG_LEVEL in the"]),
    ],
)
@pytest.mark.usefixtures("known")
def test_a_wrong_call_exits_with_2_and_a_hint(arguments: list[str], said: list[str]) -> None:
    done = called(*arguments)

    assert (done.code, done.out) == (2, "")
    assert all(words in done.err for words in said), done.err
    assert "Traceback" not in done.err


def test_a_command_that_cannot_go_on_says_why_and_no_more(program: list[str]) -> None:
    with running(program, "fail") as process:
        out, err = process.communicate(timeout=300)

    assert (process.returncode, out) == (1, "")
    assert err == "sanderling: no disk left in /data: free some\n"


@pytest.mark.usefixtures("known")
def test_the_shared_flags_are_explained() -> None:
    help_ = called("watch", "--help").out

    for words in (
        "--metrics-port",
        "Serve Prometheus metrics",
    ):
        assert words in help_
    assert "--log-format" not in help_, "a setting"


def interrupt(process: subprocess.Popen[str]) -> str:
    """Ctrl-C, and what it then said. Once more if need be: Python may miss one just before it falls asleep for good."""
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=300)[1]
    pytest.fail("Ctrl-C three times did not end it")


def test_ctrl_c_exits_with_130_and_no_traceback(program: list[str]) -> None:
    with running(program, "watch", "--metrics-port", "0") as process:
        first_line(process)

        err = interrupt(process)

    assert process.returncode == 130
    assert json.loads(err)["event"] == "watched"


def test_metrics_are_served_while_the_command_runs_and_not_after(program: list[str]) -> None:
    with running(program, "watch", "--metrics-port", "0") as process:
        url = first_line(process)
        with urlopen(url, timeout=300) as answer:  # noqa: S310 - our own server
            text = answer.read().decode()
        interrupt(process)

    assert "sanderling_limiter_permits_total 0.0" in text
    with pytest.raises(OSError, match="refused"):
        urlopen(url, timeout=300)  # noqa: S310


@pytest.mark.usefixtures("known")
def test_without_the_flag_nothing_is_served_and_nothing_printed() -> None:
    assert called("once") == (0, "None\n", "")


def test_logs_are_as_the_flags_say_and_secrets_are_not_in_them(program: list[str]) -> None:
    with running(program, "watch", SANDERLING_LOG_FORMAT="text", SANDERLING_LOG_LEVEL="debug") as process:
        first_line(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)

    first, second = err.splitlines()
    assert first.endswith("debug   detail where=watch")
    assert second.endswith("info    watched where=watch password=***")


@pytest.mark.usefixtures("known")
def test_a_port_in_use_is_a_message_and_not_a_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = called("once", "--metrics-port", str(port))

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"sanderling: --metrics-port: port {port} of 127.0.0.1: Address already in use; ")
    assert "choose another" in done.err
    assert "Traceback" not in done.err
