"""Alerts of a system that runs: the flags that say where they go, and whoever says them."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.flag_files import read, secret
from sanderling.cli.flags import SETTING
from sanderling.cli.options import Options
from sanderling.clock import Clock
from sanderling.observe.alerts import Alert, Alerts
from sanderling.observe.alerts_webhook import Webhook, discord, templated

DISCORD = "SANDERLING_DISCORD_WEBHOOK"  # a variable that holds a secret


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Alerting:
    """Who gets the alerts. A Discord webhook may be in SANDERLING_DISCORD_WEBHOOK."""

    discord_file: Annotated[Path | None, SETTING] = None
    """A file that holds the address of a Discord webhook, which gets the alerts."""

    discord_role: Annotated[str, SETTING] = ""
    """The id of the role that is called when it matters."""

    webhook_file: Annotated[Path | None, SETTING] = None
    """A file that holds the address of any other webhook."""

    webhook_template_file: Annotated[Path | None, SETTING] = None
    """The JSON for that: with {title}, {text}, {level}, {kind} and {time} in it."""

    def sink(self, clock: Clock, environment: Mapping[str, str] = os.environ) -> Webhook | None:
        """Where alerts go besides the log. Raises CommandError."""
        if (self.webhook_file is None) != (self.webhook_template_file is None):
            raise CommandError("webhook-file and webhook-template-file go together; one is missing", code=2)
        address = secret("discord-file", self.discord_file, DISCORD, environment)
        try:
            if self.webhook_file is not None and self.webhook_template_file is not None:
                if self.discord_file is not None:
                    raise CommandError("discord-file and webhook-file: expected one of them", code=2)
                template = read("webhook-template-file", self.webhook_template_file)
                return templated(read("webhook-file", self.webhook_file), clock, template)
            return discord(address, clock, self.discord_role) if address else None
        except ValueError as error:
            raise CommandError(f"alerts: {error}", code=2) from None


NOBODY = Alerting()


@asynccontextmanager
async def saying(
    sink: Webhook | None, tell: Callable[[str], object], options: Options, clock: Clock
) -> AsyncIterator[Callable[[Alert], None]]:
    """How alerts are said: to `tell`, which has a screen, to a webhook if there is one, in the log if it is wanted."""
    async with AsyncExitStack() as stack:
        if sink is not None:
            await stack.enter_async_context(sink)
        alerts = await stack.enter_async_context(Alerts(sink, clock, Random()))

        def say(alert: Alert) -> None:
            tell(describe_alert(alert))
            if sink is not None or options.log_format is not None:
                alerts.say(alert)

        yield say


def describe_alert(alert: Alert) -> str:
    """An alert on one line."""
    fields = ", ".join(f"{each.name} {each.value.strip('`')}" for each in alert.fields)
    return ": ".join(part for part in (alert.level.name.lower(), alert.title, fields) if part)
