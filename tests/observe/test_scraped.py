"""A real Prometheus finds what a real limiter did."""

import json
import time
from collections.abc import Callable
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import pytest
from known_reports import registry_of

from sanderling.engine.limiter_metrics import limiter_metrics
from sanderling.limit import Feedback, Limiter
from sanderling.observe.metrics import serve
from sanderling.testing import FakeClock


def ask(url: str, query: str) -> list[float]:
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=300)
    try:
        connection.request("GET", f"/api/v1/query?{urlencode({'query': query})}")
        found = json.load(connection.getresponse())["data"]["result"]
    finally:
        connection.close()
    return [float(each["value"][1]) for each in found]


@pytest.mark.timeout(60)
def test_prometheus_reads_permits_refusals_and_rates(prometheus: Callable[[int], str]) -> None:
    limiter = Limiter(clock=FakeClock())
    permit = limiter.try_acquire("a.example")
    assert permit is not None
    limiter.feedback(permit, Feedback(status=429, latency=0.1, retry_after=30))

    with serve(registry_of(lambda: limiter_metrics(limiter.snapshot())), 0) as exposition:
        url = prometheus(exposition.server_port)
        wanted = {
            "sanderling_limiter_permits_total": [1.0],
            "sanderling_limiter_rejected_total": [1.0],
            'sanderling_limiter_host_not_before_seconds{host="a.example"}': [30.0],
            'sanderling_limiter_wait_seconds_bucket{le="+Inf"}': [1.0],
        }
        until = time.monotonic() + 300
        while (found := {query: ask(url, query) for query in wanted}) != wanted and time.monotonic() < until:
            time.sleep(0.2)  # a real server, in real time

    assert found == wanted
