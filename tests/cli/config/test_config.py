"""A file, the environment and flags: what is read, what is refused, and what counts."""

import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import settings_write
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from sanderling.cli import app
from sanderling.cli.config.file import (
    LARGEST,
    NAME,
    ConfigError,
    Configuration,
    File,
    Value,
    find,
    parse,
    read,
    variables,
)
from sanderling.cli.config.lines import TomlLines
from sanderling.cli.config.settings import FILE, FOR_TESTS, OTHERS, SHARED, TOP, FlagSetting, Table, known, variable
from sanderling.cli.everywhere import Everywhere, taken
from sanderling.cli.processes import OWN
from sanderling.cli.repos.replay_processes import OWN as REPLAY

ROOT = Path(__file__).parents[3]


def parsed(*words: str, config: str | None = None, home: str | None = None) -> dict[str, Any]:
    """What a command would be called with."""
    app.config = Everywhere(home, config)
    return dict(app.parse_args(list(words), print_error=False, exit_on_error=False)[1].arguments)


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Where of all variables of ours only these are set."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("SANDERLING_")]:
            patch.delenv(name)
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with environment():
        yield
    app.config = None


def problems(text: str) -> list[str]:
    return list(parse(text, NAME, known()).problems)


# Flags that are taken out of the command line.


@pytest.mark.parametrize(
    ("words", "rest", "everywhere"),
    [
        (["events", "status"], ["events", "status"], Everywhere()),
        (["--home", "h", "events", "status"], ["events", "status"], Everywhere("h")),
        (["events", "--config=f", "status", "--home", "h"], ["events", "status"], Everywhere("h", "f")),
        (["fetch", "--", "--home", "h"], ["fetch", "--", "--home", "h"], Everywhere()),
        (["fetch", "--homes", "h"], ["fetch", "--homes", "h"], Everywhere()),
        (["--home=--odd"], [], Everywhere("--odd")),
    ],
)
def test_two_flags_are_taken_wherever_they_stand(words: list[str], rest: list[str], everywhere: Everywhere) -> None:
    assert taken(words) == (rest, everywhere)


@pytest.mark.parametrize("words", [["--home"], ["--home", "--json"], ["--config="], ["--home", "a", "--home", "b"]])
def test_they_are_taken_once_and_with_a_value(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"is given (twice|without a value)"):
        taken(words)


# Lines.

VALUES = st.sampled_from(
    [
        "1",
        "'a # b'",
        '"a \\" ] # b"',
        "[1, 2]",
        "[ # ]\n 1,\n\n 2 ]",
        "[\n['a'],\n[1], # ]\n]",
        '"""one\n[two]\nthree = 3 \\"""\n"""',
        "'''one\n[[two]]\n'''",
        '"""a""""',
        "{ x = 1, y = { z = ']' } }",
        "1979-05-27T07:32:00Z",
    ]
)
NOISE = st.lists(st.sampled_from(["", "# [no.table]", "  # x = 1", "\t"]), max_size=2)
PARTS = st.sampled_from(["{}", '"{}"', "'{}'", "{} . {}", '{}."b.c"'])


@given(st.lists(st.tuples(st.booleans(), PARTS, VALUES, NOISE), max_size=12))
@examples(max_examples=60, deadline=None)
def test_the_line_of_every_key_is_the_line_it_is_in(
    statements: list[tuple[bool, str, str, list[str]]],
) -> None:
    text, table = "", tuple[str, ...]()
    expected: dict[tuple[str, ...], int] = {}
    for number, (is_table, parts, value, noise) in enumerate(statements):
        name = f"k{number}"
        keys = (name, name) if "{} ." in parts else (name, "b.c") if "b.c" in parts else (name,)
        written, line = parts.replace("{}", name), text.count("\n") + 1
        if is_table:
            text, table = f"{text}[ {written} ]\n", keys
        else:
            text += f"{written} = {value}\n"
        expected[table if is_table else (*table, *keys)] = line
        text += "".join(f"{each}\n" for each in noise)

    tomllib.loads(text)
    lines = TomlLines(text)

    assert {keys: lines[keys] for keys in expected} == expected


def test_what_is_in_braces_has_the_line_of_these() -> None:
    assert TomlLines("\nevents = { consume = { batches = 0 } }\n")["events", "consume", "batches"] == 2
    assert problems("\nevents = { consume = { batches = 0 } }\n")[0].startswith(f"{NAME}, line 2: ")


