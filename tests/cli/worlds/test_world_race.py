"""The command as a person runs it: a real process, asked over real sockets, ended by Ctrl-C."""

import json
import socket
from urllib.request import urlopen

import pytest
from command_line import called
from world_commands import LAST, end, lines, running

from sanderling.cli.worlds import world
from sanderling.worlds.race import PRESETS


def failed(*arguments: str) -> tuple[int, str, str]:
    return called("world", "race", *arguments)


def body(url: str) -> bytes:
    with urlopen(url, timeout=300) as reply:  # noqa: S310 - our own server
        read: bytes = reply.read()
        return read


def test_a_day_is_shown_and_served_until_ctrl_c() -> None:
    with running("race") as process:
        said = lines(process, LAST)
        front, event, race, channels = (line.split("'")[1] for line in said if line.startswith("    curl "))
        listed = json.loads(body(event))[0]
        assert f'EventManager("events/{listed["ID"]}"'.encode() in body(front)
        assert json.loads(body(race))[0]["ID"] == listed["Races"][0]
        assert len(json.loads(body(channels))) == 81
        code, _, err = end(process)

    assert said[0].startswith("A simulated race day at http://127.0.0.1:")
    assert "  6 pilots, 2 rounds, 2 races" in said
    assert "  the first race starts at 0:20 min and ends at 1:05 min" in said
    assert code == 130
    assert "4 requests." in err
    assert ["3", "document"] in [line.split() for line in err.splitlines()]
    assert ["1", "/httpfiles/Channels.json"] in [line.split() for line in err.splitlines()]


def test_json_is_one_object_and_nothing_else() -> None:
    with running("race", "--json", "--preset", "day", "--seed", "7") as process:
        said = json.loads(lines(process, "{")[0])
        code, out, err = end(process)

    assert (code, out, err) == (130, "", "")
    assert said["address"].startswith("http://127.0.0.1:")
    assert len(said["races"]) == 22
    assert sum(not race["valid"] for race in said["races"]) == 2
    assert said["races"][-1]["end"] < said["over"]


def test_speed_makes_everything_happen_sooner() -> None:
    with running("race", "--preset", "hostile", "--speed", "10") as process:
        said = lines(process, LAST)

    assert "  the first race starts at 0:02 min and ends at 0:08 min" in said
    assert "  documents are half-written for 6 ms after a change" in said
    assert "  400 requests a second are allowed" in said
    assert "  2 races are aborted and flown again" in said
    assert "  0.1% of the requests: huge" in said


def test_what_can_be_chosen_is_what_there_is() -> None:
    assert world.PRESETS["race"] == tuple(PRESETS)


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
