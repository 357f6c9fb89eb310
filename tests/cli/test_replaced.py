"""Old names are answered with the new ones, and each new one is there."""

import re

import pytest
import reference
from command_line import called
from cyclopts import App

from sanderling.cli.config.settings import known, variable
from sanderling.cli.replaced import COMMANDS, FLAGS

THERE = {" ".join(name): command for name, command in reference.commands()}


def flags(command: App) -> set[str]:
    return {flag for each in command.assemble_argument_collection() if each.show for flag in each.names}


def command_in(words: str) -> str:
    """The command that a line begins with."""
    found = [name for name in THERE if f"{words} ".startswith(f"{name} ")]
    assert found, f"sanderling {words} is no command"
    return max(found, key=len)


@pytest.mark.parametrize(("old", "new"), COMMANDS.items())
def test_an_old_command_is_answered_with_one_that_there_is(old: str, new: str) -> None:
    assert old not in THERE
    command = command_in(new)
    assert set(re.findall(r"--[a-z-]+", new)) <= flags(THERE[command])

    done = called(*old.split(), "--json", "x")

    assert (done.code, done.out) == (2, "")
    assert done.err == f"sanderling: `sanderling {old}` is now `sanderling {new}`\n"


@pytest.mark.parametrize(("old", "new"), FLAGS.items())
def test_an_old_flag_is_answered_with_one_that_there_is(old: str, new: str) -> None:
    *words, flag = old.split()
    whose = [name for name in THERE if f"{name} ".startswith(f"{' '.join(words)} ")]
    for named in re.findall(r"`sanderling ([^`]+)`", new):
        command_in(named)
    for named in re.findall(r"--[a-z-]+", new):
        assert any(named in flags(THERE[name]) for name in whose)
    assert not any(flag in flags(THERE[name]) for name in whose)

    done = called(*whose[0].split(), flag, "1")

    assert (done.code, done.out) == (2, "")
    assert f"{flag} is no flag any more: it is now {new}\n" in done.err


@pytest.mark.parametrize("old", FLAGS)
def test_an_old_variable_is_answered_and_not_ignored(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    *words, flag = old.split()
    name = variable(tuple(words), flag.removeprefix("--"))
    monkeypatch.setenv(name, "1")

    done = called("events", "mode")

    assert (done.code, done.out) == (2, "")
    assert f"{name} sets nothing any more: {flag} is now {FLAGS[old]}" in done.err


def test_a_setting_that_is_typed_is_answered_with_where_it_is_set() -> None:
    for name, command in THERE.items():
        for each in command.assemble_argument_collection():
            if each.parameter.show is not False or each.name in {"--home", "--config"}:
                continue
            key = each.name.removeprefix("--")
            table = known().place(tuple(name.split()), key)
            done = called(*name.split(), each.name, "1")
            assert (done.code, done.out) == (2, ""), (name, key)
            assert f"{each.name} is a setting and no flag: set {key}" in done.err
            assert variable(table, key) in done.err


def test_what_is_for_one_call_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDERLING_EVENTS_MODE_JSON", "true")

    done = called("events", "mode")

    assert (
        done.err == "sanderling: SANDERLING_EVENTS_MODE_JSON sets nothing: --json is for one call, and is no setting\n"
    )
    assert done.code == 2