@given(st.text("[]{}\"'#=.\n\\a ", max_size=40))
@examples(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        words = problems(text)
    except ConfigError as error:
        words = [str(error)]

    assert all(problem.startswith(NAME) for problem in words)


# What is wrong with a file.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[events.consume]\nbatchs = 5", "line 2: [events.consume] has no setting batchs; did you mean batches?"),
        ("[events.consum]", "line 1: [events] has no table consum; did you mean consume?"),
        ("\n[event]\nx = 1", "line 2: the top level has no table event; did you mean events?"),
        (
            "[repos.crawl]\npasses = 3",
            "line 2: [repos.crawl] has no setting passes any more: it is now --patience, for how long a host",
        ),
        ("hom = '.'", "line 1: the top level has no setting hom; did you mean home?"),
        ("batches = 5", "line 1: the top level has no setting batches; it belongs to [events.consume]"),
        ("[events]\nhome = '.'", "line 2: [events] has no setting home; it belongs to the top level"),
        ("[config]", "line 1: the top level has no table config; expected one of "),
        ("zzzz = 1", "line 1: the top level has no setting zzzz; expected one of home, log-format, "),
        ("events = 1", "line 1: events is the table of a command: found 1, expected [events]"),
        ("[[events]]", "line 1: events is the table of a command: found a list, expected [events]"),
        ("[polling]\nset = ['a=b']", "line 2: [polling] set is the table of a command: found a list, "),
        ("[polling.run]\nset = 'a'", "line 2: [polling.run] set: found text, expected a list in brackets, each of it "),
        ("[pages.crawl]\nallow = ['a', 3]", "line 2: [pages.crawl] allow: found a list with 3 in it, expected a list"),
        (
            "[events.consume]\nbatches = '5'",
            "batches: found text, expected a whole number, at least 1 and at most 1000",
        ),
        ("[events.consume]\nbatches = true", "batches: found true, expected a whole number"),
        ("[events.consume]\nbatches = 5.0", "batches: found 5.0, expected a whole number"),
        ("[events]\nbatches = 0", "line 2: [events] batches: found 0, expected a whole number, at least 1"),
        ("[polling.run]\ndisabled = 1", "disabled: found 1, expected true or false"),
        (
            "[events.consume]\ndrain = true",
            "no setting drain: --drain is for one call, and is no setting",
        ),
        ("[pages.status]\nx = 1", "`sanderling pages status` is now `sanderling status DIR`"),
        ("[polling.run]\ntimeout = 0", "timeout: found 0, expected a number, more than 0 and at most 600"),
        ("[polling.run]\ntimeout = nan", "timeout: found nan, expected a number"),
        ("[polling.run]\ntimeout = 1" + "0" * 400, "timeout: found 1000"),
        ("[pages.crawl]\ndepth = 1979-05-27", "depth: found a date or a time, expected a whole number"),
        ("log-level = 'loud'", 'log-level: found "loud", expected one of "debug", "info", "warning", "error"'),
        ("log-level = 'x://hunter2'", "log-level: found text, expected one of"),
        ("home = ''", "home: found text, expected a path in quotes"),
        ('[events.mode]\nout = "a\\u0000b"', "out: found text, expected a path in quotes"),
        ("[events.consume]\nmax-object = 1\nmax_object = 2", "line 3: max-object is there twice, with - and with _"),
        ("a = 'x", "line 1, column 7: "),
        ("\na =\n", "line 2, column 4: Invalid value"),
        ("a = [1,\n2", "line 2, column 2: Unclosed array"),
        ("a = 1\na = 2", "line 2, column 6: Cannot overwrite a value"),
        ("a" + ".a" * 100_000 + " = 1", "line 1: found a key of more than 16 names, expected at most four"),
        ("\n['a'" + ".'a'" * 20 + "]", "line 2: found a key of more than 16 names"),
        ("a = " + "[" * 100_000, "found brackets in brackets without end, expected a few"),
        ("a = " + "1" * 5000, "no TOML: Exceeds the limit"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, said: str) -> None:
    try:
        words = problems(text)[0]
    except ConfigError as error:
        words = str(error)

    assert words.startswith(NAME)
    assert said in words


def test_all_that_is_wrong_is_found_in_the_order_of_the_lines() -> None:
    found = problems("x = 1\n[events.consume]\nbatches = 0\ny = 1\n[events.mode]\n[nowhere]\n")

    assert [problem.partition(":")[0] for problem in found] == [f"{NAME}, line {line}" for line in (1, 3, 4, 6)]


def test_a_key_may_be_written_either_way() -> None:
    written = parse("[events.consume]\nmax_object = 1\nmax-batch = 2\n", NAME, known()).values

    assert written == {
        (("events", "consume"), "max-object"): Value(1, 2),
        (("events", "consume"), "max-batch"): Value(2, 3),
    }


def test_what_a_group_shares_has_to_suit_all_of_it() -> None:
    """`sequence crawl` takes ten thousand workers, `sequence store` one thousand."""
    assert problems("[sequence]\nmax-workers = 1000") == []
    assert problems("[sequence.crawl]\nmax-workers = 1001") == []
    assert "at most 1000" in problems("[sequence]\nmax-workers = 1001")[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = '\xff'", f"{NAME}, line 1: found a byte that is no UTF-8"),
        (b"# 1\n# 2\n\xc3(", f"{NAME}, line 3: found a byte that is no UTF-8"),
        (b" " * (LARGEST + 1), f"{NAME}: found more than 1,048,576 bytes"),
    ],
)
def test_a_file_that_cannot_be_text_is_refused(content: bytes, said: str) -> None:
    Path(NAME).write_bytes(content)

    with pytest.raises(ConfigError, match=re.escape(said)):
        read(Path(NAME))


