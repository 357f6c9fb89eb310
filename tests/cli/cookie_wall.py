"""A site whose pages are for those with the cookie that its first page has set, and it sets that only once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from scripted_server import answer

PAGES = 30


@dataclass
class CookieWall:
    """What it was asked for, and what it did not show."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its first page."""
        return f"http://127.0.0.1:{self.port}/"

    def say(self, path: str, cookie: str) -> bytes:
        """What comes back."""
        if path == "/robots.txt":
            return answer(404)
        self.asked.append(path)
        links = "".join(f"<a href=/{number}>page {number}</a> " for number in range(PAGES))
        body = f"<html><body><p>{path} of the site. {links}</p></body></html>".encode()
        if path == "/" and self.asked.count("/") == 1:
            return answer(200, body, Content_Type="text/html", Set_Cookie="sid=1")
        if cookie != "sid=1":
            self.refused.append(path)
            return answer(403)
        return answer(200, body, Content_Type="text/html")


@asynccontextmanager
async def cookie_wall() -> AsyncIterator[CookieWall]:
    """The site, on a port of its own."""
    wall = CookieWall()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with_cookie = "cookie: "
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                cookie = [line[len(with_cookie) :] for line in lines if line.lower().startswith(with_cookie)]
                writer.write(wall.say(first.split()[1], "".join(cookie)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    wall.port = server.sockets[0].getsockname()[1]
    try:
        yield wall
    finally:
        server.close()
