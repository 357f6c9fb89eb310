"""Prometheus: a private server that scrapes one port of ours each second."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from services.process import Running, Service, Unreachable, ask, free_ports, program, running

CONFIG = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: sanderling
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def scraping(port: int) -> Service:
    """Return the service that reads /metrics on `port` of this machine.

    No usual place to look for it: a server that already runs does not know our port. One named by the variable must.
    """
    return Service(
        name="prometheus", usual=(), hello=partial(hello, scrape_port=port), start=partial(start, scrape_port=port)
    )


def hello(url: str, seconds: float, *, scrape_port: int) -> None:
    """Return if the server has scraped the port at least once, well or badly."""
    status, body = ask("GET", f"{url.rstrip('/')}/api/v1/targets?state=active", seconds)
    if status != 200:
        raise Unreachable(f"status {status} for the list of targets")
    try:
        health = {urlsplit(target["scrapeUrl"]).netloc: target["health"] for target in _targets(body)}
    except (ValueError, TypeError, LookupError) as error:
        raise Unreachable(f"not Prometheus's list of targets: {type(error).__name__}: {error}") from None
    if health.get(f"127.0.0.1:{scrape_port}", "unknown") == "unknown":
        raise Unreachable(f"does not scrape 127.0.0.1:{scrape_port}")


def _targets(body: bytes) -> list[dict[str, str]]:
    targets: list[dict[str, str]] = json.loads(body)["data"]["activeTargets"]
    return targets


@contextmanager
def start(folder: Path, *, scrape_port: int) -> Iterator[Running]:
    server = program("prometheus")
    (port,) = free_ports(1)
    (folder / "prometheus.yml").write_text(CONFIG.format(port=scrape_port))
    url = f"http://127.0.0.1:{port}"
    command = [
        server,
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    # Takes 5 s: a fresh server waits that long for more targets before it scrapes the first; no flag shortens it.
    with running(command, lambda: hello(url, 2, scrape_port=scrape_port), folder=folder) as pid:
        yield Running(url, server, pid)
