"""Four jobs that a newcomer has, and how each is done with Sanderling, Scrapy and dlt: the files to write, the command.

Each is the shortest way that the tool's own manual shows; {address} and {did} are filled in. Every side follows the
links of a site. None of them is told of a rate, so that each asks as it asks by default.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import OperationalError, connect

SIDES = {"sanderling": "sanderling", "scrapy": "scrapy", "dlt": "dlt"}  # by what pip installs


@dataclass(frozen=True, slots=True)
class Way:
    """How a job is done: what is typed, in a shell; what is written before; and whether a record is on disk."""

    command: str
    done: Callable[[Path], bool]
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def commands(self) -> int:
        """Lines to type: pip's, and these."""
        return 1 + len(self.command.splitlines())

    @property
    def lines(self) -> int:
        """Lines to write, without the empty ones."""
        return sum(1 for text in self.files.values() for line in text.splitlines() if line.strip())


def _has_lines(name: str) -> Callable[[Path], bool]:
    return lambda folder: (folder / name).exists() and b"\n" in (folder / name).read_bytes()


def _has_rows(name: str, table: str) -> Callable[[Path], bool]:
    def look(folder: Path) -> bool:
        if not (folder / name).exists():
            return False
        with closing(connect(f"file:{folder / name}?mode=ro", uri=True)) as db:
            try:
                return bool(db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall())  # noqa: S608 - ours
            except OperationalError:
                return False  # it is not there yet, or is being made

    return look


def _has_bytes(pattern: str, least: int) -> Callable[[Path], bool]:
    return lambda folder: any(path.stat().st_size > least for path in folder.glob(pattern))


SITE_SPIDER = """
import scrapy
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Site(CrawlSpider):
    name = "site"
    start_urls = ["{address}"]
    allowed_domains = ["127.0.0.1"]
    rules = [Rule(LinkExtractor(), callback="parse_start_url", follow=True)]

    def parse_start_url(self, response):
        yield {{"url": response.url, "title": response.css("title::text").get()}}
"""
IDS_SPIDER = """
import scrapy


class Ids(scrapy.Spider):
    name = "ids"
    number = 1
    start_urls = ["{address}/posts/1"]

    def parse(self, response):
        yield response.json()
        self.number += 1
        yield response.follow(f"/posts/{{self.number}}")
"""
POLL_SPIDER = """
import asyncio

import scrapy


class Poll(scrapy.Spider):
    name = "poll"

    async def start(self):
        while True:
            yield scrapy.Request("{address}/posts/1", dont_filter=True)
            await asyncio.sleep(1)

    def parse(self, response):
        yield response.json()
"""
ACCOUNT_SPIDER = """
from pathlib import Path

import scrapy


class Account(scrapy.Spider):
    name = "account"
    start_urls = ["{address}/xrpc/com.atproto.sync.getRepo?did={did}"]

    def parse(self, response):
        Path("account.car").write_bytes(response.body)
"""
SITE_PIPELINE = """
import re
from urllib.parse import urljoin

import dlt
from dlt.sources.helpers import requests


@dlt.resource
def pages():
    todo, seen = ["{address}"], set()
    while todo:
        url = todo.pop()
        if url in seen or not url.startswith("{address}"):
            continue
        seen.add(url)
        try:
            text = requests.get(url).text
        except requests.HTTPError:
            continue
        yield {{"url": url, "text": text}}
        todo += [urljoin(url, link) for link in re.findall('href="([^"#]+)', text)]


dlt.pipeline("site", destination=dlt.destinations.filesystem("out")).run(pages().add_limit(20))
"""
IDS_PIPELINE = """
import dlt
from dlt.sources.helpers import requests


@dlt.resource(primary_key="id", write_disposition="merge")
def posts(cursor=dlt.sources.incremental("id", initial_value=1)):
    for number in range(cursor.last_value, cursor.last_value + 20):
        yield requests.get(f"{address}/posts/{{number}}").json()


dlt.pipeline("ids", destination=dlt.destinations.filesystem("out")).run(posts())
"""
POLL_PIPELINE = """
import time

import dlt
from dlt.sources.helpers import requests


@dlt.resource(primary_key="id", write_disposition="merge")
def post():
    yield requests.get("{address}/posts/1").json()


while True:
    dlt.pipeline("poll", destination=dlt.destinations.filesystem("out")).run(post())
    time.sleep(1)
"""
ACCOUNT_PIPELINE = """
import dlt
from dlt.sources.helpers import requests


@dlt.resource
def account():
    reply = requests.get("{address}/xrpc/com.atproto.sync.getRepo", params={{"did": "{did}"}})
    yield {{"did": "{did}", "car": reply.content}}


dlt.pipeline("account", destination=dlt.destinations.filesystem("out")).run(account())
"""
SOURCE = """
[source]
name = "posts"

[source.kinds.post]
url = "{address}/posts/1"
items = "."
id = "id"
seconds = 1.0
"""


def _spider(text: str) -> Way:
    return Way("scrapy runspider spider.py -o out.jsonl", _has_lines("out.jsonl"), {"spider.py": text})


def _pipeline(table: str, text: str) -> Way:
    return Way("python pipeline.py", _has_bytes(f"out/*/{table}/*", 0), {"pipeline.py": text})


# By what it is called and the world that it is done in.
JOBS: dict[str, tuple[str, dict[str, Way]]] = {
    "crawl a site": (
        "site",
        {
            "sanderling": Way("sanderling pages crawl {address} --private --out site", _has_lines("site/pages.jsonl")),
            "scrapy": _spider(SITE_SPIDER),
            "dlt": _pipeline("pages", SITE_PIPELINE),
        },
    ),
    "follow an id API": (
        "api",
        {
            "sanderling": Way(
                "sanderling sequence crawl --url '{address}/posts/{{id}}' --id-path id --begin 1 --private --out ids",
                _has_rows("ids/rows.db", "instance"),
            ),
            "scrapy": _spider(IDS_SPIDER),
            "dlt": _pipeline("posts", IDS_PIPELINE),
        },
    ),
    "poll a JSON address": (
        "api",
        {
            "sanderling": Way(
                "sanderling polling run --source source.toml --private --out live",
                _has_rows("live/polling.db", "post"),
                {"source.toml": SOURCE},
            ),
            "scrapy": _spider(POLL_SPIDER),
            "dlt": _pipeline("post", POLL_PIPELINE),
        },
    ),
    "archive one account": (
        "pds",
        {
            "sanderling": Way(
                "echo '{did} {address}' | sanderling repos crawl --did-file /dev/stdin --private --output-dir archive",
                _has_bytes("archive/segment_*.rca", 500),
            ),
            "scrapy": Way("scrapy runspider spider.py", _has_bytes("account.car", 500), {"spider.py": ACCOUNT_SPIDER}),
            "dlt": _pipeline("account", ACCOUNT_PIPELINE),
        },
    ),
}
