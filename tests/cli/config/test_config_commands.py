"""`sanderling config` and `sanderling init`, and what other commands make of the file."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import called

from sanderling.cli import app
from sanderling.cli.config.file import NAME, parse
from sanderling.cli.config.settings import TOP, known, variable
from sanderling.cli.config.template import template, toml

MANUAL = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
SETTING = re.compile(r"^#(?=[a-z])", re.MULTILINE)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("SANDERLING_CONFIG", "SANDERLING_HOME"):
        monkeypatch.delenv(name, raising=False)
    yield
    app.config = None


def write(text: str) -> None:
    Path(NAME).write_text(text)


# init


def test_init_writes_every_setting_and_none_is_in_force() -> None:
    done = called("init")

    text = Path(NAME).read_text()
    settings = len(SETTING.findall(text))
    assert (done.code, done.out) == (0, f"{NAME}: {settings} settings, all commented out\n")
    assert called("config", "check").out == f"{NAME}: 0 settings, and 0 in the environment; all well\n"
    # Each setting of each command is there, in its own table or in one that it shares.
    written = parse(SETTING.sub("", text), NAME, known()).values
    for command, keys in known().commands.items():
        tables = [command[:depth] for depth in range(len(command) + 1)]
        assert [key for key in keys if not any((table, key) in written for table in tables)] == []


def test_each_line_of_it_may_be_set_free_and_all_is_well() -> None:
    text = template(known())
    places = [found.start() for found in SETTING.finditer(text)]

    for place in places:
        file = parse(text[:place] + text[place + 1 :], NAME, known())
        assert (len(file.values), file.problems) == (1, ()), text[place : place + 60]


def test_what_is_set_free_is_the_default_where_there_is_one() -> None:
    file = parse(SETTING.sub("", template(known())), NAME, known())

    assert file.problems == ()
    for (table, key), (value, _) in file.values.items():
        default = known().placed(table)[key].default
        assert default in (None, ...) or value == (list(default) if isinstance(default, tuple) else default)


def test_it_leaves_alone_what_is_there() -> None:
    write("# mine\n")

    done = called("init")

    assert (done.code, done.out) == (2, "")
    assert done.err == f"sanderling: {NAME} is there already, and is left as it is; --force writes it anew\n"
    assert Path(NAME).read_text() == "# mine\n"
    assert called("init", "--force").code == 0
    assert Path(NAME).read_text() == template(known())


def test_it_may_be_written_elsewhere() -> None:
    assert called("init", "--home", "a/home").code == 0
    assert called("init", "--config", "other.toml").code == 0

    assert Path("a/home", NAME).read_text() == Path("other.toml").read_text()
    assert not Path(NAME).exists()
    assert called("init", "--config", "none").code == 2
    Path("file").touch()
    done = called("--home", "file/below", "init")
    assert (done.code, done.out) == (1, "")
    assert "cannot use" in done.err


@pytest.mark.parametrize("value", [True, 5, 2.5, 'a " \\ \n \t \x7f \x00 ü', ["a", "b"], []])
def test_values_are_written_as_toml(value: object) -> None:
    assert tomllib.loads(f"x = {toml(value)}") == {"x": value}


# check


def test_check_says_how_many_settings_there_are() -> None:
    assert called("config", "check").out == f"no {NAME}: 0 settings, and 0 in the environment; all well\n"

    write("log-level = 'info'\n[events]\nbatches = 3\n")

    assert called("config", "check").out.startswith(f"{NAME}: 2 settings, ")


def test_check_says_all_that_is_wrong_also_with_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    write("x = 1\n[events.consume]\nbatchs = 5\n")
    monkeypatch.setenv("SANDERLING_EVENTS_CONSUME_TRIES", "many")
    monkeypatch.setenv("SANDERLING_LOG_LEVEL", "loud")

    done = called("config", "check")

    assert (done.code, done.out) == (2, "")
    assert f"{NAME}, line 1: the top level has no setting x" in done.err
    assert f"{NAME}, line 3: [events.consume] has no setting batchs; did you mean batches?" in done.err
    assert "SANDERLING_EVENTS_CONSUME_TRIES: found text, expected a whole number, at least 0 and at most" in done.err
    assert 'SANDERLING_LOG_LEVEL: found "loud", expected one of "debug"' in done.err


def test_a_variable_that_sets_nothing_is_named_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDERLING_EVENT_DATABASE", "x")
    monkeypatch.setenv("SANDERLING_SOAK", "1")

    done = called("config", "check")

    assert done.code == 0
    assert done.err == "note: SANDERLING_EVENT_DATABASE sets nothing; did you mean SANDERLING_EVENTS_DATABASE?\n"


# show


def shown(*command: str) -> dict[str, str]:
    """What is shown of a command: for each setting the value and where it is from."""
    done = called("config", "show", *command)
    assert done.code == 0, done.err
    rows = [line.partition("#") for line in done.out.splitlines() if "#" in line[1:]]
    return {said.partition(" = ")[0].strip(): f"{said.strip()} # {origin.strip()}" for said, _, origin in rows}


def test_show_says_what_holds_and_where_it_is_from(monkeypatch: pytest.MonkeyPatch) -> None:
    write("home = 'h'\n[events]\nbucket = 'b'\n[events.consume]\nbatches = 7\npool = 3\n")
    monkeypatch.setenv("SANDERLING_EVENTS_CONSUME_POOL", "4")

    rows = shown("events", "consume")

    assert set(rows) == set(known().commands["events", "consume"])
    assert rows["batches"] == f"batches = 7 # {NAME}, line 5"
    assert rows["bucket"] == f'bucket = "b" # {NAME}, line 3'
    assert rows["pool"] == "pool = 4 # SANDERLING_EVENTS_CONSUME_POOL"
    assert rows["out"] == 'out = "h/events" # default, in the home'
    assert rows["tries"] == "tries = 10 # default"
    assert rows["database"] == "database # default: not set"


def test_show_without_a_command_shows_all_and_says_nothing_twice() -> None:
    write("[events]\ntries = 3\nout = 'a'\n[events.migrate]\nout = 'b'\n")

    done = called("config", "show")

    tables = re.split(r"^\[(.*)\]$", done.out, flags=re.MULTILINE)
    by_table = dict(zip(tables[1::2], tables[2::2], strict=True))
    assert f'out = "a"                                          # {NAME}, line 3' in by_table["events"]
    assert "out" not in by_table["events.consume"]
    assert f'out = "b"                                          # {NAME}, line 5' in by_table["events.migrate"]
    assert f"tries = 3                                          # {NAME}, line 2" in by_table["events.consume"]
    assert "log-level" in tables[0]
    assert done.out.count("\nlog-level") == 1


def test_show_of_a_group_is_of_all_its_commands() -> None:
    document = json.loads(called("config", "show", "sequence", "missed", "--json").out)

    assert list(document["tables"]) == [f"sequence.missed.{name}" for name in ("export", "import", "list", "retry")]
    assert called("config", "show", "event").err == (
        "sanderling: there is no command event with settings; did you mean events?\n"
    )


def test_show_as_json_has_every_setting_of_every_command() -> None:
    write("[repos]\nworkers = 3\n")

    document = json.loads(called("config", "show", "--json", "--home", "h").out)

    assert document["file"] == NAME
    assert document["home"] == {"value": "h", "from": "--home"}
    assert document["tables"]["repos.crawl"]["workers"] == {"value": 3, "from": f"{NAME}, line 2"}
    assert {tuple(name.split(".")): set(settings) for name, settings in document["tables"].items()} == {
        command: set(settings) for command, settings in known().commands.items()
    }


def test_nothing_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        "[events]\ndatabase = 'postgresql://me:hunter2@db/x?sslpassword=hunter2'\ntoken-file = '/hunter2'\n"
        "[sequence.crawl]\nurl = 'https://api.example/{id}?key=hunter2'\n"
        "header = ['Authorization: hunter2', 'Accept: json']\nbatchs = 'hunter2'\n"
    )
    monkeypatch.setenv("SANDERLING_EVENTS_QUEUE", "amqp://me:hunter2@broker/")

    for command in (["config", "check"], ["config", "show"], ["events", "mode"]):
        done = called(*command)
        assert done.code == 2
        assert "hunter2" not in done.out + done.err
    write(Path(NAME).read_text().replace("batchs = 'hunter2'\n", ""))
    for command in (["config", "check"], ["config", "show"], ["config", "show", "--json"]):
        done = called(*command)
        assert done.code == 0, done.err
        assert "hunter2" not in done.out + done.err
    rows = shown("events", "consume")
    assert rows["database"] == f'database = "postgresql://me@db/x?sslpassword=***" # {NAME}, line 2'
    assert rows["token-file"] == f'token-file = "***" # {NAME}, line 3'
    assert rows["queue"] == 'queue = "amqp://me@broker/" # SANDERLING_EVENTS_QUEUE'
    assert 'header = ["Authorization: ***", "Accept: json"]' in shown("sequence", "crawl")["header"]


# Other commands


def test_every_command_checks_the_whole_file() -> None:
    write("[polling.run]\ntimeout = 0\nportt = 1\n")

    done = called("events", "mode")

    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"sanderling: {NAME}, line 2: [polling.run] timeout: found 0, expected a number, more than 0 and at most 600\n"
        "1 more; see: sanderling config check\n"
    )
    assert called("events", "mode", "--config", "none").out.startswith("No modes are written in events;")
    named = called("events", "mode", "--config", NAME).err
    assert named.endswith(f"1 more; see: sanderling config check --config {NAME}\n")


def test_help_and_the_version_work_whatever_is_in_it() -> None:
    write("x = [")

    for words in (["--version"], ["--help"], ["pages", "crawl", "--help"], []):
        done = called(*words)
        assert (done.code, done.err) == (0, "")
    assert "--config" not in called("pages", "crawl", "--help").out
    assert called("--help").out.count("--home FOLDER") == 1


def test_a_command_works_in_the_folder_that_is_set() -> None:
    write("[events]\nout = 'set here'\n")

    assert "No modes are written in set here;" in called("events", "mode").out
    assert "No modes are written in typed;" in called("events", "mode", "--out", "typed").out
    assert "No modes are written in h/events;" in called("events", "mode", "--home", "h", "--config", "none").out
    assert "there is no folder set here" in called("status", "events").err


def test_a_variable_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDERLING_EVENTS_CONSUME_BATCHES", "0")

    done = called("events", "consume")

    assert done.code == 2
    assert 'Invalid value "0" for --batches provided by SANDERLING_EVENTS_CONSUME_BATCHES' in done.err


def test_help_does_not_load_what_settings_need() -> None:
    code = """
