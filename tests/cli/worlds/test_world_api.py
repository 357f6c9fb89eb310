"""The command as a person runs it: a real process, asked over real sockets, ended by Ctrl-C."""

import json
from urllib.request import urlopen

from command_line import called
from world_commands import LAST, end, lines, running

from sanderling.worlds.api import ApiRules, ApiWorld


def test_an_api_is_shown_and_served_until_ctrl_c() -> None:
    with running("api", "--port", "0", "--posts", "7", "--faults", "0") as process:
        said = lines(process, LAST)
        base = said[0].removeprefix("A simulated API at ").partition(",")[0]
        with urlopen(f"{base}/posts/7", timeout=60) as reply:  # noqa: S310 - our own server
            found = json.load(reply)
        code, _, err = end(process)

    assert found == ApiWorld(1, ApiRules(posts=7)).post(7)
    assert "    sanderling run examples/paged_api.py --out posts --private" in said
    assert (code, err) == (130, "\n1 requests.\n")


def test_json_is_one_object_and_nothing_else() -> None:
    with running("api", "--json", "--port", "0") as process:
        said = json.loads(lines(process, "{")[0])
        again = called("world", "api", "--port", said["address"].rpartition(":")[2])
        code, out, err = end(process)

    assert (code, out, err) == (130, "", "")
    assert said["posts"] == 300
    assert again[0] == 1
    assert "--port" in again[2]
