"""A crawl by Scrapy: of pages by their links, or of documents by a list.

`python scrapy_pages.py SEEDS ROWS defaults|best none|text [JOBDIR]`. `best` are the settings that Scrapy's own manual
and its users recommend for speed; `text` adds trafilatura.
"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess

SEEDS, ROWS, SETTINGS, TEXT, *JOBDIR = sys.argv[1:]
FAST = {
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "DOWNLOAD_DELAY": 0,
    "COOKIES_ENABLED": False,
    "LOG_LEVEL": "ERROR",
    "LOGSTATS_INTERVAL": 0,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "RETRY_ENABLED": False,
    "REFERER_ENABLED": False,
}


class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        with open(SEEDS) as seeds:
            for line in seeds:
                yield scrapy.Request(line.strip(), self.document if "/json/" in line else self.parse)

    def parse(self, response):
        row = {"url": response.url, "title": response.css("title::text").get()}
        row["links"] = [response.urljoin(href) for href in response.css("a::attr(href)").getall()]
        if TEXT == "text":
            row["text"] = trafilatura.extract(response.text, url=response.url, output_format="markdown")
        yield row
        yield from (scrapy.Request(link) for link in row["links"])

    def document(self, response):
        yield {"url": response.url, "json": response.json()}


if TEXT == "text":
    import trafilatura

# Without these two the defaults of a new project are one request a second: nobody would measure that.
settings = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 16, "LOG_LEVEL": "INFO"}
settings |= FAST if SETTINGS == "best" else {}
settings |= {"FEEDS": {ROWS: {"format": "jsonlines", "overwrite": not JOBDIR}}}
settings |= {"JOBDIR": JOBDIR[0]} if JOBDIR else {}
process = CrawlerProcess(settings)
process.crawl(Pages)
process.start()
