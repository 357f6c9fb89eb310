"""Where alerts go."""

import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import structlog

from sanderling.cli.alerting import DISCORD, Alerting, describe_alert, saying
from sanderling.cli.command_error import CommandError
from sanderling.cli.options import Options
from sanderling.clock import SystemClock
from sanderling.observe import logs
from sanderling.observe.alerts import Alert, Level
from sanderling.testing import LoopClock, run_virtual

HOOK = "https://hook.example/secret"
ALERT = Alert("gap", "A gap", level=Level.WARNING)


def test_a_webhook_of_any_kind_takes_a_template(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text(f"{HOOK}\n")
    (tmp_path / "template").write_text('{"text": "{title}"}')
    alerting = Alerting(webhook_file=tmp_path / "hook", webhook_template_file=tmp_path / "template")

    assert "hook.example" in repr(alerting.sink(SystemClock(), {}))
    (tmp_path / "template").write_text("[")
    with pytest.raises(CommandError, match="the template of alerts is no JSON"):
        alerting.sink(SystemClock(), {})


def test_discord_is_in_a_variable_or_in_a_file_and_the_file_counts(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("https://file.example/secret\n")
    variables = {DISCORD: HOOK}

    assert "hook.example" in repr(Alerting().sink(SystemClock(), variables))
    assert "file.example" in repr(Alerting(discord_file=tmp_path / "hook").sink(SystemClock(), variables))
    assert Alerting().sink(SystemClock(), {}) is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("webhook_file",), "webhook-file and webhook-template-file go together; one is missing"),
        (("webhook_template_file",), "webhook-file and webhook-template-file go together; one is missing"),
        (
            ("discord_file", "webhook_file", "webhook_template_file"),
            "discord-file and webhook-file: expected one of them",
        ),
    ],
)
def test_flags_that_do_not_go_together_are_refused(tmp_path: Path, given: tuple[str, ...], says: str) -> None:
    (tmp_path / "hook").write_text(HOOK)

    with pytest.raises(CommandError, match=says) as caught:
        Alerting(**dict.fromkeys(given, tmp_path / "hook")).sink(SystemClock(), {})  # type: ignore[arg-type] # files

    assert caught.value.code == 2


@pytest.fixture
def logged() -> Iterator[StringIO]:
    handlers, stream = logging.root.handlers, StringIO()
    logs.configure("json", "info", stream)
    yield stream
    logging.root.handlers = handlers
    structlog.reset_defaults()


@pytest.mark.parametrize(("options", "lines"), [(Options(), 0), (Options(log_format="json"), 1)])
def test_an_alert_is_on_the_screen_and_in_the_log_if_somebody_wants_one(
    logged: StringIO, options: Options, lines: int
) -> None:
    told: list[str] = []

    async def main() -> None:
        async with saying(None, told.append, options, LoopClock()) as say:
            say(ALERT)

    run_virtual(main())

    assert told == [describe_alert(ALERT)]
    assert ALERT.title in told[0]
    assert logged.getvalue().count('"GAP"') == lines
