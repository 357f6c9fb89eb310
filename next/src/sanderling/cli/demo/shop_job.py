"""The job of the demo: every item of a shop."""

from collections.abc import Iterator

from sanderling import Job, Page, Request

job = Job("shop", start="https://shop.example/list/0")


@job.page("/list/*")
def listing(page: Page) -> Iterator[Request]:
    """A list: its items, and the next list."""
    yield from page.follow_all("a")


@job.page("/item/{number}")
def item(page: Page, number: str) -> Iterator[dict[str, object]]:
    """An item, whose number is in its address."""
    yield {"url": page.url, "number": int(number), "name": page.css("h1").text, "price": page.css("p").text}