import atexit, sys
atexit.register(lambda: print(*sys.modules))
sys.argv = ["sanderling", "--home", "h", "--version"]
from sanderling.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)  # noqa: S603

    loaded = set(done.stdout.splitlines()[-1].split())
    assert "sanderling.cli.everywhere" in loaded
    assert not loaded & {"tomllib", "difflib", "sanderling.cli.config.file", "sanderling.cli.config.settings"}


# The manual


def test_the_manual_has_every_setting_of_the_top_level() -> None:
    rows = [
        [cell.strip().strip("`") for cell in line.strip("| ").split(" | ")]
        for line in MANUAL.partition("## At the top level")[2].partition("\n## ")[0].splitlines()
        if line.startswith("| `")
    ]

    settings = {key: settings[0] for key, settings in known().settings(TOP).items()}
    assert rows == [
        [key, variable(TOP, key), "not set" if each.default is None else toml(each.default), each.help]
        for key, each in sorted(settings.items())
    ]


def test_the_folders_of_the_manual_are_those_of_a_home() -> None:
    section = MANUAL.partition("## One home")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `([\w/-]+)`", section, re.MULTILINE))

    paths = {
        setting.default for keys in known().commands.values() for setting in keys.values() if setting.kind == "path"
    }
    folders = {path for path in paths if isinstance(path, str) and not path.startswith("sanderling-demo")}
    assert named == folders | {"pages"}


