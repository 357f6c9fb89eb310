"""What is served over HTTP, where and to whom; and the flags of the API of a system that runs."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from aiohttp.web import Application
from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.cli.flags import SETTING
from sanderling.web.access import AccessError, Token, token_from
from sanderling.web.serve import Address, AddressError, ForeignError, serving
from sanderling.words import printable

THIS_MACHINE = "127.0.0.1"


def read_token(file: Path | None) -> Token | None:
    """What lets people in: the token in this file, or that of the environment. Raises CommandError."""
    try:
        return token_from(os.environ, file)
    except AccessError as error:
        raise CommandError(printable(str(error)), code=2) from None


@asynccontextmanager
async def serve_at(served: AbstractAsyncContextManager[Address], flag: str) -> AsyncIterator[Address]:
    """Serve it while the block runs; `flag` names its port. Raises CommandError.

    What the block raises comes out as it was.
    """
    async with AsyncExitStack() as stack:
        try:
            address = await stack.enter_async_context(served)
        except (AccessError, ForeignError) as error:
            raise CommandError(printable(f"bind: {error}"), code=2) from None
        except AddressError as error:
            raise CommandError(printable(f"{flag}: {error}"), code=2) from None
        yield address


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Who may look and steer over HTTP. A command takes one as `*, serving: Serving = UNSERVED`."""

    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None
    """Serve the API on this port; 0 takes any free one."""

    bind: Annotated[str, SETTING] = THIS_MACHINE
    """The address for that; any other than this machine's own needs a token."""

    token_file: Annotated[Path | None, SETTING] = None
    """A file that holds the token for it, instead of SANDERLING_TOKEN."""

    def check(self) -> None:
        """See that no flag is given in vain. Raises CommandError."""
        given = (("bind", self.bind != THIS_MACHINE), ("token-file", self.token_file is not None))
        for flag, there in given:
            if there and self.port is None:
                raise CommandError(f"{flag} is for the API, and nothing is served; expected --port as well", code=2)

    @asynccontextmanager
    async def serve(self, app: Callable[[], Application], say: Callable[[str], object]) -> AsyncIterator[None]:
        """Serve what `app` makes, if it was asked for; `say` is told where. Raises CommandError."""
        if self.port is None:
            yield
            return
        async with serve_at(serving(app(), self.bind, self.port, read_token(self.token_file)), "--port") as address:
            say(f"API: {address.url}")
            yield


UNSERVED = Serving()
