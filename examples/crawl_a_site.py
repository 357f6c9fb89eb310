"""Pages as a library: crawl a site politely, then use its rows.

Run it with an address: python examples/crawl_a_site.py https://example.org/
Kill it and run it again: it goes on where it was. `sanderling verify site` proves that nothing is missing.
"""

import asyncio
import json
import sys
from collections import Counter

from sanderling import Code, crawl_pages


async def main(url: str) -> None:
    """Crawl, and say what the site is about."""
    ours = url.startswith("http://127.")  # your own machine is refused unless you say so
    crawled = await crawl_pages([url], "site", depth=2, max_pages=100, rps=20, private=ours)
    words: Counter[str] = Counter()
    with crawled.rows.open() as rows:
        for row in map(json.loads, rows):
            if row["outcome"] == Code.OK and row.get("text"):
                print(row["url"], "-", row.get("title"))
                words.update(word for word in row["text"].lower().split() if len(word) > 5)
    print(f"{crawled.fetched} pages, {crawled.failed} failed; mostly about", *dict(words.most_common(3)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
