"""The routes of polling: its admin API, the webhook it listens to, and what it has found."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from sanderling.clock import Clock
from sanderling.polling.discovery import DiscoveryError
from sanderling.polling.settings import SettingError
from sanderling.stores.polling import PollingStoreError
from sanderling.web import polling_examples as examples
from sanderling.web.app import AppRules, application
from sanderling.web.openapi import About
from sanderling.web.polling_admin import (
    IngestControl,
    IngestRoutes,
    SettingsControl,
    SettingsRoutes,
    StatusControl,
    StatusRoutes,
)
from sanderling.web.polling_rows import RowControl, RowRoutes
from sanderling.web.polling_targets import TargetControl, TargetRoutes
from sanderling.web.problems import ProblemError, problem
from sanderling.web.routes import Route
from sanderling.web.stream import Streams

ABOUT = About(
    title="Sanderling polling",
    version="1",
    description="Live documents, polled each at its own pace: what is polled, what was found, and what changes.",
)
# Seconds until it is worth asking again.
SOON, LATER = {"Retry-After": "5"}, {"Retry-After": "60"}


class Controlled(TargetControl, RowControl, SettingsControl, IngestControl, StatusControl, Protocol):
    """What there must be behind all of it: `polling.control.PollingControl` is one."""


def polling_app(
    control: Controlled, clock: Clock, streams: Streams, snapshot: Sequence[str], rules: AppRules | None = None
) -> web.Application:
    """The application, to be opened by `serving`. `snapshot`: the kinds that are never live."""
    routes = polling_routes(control, clock, streams, snapshot)
    return application(ABOUT, routes, streams, clock, translate=translate, rules=rules)


def polling_routes(control: Controlled, clock: Clock, streams: Streams, snapshot: Sequence[str]) -> tuple[Route, ...]:
    """The table. Where two paths match, the first one counts."""
    targets, rows = TargetRoutes(control, clock), RowRoutes(control, streams)
    settings, ingest, status = SettingsRoutes(control), IngestRoutes(control, snapshot), StatusRoutes(control)
    target, event = "/targets/{kind}/{id}", "/ingest/events/{event}"
    return (
        Route("GET", "/ready", status.ready, everyone=True),
        Route("GET", "/status", status.status),
        Route("GET", "/targets", targets.targets, example=examples.PAGE),
        Route("GET", target, targets.target, problems=(404,), example=examples.TARGET),
        Route(
            "PATCH",
            target,
            targets.change_target,
            problems=(404,),
            body_example=examples.PATCH,
            body_rule={"minProperties": 1},
        ),
        Route("POST", f"{target}/promote", targets.promote_target, problems=(404,), body_example=examples.PROMOTION),
        Route("POST", f"{target}/pause", targets.pause, problems=(404,)),
        Route("POST", f"{target}/resume", targets.resume, problems=(404,)),
        Route("POST", "/promote", targets.promote, body_example=examples.PROMOTIONS, example=examples.PROMOTED),
        Route(
            "POST",
            "/hooks/promote",
            targets.hook,
            status=202,
            hook=True,
            body_example=examples.HOOK,
            body_rule={"minProperties": 1, "maxProperties": 1},
            example=examples.RECEIVED,
        ),
        Route("GET", "/settings", settings.settings, example=examples.SETTINGS),
        Route(
            "PUT",
            "/settings/{key}",
            settings.change_setting,
            problems=(422,),
            body_example=examples.VALUE,
            example=examples.SETTING,
        ),
        Route("DELETE", "/settings/{key}", settings.reset_setting, problems=(422,)),
        Route("GET", "/rows/{table}", rows.rows, problems=(404,), example=examples.ROWS),
        Route("GET", "/changes", rows.changes, problems=(410,), example=examples.CHANGES),
        Route("GET", "/events", rows.events, example=examples.STREAM),
        Route("POST", f"{event}/snapshot", ingest.ingest_snapshot, problems=(404,), example=examples.INGESTED),
        Route("POST", f"{event}/full", ingest.ingest_event, problems=(404,)),
        Route("POST", f"{event}/{{kind}}", ingest.ingest_kind, problems=(404,)),
        Route("POST", f"{event}/{{kind}}/{{id}}", ingest.ingest_target, problems=(404,)),
        Route("POST", "/ingest/full", ingest.ingest_all, problems=(502,)),
        Route("POST", "/ingest/purge", ingest.purge, body_example=examples.CONFIRMATION, example=examples.PURGED),
    )


def translate(error: Exception) -> ProblemError | None:
    """What the errors of polling mean to a client."""
    match error:
        case ExceptionGroup():
            # Several targets ran at once; what stopped the first of them stopped all.
            known = [translate(each) for each in error.exceptions]
            return known[0] if all(known) else None
        case PollingStoreError():
            return problem(503, f"the database is not to be had: {error}", SOON if error.transient else LATER)
        case SettingError():
            return problem(422, str(error))
        case DiscoveryError():
            return problem(502, f"what there is to poll could not be found out: {error}")
    return None
