from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from sanderling.cli.context import Context
from sanderling.cli.parse import Typed, parse
from sanderling.cli.resolve import DEFAULT, build, check_document, resolve
from sanderling.forms import Bytes, Seconds, SecretOrText, Url
from sanderling.options import REQUIRED, Document, OptionError, Options, option
from sanderling.redact import Secret


class HostTable(Options):
    rps: float | None = option(None, "Requests a second.", low=0.001)
    headers: dict[str, SecretOrText] = option({}, "Headers.")
    user: str = option("", "A name.")


class SharedOptions(Options, table=""):
    rps: float = option(2.0, "Requests a second.", low=0.001, high=1000, seed="default-pds-rps")
    hosts: dict[str, HostTable] = option({}, "Hosts.")
    private: bool = option(default=False, help="Local addresses too.")


class GameOptions(SharedOptions, table="games", title="What is played"):
    urls: tuple[Url, ...] = option(REQUIRED, "Where to begin.", argument="URL")
    depth: int = option(16, "Links to follow.", low=0, high=1000, plan=True)
    mode: Literal["fast", "slow"] = option("fast", "How.")
    rest: Seconds = option(5.0, "A pause.", low=0, seed="ingest-full-interval")
    largest: Bytes = option(1024, "Bytes.", low=1)
    only: tuple[str, ...] = option((), "Hosts.")
    header: dict[str, str] = option({}, "Headers.")
    token: Secret | None = option(None, "The token.")
    folder: Path | None = option(None, "A folder.")
    enabled: bool = option(default=True, help="Play.", seed="ingest-enabled", variable="NEW_MODE_ENABLED")


def read(*words: str, document: Document | None = None, environment: Mapping[str, str] | None = None) -> GameOptions:
    context = Context(words, environment or {})
    typed = parse(words or ["https://a.example/"], GameOptions.fields)
    check_document(document or {}, [GameOptions])
    return build(GameOptions, resolve(GameOptions, typed, context, document or {}))


URL = "https://a.example/"


def game(**values: Any) -> GameOptions:
    """As a caller without types does it."""
    return GameOptions(**values)


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--depth", "3"], "depth", 3),
        (["--depth=3"], "depth", 3),
        (["-depth=3"], "depth", 3),
        (["--rest", "200ms"], "rest", 0.2),
        (["--rest=1m30s"], "rest", 90.0),
        (["--rest", "7"], "rest", 7.0),
        (["-ingest-full-interval=10s"], "rest", 10.0),
        (["-ingest-enabled=false"], "enabled", False),
        (["--no-enabled"], "enabled", False),
        (["--no-ingest-enabled"], "enabled", False),
        (["--private"], "private", True),
        (["--private=false"], "private", False),
        (["--default-pds-rps", "5"], "rps", 5.0),
        (["--largest", "2GB"], "largest", 2 << 30),
        (["--largest", "1.5kb"], "largest", 1536),
        (["--only", "a", "--only=b"], "only", ("a", "b")),
        (["--header", "A=1", "--header", "B=x=y"], "header", {"A": "1", "B": "x=y"}),
        (["--token", "env:HOME"], "token", Secret("env:HOME")),
        (["--mode", "slow"], "mode", "slow"),
        (["--folder", "-"], "folder", Path("-")),
        (["--", "--depth"], "urls", None),
    ],
)
def test_what_is_typed_is_read(words: list[str], field: str, value: object) -> None:
    if value is None:
        with pytest.raises(OptionError, match="URL"):
            read(URL, *words)
    else:
        assert getattr(read(URL, *words), field) == value


def test_a_flag_counts_more_than_a_variable_and_that_more_than_the_file() -> None:
    document = {"games": {"depth": 1, "rps": 3.0}, "rps": 4.0, "private": True}
    variables = {"SANDERLING_GAMES_DEPTH": "2", "SANDERLING_RPS": "5"}

    assert read().depth == 16
    assert read(document=document).depth == 1
    assert read(document=document, environment=variables).depth == 2
    assert read(URL, "--depth", "3", document=document, environment=variables).depth == 3
    assert read(document=document).rps == 3.0, "the system's own table counts more than the top level"
    assert read(document=document, environment=variables).rps == 5.0
    assert read(document=document, environment=variables | {"SANDERLING_GAMES_RPS": "6"}).rps == 6.0
    assert read(document=document).private


def test_variables_hold_lists_and_aliases() -> None:
    assert read(environment={"SANDERLING_GAMES_ONLY": "a b"}).only == ("a", "b")
    assert read(environment={"SANDERLING_GAMES_HEADER": "A=1 B=2"}).header == {"A": "1", "B": "2"}
    assert not read(environment={"NEW_MODE_ENABLED": "false"}).enabled
    assert not read(environment={"SANDERLING_GAMES_ENABLED": "0"}).enabled


