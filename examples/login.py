"""Orders behind a log-in: the session is opened before the first request, and again whenever it has ended.

Serve an API to try it on, with `sanderling world api`, and run this file beside it:

    SHOP_PASSWORD='low tide' sanderling run examples/login.py --out orders --private

The password is read from the environment. Neither it nor the session is ever written down.
"""

from sanderling import Job
from sanderling.jobs import Login, PageNumber

API = "http://127.0.0.1:8040"

job = Job(
    "orders",
    start=f"{API}/orders",
    paging=PageNumber(param="page", items="orders"),
    auth=Login(
        url=f"{API}/login",
        json={"user": "sander", "password": "env:SHOP_PASSWORD"},
        token="session.key",
        prefix="Session ",
    ),
    rps=20,
)


@job.read
def orders(reply):
    """A page of orders, each of which is a record. It ends at the first page that is empty."""
    return reply.json()["orders"]
