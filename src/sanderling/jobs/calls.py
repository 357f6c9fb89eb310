"""Calls the functions that a user has written, and says where in them a mistake is."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from types import AsyncGeneratorType, FrameType, GeneratorType, TracebackType
from typing import Any, Protocol

LONGEST = 400  # characters of what is said of a mistake
LONGEST_CALL = 60.0  # seconds that an async function may take


class Mistake(Exception):  # noqa: N818 - it names what was found
    """A function of a job did what it should not. The message says what, and in which file and line."""


class Watches(Protocol):
    """Notices when one call holds the loop for too long (`jobs/watchdog.py`)."""

    def begin(self, key: str) -> None:
        """A call begins, for this item."""

    def end(self) -> None:
        """It has returned."""


class Unwatched:
    """Nobody looks."""

    def begin(self, key: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class UserFunction:
    """A function of the user's, sync or async, that returns or yields."""

    def __init__(self, function: Callable[..., Any], watch: Watches) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._watch = watch
        self._is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        code = getattr(inspect.unwrap(function), "__code__", None)
        self._file = "" if code is None else code.co_filename
        self._line = 0 if code is None else code.co_firstlineno

    def value_now(self, key: str, *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """What it returns, where nothing can be waited for. Raises Mistake."""
        try:
            return self._call(key, arguments)
        except Exception as error:  # it may be anything
            raise self._mistake(error) from error

    async def value(self, key: str, *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """What it returns. Raises Mistake."""
        found: list[Any] = []
        await self._run(key, arguments, found.append, spread=False)
        return found[0] if found else None

    async def each(self, key: str, take: Callable[[Any], object], *arguments: object) -> None:
        """Give `take` each value that it yields, or that is in the list it returns. Raises Mistake, also of `take`."""
        await self._run(key, arguments, take, spread=True)

    async def _run(
        self, key: str, arguments: tuple[object, ...], take: Callable[[Any], object], *, spread: bool
    ) -> None:
        if not self._is_async:
            await self._take(key, arguments, take, spread=spread)
            return
        try:
            async with asyncio.timeout(LONGEST_CALL):
                await self._take(key, arguments, take, spread=spread)
        except TimeoutError:
            raise Mistake(f"{self.name} took more than {LONGEST_CALL:g} s ({_place(self._file, self._line)})") from None

    async def _take(
        self, key: str, arguments: tuple[object, ...], take: Callable[[Any], object], *, spread: bool
    ) -> None:
        frame: FrameType | None = None
        try:
            result = self._call(key, arguments)
            if isinstance(result, GeneratorType) and spread:
                frame = result.gi_frame
                self._take_all(key, result, take)
                return
            if isinstance(result, AsyncGeneratorType) and spread:
                frame = result.ag_frame
                await self._take_each(key, result, take)
                return
            if inspect.isawaitable(result):
                result = await Stepped(result, key, self._watch)
            for value in _listed(result) if spread else (result,):
                take(value)
        except Mistake as mistake:
            line = self._line if frame is None else frame.f_lineno
            raise Mistake(f"{mistake} ({_place(self._file, line)})") from None
        except Exception as error:  # it may be anything
            raise self._mistake(error) from error

    def _call(self, key: str, arguments: tuple[object, ...]) -> Any:  # noqa: ANN401 - whatever it returns
        self._watch.begin(key)
        try:
            return self._function(*arguments)
        finally:
            self._watch.end()

    def _take_all(self, key: str, values: Generator[Any, None, None], take: Callable[[Any], object]) -> None:
        self._watch.begin(key)
        try:
            for value in values:
                take(value)
        finally:
            self._watch.end()

    async def _take_each(self, key: str, values: AsyncGenerator[Any, None], take: Callable[[Any], object]) -> None:
        try:
            while True:
                take(await Stepped(anext(values), key, self._watch))
        except StopAsyncIteration:
            return
        finally:
            await values.aclose()

    def _mistake(self, error: BaseException) -> Mistake:
        """What was raised, and where in the user's file: at the innermost line of it."""
        trace, line, file = error.__traceback__, 0, self._file
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._file:
                line = trace.tb_lineno
            trace = trace.tb_next
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Mistake(f"{' '.join(said.split())[:LONGEST]} ({_place(file, line or self._line)})")


class Stepped(Generator[Any, Any, Any]):
    """Awaits what a user's function has begun; each step of it, until it waits for something, is watched as a call."""

    def __init__(self, awaitable: Awaitable[Any], key: str, watch: Watches) -> None:
        self._steps = awaitable.__await__()
        self._key = key
        self._watch = watch

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def send(self, value: object) -> Any:  # noqa: ANN401 - whatever it waits for
        """Go on until it waits again."""
        self._watch.begin(self._key)
        try:
            return next(self._steps) if value is None else self._steps.send(value)
        finally:
            self._watch.end()

    def throw(self, kind: Any, value: Any = None, trace: TracebackType | None = None) -> Any:  # noqa: ANN401 - the same
        """Go on with an exception."""
        self._watch.begin(self._key)
        try:
            return self._steps.throw(kind) if value is None else self._steps.throw(kind, value, trace)
        finally:
            self._watch.end()


def _listed(result: object) -> Iterable[Any]:
    """What a function has returned, as values: those of a list, one value, or none."""
    if result is None:
        return ()
    return result if isinstance(result, list | tuple) else (result,)


def _place(file: str, line: int) -> str:
    return f"{file.rpartition('/')[2]}:{line}" if file else "in a function without a file"