def test_tables_of_hosts_hold_options_and_secrets() -> None:
    document = {"hosts": {"api.example": {"rps": 2, "headers": {"X-Key": "env:KEY", "Accept": "text/html"}}}}

    table = read(document=document).hosts["api.example"]

    assert table.rps == 2.0
    assert table.headers == {"X-Key": Secret("env:KEY"), "Accept": "text/html"}
    assert [secret.source for secret in read(document=document).secrets()] == ["env:KEY"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--dpeth", "3"], "--dpeth --depth"),
        (["--depth"], "--depth 1000"),
        (["--depth", "--private"], "--depth"),
        (["--depth", "many"], "--depth 'many' 1000"),
        (["--depth", "1001"], "--depth '1001' 1000"),
        (["--depth", "3", "--depth", "3"], "--depth"),
        (["--rps", "3", "--default-pds-rps", "3"], "--rps --default-pds-rps"),
        (["--rps", "nan"], "--rps 'nan'"),
        (["--rps", "inf"], "--rps 'inf'"),
        (["--rest", "5y"], "--rest y"),
        (["--rest", "-1s"], "--rest"),
        (["--private=maybe"], "--private 'maybe' true"),
        (["--no-private=true"], "--no-private"),
        (["--mode", "fsat"], "--mode 'fsat' fast slow"),
        (["--header", "A"], "--header NAME=VALUE"),
        (["--header", "A=1", "--header", "A=2"], "--header twice"),
        (["--token", "hunter22"], "--token env:NAME file:PATH"),
        (["example.org"], "URL https://example.org/"),
        (["https://me:pw@example.org/"], "URL [hosts]"),
        (["--folder", ""], "--folder path"),
    ],
)
def test_what_is_typed_wrong_is_named_with_what_to_type(words: list[str], names: str) -> None:
    with pytest.raises(OptionError) as raised:
        read(*([] if words[0].startswith("-") else words), *([URL, *words] if words[0].startswith("-") else []))

    for name in names.split():
        assert name in str(raised.value)
    assert "hunter22" not in str(raised.value)
    assert "pw" not in str(raised.value)


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ({"dpeth": 3}, "dpeth"),
        ({"gmaes": {"depth": 3}}, "[gmaes] games"),
        ({"games": {"dpeth": 3}}, "[games] dpeth depth"),
        ({"games": 3}, "games"),
        ({"rps": "fast"}, "rps 'fast' number"),
        ({"rps": True}, "rps true number"),
        ({"games": {"depth": "3"}}, "[games] depth '3'"),
        ({"games": {"rest": 5, "depth": 1.5}}, "[games] depth 1.5"),
        ({"games": {"only": "a"}}, "[games] only 'a' list"),
        ({"games": {"token": "hunter22"}}, "[games] token env:NAME"),
        ({"hosts": {"a.example": {"rsp": 1}}}, '[hosts."a.example"] rsp rps'),
        ({"hosts": {"a.example": {"rps": 0}}}, '[hosts."a.example"] rps 0'),
        ({"hosts": {"a.example": 3}}, '[hosts."a.example"] table'),
        ({"games": {"keep": 1}}, "[games] keep"),
        ({"games": {"urls": ["https://a.example/"]}}, "[games] urls"),
        ({"rps": 1.0, "r-p-s": 1.0}, "r-p-s"),
    ],
)
def test_a_wrong_file_is_named_by_table_and_key(document: Document, names: str) -> None:
    with pytest.raises(OptionError) as raised:
        read(document=document)

    for name in names.split():
        assert name in str(raised.value)
    assert "hunter22" not in str(raised.value)


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"SANDERLING_GAMES_DEPTH": "many"}, "SANDERLING_GAMES_DEPTH 'many'"),
        ({"SANDERLING_GAMES_DEPTH": ""}, "SANDERLING_GAMES_DEPTH"),
        ({"SANDERLING_PRIVATE": "maybe"}, "SANDERLING_PRIVATE"),
        ({"SANDERLING_GAMES_HEADER": "A"}, "SANDERLING_GAMES_HEADER NAME=VALUE"),
        (
            {"NEW_MODE_ENABLED": "true", "SANDERLING_GAMES_ENABLED": "true"},
            "NEW_MODE_ENABLED SANDERLING_GAMES_ENABLED",
        ),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(variables: dict[str, str], names: str) -> None:
    with pytest.raises(OptionError) as raised:
        read(environment=variables)

    for name in names.split():
        assert name in str(raised.value)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(OptionError, match="URL is missing"):
        read("--depth", "3")


def test_options_are_keywords_that_are_checked_alike() -> None:
    options = game(urls=["https://A.example"], depth=3, rest="2m", token="env:HOME")

    assert (options.urls, options.depth, options.rest) == (("https://a.example/",), 3, 120.0)
    assert options.plan() == {"depth": 3}
    assert options == game(urls=["https://a.example/"], depth=3, rest=120, token=Secret("env:HOME"))
    for wrong in ({"dpeth": 3}, {"depth": 1001}, {"depth": "3"}, {"depth": True}):
        with pytest.raises(OptionError, match=r"depth|dpeth"):
            game(urls=[URL], **wrong)
    with pytest.raises(AttributeError):
        options.depth = 4  # type: ignore[misc]


def test_what_is_shown_can_be_typed_again() -> None:
    options = game(urls=[URL], rest=90, largest=1536, only=("a", "b"), header={"A": "1"}, rps=0.25)

    for name, each in GameOptions.fields.items():
        value = getattr(options, name)
        if value in (None, "") or each.is_table:
            continue
        raw: object = each.show(value).split() if each.shape else each.show(value)
        assert each.read(raw, name, typed=True) == value


def test_an_option_is_one_field() -> None:
    """Its flag, variable, key and origin follow from it, and nothing else is to be changed."""

    class WiderOptions(GameOptions, table="games"):
        width: int = option(3, "How wide.", low=1)

    context = Context((), {})
    by_flag = resolve(WiderOptions, {"width": Typed("--width", "5")}, context, {})
    by_variable = resolve(WiderOptions, {}, Context((), {"SANDERLING_GAMES_WIDTH": "6"}), {})
    by_file = resolve(WiderOptions, {}, context, {"games": {"width": 7}})
    by_default = resolve(WiderOptions, {}, context, {})

    found = [(each.value, each.origin) for every in (by_flag, by_variable, by_file, by_default) for each in every[:1]]
    assert found == [
        (5, "--width"),
        (6, "SANDERLING_GAMES_WIDTH"),
        (7, "sanderling.toml [games] width"),
        (3, DEFAULT),
    ]
