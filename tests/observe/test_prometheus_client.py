"""Asking a Prometheus server: what it says, and everything else that may answer in its place."""

import asyncio
import json
import math
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_reports import registry_for
from measured_reports import measured
from scripted_server import Request, ScriptedServer, Step, answer, reset

from sanderling.observe.metrics import serve
from sanderling.observe.prometheus import MOST_BYTES, PrometheusError, PrometheusServer, Series, _Matrix, _understood

INSTANT = "/api/v1/query?query=up&time=60.000"
RANGE = "/api/v1/query_range?query=up&start=0.000&end=60.000&step=60"
T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(300):
            return await main()

    return asyncio.run(bounded())


def said(kind: str, result: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def asked(*steps: Step, path: str = RANGE, timeout: float = 5) -> list[Series]:
    async def main() -> list[Series]:
        async with ScriptedServer({path: [list(steps)]}) as server, PrometheusServer(server.url(), "", timeout) as it:
            return await (it.query("up", 60) if path == INSTANT else it.query_range("up", 0, 60, 60))

    return run(main)


def error_of(*steps: Step, path: str = RANGE, timeout: float = 5) -> str:
    with pytest.raises(PrometheusError) as error:
        asked(*steps, path=path, timeout=timeout)
    return str(error.value)


def test_a_range_gives_the_samples_of_each_series() -> None:
    result = [
        {"metric": {"le": "5"}, "values": [[0, "0.5"], [60.5, "1e+06"]]},
        {"metric": {}, "values": [[0, "-1"]]},
    ]

    found = asked(answer(body=said("matrix", result)))

    assert found == [Series({"le": "5"}, ((0, 0.5), (60.5, 1e6))), Series({}, ((0, -1),))]


def test_an_instant_gives_a_sample_of_each_series() -> None:
    result = [{"metric": {"job": "a"}, "value": [60, "2"]}]

    assert asked(answer(body=said("vector", result)), path=INSTANT) == [Series({"job": "a"}, ((60, 2),))]


def test_nothing_is_an_answer() -> None:
    assert asked(answer(body=said("matrix", []))) == []


def test_what_prometheus_calls_nan_and_infinite_are_numbers() -> None:
    (found,) = asked(answer(body=said("matrix", [{"metric": {}, "values": [[0, "NaN"], [1, "+Inf"], [2, "-Inf"]]}])))

    values = [value for _, value in found.samples]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"up",
        b"<html><title>Welcome to nginx</title></html>",
        b"null",
        b"[]",
        b'{"status": "success"}',
        b'{"status": "well"}',
        b'{"status": "success", "data": [' + b"[" * 100_000,
        b'{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[0, NaN]]}]}}',
        b"\xff\xfe",
        said("vector", []),
        said("scalar", [1, "2"]),
        said("matrix", {}),
        said("matrix", [{"metric": {}}]),
        said("matrix", [{"metric": {"job": 1}, "values": []}]),
        said("matrix", [{"metric": {}, "values": [[0, 1.5]]}]),
        said("matrix", [{"metric": {}, "values": [["0", "1.5"]]}]),
        said("matrix", [{"metric": {}, "values": [[0, "1.5", 2]]}]),
        said("matrix", [{"metric": {}, "values": [[0, "soon"]]}]),
        said("matrix", [{"metric": {}, "values": [[0, "1_000"]]}]),
        said("matrix", [{"metric": {}, "values": [[0, "nan"]]}]),
        said("matrix", [{"metric": {}, "values": [[0, ""]]}]),
    ],
)
def test_what_is_no_answer_of_prometheus_is_an_error(body: bytes) -> None:
    assert error_of(answer(body=body))


def test_an_error_says_what_came_instead() -> None:
    page = answer(body=b"<html>Sign in\x1b[2J</html>", Content_Type="text/html")

    assert "it begins '<html>Sign in [2J</html>'" in error_of(page)


def test_what_prometheus_says_is_wrong_is_passed_on() -> None:
    body = json.dumps({"status": "error", "errorType": "bad_data", "error": "unknown position: parse error"}).encode()

    assert error_of(answer(400, body)) == "status 400: unknown position: parse error"


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_a_status_that_is_not_200_is_an_error_even_with_data(status: int) -> None:
    assert error_of(answer(status, said("matrix", []))) == f"status {status}, expected 200"
    assert error_of(answer(status, b"<html>")) == f"status {status}, expected 200"


def test_a_redirect_is_not_followed() -> None:
    assert "elsewhere" in error_of(answer(302, Location="/login"))