def test_the_file_of_the_manual_is_one() -> None:
    text = re.findall(r"```toml\n(.*?)```", MANUAL, re.DOTALL)[0]

    file = parse(text, NAME, known())

    assert (file.problems, len(file.values)) == ((), 6)


def test_what_the_manual_says_of_a_slip_is_what_is_said() -> None:
    write("\n" * 5 + "[events.consume]\nbatchs = 5\npool = 2000\n")
    said = called("config", "check").err.removeprefix("sanderling: ").splitlines()

    assert all(f"    sanderling: {line}\n" in MANUAL for line in said)
    assert len(said) == 2


def test_a_variable_of_a_setting_that_is_gone_is_an_error_that_says_what_replaced_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDERLING_REPOS_CRAWL_PASSES", "3")

    for words in (["config", "check"], ["status", str(tmp_path)]):
        done = called(*words)
        assert done.code == 2
        assert "SANDERLING_REPOS_CRAWL_PASSES sets nothing any more: --passes is now --patience" in done.err


def test_a_secret_is_masked_wherever_it_stands_in_a_value() -> None:
    write(
        "[sequence.crawl]\nurl = 'https://a.example/{id}?key=hush&page=1'\nheader = ['X-Api-Key: hush']\n"
        "[pages.crawl]\nallow = ['x?key=hush']\n[run]\nset = ['key=hush', 'api_key=hush', 'at=https://u:hush@h/?sig=hush']\n"
    )

    for more in ((), ("--json",)):
        done = called("config", "show", *more)
        assert (done.code, "hush" in done.out) == (0, False)
    assert "page=1" in called("config", "show").out
