"""Every post of a list that is walked by its cursor, with the details of each.

Serve an API to try it on, with `sanderling world api`, and run this file beside it:

    sanderling run examples/paged_api.py --out posts --private

Kill it and run the same command again: it goes on where it was. The records are in posts/records.jsonl.
"""

import msgspec

from sanderling import Job, Request
from sanderling.jobs import Cursor

START = "http://127.0.0.1:8040/posts?limit=25"
job = Job("posts", start=START, paging=Cursor(path="next", param="cursor"), rps=100)


class Post(msgspec.Struct):
    """What a record must have; one that does not fit is that request's failure, with its reason."""

    id: int
    title: str
    author: int
    words: list[str]


@job.read
def posts(reply):
    """A page of the list: asks for the details of each entry. The next page is asked for as `paging` says."""
    for post in reply.json()["data"]:
        yield Request(f"/posts/{post['id']}", read="detail")


@job.read(record=Post)
def detail(reply):
    """One post, which is a record as it is."""
    return reply.json()
