import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from sanderling.observe import logs
from sanderling.outcome import Code
from sanderling.redact import HIDDEN
from sanderling.task import Task

# Every character at which some reader would begin a new line.
ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"

FORMS = {
    "json": re.compile(r"\{.*\}\n"),
    "text": re.compile(r"\S+Z info    happened where=test\n"),
    "colour": re.compile(r"\S+Z \x1b\[32minfo   \x1b\[0m \x1b\[1mhappened\x1b\[0m where=test\n"),
}
SECRETS = """
    token access_token accessToken password db_passwd secret client-secret Authorization api_key apiKey X-API-Key
    cookie Set-Cookie dsn POSTGRES.DSN credentials auth refreshJwt private_key aws_secret_access_key
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    handlers = logging.root.handlers
    yield
    logging.root.handlers = handlers
    structlog.reset_defaults()


def lines(values: Mapping[str, object], *, style: logs.Style = "json", event: str = "happened") -> list[str]:
    stream = io.StringIO()
    logs.configure(style, "info", stream)
    logs.get("test").info(event, **values)
    return stream.getvalue().splitlines()


def fields(**values: object) -> dict[str, object]:
    (line,) = lines(values)
    found: dict[str, object] = json.loads(line)
    return found


def test_logs_go_to_stderr_and_leave_stdout_alone(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure()

    logs.get("test").info("happened", host="a.example")

    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["host"] == "a.example"


def test_json_is_one_object_with_its_time_in_utc() -> None:
    event = fields(host="a.example", failures=10, rate=0.5, known=True, ceiling=None)

    assert list(event)[:4] == ["timestamp", "level", "event", "where"]
    assert (event["level"], event["event"], event["where"]) == ("info", "happened", "test")
    assert (event["failures"], event["rate"], event["known"], event["ceiling"]) == (10, 0.5, True, None)
    assert datetime.fromisoformat(str(event["timestamp"])).tzinfo == UTC


def test_text_is_the_event_and_key_value_pairs() -> None:
    values = {"host": "a.example", "detail": 'two "words"', "empty": "", "deep": {"a": [1]}, "code": Code.TIMEOUT}

    (line,) = lines(values, style="text")

    _, level, rest = line.split(maxsplit=2)
    assert level == "info"
    assert rest == 'happened where=test host=a.example detail="two \\"words\\"" empty="" deep={"a": [1]} code=TIMEOUT'


@pytest.mark.parametrize(
    ("kind", "style", "no_color", "form"),
    [
        (Terminal, None, "", "colour"),
        (Terminal, None, "1", "text"),
        (Terminal, "json", "", "json"),
        (io.StringIO, None, "", "json"),
        (io.StringIO, "text", "", "text"),
    ],
)
def test_text_for_terminals_json_for_the_rest_and_colour_only_where_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch, kind: type[io.StringIO], style: logs.Style | None, no_color: str, form: str
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = kind()
    logs.configure(style, "info", stream)

    logs.get("test").info("happened")

    assert FORMS[form].fullmatch(stream.getvalue())


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    logs.configure("json", "warning", stream)
    log = logs.get("test")

    log.info("quiet")
    log.warning("loud")

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


def test_a_log_made_before_configuring_follows_it() -> None:
    log = logs.get("early")
    stream = io.StringIO()
    logs.configure("json", "info", stream)

    log.info("happened")

    assert json.loads(stream.getvalue())["where"] == "early"


@pytest.mark.parametrize("name", SECRETS.split())
@pytest.mark.parametrize("style", ["text", "json"])
def test_a_secret_is_known_by_its_name_wherever_it_stands(name: str, style: logs.Style) -> None:
    for place in ({name: "hunter2"}, {"a": {"b": [{name: "hunter2"}]}}, {"headers": ((name, "hunter2"),)}):
        (line,) = lines(place, style=style)

        assert "hunter2" not in line
        assert "***" in line


@pytest.mark.parametrize("name", ["tokens", "bucket_tokens", "author", "key", "keys", "authority", "passed", "dsnap"])
def test_what_only_sounds_like_a_secret_is_shown(name: str) -> None:
    assert fields(**{name: "shown"})[name] == "shown"


@pytest.mark.parametrize("unset", [None, ""])
def test_that_a_secret_is_not_set_is_no_secret(unset: str | None) -> None:
    assert fields(api_key=unset)["api_key"] == unset


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:pw@host/x", "https://***@host/x"),
        ("postgres://user:p@ss@host/db", "postgres://***@host/db"),
        ("redis://:pw@host, amqp://u:pw@other", "redis://***@host, amqp://***@other"),
        ("https://host/users/a@b?mail=c@d", "https://host/users/a@b?mail=c@d"),
        ("https://host/x?page=2&access_token=abc#top", "https://host/x?page=2&access_token=***#top"),
        ("https://host/x?key=abc&page=2", "https://host/x?key=***&page=2"),
        ("host=db password=pw user=me", "host=db password=*** user=me"),
        ("auth.example=0.25 token=7", "auth.example=0.25 token=***"),
        ("sorted with key=age, tokens=3", "sorted with key=age, tokens=3"),
    ],
)
def test_secrets_inside_texts_are_hidden_and_the_rest_is_kept(text: str, shown: str) -> None:
    assert fields(detail=text)["detail"] == shown
    assert fields(deep={"a": [text]})["deep"] == {"a": [shown]}
    assert lines({}, event=text, style="text")[0].endswith(f"{shown} where=test")


def test_a_fraction_is_a_measurement_and_a_whole_number_may_be_a_pin() -> None:
    assert fields(**{"auth.example": 0.25})["auth.example"] == 0.25
    assert fields(password=1234)["password"] == HIDDEN


@given(st.text(), st.text(), st.text(alphabet=ENDS + "\x1b\x9b\u202ea\ud800", min_size=1))
def test_whatever_a_stranger_sends_an_event_is_one_printable_line(value: str, key: str, ends: str) -> None:
    values = {"value": value + ends, "deep": {key: ends}, "raw": ends.encode("utf-8", "replace")}

    # What a library says happened may quote a stranger, too.
    (text,) = lines(values, style="text", event=value + ends)
    (object_,) = lines(values, style="json", event=value + ends)

    assert text.isprintable()
    assert object_.isprintable()
    assert object_.isascii()


def test_json_gives_back_what_it_was_given() -> None:
    text = f"x{ENDS}\x1b é \u202e"

    assert fields(detail=text)["detail"] == text


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_numbers_that_json_lacks_become_words(number: float) -> None:
    assert fields(rate=number)["rate"] == str(number)


def test_endless_values_are_cut() -> None:
    ring: list[object] = []
    ring.append(ring)

    (line,) = lines({"text": "x" * 100_000, "many": [0] * 10_000, "wide": dict.fromkeys(range(10_000)), "ring": ring})

    assert len(line) < 2 * logs.LONGEST
    assert '"ring": [[[[[["\\u2026"]]]]]]' in line


def test_a_cut_does_not_uncover_half_a_secret() -> None:
    half = logs.LONGEST // 2

    (line,) = lines({"text": "x" * (half - 12) + "https://hunter2:pw@host/" + "y" * logs.LONGEST})

    assert "hunter2" not in line


def test_a_long_word_costs_no_more_than_its_length() -> None:
    """Ten times the text under the test's own timeout; a pattern that tries every start would need hours."""
    lines({"text": ["a" * 2_000_000, "?a" * 500_000, "://a" * 500_000, "a=" * 500_000, "://" + "@a" * 500_000]})


