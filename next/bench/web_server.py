"""The site that crawlers are measured on, a process of its own: pages of a size by their links, JSON, a shop.

`python bench/web_server.py COUNT SIZE DELAY LOG` prints its port. The target of each answer is a line of LOG.
"""

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path

from real_pages import WORDS, real_page

DISTINCT = 40  # pages are written so many times, each with words of its own
ITEMS_OF_A_LIST = 20
HREF = re.compile(rb'href="/[a-z]+/(\d+)"')


def name_of(number: int) -> str:
    """A number in words, so that no two pages say the same."""
    base = len(WORDS)
    return " ".join(WORDS[number // base**place % base] for place in range(3)) + " shore"


def page(size: int, number: int, count: int) -> bytes:
    """A page like those of the web, whose links lead to others of the site, and to the next."""

    def link(found: re.Match[bytes]) -> bytes:
        return b'href="/html/%d"' % ((int(found[1]) * 7919 + number) % count)

    source = HREF.sub(link, real_page(number % DISTINCT, size).html)
    own = f'<h1>{name_of(number)} <a href="/html/{(number + 1) % count}">next</a></h1>'.encode()
    return source.replace(b"<h1>", own + b"<h1>", 1)


def document(number: int, _count: int) -> bytes:
    """A JSON document of 1 KB."""
    items = ",".join(f'{{"id":{number * 20 + at},"name":"item {at} of the list","price":{at / 8}}}' for at in range(20))
    return f'{{"id":{number},"items":[{items}]}}'.encode()


def shop(number: int, count: int) -> bytes:
    """An item of the shop."""
    words = f"{name_of(number)} " * 12
    near = "".join(f'<a class="near" href="/item/{(number + at) % count}">{at}</a>' for at in range(1, 9))
    menu = "".join(f'<li class="menu"><a href="/list/{at}">{at}</a></li>' for at in range(1, 9))
    return (
        f'<!doctype html><html lang="en"><head><title>{number}</title></head><body><ul>{menu}</ul><main>'
        f'<h1>Item {number}</h1><p class="price">{number / 8:.2f} €</p><p>{words}</p></main>{near}</body></html>'
    ).encode()


def shelf(number: int, count: int) -> bytes:
    """A list of the shop."""
    first = (number - 1) * ITEMS_OF_A_LIST
    items = range(first, min(first + ITEMS_OF_A_LIST, count))
    links = "".join(f'<li><a class="item" href="/item/{at}">Item {at}</a></li>' for at in items)
    following = f'<a class="next" href="/list/{number + 1}">next</a>' if first + ITEMS_OF_A_LIST < count else ""
    return f"<!doctype html><title>List {number}</title><ul>{links}</ul>{following}".encode()


def answers(count: int, size: int) -> Callable[[bytes, int], bytes | None]:
    """The body for a kind and a number."""
    made = [page(size, number, count) for number in range(count)] if size else []
    kinds = {b"json": document, b"item": shop, b"list": shelf}

    def answer(kind: bytes, number: int) -> bytes | None:
        if kind == b"html":
            return made[number] if number < len(made) else None
        return kinds[kind](number, count) if kind in kinds and number <= count else None

    return answer


async def serve(count: int, size: int, delay: float, log: Path) -> None:
    answer = answers(count, size)
    loop = asyncio.get_running_loop()
    with log.open("ab", buffering=0) as written:

        class Serving(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                self.transport = transport
                self.head = b""

            def data_received(self, data: bytes) -> None:
                self.head += data
                while b"\r\n\r\n" in self.head:
                    request, _, self.head = self.head.partition(b"\r\n\r\n")
                    loop.call_later(delay, self.respond, request.split(b" ", 2)[1]) if delay else self.respond(
                        request.split(b" ", 2)[1]
                    )

            def respond(self, target: bytes) -> None:
                _, kind, number = (*target.split(b"/"), b"", b"")[:3]
                body = answer(kind, int(number)) if number.isdigit() else None
                status = b"200 OK" if body is not None else b"404 Not Found"
                media = b"application/json" if kind == b"json" else b"text/html; charset=utf-8"
                body = body or b""
                head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (status, media, len(body))
                if not self.transport.is_closing():
                    if status.startswith(b"200"):
                        written.write(target + b"\n")
                    self.transport.write(head + body)

        server = await loop.create_server(Serving, "127.0.0.1", 0, backlog=1000)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4])))
