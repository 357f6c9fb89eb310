"""The command as a person runs it: a real process, asked over real sockets, ended by Ctrl-C."""

import json
import re
import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from command_line import called
from world_commands import LAST, end, lines, running

from sanderling.cli.worlds import world
from sanderling.worlds.game_presets import PRESETS


def failed(*arguments: str) -> tuple[int, str, str]:
    return called("world", "game", *arguments)


def answer(url: str) -> tuple[int, int]:
    """Status, and the API's own code."""
    try:
        with urlopen(url, timeout=300) as reply:  # noqa: S310 - our own server
            return int(reply.status), int(json.load(reply)["ErrorCode"])
    except HTTPError as error:
        with error:
            return error.code, int(json.load(error)["ErrorCode"])


def test_a_game_is_shown_and_served_until_ctrl_c() -> None:
    with running("game", "--preset", "demo") as process:
        said = lines(process, LAST)
        settings, report = (line.split("'")[1] for line in said if line.startswith("    curl "))
        crawl = next(line.split() for line in said if line.startswith("    sanderling sequence crawl "))
        assert (answer(settings), answer(report)) == ((200, 1), (200, 1))
        newest = int(re.findall(r"\d{11}", report)[0])
        assert answer(report.replace(str(newest), str(newest + 10**6))) == (404, 1653)
        code, _, err = end(process)

    base = said[0].split()[-1]
    assert crawl == ["sanderling", "sequence", "crawl", "--base", base, "--begin", str(newest), "--private"]
    assert "  nothing new from 0:40 min to 1:00 min" in said
    assert max(map(len, said)) <= 100
    assert code == 130
    assert "3 requests." in err
    assert [line.split() for line in err.splitlines()[2:]] == [["1", "settings"], ["1", "report"], ["1", "missing"]]


def test_json_is_one_object_and_nothing_else() -> None:
    with running("game", "--json", "--preset", "fast", "--rate", "100", "--seed", "7") as process:
        said = json.loads(lines(process, "{")[0])
        code, out, err = end(process)

    assert (code, out, err) == (130, "", "")
    assert said["newest"] - said["first"] == pytest.approx(3600 * 100, abs=1500)
    assert said["address"].startswith("http://127.0.0.1:")


def test_speed_and_quota_change_the_game() -> None:
    with running("game", "--preset", "pause", "--speed", "10", "--quota", "20") as process:
        said = lines(process, LAST)

    assert "  600 ids a second, 4% of them raids" in said
    assert "  200 requests a second are allowed" in said
    assert "  nothing new from 3:00 min to 5:00 min" in said


def test_what_can_be_chosen_is_what_there_is() -> None:
    assert world.PRESETS["game"] == tuple(PRESETS)


def test_a_port_in_use_is_a_message_and_not_a_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = failed("--port", str(port))

    assert (code, out) == (1, "")
    assert err == f"sanderling: --port: port {port} of 127.0.0.1: Address already in use; choose another\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--preset", "unknown"], "--preset"),
        (["--rate", "0"], "--rate"),
        (["--rate", "9000", "--speed", "50"], "a rate above 0 and up to 100000"),
        (["--quota", "-1"], "--quota"),
        (["--quota", "0.1"], "quota 0.1 in 1 s is less than one request"),
        (["--speed", "0"], "--speed"),
        (["--port", "70000"], "--port"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(arguments: list[str], says: str) -> None:
    code, out, err = failed(*arguments)

    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
