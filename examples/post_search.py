"""A search that is asked by POST, with what to search for as an argument.

Serve an API to try it on, with `sanderling world api`, and run this file beside it:

    sanderling run examples/post_search.py --out tides --set query=tide --private

Another search goes into another folder: --out gulls --set query=gull.
"""

from sanderling import Job, Request
from sanderling.jobs import Offset

API = "http://127.0.0.1:8040"


def start(arguments):
    """The first page of the search; the body of the others has another offset, as `paging` says."""
    yield Request(f"{API}/search", method="POST", json={"query": arguments["query"], "offset": 0, "limit": 20})


job = Job(
    "search",
    start=start,
    hosts=("127.0.0.1:8040",),
    paging=Offset(limit=20, offset_body="offset", total="total", items="hits"),
    arguments={"query": "tide"},
    rps=20,
)


@job.read
def hits(reply):
    """A page of what was found."""
    return reply.json()["hits"]
