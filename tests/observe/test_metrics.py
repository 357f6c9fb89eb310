import asyncio
import io
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.request import urlopen

import pytest
import structlog
from known_reports import SNAPSHOT, registry_of
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sanderling.engine.limiter_metrics import TOP_HOSTS, limiter_metrics
from sanderling.limit.snapshot import Snapshot
from sanderling.observe import logs
from sanderling.observe.metrics import BindError, PortError, on_loop, serve

SEEN = SNAPSHOT.top[0]

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def limited(take: Callable[[], Snapshot] = lambda: SNAPSHOT) -> CollectorRegistry:
    """What a limiter serves."""
    return registry_of(lambda: limiter_metrics(take()))


def series(text: str) -> Series:
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def shown(snapshot: Snapshot) -> Series:
    return series(generate_latest(limited(lambda: snapshot)).decode())


def value(found: Series, name: str, **labels: str) -> float:
    return found[f"sanderling_limiter_{name}", frozenset(labels.items())]


def get(url: str) -> str:
    # Our own server, a moment ago.
    with urlopen(url, timeout=300) as answer:  # noqa: S310
        return str(answer.read(), "utf-8")


def test_totals_are_counters() -> None:
    found = shown(SNAPSHOT)

    names = ("permits", "throttled", "denied", "rejected", "retries")
    assert [value(found, f"{name}_total") for name in names] == [100, 40, 7, 5, 6]


def test_every_host_has_a_circuit_and_those_not_open_are_closed() -> None:
    found = shown(SNAPSHOT)

    assert [value(found, "circuits", state=state) for state in ("closed", "open", "half-open")] == [7, 2, 1]
    assert value(found, "hosts") == 10


def test_waits_are_a_histogram_whose_buckets_add_up() -> None:
    found = shown(SNAPSHOT)

    assert [value(found, "wait_seconds_bucket", le=le) for le in ("0.005", "0.5", "+Inf")] == [60, 90, 100]
    assert value(found, "wait_seconds_count") == 100
    assert value(found, "wait_seconds_sum") == 12.5


def test_each_metric_has_the_type_prometheus_needs_to_know() -> None:
    text = generate_latest(limited()).decode()

    types = {family.name: family.type for family in text_string_to_metric_families(text)}
    assert types["sanderling_limiter_permits"] == "counter"
    assert types["sanderling_limiter_wait_seconds"] == "histogram"
    assert types["sanderling_limiter_host_rate"] == "gauge"


def test_a_busy_host_is_shown_in_full() -> None:
    found = shown(SNAPSHOT)

    names = ("rate", "ceiling", "tokens", "latency_seconds", "latency_p95_seconds", "error_ratio")
    assert [value(found, f"host_{name}", host="a.example") for name in names] == [2.5, 8, -1.5, 0.25, 0.75, 0.125]
    counts = ("failures", "not_before_seconds", "inflight", "waiting")
    assert [value(found, f"host_{name}", host="a.example") for name in counts] == [3, 30, 4, 5]


@pytest.mark.parametrize("state", ["closed", "open", "half-open"])
def test_the_circuit_of_a_host_is_one_of_three(state: str) -> None:
    found = shown(replace(SNAPSHOT, top=(replace(SEEN, state=state),)))

    states = [value(found, "host_circuit", host="a.example", state=s) for s in ("closed", "open", "half-open")]
    assert (sum(states), value(found, "host_circuit", host="a.example", state=state)) == (1, 1)


def test_what_is_not_known_of_a_host_is_not_shown() -> None:
    names = {name for name, _ in shown(replace(SNAPSHOT, top=(replace(SEEN, ceiling=None, latency=None, p95=None),)))}

    assert "sanderling_limiter_host_rate" in names
    assert not {f"sanderling_limiter_host_{name}" for name in ("ceiling", "latency_seconds")} & names
    assert "sanderling_limiter_host_latency_p95_seconds" not in names


