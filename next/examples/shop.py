"""Every item of a shop, in nine lines: robots.txt is obeyed, records are exactly once, a kill loses nothing.

Put in the address of a shop whose lists are at /list/… and whose items are at /item/…, and run it:

    sanderling run examples/shop.py --try 10
    sanderling run examples/shop.py --out shop
    sanderling verify shop
"""

from sanderling import Job

job = Job("shop", start="https://shop.example/list/1")


@job.page("/list/*")
def listing(page):
    """A list: its items, and the next list."""
    yield from page.follow_all("a.item, a.next")


@job.page("/item/{number}")
def item(page, number):
    """An item, whose number is in its address."""
    yield {"number": int(number), "name": page.css("h1").text, "price": page.css(".price").text}
