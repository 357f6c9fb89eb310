"""The program on sockets: files to try, following from Python, Prometheus."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from sanderling import following
from sanderling.clock import SystemClock
from sanderling.files import Exit
from sanderling.sequence.law import NO_LAG, Readings
from sanderling.sequence.readings import MetricsError, Prometheus

pytestmark = pytest.mark.real
ORDER = 'url = "{base}/orders/{id}"\nrecord = "order"\n'
SHAPES = {
    "good": (ORDER + 'id = "id"\ntime = "created_at"\n', 404, Exit.DONE, "follow it"),
    "an error that says 200": (ORDER, 200, Exit.FAILED, "cannot exist"),
    "a wrong path of the time": (ORDER + 'id = "id"\ntime = "made"\n', 404, Exit.FAILED, "no record has a time"),
    "a wrong path of the record": (ORDER.replace('"order"', '"ordre"'), 404, Exit.FAILED, "no response is taken"),
    "no TOML": ("url = \n", 404, Exit.WRONG, "not TOML"),
    "nothing of ours": ("name = 'x'\n", 404, Exit.WRONG, "found no url"),
    "a broken condition": (ORDER + "missing = 'status =='\n", 404, Exit.WRONG, "missing: found"),
}


@asynccontextmanager
async def shop(missing: int = 404) -> AsyncIterator[str]:
    """400 orders, of which some are missing; what is not there is said with this status."""

    async def answer(request: web.Request) -> web.Response:
        number = int(request.match_info["id"])
        if number > 400 or number % 61 == 0:
            return web.json_response({"order": {"error": "no such order"}}, status=missing)
        made = datetime.now(UTC) - timedelta(seconds=20)
        return web.json_response({"order": {"id": number, "created_at": f"{made:%Y-%m-%d %H:%M:%S}"}})

    app = web.Application()
    app.router.add_get("/orders/{id}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def program(*words: object, cwd: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sanderling", *map(str, words), cwd=cwd,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@pytest.mark.parametrize("name", SHAPES)
async def test_a_file_is_tried(tmp_path: Path, name: str) -> None:
    text, missing, code, said = SHAPES[name]
    (tmp_path / "shop.toml").write_text(text)

    async with shop(missing) as base:
        ended = await program("try", "shop.toml", "--base", base, "--begin", 395, "--private", cwd=tmp_path)

    assert ended[0] == code
    assert said in ended[1]


async def test_following_gives_each_record_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(SHAPES["good"][0])
    options = {"begin": 1, "until": 60, "private": True, "rps": 200.0}

    async with shop() as base:
        first, rest = [], []
        async with aclosing(following(str(tmp_path / "shop.toml"), tmp_path / "out", base=base, **options)) as orders:
            async for order in orders:
                first.append(order["id"])
                if len(first) == 20:
                    break
        async for order in following(str(tmp_path / "shop.toml"), tmp_path / "out", base=base, **options):
            rest.append(order["id"])

    assert first == list(range(1, 21))
    assert sorted({*first, *rest}) == list(range(1, 61))
    assert len(first) + len(rest) <= 60 + 1  # the last one may come again


async def test_readings_of_a_live_prometheus(tmp_path: Path) -> None:
    server = shutil.which("prometheus")
    if server is None:
        pytest.skip("Prometheus is not installed here")
    ports = []
    for _ in range(2):
        probe = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        ports.append(probe.sockets[0].getsockname()[1])
        probe.close()
    scrape = f"[{{job_name: s, scrape_interval: 1s, static_configs: [{{targets: ['127.0.0.1:{ports[0]}']}}]}}]"
    (tmp_path / "prometheus.yml").write_text(f"scrape_configs: {scrape}\n")
    (tmp_path / "shop.toml").write_text(SHAPES["good"][0])
    url = f"http://127.0.0.1:{ports[1]}"
    scraper = await asyncio.create_subprocess_exec(
        server, "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={url[7:]}",
        cwd=tmp_path, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    async with shop() as base, Prometheus(url, SystemClock()) as prometheus:
        words = (
            f"sequence crawl shop.toml --out out --base {base} --begin 1 --private --metrics-port {ports[0]} --rps 20"
        )
        crawl = await asyncio.create_subprocess_exec(sys.executable, "-m", "sanderling", *words.split(), cwd=tmp_path)
        try:
            async with asyncio.timeout(60):
                readings = Readings()
                while not readings.rate or readings.lag == NO_LAG:
                    await asyncio.sleep(1)
                    with suppress(MetricsError):  # it begins
                        readings = await prometheus.read(60.0)
        finally:
            for each in (scraper, crawl):
                each.terminate()
                await each.wait()
    assert readings.missing < 0.5
    assert readings.errors == 0.0
    assert 15 < readings.lag < 30
