"""Alerts over a real socket: what a webhook is told, and every way it can answer."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from email.utils import format_datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st
from scripted_server import ScriptedServer, Step, reset
from structlog.testing import capture_logs

from sanderling.clock import SystemClock
from sanderling.observe.alerts import Alert, AlertRules, Alerts, Fate, Field, Level, Receipt
from sanderling.observe.alerts_webhook import (
    COLOURS,
    LONGEST_WAIT,
    Template,
    Webhook,
    _asked,
    _discords,
    checked,
    discord,
    embed,
    rfc3339,
    templated,
)
from sanderling.testing import FakeClock

AT = 1_800_000_000.0
WALL = datetime.fromisoformat("2027-01-15T08:00:00Z")
ALERT = Alert("gap_skipped", "Gap", (Field("Previous Id", "`7`"), Field("Size", "9", inline=False)), Level.SERIOUS)
FAST = AlertRules(interval=0, backoff=0.01, longest=0.02, flush=20)
T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(300):
            return await main()

    return asyncio.run(bounded())


class Receiver:
    """A real server: answers each post with the next of `answers`, the last for ever, and keeps what it was told."""

    def __init__(self, *answers: web.Response | float) -> None:
        self.answers = [*answers] or [web.Response(status=204)]
        self.told: list[Any] = []
        self.requests: list[web.Request] = []

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/hook/s3cret", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await self._site.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        port = self._runner.addresses[0][1]
        return f"http://127.0.0.1:{port}/hook/s3cret"

    async def _take(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.told.append(json.loads(await request.read()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, web.Response):
            return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
        await asyncio.sleep(answer)
        return web.Response()


def told(*alerts: Alert, answers: tuple[web.Response | float, ...] = ()) -> Receiver:
    """What a receiver was told, by way of everything that is between it and `say`."""

    async def main() -> Receiver:
        async with Receiver(*answers) as receiver:
            async with (
                discord(receiver.url, SystemClock(), role="42") as sink,
                Alerts(sink, SystemClock(), random.Random(1), FAST) as said,
            ):
                for alert in alerts:
                    said.say(alert)
            return receiver

    return run(main)


def receipt_of(*answers: web.Response | float, timeout: float = 10) -> Receipt:
    async def main() -> Receipt:
        async with Receiver(*answers) as receiver:
            webhook = Webhook(checked(receiver.url), Template('"{title}"').body, FakeClock(wall=AT), timeout)
            async with webhook as sink:
                return await sink.send(ALERT, AT)

    return run(main)


def test_discord_is_told_as_it_wants_to_be() -> None:
    receiver = told(ALERT)

    (message,) = receiver.told
    (shown,) = message["embeds"]
    assert (shown["title"], shown["color"], shown["footer"]) == ("Gap", 16737792, {"text": "sanderling"})
    assert shown["fields"] == [
        {"name": "Previous Id", "value": "`7`", "inline": True},
        {"name": "Size", "value": "9", "inline": False},
    ]
    assert datetime.fromisoformat(shown["timestamp"]).tzinfo is not None
    assert "content" not in message
    (request,) = receiver.requests
    assert (request.query_string, request.content_type) == ("wait=true", "application/json")


def test_a_ping_calls_the_role_and_nobody_else() -> None:
    (message,) = told(Alert("runaway", "@everyone", (Field("a", "@here"),), Level.CRITICAL, ping=True)).told

    assert message["content"] == "<@&42>"
    assert message["allowed_mentions"] == {"parse": [], "roles": ["42"]}


def test_without_a_role_nobody_is_called() -> None:
    message = json.loads(embed(Alert("runaway", "Runaway", ping=True), AT, "", "sanderling"))

    assert "content" not in message
    assert message["allowed_mentions"] == {"parse": [], "roles": []}


def test_every_level_has_a_colour_of_its_own() -> None:
    assert len({COLOURS[level] for level in Level}) == len(Level)


def test_an_alert_survives_refusals_and_failures_and_comes_once() -> None:
    slow_down = web.Response(status=429, headers={"Retry-After": "0.02"}, body=b'{"retry_after": 0.03}')
    answers = (slow_down, web.Response(status=500), web.Response(status=200))

    receiver = told(ALERT, Alert("next", "Next"), answers=answers)

    assert [message["embeds"][0]["title"] for message in receiver.told] == ["Gap", "Gap", "Gap", "Next"]


def test_a_webhook_that_is_gone_is_asked_once_per_alert_and_named_in_no_log() -> None:
    with capture_logs() as lines:
        receiver = told(ALERT, ALERT, ALERT, answers=(web.Response(status=404),))

    assert len(receiver.told) == 3
    assert [line["why"] for line in lines if line["event"] == "ALERTS_FAIL"] == ["status 404"]
    assert "s3cret" not in str(lines)


@pytest.mark.parametrize("status", [200, 201, 204])
def test_what_was_taken_is_sent(status: int) -> None:
    assert receipt_of(web.Response(status=status)) == Receipt(Fate.SENT)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_these_may_work_later(status: int) -> None:
    assert receipt_of(web.Response(status=status)) == Receipt(Fate.LATER, f"status {status}")


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 405, 413, 422])
def test_these_never_will(status: int) -> None:
    headers = {"Location": "/elsewhere"} if status < 400 else {}

    assert receipt_of(web.Response(status=status, headers=headers)) == Receipt(Fate.NEVER, f"status {status}")


def test_what_it_asks_us_to_wait_is_passed_on() -> None:
    assert receipt_of(web.Response(status=429, headers={"Retry-After": "7"})).wait == 7
    assert receipt_of(web.Response(status=503, headers={"Retry-After": "7"})).wait == 7
    assert receipt_of(web.Response(status=429, body=b'{"retry_after": 64.57, "global": false}')).wait == 64.57
    assert receipt_of(web.Response(status=429, headers={"Retry-After": "65"}, body=b'{"retry_after": 1}')).wait == 65
    assert receipt_of(web.Response(status=429, body=b"<html>" * 10_000)).wait == 0


def test_a_receiver_that_is_slow_is_waited_for_only_so_long() -> None:
    assert receipt_of(20.0, timeout=0.05) == Receipt(Fate.LATER, "no answer within 0.05 s")


@pytest.mark.parametrize("steps", [(reset,), (b"HELO smtp\r\n\r\n",), (b"HTTP/1.1 200 OK\r\nContent-Le", reset)])
def test_a_receiver_that_talks_nonsense_may_be_tried_later(steps: tuple[Step, ...]) -> None:
    async def main() -> Receipt:
        async with (
            ScriptedServer({"/hush": [list(steps)]}) as server,
            templated(server.url("/hush"), FakeClock(), '"{title}"') as sink,
        ):
            return await sink.send(ALERT, AT)

    receipt = run(main)

    assert receipt.fate is Fate.LATER
    assert "hush" not in receipt.why


def test_a_receiver_that_is_not_there_may_be_tried_later() -> None:
    async def main() -> Receipt:
        async with ScriptedServer({}) as server:
            url = server.url("/hush")
        async with templated(url, FakeClock(), '"{title}"') as sink:
            return await sink.send(ALERT, AT)

    assert run(main) == Receipt(Fate.LATER, "ClientConnectorError")


def test_it_must_be_opened_first() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(discord("https://a.example/hook", FakeClock()).send(ALERT, AT))


def test_a_webhook_does_not_show_its_url() -> None:
    assert repr(discord("https://a.example/api/webhooks/1/hush", FakeClock())) == "<Webhook of a.example>"


@pytest.mark.parametrize(
    "url", ["", "hush", "ftp://a.example/hush", "https://", "file:///hush", "https://a:99999/hush"]
)
def test_a_url_to_which_nothing_can_be_posted_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValueError, match="webhook's URL") as error:
        discord(url, FakeClock())
    assert "hush" not in str(error.value)


def test_a_role_is_a_number() -> None:
    with pytest.raises(ValueError, match="the role to ping is '@everyone'"):
        discord("https://a.example", FakeClock(), role="@everyone")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        (" 1.5 ", 1.5),
        ("", 0),
        ("soon", 0),
        ("-5", 0),
        ("nan", 0),
        ("1e9", 0),
        ("999999999", LONGEST_WAIT),
        (format_datetime(WALL, usegmt=False).replace("08:00:00", "08:00:40"), 40),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60),
        ("Fri, 15 Jan 2027 08:01:00 -0000", 60),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
        ("Fri, 15 Jan 9999 07:00:00 GMT", LONGEST_WAIT),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float) -> None:
    assert _asked(text, WALL.timestamp()) == seconds


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,4} [A-Z][a-z]{2} [0-9]{1,6} [0-9:]{1,9} [-+A-Z0-9]{1,6}"))
def test_whatever_retry_after_says_is_a_sane_wait(text: str) -> None:
    assert 0 <= _asked(text, AT) <= LONGEST_WAIT


@given(st.binary() | st.floats().map(lambda number: json.dumps({"retry_after": number}).encode()))
def test_whatever_the_body_of_a_429_says_is_a_sane_wait(body: bytes) -> None:
    assert 0 <= _discords(body) <= LONGEST_WAIT


TEXTS = st.text(st.characters(exclude_categories=()), max_size=3000)
FIELDS = st.lists(st.builds(Field, TEXTS, TEXTS, st.booleans()), max_size=30)


@example(Alert("kind", "t" * 300, (Field("n" * 300, "v" * 2000),) * 30))
@given(st.builds(Alert, TEXTS, TEXTS, FIELDS.map(tuple), st.sampled_from(Level), st.booleans()))
def test_whatever_is_said_keeps_the_limits_of_discord(alert: Alert) -> None:
    message = json.loads(embed(alert, AT, "42", "f" * 300))

    (shown,) = message["embeds"]
    texts = [
        shown["title"],
        shown["footer"]["text"],
        *(each[key] for each in shown["fields"] for key in ("name", "value")),
    ]
    assert sum(map(len, texts)) <= 6000
    assert all(text.strip() for text in texts)
    assert len(shown["title"]) <= 256
    assert len(shown["fields"]) <= 25
    assert all(len(each["name"]) <= 256 and len(each["value"]) <= 1024 for each in shown["fields"])


def test_a_time_is_written_with_its_zone() -> None:
    assert rfc3339(AT + 0.25) == "2027-01-15T08:00:00.250Z"


SLACK = '{"text": "*{title}* ({level}, {time})\\n{text}", "mrkdwn": true, "tags": ["{kind}", 7, null]}'


def test_a_template_is_filled() -> None:
    assert json.loads(Template(SLACK).body(ALERT, AT)) == {
        "text": "*Gap* (serious, 2027-01-15T08:00:00.000Z)\nPrevious Id: `7`\nSize: 9",
        "mrkdwn": True,
        "tags": ["gap_skipped", 7, None],
    }


def test_a_templated_webhook_is_told_by_its_template() -> None:
    async def main() -> Any:  # noqa: ANN401 - whatever JSON it is
        async with Receiver() as receiver:
            async with templated(receiver.url, SystemClock(), '{"text": "{title}"}') as sink:
                await sink.send(ALERT, AT)
            return receiver.told

    assert run(main) == [{"text": "Gap"}]


@given(TEXTS, TEXTS, TEXTS)
def test_whatever_is_filled_in_stays_text(title: str, name: str, value: str) -> None:
    body = Template(SLACK).body(Alert("{title}", title, (Field(name, value),)), AT)

    message = json.loads(body)
    assert set(message) == {"text", "mrkdwn", "tags"}
    assert message["tags"] == ["{title}", 7, None]


@pytest.mark.parametrize(
    ("template", "wrong"),
    [
        ("", "no JSON"),
        ("{title}", "no JSON"),
        ('{"text": "{title}"', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"text": "hello"}', "neither {title} nor {text}"),
        ('{"text": "{titel}"}', r"\['titel'\], expected some of \['kind', 'level', 'text', 'time', 'title'\]"),
    ],
)
def test_a_template_that_cannot_work_is_refused_at_the_start(template: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        templated("https://a.example", FakeClock(), template)