def test_a_body_without_end_is_not_read_to_its_end() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        piece = b" " * 2**16
        for _ in range(4 * MOST_BYTES // len(piece)):
            writer.write(piece)
            await writer.drain()

    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"

    assert f"longer than {MOST_BYTES} bytes" in error_of(head, endless)


def test_a_packed_body_is_not_unpacked() -> None:
    assert "no answer of Prometheus's" in error_of(answer(body=b"\x1f\x8b\x08", Content_Encoding="gzip"))


@pytest.mark.parametrize(
    "steps", [(reset,), (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", reset), (b"HELO\r\n\r\n",)]
)
def test_a_connection_that_breaks_is_an_error(steps: tuple[Step, ...]) -> None:
    assert "http://127.0.0.1" in error_of(*steps)


def test_a_server_that_is_slow_is_waited_for_only_so_long() -> None:
    assert "no answer within 0.05 s" in error_of(20.0, timeout=0.05)


def test_a_server_that_is_not_there_is_an_error() -> None:
    async def main() -> None:
        async with ScriptedServer({}) as server:
            url = server.url()
        async with PrometheusServer(url) as it:
            await it.query("up", 0)

    with pytest.raises(PrometheusError, match="Connect"):
        run(main)


def headers_of(user: str, token: str) -> Request:
    async def main() -> Request:
        path = f"/prom{INSTANT}"
        async with ScriptedServer({path: [answer(body=said("vector", []))]}) as server:
            async with PrometheusServer(server.url("/prom/").replace("//", f"//{user}", 1), token) as it:
                await it.query("up", 60)
            return server.requests[0]

    return run(main)


def test_a_server_below_a_path_is_asked_there() -> None:
    request = headers_of("", "")

    assert request.path.startswith("/prom/api/v1/query?")
    assert "authorization" not in request.headers


def test_the_users_password_is_sent_as_basic_authorization() -> None:
    said = headers_of("ann:p%40ss@", "").headers["authorization"]

    assert b64decode(said.removeprefix("Basic ")) == b"ann:p@ss"


def test_the_token_is_sent_as_bearer() -> None:
    assert headers_of("", "t0ken").headers["authorization"] == "Bearer t0ken"


def test_no_message_shows_a_secret() -> None:
    async def main() -> str:
        async with PrometheusServer("http://wanda:hush@127.0.0.1:1/") as it:
            try:
                await it.query("up", 0)
            except PrometheusError as error:
                return f"{it!r} {error}"
        return ""

    shown = run(main)

    assert "127.0.0.1" in shown
    assert not any(secret in shown for secret in ("wanda", "hush", "Basic"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "prometheus:9090",
        "ftp://hush@a.example",
        "file:///etc/hush",
        "http://",
        "http://hush@:9090",
        "http://a.example:99999/hush",
        "http://a.example/?token=hush",
        "http://a.example/#hush",
    ],
)
def test_a_url_that_is_no_servers_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValueError, match="URL of the Prometheus server") as error:
        PrometheusServer(url)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(("url", "token"), [("http://a@b.example", "hush"), ("http://b.example", "hush\r\nX: y")])
def test_a_token_that_cannot_be_sent_is_refused_without_showing_it(url: str, token: str) -> None:
    with pytest.raises(ValueError, match="token") as error:
        PrometheusServer(url, token)
    assert "hush" not in str(error.value)


def test_it_must_be_opened_first() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(PrometheusServer("http://a.example").query("up", 0))


def json_values() -> st.SearchStrategy[object]:
    leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    keys = st.sampled_from(["status", "data", "result", "resultType", "metric", "values", "error"]) | st.text()
    return st.recursive(leaf, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=12)


@given(st.sampled_from([200, 400, 502]), st.binary() | json_values().map(msgspec.json.encode))
def test_whatever_answers_there_is_data_or_an_error_of_ours(status: int, body: bytes) -> None:
    try:
        said = repr(_understood(status, body, _Matrix))
    except PrometheusError as error:
        said = str(error)

    assert said.isprintable()


@pytest.mark.timeout(60)
def test_a_real_prometheus_is_understood(prometheus: Callable[[int], str]) -> None:
    registry = registry_for(lambda: measured()["sequence"])

    async def main(url: str) -> tuple[list[float], set[str], str]:
        async with PrometheusServer(url) as server:
            now = time.time()
            workers = await server.query("sanderling_sequence_workers", now)
            states = await server.query_range("sanderling_sequence_queue", now - 1, now, 1)
            with pytest.raises(PrometheusError) as error:
                await server.query("rate(sanderling_sequence_answers_total[0m])", now)
            values = [value for series in workers for _, value in series.samples]
            return values, {series.labels["state"] for series in states}, str(error.value)

    with serve(registry, 0) as exposition:
        found, states, error = run(lambda: main(prometheus(exposition.server_port)))

    assert found == [50]
    assert states == {"ready", "taken", "delayed", "dead"}
    assert "duration must be greater than 0" in error
