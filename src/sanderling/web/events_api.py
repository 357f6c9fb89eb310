"""The routes of `events`: what was found in social media, and the processing of it.

`/api/v1/analytics` is for those who read, `/api/v1/events` for those who run it. Every answer of both is in an
envelope, as `events_envelope` has it.
"""

from dataclasses import dataclass
from random import Random

from aiohttp import web

from sanderling.clock import Clock
from sanderling.stores.analytics import AnalyticsError, PostReader
from sanderling.stores.durable import FolderError
from sanderling.stores.queue import DeadLetters, QueueError
from sanderling.web import events_examples as examples
from sanderling.web.app import DESCRIPTION, ROUTES, AppRules, application
from sanderling.web.events_admin import AdminRoutes, Controlled, DeadRoutes, HealthRoutes
from sanderling.web.events_envelope import VERSION, EventsDescription, enveloping
from sanderling.web.events_posts import ErrorRoutes, PostRoutes, SumRoutes
from sanderling.web.openapi import About
from sanderling.web.problems import ProblemError, problem
from sanderling.web.routes import Route
from sanderling.web.stream import Streams

ABOUT = About(
    title="Sanderling events",
    version=VERSION,
    description="What was found in social media, what it amounts to, and how the processing of it stands.",
)
ANALYTICS, EVENTS = "/api/v1/analytics", "/api/v1/events"
# Seconds until it is worth asking again.
SOON, LATER = {"Retry-After": "5"}, {"Retry-After": "60"}


@dataclass(frozen=True, slots=True)
class Behind:
    """What there must be behind all of it."""

    rows: PostReader
    letters: DeadLetters
    control: Controlled


def events_app(behind: Behind, clock: Clock, rng: Random, rules: AppRules | None = None) -> web.Application:
    """The application, to be opened by `serving`. `rng` makes the ids of requests."""
    routes = events_routes(behind)
    app = application(ABOUT, routes, Streams(clock), clock, translate=translate, rules=rules)
    app.middlewares.insert(0, enveloping(rng))
    app[DESCRIPTION] = EventsDescription(ABOUT, app[ROUTES])
    return app


def events_routes(behind: Behind) -> tuple[Route, ...]:
    """The table. Where two paths match, the first one counts."""
    return (*_reading(behind), *_running(behind))


def _reading(behind: Behind) -> tuple[Route, ...]:
    posts, sums, errors = PostRoutes(behind.rows), SumRoutes(behind.rows), ErrorRoutes(behind.rows)
    health = HealthRoutes(behind.control)
    return (
        Route("GET", "/ready", health.ready, everyone=True, example=examples.ALIVE),
        Route("GET", f"{ANALYTICS}/posts", posts.posts, example=examples.POSTS),
        Route("GET", f"{ANALYTICS}/posts/all", posts.all_posts),
        Route("GET", f"{ANALYTICS}/posts/{{id}}", posts.post, problems=(404,), example=examples.POST),
        Route("GET", f"{ANALYTICS}/summary", sums.summary, example=examples.SUMMARY),
        Route("GET", f"{ANALYTICS}/trends", sums.trends, example=examples.TRENDS),
        Route("GET", f"{ANALYTICS}/top-keywords", sums.top_keywords, example=examples.KEYWORDS),
        Route("GET", f"{ANALYTICS}/alerts", sums.alerts, example=examples.ALERTS),
        Route("GET", f"{ANALYTICS}/errors", errors.errors, example=examples.ERRORS),
        Route("GET", f"{ANALYTICS}/errors/counts", errors.error_counts, example=examples.ERROR_COUNTS),
        Route("GET", f"{ANALYTICS}/health", health.analytics_health, everyone=True, example=examples.ALIVE),
        Route("GET", f"{ANALYTICS}/health/detailed", health.detailed_health, example=examples.PARTS),
    )


def _running(behind: Behind) -> tuple[Route, ...]:
    admin, dead = AdminRoutes(behind.control), DeadRoutes(behind.letters)
    return (
        Route("GET", f"{EVENTS}/status", admin.status, problems=(404,)),
        Route("GET", f"{EVENTS}/modes", admin.modes, example=examples.MODES),
        Route("PUT", f"{EVENTS}/modes", admin.change_modes, body_example=examples.MODES_GIVEN, example=examples.MODES),
        Route("GET", f"{EVENTS}/dead", dead.dead, problems=(410,), example=examples.DEAD),
        Route(
            "POST",
            f"{EVENTS}/dead/replay",
            dead.replay,
            body_example=examples.REPLAY,
            body_rule={"minProperties": 1, "maxProperties": 1},
            example=examples.REPLAYED,
        ),
    )


def translate(error: Exception) -> ProblemError | None:
    """What the errors of what is behind mean to a client."""
    match error:
        case AnalyticsError():
            return problem(503, f"the database is not to be had: {error}", SOON if error.transient else LATER)
        case QueueError():
            return problem(503, f"the queue is not to be had: {error}", SOON)
        case FolderError():
            return problem(503, f"what was asked for cannot be written: {error}", LATER)
    return None
