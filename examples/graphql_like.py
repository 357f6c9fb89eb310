"""An API like GraphQL: one address, a query as data, and errors that come with status 200.

Serve an API to try it on, with `sanderling world api`, and run this file beside it:

    sanderling run examples/graphql_like.py --out books --private
"""

from sanderling import Job, Request
from sanderling.jobs import Answers, Cursor

QUERY = """query ($first: Int, $after: String) {
  books(first: $first, after: $after) { nodes { isbn title author { name } } pageInfo { hasNextPage endCursor } }
}"""

job = Job(
    "books",
    start=Request(
        "http://127.0.0.1:8040/graphql",
        method="POST",
        json={"query": QUERY, "variables": {"first": 20, "after": None}},
    ),
    paging=Cursor(
        path="data.books.pageInfo.endCursor",
        body="variables.after",
        has_more="data.books.pageInfo.hasNextPage",
    ),
    answers=Answers(refused='errors[*].extensions.code = "THROTTLED"', error="errors != null"),
    rps=20,
)


@job.read
def books(reply):
    """A page of books."""
    return reply.json()["data"]["books"]["nodes"]
