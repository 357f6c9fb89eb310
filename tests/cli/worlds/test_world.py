"""The command as a person runs it: a real process, asked over real sockets, ended by Ctrl-C."""

import json
import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from command_line import called
from world_commands import LAST, end, lines, running


def failed(*arguments: str) -> tuple[int, str, str]:
    return called("world", *arguments)


def status(url: str) -> int:
    try:
        with urlopen(url, timeout=300) as answer:  # noqa: S310 - our own server
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_hosts_are_shown_and_served_until_ctrl_c() -> None:
    with running("site", "--hosts", "2") as process:
        said = lines(process, LAST)
        addresses = {line.split()[0]: line.split()[1] for line in said if "http://127.0.0.1:" in line[:40]}
        assert status(addresses["ordinary-1"]) == 200
        assert status(f"{addresses['robots']}private/page") == 200
        assert status(f"{addresses['robots-failing']}robots.txt") == 500
        code, _, err = end(process)

    assert said[0] == "19 simulated hosts with 1,270 pages to find."
    assert max(map(len, said)) <= 100
    assert any(line == f"    sanderling pages crawl {addresses['ordinary-1']} --private --out crawl" for line in said)
    assert code == 130
    assert "3 requests to 3 hosts." in err
    (robots,) = (line.split() for line in err.splitlines() if line.startswith("robots "))
    assert robots == ["robots", "1", "1", "0", "0", "0", "1", "1"]
    assert "Traceback" not in err


def test_json_has_an_object_per_host_and_nothing_else() -> None:
    with running("site", "--hosts", "1", "--json") as process:
        said = [json.loads(line) for line in lines(process, '{"host": "dead.example"')]
        code, out, err = end(process)

    assert (code, out, err) == (130, "", "")
    assert [each["host"] for each in said[:2]] == ["ordinary-1.example", "slow.example"]
    robots = next(each for each in said if each["character"] == "robots")
    assert robots["expected"] == {"FETCHED": 15, "REFUSED": 4}
    assert [each["character"] for each in said if each["endless"]] == ["trap"]


def test_a_fleet_is_shown_and_served_until_ctrl_c() -> None:
    with running("pds", "--hosts", "3", "--repos", "30") as process:
        said = lines(process, LAST)
        addresses = {line.split()[0]: line.split()[1] for line in said if "http://127.0.0.1:" in line[15:40]}
        tries = [line.split("'")[1] for line in said if line.startswith("    curl ")]
        assert [status(url) for url in tries] == [200, 200, 200]
        assert status(f"{addresses['relay']}/xrpc/com.atproto.sync.listHosts") == 200
        assert status(f"{addresses['failing']}/") == 503
        code, _, err = end(process)

    assert said[0] == "15 simulated hosts with 368 repos."
    assert max(map(len, said)) <= 120
    assert (len(addresses), code) == (17, 130), addresses
    assert "5 requests to 4 hosts." in err
    assert "Traceback" not in err


def test_json_of_a_fleet_says_what_is_expected_of_each_host() -> None:
    arguments = ("--hosts", "1", "--repos", "13", "--large", "1", "--signed", "--json")
    with running("pds", *arguments) as process:
        said = [json.loads(line) for line in lines(process, '{"host": "plc.example"')]
        code, out, err = end(process)

    assert (code, out, err) == (130, "", "")
    assert (said[0]["host"], said[0]["repos"]) == ("healthy-1.example", 13)
    assert said[0]["expected"] == {"archived": 12, "not_found": 1}
    gone = next(each for each in said if each["character"] == "gone")
    assert gone["expected"] == {"not_found": 6, "deactivated": 4, "takendown": 2, "suspended": 2}


def test_another_seed_is_another_world() -> None:
    def front(seed: str) -> bytes:
        with running("site", "--hosts", "1", "--seed", seed, "--json") as process:
            address = json.loads(lines(process, "{")[0])["address"]
            lines(process, '{"host": "dead.example"')
            with urlopen(f"{address}birds/marsh-1", timeout=300) as answer:  # noqa: S310 - our own server
                body: bytes = answer.read()
            return body

    assert front("1") == front("1") != front("2")


def test_a_port_in_use_is_a_message_and_not_a_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = failed("site", "--port", str(port))

    assert (code, out) == (1, "")
    assert err == f"sanderling: --port: port {port} of 127.0.0.1: Address already in use; choose another\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["site", "--hosts", "0"], "--hosts"),
        (["site", "--hosts", "201"], "--hosts"),
        (["site", "--port", "65530"], "25 consecutive ports from 65530 on go beyond 65535"),
        (["site", "--port", "70000"], "--port"),
        (["site", "--seed", "x"], "--seed"),
        (["pds", "--hosts", "30", "--repos", "29"], "--repos: 29 for 30 hosts, expected at least one each"),
        (["pds", "--port", "65530"], "34 consecutive ports from 65530 on go beyond 65535"),
        (["pds", "--large", "101"], "--large"),
        (["sote"], 'Did you mean "site"?'),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(arguments: list[str], says: str) -> None:
    code, out, err = failed(*arguments)

    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [["--help"], ["site", "--help"]])
def test_the_help_has_an_example(arguments: list[str]) -> None:
    code, out, err = failed(*arguments)

    assert (code, err) == (0, "")
    assert "\n    sanderling world site --hosts 3\n" in out
