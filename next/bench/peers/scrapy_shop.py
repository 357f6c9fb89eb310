"""The spider of examples/shop.py for Scrapy, as its manual would write it."""

import scrapy


class Shop(scrapy.Spider):
    name = "shop"
    start_urls = ["https://shop.example/list/1"]

    def parse(self, response):
        """A list: its items, and the next list."""
        yield from response.follow_all(css="a.item", callback=self.item)
        yield from response.follow_all(css="a.next")

    def item(self, response):
        """An item, whose number is in its address."""
        yield {
            "number": int(response.url.rsplit("/", 1)[1]),
            "name": response.css("h1::text").get(),
            "price": response.css(".price::text").get(),
        }