def test_what_is_no_file_is_refused_and_not_waited_for() -> None:
    os.mkfifo("pipe")

    with pytest.raises(ConfigError, match="pipe: found something else, expected a file"):
        read(Path("pipe"))
    with pytest.raises(ConfigError, match=r"\.: found (a folder|something else), expected a file"):
        read(Path())
    with pytest.raises(ConfigError, match=r"nowhere: cannot be read \(No such file"):
        read(Path("nowhere"))


def test_the_mark_that_some_editors_write_is_no_matter() -> None:
    Path(NAME).write_bytes(b"\xef\xbb\xbfhome = 'h'\r\nlog-level = 'info'\r\n")

    assert parse(read(Path(NAME)), NAME, known()).values[TOP, "log-level"] == Value("info", 2)


# Where the file is.


def test_the_file_is_looked_for_in_four_places() -> None:
    home = Path("home")
    home.mkdir()
    for path in (Path("named"), Path("told"), Path(NAME), home / NAME):
        path.touch()
    told = {"SANDERLING_CONFIG": "told"}

    assert find("named", home, told) == Path("named")
    assert find(None, home, told) == Path("told")
    assert find(None, home, {}) == Path(NAME)
    Path(NAME).unlink()
    assert find(None, home, {}) == home / NAME
    assert find(None, None, {}) is None


@pytest.mark.parametrize(("config", "told"), [("none", "told"), ("", "told"), (None, ""), (None, "none")])
def test_it_can_be_switched_off(config: str | None, told: str) -> None:
    Path(NAME).touch()

    assert find(config, None, {"SANDERLING_CONFIG": told}) is None


def test_a_file_that_is_named_has_to_be_there() -> None:
    with pytest.raises(ConfigError, match="--config: there is no nowhere; expected a file, or none"):
        find("nowhere", None, {})
    with pytest.raises(ConfigError, match="SANDERLING_CONFIG: there is no nowhere"):
        find(None, None, {"SANDERLING_CONFIG": "nowhere"})


def test_a_link_that_leads_nowhere_is_not_passed_over() -> None:
    Path(NAME).symlink_to("nowhere")

    with pytest.raises(ConfigError, match="cannot be read"):
        Configuration.load(None, None, {})


# What counts.

CONSUME = ("events", "consume")
TABLES: list[Table] = [CONSUME, ("events",), TOP]
Sources = st.sets(st.tuples(st.sampled_from(["variable", "file"]), st.sampled_from(TABLES)))


@given(Sources, st.sets(st.sampled_from(["old", "empty"])))
@examples(max_examples=150, deadline=None)
def test_the_most_specific_table_of_the_first_source_counts(sources: set[tuple[str, Table]], besides: set[str]) -> None:
    """By the slow way: all places in the order in which they count, and the first that says something."""
    said = {variable(table, "log-level"): f"variable {table}" for kind, table in sources if kind == "variable"}
    values = {(table, "log-level"): Value(f"file {table}", 7) for kind, table in sources if kind == "file"}
    if "old" in besides:
        said["OLD"] = "old"
    if "empty" in besides:
        said |= {variable(table, "log-level"): "" for table in TABLES if ("variable", table) not in sources}
    order = [said.get(variable(table, "log-level")) for table in TABLES] + [said.get("OLD")]
    order += [str(values[table, "log-level"].value) for table in TABLES if (table, "log-level") in values]
    expected = next((each for each in order if each), None)

    found = Configuration(File(NAME, values), said).found(CONSUME, "log-level", ("OLD",))

    assert (found and found.value) == expected


LEVELS = ["1", "2", "3", "4"]
Level = st.sampled_from(LEVELS)


