"""How `sanderling polling` may be called, and what it says when it cannot do what was asked."""

import socket
from pathlib import Path

import pytest
from command_line import called

from sanderling.cli import reach
from sanderling.cli.options import WATCHED
from sanderling.cli.polling.flags import ChangeSinks, PollFlags, PollingPace, PollingUpstream
from sanderling.cli.polling.place import PollingFolder
from sanderling.cli.polling.summary import again
from sanderling.cli.serving import Serving

COMMANDS = ["run", "targets", "set", "settings", "purge"]
ANYONE = "0.0.0.0"  # noqa: S104 - nobody is let in
HERE = ("--trackside", "http://127.0.0.1:9999", "--private")
SOURCE = '[source]\nname = "scores"\n[source.kinds.match]\nurl = "https://scores.example/{event}"\nseconds = 5\n'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of our own, without what the environment may say."""
    monkeypatch.chdir(tmp_path)
    for name in ("SANDERLING_TOKEN", "SANDERLING_TRACKSIDE", "SANDERLING_POLLING_WEBHOOK"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_says_what_it_does_how_it_ends_and_has_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = called("polling", command, "--help")

    assert done.code == 0
    assert f"Usage: sanderling polling {command}" in done.out
    assert "Exit code 0" in done.out
    assert f"    sanderling polling {command}" in done.out.partition("Example")[2]


def test_all_commands_are_listed() -> None:
    listed = called("polling", "--help").out

    assert sorted(COMMANDS) == sorted(
        line.split()[1] for line in listed.splitlines() if line.startswith("│ ") and line[2] != " "
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "--trackside or --source says whom to ask, and neither is given; to try: sanderling demo"),
        (["run", "--once"], "--trackside or --source says whom to ask, and neither is given"),
        (["run", *HERE, "--source", "x.toml"], "both are given; expected one of them"),
        (["run", "--trackside", "ftp://x"], "--trackside: base of trackside: expected http://host or https://host"),
        (["run", "--trackside", "http://127.0.0.1:80"], "--private allows your own machine and network"),
        (
            ["run", *HERE, "--set", "raceActiveMs=1"],
            "--set: scheduler.raceActiveMs is '1', expected 0, or milliseconds",
        ),
        (
            ["run", *HERE, "--set", "fullIntervalMs=often"],
            "--set: scheduler.fullIntervalMs is 'often', expected",
        ),
        (["run", *HERE, "--set", "racActiveMs=300"], "--set: 'scheduler.racActiveMs' is no setting, did you mean sch"),
        (["run", *HERE, "--set", "racActiveMs"], "--set: found 'racActiveMs', expected KEY=VALUE"),
        (
            ["run", *HERE, "--set", "concurrency=0"],
            "--set: scheduler.concurrency is '0', expected a whole number",
        ),
        (["run", *HERE, "@bind", ANYONE], "bind is for the API, and nothing is served; expected --port"),
        (["run", *HERE, "@token-file", "x"], "token-file is for the API, and nothing is served"),
        (["run", *HERE, "--port", "0", "@bind", ANYONE], "bind: 0.0.0.0 can be reached from other machines and"),
        (["run", *HERE, "--port", "70000"], "--port"),
        (["run", *HERE, "--contact", "me"], "--contact: "),
        (["run", *HERE, "--queue", "ftp://x"], "--queue: "),
        (["run", *HERE, "@webhook-file", "none"], "webhook-file: "),
        (
            ["run", *HERE, "--database", "mysql://me:hush@db/x"],
            "--database: 'mysql' is no kind of store; expected sqlite",
        ),
        (["run", *HERE, "@keep-changes", "0"], "KEEP_CHANGES. Must be"),
        (["targets"], "nothing was polled in polling; choose another folder with --out"),
        (["settings", "--default"], "--default: expected the setting that goes back to its default"),
        (["settings", "raceActiveMs"], "raceActiveMs: expected a value, or --default, and not both"),
        (["settings", "raceActiveMs", "1s", "--default"], "raceActiveMs: expected a value, or --default, and not both"),
        (["set", "--pause"], "found neither a kind nor --all; expected a kind like race, perhaps with an id, or --all"),
        (["set", "race", "--all", "--no-pause"], "found a kind and --all; expected a kind like race"),
        (["set", "race", "--for", "1ms"], "--for is '1ms', expected milliseconds from 1000"),
        (["set", "race"], "nothing to set; expected --interval, --priority, --pause, --now or --for"),
        (["set", "race", "--interval", "10ms"], "--interval is '10ms', expected milliseconds from 50"),
        (["set", "race", "--priority", "1001"], "--priority is '1001', expected -1000 to 1000, or 'default'"),
        (["set", "race", "--priority", "x"], "--priority is 'x', expected -1000 to 1000, or 'default'"),
        (["purge"], "this removes all rows and targets; say --yes if that is what you want"),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(arguments: list[str], says: str) -> None:
    done = called("polling", *arguments)

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "hush" not in done.err
    assert not Path("polling/limiter.json").exists(), "nothing was begun"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[source", "no.toml is no TOML: "),
        ("[sauce]", "no.toml has no section [source]"),
        (SOURCE.replace("5", '"often"'), "no.toml: settings of a source: Expected `float`, got `str`"),
        (SOURCE.replace("{event}", "{evnt}"), "no.toml: kind 'match': url has '{evnt}' in it, expected {event}"),
        (SOURCE.replace("scores.example", "127.0.0.1"), "no.toml: host 127.0.0.1 is an address"),
    ],
)
def test_a_description_with_a_mistake_is_named_with_its_place(text: str, says: str) -> None:
    Path("no.toml").write_text(text)

    done = called("polling", "run", "--source", "no.toml")

    assert done.code == 2
    assert f"--source: {says}" in done.err


def test_a_file_that_is_not_there_is_named() -> None:
    done = called("polling", "run", "--source", "none.toml")

    assert (done.code, "--source: cannot read none.toml" in done.err) == (2, True)


def test_a_port_that_is_taken_is_a_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = called("polling", "run", *HERE, "--port", port)

    assert done.code == 2
    assert f"--port: port {port} of 127.0.0.1: Address already in use; choose another port" in done.err


def test_a_database_of_another_source_is_left_alone() -> None:
    Path("scores.toml").write_text(SOURCE)
    first = called("polling", "run", *HERE, "--port", "0", "@bind", ANYONE)  # ends, and has made the database

    done = called("polling", "run", "--source", "scores.toml")

    assert (first.code, done.code) == (2, 2)
    assert "polling/polling.db is of the source 'trackside', expected 'scores'" in done.err


def test_a_database_server_that_is_down_is_said_at_once_by_who_only_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "AGAIN", 1e6)  # whoever waited would wait for long
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]

    done = called("polling", "targets", "--database", f"postgresql://me:hush@127.0.0.1:{port}/db")

    assert done.code == 1
    assert f"--database: postgresql://127.0.0.1:{port}/db, schema public cannot be reached" in done.err
    assert "hush" not in done.err


def test_a_folder_that_cannot_be_is_a_message() -> None:
    Path("polling").write_text("mine")

    done = called("polling", "run", *HERE)

    assert (done.code, "cannot use polling" in done.err) == (1, True)


def test_the_command_to_go_on_with_has_all_flags_and_no_secrets() -> None:
    given = PollFlags(
        PollingFolder(out=Path("a b"), database="postgresql://me:p@s:s@db/x?schema=s&password=hush&sslpassword=hush"),
        PollingUpstream(trackside="http://race.example", private=True, rps=5.0),
        PollingPace(set=("channelsMs=1m",)),
        Serving(port=8090, token_file=Path("token")),
        ChangeSinks(queue="amqp://me:hush@broker/", webhook_file=Path("hook")),
    )

    said = again(given, WATCHED)

    assert said == (
        "sanderling polling run --out 'a b' "
        "--database 'postgresql://me@db/x?schema=s&password=***&sslpassword=***' --rps 5 --private "
        "--trackside http://race.example --port 8090 --queue amqp://me@broker/"
    )
