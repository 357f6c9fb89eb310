"""Alerts against a webhook that takes them, is away, is slow, or refuses."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
import pytest
from aiohttp import web

from sanderling.clock import FakeClock
from sanderling.observe import alerts as module
from sanderling.observe.alerts import Alert, AlertOptions, Level, open_alerts
from sanderling.redact import Secret

pytestmark = pytest.mark.real


@dataclass
class Webhook:
    answers: list[int]  # statuses in turn; the last one again and again
    taken: list[dict[str, object]] = field(default_factory=list)
    url: str = ""
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Webhook"]:
        async def take(request: web.Request) -> web.Response:
            status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if status == 0:
                await self.closing.wait()
            self.taken.append(msgspec.json.decode(await request.read()))
            return web.Response(status=status, headers={"Retry-After": "40", "Location": "/elsewhere"})

        app = web.Application()
        app.router.add_post("/hook/very-secret", take)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook/very-secret"
        yield self
        self.closing.set()
        await runner.cleanup()


class Clock(FakeClock):
    """Waiting takes no time, and is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def options(url: str) -> AlertOptions:
    return AlertOptions(alert_webhook=Secret.of(url), alert_role="12")


@pytest.mark.parametrize(
    ("answers", "requests", "sent", "waits"),
    [
        ([204], 1, 1, []),
        ([500, 204], 2, 1, [40]),
        ([429, 503, 200], 3, 1, [40, 40]),
        ([500], 3, 0, [40, 40]),
        ([404], 1, 0, []),
        ([302], 1, 0, []),
    ],
)
async def test_a_message_is_tried_three_times(answers: list[int], requests: int, sent: int, waits: list[float]) -> None:
    clock = Clock()
    async with Webhook(answers).running() as webhook, open_alerts(options(webhook.url), clock) as alerts:
        alerts.post(Alert("@everyone", "text", Level.ERROR, (("lag", "3 s"), ("", "x" * 5000)), ping=True))
    assert (len(webhook.taken), alerts.sent, alerts.dropped, clock.waits) == (requests, sent, 1 - sent, waits)
    assert webhook.taken[0]["content"] == "<@&12>"
    assert webhook.taken[0]["allowed_mentions"] == {"parse": [], "roles": ["12"]}
    embed = webhook.taken[0]["embeds"][0]  # type: ignore[index] # as JSON
    assert embed["fields"][0] == {"name": "lag", "value": "3 s", "inline": True}
    assert max(len(each["value"]) for each in embed["fields"]) <= 1024


async def test_of_too_many_the_oldest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSING", 0.01)
    async with Webhook([0]).running() as webhook, open_alerts(options(webhook.url), Clock()) as alerts:
        for number in range(module.MOST_WAITING + 7):
            alerts.post(Alert(str(number)))
    assert alerts.dropped == 7


async def test_a_webhook_that_is_away_is_named_without_its_url(caplog: pytest.LogCaptureFixture) -> None:
    async with open_alerts(options("http://127.0.0.1:1/very-secret"), Clock()) as alerts:
        alerts.post(Alert("away"))
    assert alerts.dropped == 1
    assert "very-secret" not in caplog.text


async def test_without_a_webhook_alerts_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with open_alerts(AlertOptions(), Clock()) as alerts:
        alerts.post(Alert("Gap found", level=Level.WARNING))
    assert "Gap found" in caplog.text