@given(st.dictionaries(st.sampled_from(["flag", "variable", "file", "group"]), Level))
@examples(max_examples=60, deadline=None)
def test_flags_count_more_than_variables_and_these_more_than_the_file(given_: dict[str, str]) -> None:
    text = "".join(f"{head}rps = {given_[key]}\n" for key, head in HEADS.items() if key in given_)
    Path("all.toml").write_text(text)
    words = ["--rps", given_["flag"]] if "flag" in given_ else []
    variables = {"SANDERLING_PAGES_RPS": given_["variable"]} if "variable" in given_ else {}

    with environment(**variables):
        bound = parsed("pages", "failed", "folder", *words, config="all.toml")

    order = [given_.get(each) for each in ("flag", "variable", "file", "group")]
    expected = next((each for each in order if each), None)
    assert bound["network"].rps == float(expected) if expected else "network" not in bound


HEADS = {"group": "[pages]\n", "file": "[pages.failed]\n"}


def test_every_kind_of_setting_arrives_as_its_flag_would() -> None:
    Path(NAME).write_text(
        "[pages]\nrps = 3\nprivate = true\nparquet = false\n"
        "[pages.crawl]\nallow = ['a.example', 'b.example']\nseeds = '~/seeds.txt'\nmax_pages = 7\nout = 'here'\n"
        "[sequence.crawl]\nwithout = ['knee']\n[repos.crawl]\nsince-archive = ['a', 'b']\n"
    )

    bound = parsed("pages", "crawl", "https://example.org/")
    assert bound["network"].rps == 3.0
    assert bound["network"].private is True
    assert bound["parquet"] is False
    assert bound["allow"] == ("a.example", "b.example")
    assert bound["seeds"] == Path.home() / "seeds.txt"
    assert bound["max_pages"] == 7
    assert bound["out"] == Path("here")
    assert parsed("sequence", "crawl")["pace"].without == ("knee",)
    assert parsed("repos", "crawl")["keeping"].since_archive == (Path("a"), Path("b"))
    assert parsed("pages", "crawl", "--parquet", "--allow", "c.example")["parquet"] is True
    assert parsed("pages", "crawl", "--allow", "c.example")["allow"] == ("c.example",)


def test_variables_arrive_as_flags_would() -> None:
    told = {"SANDERLING_PAGES_CRAWL_ALLOW": "a.example b.example", "SANDERLING_PAGES_PRIVATE": "true"}
    told |= {"SANDERLING_PAGES_CRAWL_PARQUET": "false", "SANDERLING_PAGES_CRAWL_DEPTH": "3"}

    with environment(**told, SANDERLING_PAGES_OUT="here"):
        bound = parsed("pages", "crawl")

    assert (bound["allow"], bound["parquet"], bound["depth"]) == (("a.example", "b.example"), False, 3)
    assert (bound["network"].private, bound["out"]) == (True, Path("here"))


def test_the_old_variables_still_work_and_count_less_than_those_of_a_table() -> None:
    old = {"WORKERS": "7", "OUTPUT_DIR": "old", "SANDERLING_TRACKSIDE": "http://old"}

    with environment(**old, SANDERLING_REPOS_CRAWL_WORKERS="8", SANDERLING_REPOS_OUT=""):
        bound = parsed("repos", "crawl")
        assert (bound["asking"].workers, bound["place"].out) == (8, Path("old"))
        assert parsed("polling", "run")["upstream"].trackside == "http://old"
    Path(NAME).write_text("[repos.crawl]\nworkers = 9\n")
    with environment(WORKERS="7"):
        assert parsed("repos", "crawl")["asking"].workers == 7
    with environment(WORKERS=""):
        assert parsed("repos", "crawl")["asking"].workers == 9


def test_variables_of_ours_that_set_something_else_are_not_misread() -> None:
    """SANDERLING_POLLING_SET is no setting: [polling.set] is the table of a command."""
    others = dict.fromkeys(OTHERS - {"SANDERLING_CONFIG"}, "1")

    with environment(**others, SANDERLING_POLLING_SET="a=b", SANDERLING_BATCHES="7", SANDERLING_JSON="true"):
        assert parsed("polling", "run") == {}
        assert parsed("events", "consume") == {}


def test_no_variable_means_two_things() -> None:
    all_known = known()
    names = [variable(table, key) for table in all_known.tables for key in all_known.settings(table)]

    assert sorted(names) == sorted(set(names))
    assert not set(names) & OTHERS
    assert not [name for name in names if name.startswith(FOR_TESTS)]


