"""An API of your own with ever-growing ids: two functions say what it is, and no record is missed.

Run it with an address: python examples/my_own_api.py https://api.example.org/orders 1 50
Kill it and run it again: it goes on where it was.
"""

import asyncio
import sys

import msgspec

from sanderling import Reply, Task, following


class Order(msgspec.Struct):
    """What we want of a record; everything else is left out."""

    id: int
    total: float


def read(reply: Reply) -> Order:
    """What an answer says. One that is none of these raises, and is asked for again."""
    return msgspec.json.decode(reply.body, type=Order)


async def main(base: str, first: int, last: int) -> None:
    """Print every record as it comes; without `until`, for ever."""

    def task(number: int) -> Task:
        return Task(f"{base}/{number}", headers=(("Accept", "application/json"),))

    ours = base.startswith("http://127.")  # your own machine is refused unless you say so
    async with following(task, read, "orders", first=first, until=last, rps=20, private=ours) as records:
        async for record in records:
            print(record.id, record.value["total"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
