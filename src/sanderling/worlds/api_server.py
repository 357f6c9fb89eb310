"""The simulated API over real HTTP, on this machine only."""

from types import TracebackType
from typing import Self

from aiohttp import web

from sanderling.clock import Clock
from sanderling.worlds.api import ApiRequest, ApiWorld
from sanderling.worlds.site_server import ADDRESS, PortError

GRACE = 0.1  # seconds for requests under way, when it ends


class ApiServer:
    """`async with ApiServer(world, clock) as server`: the API, at `server.url()`."""

    def __init__(self, world: ApiWorld, clock: Clock, *, port: int = 0) -> None:
        self.world = world
        self._clock = clock
        self._port = port

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, ADDRESS, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise PortError(f"port {self._port} of {ADDRESS} cannot be had: {error.strerror}") from None
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    @property
    def host(self) -> str:
        """Its name and port."""
        return f"{ADDRESS}:{self._port}"

    def url(self, path: str = "") -> str:
        """Where a path is found."""
        return f"http://{self.host}{path}"

    async def _serve(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = ApiRequest(request.method, request.path_qs, headers, await request.read())
        answer = self.world.answer(asked, self._clock.now())
        await self._clock.sleep(self.world.rules.latency)
        return web.Response(
            status=answer.status, body=answer.body, headers=dict(answer.headers), content_type="application/json"
        )