def test_every_variable_that_the_code_names_is_known() -> None:
    text = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py") if "settings" not in path.name)
    named = {name for name in re.findall(r"SANDERLING_[A-Z_]+[A-Z]\b", text) if not name.startswith(FOR_TESTS)}

    # By OWN a process tells another what to do.
    assert named - set(variables(known())) - OTHERS <= {"SANDERLING_EVENTS", OWN, REPLAY}


# One home.


def test_all_that_nobody_named_is_in_the_home(tmp_path: Path) -> None:
    home = str(tmp_path / "home")

    assert parsed("sequence", "crawl", home=home)["place"].out == Path(home, "sequence")
    assert parsed("polling", "purge", home=home)["place"].out == Path(home, "polling")
    assert parsed("events", "mode", home=home)["folder"].out == Path(home, "events")
    assert parsed("repos", "directory", home=home)["out"] == Path(home, "data/rca")
    assert parsed("pages", "crawl", home=home)["out"] == Path(home, "pages")
    assert parsed("why", "host.example", home=home)["out"] == Path(home, "pages")


def test_without_a_home_all_is_as_it_was() -> None:
    assert parsed("sequence", "crawl") == parsed("polling", "purge") == parsed("repos", "crawl") == {}
    with pytest.raises(Exception, match="requires an argument"):
        parsed("pages", "crawl", "https://example.org/")


def test_a_folder_that_is_named_is_where_it_is_named() -> None:
    Path(NAME).write_text("home = 'home'\n[events]\nout = 'set'\n")

    assert parsed("sequence", "crawl")["place"].out == Path("home/sequence")
    assert parsed("sequence", "crawl", "--out", "there")["place"].out == Path("there")
    assert parsed("events", "mode")["folder"].out == Path("set")


def test_the_home_is_that_of_the_flag_then_of_the_variable_then_of_the_file() -> None:
    Path(NAME).write_text("home = '~/in-file'\n")

    assert parsed("polling", "purge")["place"].out == Path.home() / "in-file" / "polling"
    with environment(SANDERLING_HOME="told"):
        assert parsed("polling", "purge")["place"].out == Path("told/polling")
        assert parsed("polling", "purge", home="typed")["place"].out == Path("typed/polling")


def test_a_command_that_is_about_the_whole_home_is_told_which() -> None:
    assert parsed("dashboard") == {}
    assert parsed("dashboard", home="typed")["home"] == Path("typed")
    Path(NAME).write_text("home = '~/in-file'\n")
    assert parsed("dashboard")["home"] == Path.home() / "in-file"
    assert "it belongs to the top level" in problems("[dashboard]\nhome = 'h'\n")[0]


def test_the_file_of_a_home_is_found_there() -> None:
    Path("home").mkdir()
    Path("home", NAME).write_text("[events]\nbatches = 9\n")

    assert parsed("events", "consume", home="home")["work"].batches == 9


def test_a_folder_that_goes_with_a_flag_is_not_named_in_vain() -> None:
    assert "onward" not in parsed("pages", "crawl", home="h")
    assert parsed("pages", "crawl", "--events-job", "a-b-0", home="h")["onward"].events_out == Path("h/events")


def test_a_crawl_that_hands_on_finds_events_where_the_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDERLING_EVENTS_DATABASE", "")
    monkeypatch.setenv("SANDERLING_EVENTS_QUEUE", "amqp://variable/")
    Path(NAME).write_text("[events]\ndatabase = 'postgresql://file/'\nqueue = 'amqp://file/'\n")

    parsed("pages", "crawl", "--out", "o")
    assert os.environ["SANDERLING_EVENTS_DATABASE"] == ""
    parsed("pages", "crawl", "--out", "o", "--events-job", "a-b-0")

    assert os.environ["SANDERLING_EVENTS_DATABASE"] == "postgresql://file/"
    assert os.environ["SANDERLING_EVENTS_QUEUE"] == "amqp://variable/"


# What is known.


def test_what_is_known_is_what_the_commands_have() -> None:
    assert FILE.read_text() == settings_write.written(), "a flag has changed; run: python tools/settings_write.py"


def test_what_the_top_shares_is_the_same_for_all() -> None:
    assert set(known().settings(TOP)) == {"home", *SHARED}
    assert all(len(settings) == 1 for settings in known().settings(TOP).values())


def test_every_default_is_one_that_could_be_set() -> None:
    settings = {setting for command in known().commands.values() for setting in command.values()}
    wrong = [each for each in settings if each.default not in (None, ...) and each.wrong(_listed(each))]

    assert wrong == []


def _listed(setting: FlagSetting) -> object:
    return list(setting.default) if isinstance(setting.default, tuple) else setting.default
