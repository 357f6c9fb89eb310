"""One system hands over to the next: a site is crawled, and its pages become rows of `events` while that runs.

Run it with an address: python examples/crawl_into_events.py https://example.org/
Kill it and run it again: nothing is missing. `sanderling events consume --drain` then reads what was handed over.
"""

import asyncio
import sys

from sanderling import crawl_pages, hand_to_events


async def main(url: str) -> None:
    """Crawl, and hand every row over before the crawl takes note of it."""
    ours = url.startswith("http://127.")  # your own machine is refused unless you say so
    async with hand_to_events("events", "shore-brand-0", brand="Sanderling") as events:
        crawled = await crawl_pages([url], "site", depth=2, rps=20, private=ours, hand_over=events.pages)
    print(f"{crawled.fetched} pages, {crawled.failed} failed; {events.pages.tally.items} handed over")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