def test_an_object_is_shown_by_its_repr() -> None:
    task = Task("https://a.example/", headers=(("Authorization", "hunter2"),))

    assert fields(task=task)["task"] == repr(task)


def fail(message: str) -> None:
    raise ValueError(message)


def logged_failure(style: logs.Style, message: str) -> str:
    stream = io.StringIO()
    logs.configure(style, "info", stream)
    try:
        fail(message)
    except ValueError:
        logs.get("test").exception("failed", job=7)
    return stream.getvalue()


def test_an_exception_is_three_fields_in_json() -> None:
    event = json.loads(logged_failure("json", "no postgres://me:hunter2@db"))

    assert (event["level"], event["exception_type"], event["job"]) == ("error", "ValueError", 7)
    assert event["exception"] == "no postgres://***@db"
    assert "in fail" in event["traceback"]
    assert "hunter2" not in event["traceback"]


def test_no_line_of_a_traceback_can_be_taken_for_an_event() -> None:
    message = "boom\n2026-01-01T00:00:00Z info    all_is_well\r\u2028\x1b[2J"

    first, *rest = logged_failure("text", message).rstrip("\n").split("\n")

    assert first.split(" ", 1)[1].startswith("error   failed where=test job=7 exception_type=ValueError")
    assert all(line.startswith("    ") for line in rest)
    assert all(line.isprintable() for line in [first, *rest])


@pytest.mark.parametrize("style", ["text", "json"])
def test_exceptions_may_be_given_by_hand_too(style: logs.Style) -> None:
    error = KeyError("gone")

    assert all(
        "KeyError" in "".join(lines({"exc_info": given}, style=style)) for given in (error, (KeyError, error, None))
    )


@pytest.mark.parametrize("nothing", [None, False, True, (None, None, None)])
def test_without_an_exception_there_are_no_fields_for_one(nothing: object) -> None:
    assert list(fields(exc_info=nothing)) == ["timestamp", "level", "event", "where"]


def test_what_libraries_log_has_the_same_form_and_only_their_warnings() -> None:
    stream = io.StringIO()
    logs.configure("text", "info", stream)
    logs.configure("json", "info", stream)

    logging.getLogger("library").info("small talk")
    logging.getLogger("library").warning("odd %s\n", "postgres://me:hunter2@db")

    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert (event["level"], event["where"], event["event"]) == ("warning", "library", "odd postgres://***@db\n")


def test_an_exception_that_asyncio_reports_is_an_event() -> None:
    stream = io.StringIO()
    logs.configure("json", "info", stream)

    async def lose() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "lost", "exception": KeyError("gone")})

    asyncio.run(lose())

    event = json.loads(stream.getvalue())
    assert (event["where"], event["event"], event["exception_type"]) == ("asyncio", "lost", "KeyError")


def test_context_joins_every_event() -> None:
    with structlog.contextvars.bound_contextvars(job_id="j1"):
        assert fields()["job_id"] == "j1"
