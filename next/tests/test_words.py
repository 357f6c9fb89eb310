"""All words that people see, in one file, so that they can be read as a whole: tests/words.txt.

And what programs see of a run, as a schema: docs/report.schema.json. `make words` writes both anew; read the difference
before you commit it.
"""

import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sanderling.cli.commands import all_commands
from sanderling.cli.context import Context
from sanderling.cli.help import command_help, program_help
from sanderling.cli.main import run_words
from sanderling.observe.report import Report
from sanderling.options import Options
from sanderling.systems import SYSTEMS, load_name

WORDS = Path(__file__).with_name("words.txt")
SCHEMA = Path(__file__).parents[1] / "docs" / "report.schema.json"
WIDTH = 100

# What people type wrong, and what stands in sanderling.toml and in variables then.
WRONG: tuple[tuple[str, str, str], ...] = (
    ("", "", ""),
    ("pagess crawl", "", ""),
    ("config", "", ""),
    ("status", "", ""),
    ("status nofolder", "", ""),
    ("status empty", "", ""),
    ("status second", "", ""),
    ("status file", "", ""),
    ("status empty more", "", ""),
    ("status --wach empty", "", ""),
    ("status --json --json empty", "", ""),
    ("status --json=maybe empty", "", ""),
    ("status empty --config", "", ""),
    ("status empty --config nofile.toml", "", ""),
    ("status empty --config broken.toml", "", ""),
    ("status empty --config empty", "", ""),
    ("control empty paus", "", ""),
    ("control empty block", "", ""),
    ("config show pages crwal", "", ""),
    ("config show", "dpeth = 3", ""),
    ("config show", "[paegs]\ndepth = 3", ""),
    ("config show", "", "SANDERLING_QUITE=1"),
    ("config show", "", "SANDERLING_CONFIG=nofile.toml"),
    ("--completion", "", ""),
    ("--completion tcsh", "", ""),
)


def wrong_calls() -> Iterator[str]:
    """Each wrong call with its exit code and what is said."""
    with tempfile.TemporaryDirectory() as name:
        folder, home = Path(name), Path.cwd()
        for each in ("empty", "second"):
            (folder / each).mkdir()
        for each in ("second/ledger.db", "file"):
            (folder / each).touch()
        (folder / "broken.toml").write_text("[pages\n")
        os.chdir(folder)
        try:
            for typed, toml, variable in WRONG:
                (folder / "sanderling.toml").write_text(toml)
                environment = dict([variable.split("=")] if variable else [])
                err, out = io.StringIO(), io.StringIO()
                code = run_words(Context(tuple(typed.split()), environment, folder, "sanderling", out=out, err=err))
                before = [f"# {line}" for line in toml.splitlines()] + [variable] * bool(variable)
                said = (err.getvalue() or out.getvalue().partition("\n")[0]).replace(name, "…").rstrip()
                yield "\n".join([*before, f"$ sanderling {typed}".rstrip(), said, f"exit {int(code)}"])
        finally:
            os.chdir(home)


def helps() -> Iterator[str]:
    commands = all_commands(SYSTEMS)
    yield "$ sanderling --help\n" + program_help(commands, WIDTH)
    for command in commands:
        yield f"$ sanderling {command.words} --help\n" + command_help(command, load_name(command.options), WIDTH)


def all_words() -> str:
    rule = "\n\n" + "-" * WIDTH + "\n\n"
    return rule.join([*helps(), "\n\n".join(wrong_calls())]) + "\n"


def test_words_are_those_in_the_snapshot() -> None:
    assert all_words() == WORDS.read_text(), "read what changed, then type: make words"


# Home-made words and those that name nothing; style of the third edition.
UNWANTED = (
    r"fates?|letters?|gone on with|let go|not to be had|whoever|of ours|home|house|gate|lane|turnstile|census|gear"
    r"|tombstone|please|simply|just|seamless|robust|comprehensive|leverage|utilize|in order to"
)


def report_schema() -> bytes:
    """The schema of what `--json` prints, for each system alike."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Report))) + b"\n"


def test_the_schema_of_reports_is_documented() -> None:
    assert SCHEMA.read_bytes() == report_schema()


def test_no_unwanted_word_is_used() -> None:
    found = {
        match[0]: line.strip()
        for line in all_words().splitlines()
        for match in re.finditer(rf"(?i)\b({UNWANTED})\b", line)
    }

    assert not found


def every_option() -> Iterator[tuple[str, str]]:
    kinds: list[type[Options]] = [load_name(command.options) for command in all_commands(SYSTEMS)]
    for kind in kinds:  # which grows on the way
        for each in kind.fields.values():
            yield each.typed_as, each.help
            if each.is_table and each.item not in kinds:
                kinds.append(each.item)


def test_helps_are_short_sentences() -> None:
    texts = [(command.words, command.help) for command in all_commands(SYSTEMS)] + list(every_option())
    wrong = [
        (name, text)
        for name, text in texts
        if not re.fullmatch(r"[A-Z0-9\[\"'-].*\.|[a-z].*\.", text, re.DOTALL)
        or max(len(sentence.split()) for sentence in re.split(r"[.;:] ", text)) > 25
    ]

    assert not wrong


def test_examples_are_commands() -> None:
    for command in all_commands(SYSTEMS):
        assert command.example.startswith(command.words), command


if __name__ == "__main__":
    WORDS.write_text(all_words())
    SCHEMA.write_bytes(report_schema())
    sys.stdout.write(f"wrote {WORDS}\n")
