"""The add-on for Scrapy, without Scrapy: bench/limited_api.py runs it in Scrapy itself."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sanderling.limit import CircuitOpen, scrapy
from sanderling.limit.scrapy import PacedDownloads, SanderlingAddon


class Request:
    """As far as the add-on looks at one."""

    def __init__(self, url: str = "https://me:pw@Example.ORG/a", **meta: object) -> None:
        self.url = url
        self.meta: dict[str, Any] = dict(meta)
        self.dont_filter = False

    def replace(self, *, dont_filter: bool, meta: dict[str, Any]) -> "Request":
        other = Request(self.url, **meta)
        other.dont_filter = dont_filter
        return other


def response(status: int = 200, **headers: str) -> Any:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(status=status, headers=SimpleNamespace(to_unicode_dict=lambda: fields))


FAST = {"policy": "aimd", "initial_rps": 1000.0, "max_rps": 1000.0, "token_bucket_capacity": 100.0}


@pytest.fixture
def paced() -> PacedDownloads:
    settings = SimpleNamespace(getdict=lambda name: FAST if name == "SANDERLING" else {})
    return PacedDownloads.from_crawler(SimpleNamespace(settings=settings))


async def test_a_request_has_a_permit_until_its_response(paced: PacedDownloads) -> None:
    request, answer = Request(), response()
    await paced.process_request(request)
    figures = paced.limiter.snapshot()
    permit = request.meta["sanderling_permit"]
    back = paced.process_response(request, answer)

    assert (figures.total_requests, figures.hosts[0].host) == (1, "example.org")
    assert (back, request.meta, permit.live) == (answer, {}, False)


async def test_a_refused_request_goes_again_and_its_host_is_left_alone(paced: PacedDownloads) -> None:
    request = Request(depth=3)
    await paced.process_request(request)
    again = paced.process_response(request, response(429, Retry_After="30"))

    assert (again.dont_filter, again.meta) == (True, {"depth": 3, "sanderling_refusals": 1})
    assert paced.limiter.ready_at("example.org") - paced._clock.now() > 25
    last = Request(sanderling_refusals=20, sanderling_permit=await paced.limiter.acquire("other.example"))
    assert paced.process_response(last, answer := response(429)) is answer


async def test_what_ends_without_a_response_is_learned_unless_it_was_our_doing(paced: PacedDownloads) -> None:
    class DownloadTimeoutError(Exception): ...

    class StopDownload(Exception): ...  # noqa: N818 - the name that Scrapy gives it

    for kind, learned in ((DownloadTimeoutError, 1), (StopDownload, 1)):
        for path in range(5):  # failures of different items open a circuit
            request = Request(f"https://{kind.__name__}/{path}")
            await paced.process_request(request)
            paced.process_exception(request, kind())
            assert not request.meta
        assert paced.limiter.snapshot().open_circuits == learned


async def test_what_needs_no_permit_gets_none(paced: PacedDownloads) -> None:
    request = Request("data:,hello")
    await paced.process_request(request)
    paced.process_exception(request, ValueError())

    assert paced.process_response(request, answer := response()) is answer  # from a cache
    assert paced.limiter.snapshot().total_requests == 0


async def test_a_host_that_stays_closed_fails_the_request(
    paced: PacedDownloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrapy, "PATIENCE", 1.0)
    for path in range(5):
        request = Request(f"https://example.org/{path}")
        await paced.process_request(request)
        paced.process_exception(request, OSError())

    with pytest.raises(CircuitOpen):
        await paced.process_request(Request())


def test_the_settings_of_a_project_stay_but_for_autothrottle() -> None:
    class Settings(dict[str, Any]):
        def set(self, name: str, value: object, priority: str) -> None:
            self[name] = (value, priority)

        def getint(self, name: str) -> int:
            return {"CONCURRENT_REQUESTS": 16}[name]

    settings = Settings(DOWNLOADER_MIDDLEWARES={})
    SanderlingAddon().update_settings(settings)

    assert settings == {
        "DOWNLOADER_MIDDLEWARES": {PacedDownloads: 1000},
        "AUTOTHROTTLE_ENABLED": (False, "spider"),
        "CONCURRENT_REQUESTS_PER_DOMAIN": (16, "addon"),
    }


def test_it_is_short_and_imports_no_scrapy() -> None:
    text = Path(scrapy.__file__).read_text()

    assert len(text.splitlines()) <= 80
    assert "import scrapy" not in text
    assert "from scrapy" not in text