def test_however_many_hosts_there_are_only_the_busiest_have_series() -> None:
    crowd = tuple(replace(SEEN, host=f"host{number}.example") for number in range(1000))

    found = shown(replace(SNAPSHOT, top=crowd, hosts=1000))

    hosts = {dict(labels)["host"] for _, labels in found if "host" in dict(labels)}
    assert hosts == {seen.host for seen in crowd[:TOP_HOSTS]}
    assert len(found) < 300


def test_one_scrape_is_one_snapshot() -> None:
    taken: list[Snapshot] = []

    def take() -> Snapshot:
        taken.append(SNAPSHOT)
        return taken[-1]

    with serve(limited(take), 0) as exposition:
        assert taken == []
        get(exposition.url)

    assert len(taken) == 1


def test_prometheus_gets_the_same_over_http() -> None:
    with serve(limited(), 0) as exposition:
        assert series(get(exposition.url)) == shown(SNAPSHOT)


def test_only_this_machine_may_ask() -> None:
    with serve(limited(), 0) as exposition:
        assert exposition.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(("bind", "reached"), [("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("localhost", "localhost")])  # noqa: S104
def test_unless_others_may(bind: str, reached: str) -> None:
    with serve(limited(), 0, bind) as exposition:
        assert series(get(f"http://{reached}:{exposition.server_port}/metrics")) == shown(SNAPSHOT)
        assert series(get(exposition.url)) == shown(SNAPSHOT)


@pytest.mark.parametrize("bind", ["192.0.2.1", "nowhere.invalid", "", "a" * 300, "127.0.0.1:80"])
def test_an_address_that_is_not_ours_says_what_to_do(bind: str) -> None:
    with pytest.raises(BindError, match=r"expected one of this machine's own, such as 127\.0\.0\.1, or 0\.0\.0\.0"):
        serve(limited(), 0, bind)


def test_closing_frees_the_port_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with serve(limited(), 0) as exposition:
        get(exposition.url)
        port = exposition.server_port

    with serve(limited(), port) as again:
        assert again.server_port == port
    assert threading.active_count() == before


def test_a_scraper_that_says_nothing_does_not_keep_it_from_closing() -> None:
    before = threading.active_count()
    with serve(limited(), 0) as exposition:
        silent = socket.create_connection(("127.0.0.1", exposition.server_port))
        # The next answer comes after the silent one was taken in.
        get(exposition.url)

    assert threading.active_count() == before
    with silent:
        assert silent.recv(1) == b""


def test_a_port_in_use_says_what_to_do() -> None:
    with (
        serve(limited(), 0) as exposition,
        pytest.raises(PortError, match="already in use; free it, or choose another") as caught,
    ):
        serve(limited(), exposition.server_port)

    assert str(exposition.server_port) in str(caught.value)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    handlers, stream = logging.root.handlers, io.StringIO()
    logs.configure("json", "info", stream)
    yield stream
    logging.root.handlers = handlers
    structlog.reset_defaults()


def test_a_scrape_that_fails_is_logged_and_the_next_one_is_answered(
    logged: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = [True]

    def take() -> Snapshot:
        if broken.pop():
            raise KeyError("gone")
        return SNAPSHOT

    with serve(limited(take), 0) as exposition:
        with pytest.raises(OSError, match="closed"):
            get(exposition.url)
        broken.append(False)
        assert get(exposition.url)

    event = json.loads(logged.getvalue())
    assert (event["event"], event["exception_type"]) == ("scrape_failed", "KeyError")
    assert capfd.readouterr() == ("", "")


def test_another_thread_sees_what_the_event_loop_sees() -> None:
    seen: list[threading.Thread] = []

    def take() -> Snapshot:
        seen.append(threading.current_thread())
        return replace(SNAPSHOT, requests=7)

    async def ask() -> object:
        return await asyncio.to_thread(on_loop(asyncio.get_running_loop(), take))

    assert asyncio.run(ask()) == replace(SNAPSHOT, requests=7)
    assert seen == [threading.main_thread()]


def test_a_loop_that_does_not_come_round_fails_the_scrape_and_not_the_scraper() -> None:
    loop = asyncio.new_event_loop()

    with pytest.raises(TimeoutError):
        on_loop(loop, lambda: SNAPSHOT, patience=0.01)()

    # The question is still in the queue; let it be answered, to nobody.
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
