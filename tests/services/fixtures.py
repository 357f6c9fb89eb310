"""The fixtures `postgres`, `redis`, `rabbitmq`, `s3`, `clickhouse` and `prometheus`, and the search behind them."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from services.clickhouse import CLICKHOUSE, fresh_database
from services.postgres import POSTGRES
from services.process import Missing, Service, StartError, Unreachable, private_folder
from services.prometheus import scraping
from services.rabbitmq import RABBITMQ
from services.redis import REDIS
from services.s3 import S3
from services.s3 import SERVICE as S3_SERVICE

# A server named by the operator may be far and busy; a guess must not hold up a machine that has none.
GIVEN_SECONDS = 60.0
GUESS_SECONDS = 20.0

Notes = dict[str, str]
NOTES = pytest.StashKey[Notes]()


@contextmanager
def reach(service: Service, notes: Notes) -> Iterator[str]:
    """Give the URL of a service that answers, or skip; write into `notes` where it came from."""
    variable = f"SANDERLING_TEST_{service.name.upper()}"
    if given := os.environ.get(variable):
        notes[service.name] = f"given by {variable}"
        _insist(service, variable, given)
        yield given
    elif guessed := guess(service):
        notes[service.name] = f"found on {_place(guessed)}"
        yield guessed
    else:
        with private_folder() as folder, _started(service, Path(folder), notes) as url:
            yield url


def _insist(service: Service, variable: str, url: str) -> None:
    """Fail if the service does not answer: whoever set the variable wants it tested, not skipped."""
    try:
        service.hello(url, GIVEN_SECONDS)
    except Unreachable as why:
        pytest.fail(f"{variable}: no {service.name} answers on {_place(url)}: {why}", pytrace=False)


def guess(service: Service, seconds: float = GUESS_SECONDS) -> str | None:
    """Return the first usual place where the service answers; all of them share the seconds."""
    deadline = time.monotonic() + seconds
    for url in service.usual:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            service.hello(url, left)
        except Unreachable:
            continue
        return url
    return None


@contextmanager
def _started(service: Service, folder: Path, notes: Notes) -> Iterator[str]:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(service.start(folder))
        except Missing as why:
            notes[service.name] = f"skipped: {why}"
            pytest.skip(f"{service.name}: {why}")
        except StartError:
            notes[service.name] = "did not start"
            raise
        notes[service.name] = f"started ({server.program})"
        yield server.url


def _place(url: str) -> str:
    """Return host and port, without the password that may stand before them."""
    return urlsplit(url).netloc.rpartition("@")[2]


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> Iterator[str]:
    """URL of a PostgreSQL database in which we may create tables."""
    with reach(POSTGRES, pytestconfig.stash[NOTES]) as url:
        yield url


@pytest.fixture(scope="session")
def redis(pytestconfig: pytest.Config) -> Iterator[str]:
    """URL of a Redis or Valkey."""
    with reach(REDIS, pytestconfig.stash[NOTES]) as url:
        yield url


@pytest.fixture(scope="session")
def rabbitmq(pytestconfig: pytest.Config) -> Iterator[str]:
    """URL of a RabbitMQ."""
    with reach(RABBITMQ, pytestconfig.stash[NOTES]) as url:
        yield url


@pytest.fixture(scope="session")
def s3(pytestconfig: pytest.Config) -> Iterator[S3]:
    """A bucket on an S3 server."""
    with reach(S3_SERVICE, pytestconfig.stash[NOTES]) as url:
        yield S3.of(url)


@pytest.fixture(scope="session")
def clickhouse(pytestconfig: pytest.Config) -> Iterator[str]:
    """URL of a ClickHouse database in which we may create tables, over HTTP."""
    with reach(CLICKHOUSE, pytestconfig.stash[NOTES]) as url:
        yield url


@pytest.fixture(params=["embedded", "server"])
def clickhouse_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database: once of the engine in this process, and once over HTTP."""
    if request.param == "embedded":
        pytest.importorskip("chdb")
        yield f"chdb:{tmp_path / 'clickhouse'}"
    else:
        with fresh_database(request.getfixturevalue("clickhouse")) as url:
            yield url


@pytest.fixture(scope="session")
def prometheus(pytestconfig: pytest.Config) -> Iterator[Callable[[int], str]]:
    """Start a Prometheus that scrapes a port of this machine each second; gives its URL after the first scrape."""
    with ExitStack() as servers:
        yield lambda port: servers.enter_context(reach(scraping(port), pytestconfig.stash[NOTES]))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOTES] = {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if notes := config.stash[NOTES]:
        terminalreporter.write_line("services: " + " · ".join(f"{name} {note}" for name, note in notes.items()))


# Under pytest-xdist the services are asked for in the workers, and the summary is written by their controller.


def pytest_sessionfinish(session: pytest.Session) -> None:
    worker: Notes | None = getattr(session.config, "workeroutput", None)
    if worker is not None:
        worker.update({f"service {name}": note for name, note in session.config.stash[NOTES].items()})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 -- pytest-xdist has no types
    for key, note in getattr(node, "workeroutput", {}).items():
        if key.startswith("service "):
            node.config.stash[NOTES][key.removeprefix("service ")] = note
