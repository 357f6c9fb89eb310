"""Calls the functions that a user has written, and says where in them a mistake is."""

import asyncio
import inspect
import signal
from asyncio import runners
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from traceback import walk_tb
from types import AsyncGeneratorType, FrameType, GeneratorType, ModuleType, TracebackType
from typing import Any, NoReturn, Protocol, TypeVar

LONGEST = 400  # characters of what is said of a mistake
LONGEST_CALL = 60.0  # seconds that an async function may take
LONGEST_GOODBYE = 5.0  # seconds that it then may take to end
CANCELS = 2  # after so many a function that waits on is left alone

T = TypeVar("T")


class Mistake(Exception):  # noqa: N818 - it names what was found
    """A function of a job did what it should not. The message says what."""


class LocatedMistake(Mistake):
    """The message ends with the place."""


class BadRecord(Mistake):
    """One value that a function brought is not to be kept, and the others are: `note` is told why, with the place."""

    def __init__(self, said: str, note: Callable[[str], object]) -> None:
        super().__init__(said)
        self.note = note


class CallWatch(Protocol):
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

    def __init__(self, function: Callable[..., Any], watch: CallWatch) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._watch = watch
        code = getattr(inspect.unwrap(function), "__code__", None)
        self._file = "" if code is None else code.co_filename
        self._line = 0 if code is None else code.co_firstlineno

    def value_now(self, *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """What it returns, within a call that is watched. Raises Mistake."""
        try:
            return self._function(*arguments)
        except BaseException as error:  # it may be anything, sys.exit too
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
        frame: FrameType | None = None
        try:
            result = self._call(key, arguments)
            if isinstance(result, GeneratorType) and spread:
                frame = result.gi_frame
                self._watched_take(key, _all_of(result), take, frame)
                return
            if isinstance(result, AsyncGeneratorType) and spread:
                await self._in_time(self._take_each(key, result, take))
                return
            if inspect.isawaitable(result):
                result = await self._in_time(Stepped(result, key, self._watch))
            self._watched_take(key, _listed(result) if spread else (result,), take)
        except LocatedMistake:
            raise
        except Mistake as mistake:
            raise self.locate(str(mistake), self._line if frame is None else frame.f_lineno) from None
        except BaseException as error:  # it may be anything, sys.exit too
            raise self._mistake(error) from error

    async def _in_time(self, result: Awaitable[T]) -> T:
        """What is awaited, unless it takes too long. One that goes on when it is cancelled is left after a while."""
        limit = asyncio.timeout(LONGEST_CALL)
        try:
            async with asyncio.timeout(LONGEST_CALL + LONGEST_GOODBYE), limit:
                return await result
        except TimeoutError:
            if not limit.expired():
                raise
            raise self.locate(f"{self.name} took more than {LONGEST_CALL:g} s", self._line) from None

    def _call(self, key: str, arguments: tuple[object, ...]) -> Any:  # noqa: ANN401 - whatever it returns
        self._watch.begin(key)
        try:
            return self._function(*arguments)
        finally:
            self._watch.end()

    def _watched_take(
        self, key: str, values: Iterable[Any], take: Callable[[Any], object], frame: FrameType | None = None
    ) -> None:
        self._watch.begin(key)
        try:
            for value in values:
                self._take(value, take, frame)
        finally:
            self._watch.end()

    def _take(self, value: object, take: Callable[[Any], object], frame: FrameType | None) -> None:
        """Hand a value over; `frame` is where the function is."""
        try:
            take(value)
        except BadRecord as bad:
            located = isinstance(bad.__cause__, LocatedMistake)
            line = self._line if frame is None else frame.f_lineno
            bad.note(str(bad) if located else str(self.locate(str(bad), line)))

    async def _take_each(self, key: str, values: AsyncGeneratorType[Any, None], take: Callable[[Any], object]) -> None:
        step: Stepped | None = None
        try:
            while True:
                step = Stepped(anext(values), key, self._watch)
                self._watched_take(key, (await step,), take, values.ag_frame)
        except StopAsyncIteration:
            return
        except Mistake as mistake:
            if isinstance(mistake, LocatedMistake):
                raise
            line = self._line if values.ag_frame is None else values.ag_frame.f_lineno
            raise self.locate(str(mistake), line) from None
        finally:
            if step is None or not step.left:
                await Stepped(values.aclose(), key, self._watch)

    def _mistake(self, error: BaseException) -> LocatedMistake:
        """What was raised, and where in the user's file: at the innermost line of it. Raises what is no mistake."""
        if _comes_from_outside(error):
            raise error
        trace, line = error.__traceback__, self._line
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._file:
                line = trace.tb_lineno
            trace = trace.tb_next
        name = type(error).__name__
        try:
            said = str(error)
        except Exception as wrong:  # the words are a user's function, too
            raise self.locate(f"{name}: its words raise {type(wrong).__name__}", line) from wrong
        return self.locate(f"{name}: {said}" if said else name, line)

    def locate(self, said: str, line: int | None = None) -> LocatedMistake:
        """What is wrong, with the file and the line: the first of the function, if no other is known."""
        line = self._line if line is None else line
        place = f"{self._file.rpartition('/')[2]}:{line}" if self._file else "in a function without a file"
        return LocatedMistake(f"{' '.join(said.split())[:LONGEST]} ({place})")


class Stepped(Generator[Any, Any, Any]):
    """Awaits what a user's function has begun; each step of it, until it waits for something, is watched as a call.

    Cancelled once, it may say goodbye. Cancelled a second time, it is `left` where it is if it waits on.
    """

    def __init__(self, awaitable: Awaitable[Any], key: str, watch: CallWatch) -> None:
        self.left = False
        self._steps = awaitable.__await__()
        self._key = key
        self._watch = watch
        self._cancelled = 0

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
        del trace  # it is the exception's own
        error: BaseException = kind() if value is None and isinstance(kind, type) else kind if value is None else value
        self._cancelled += isinstance(error, asyncio.CancelledError)
        self._watch.begin(self._key)
        try:
            waits_for = self._steps.throw(error)
            if self._cancelled < CANCELS:
                return waits_for
            self._leave(error)
        finally:
            self._watch.end()

    def _leave(self, error: BaseException) -> NoReturn:
        """End it if that can be done. How it ends counts for nothing, since nobody waits for it any more."""
        self.left = True
        try:
            self._steps.throw(GeneratorExit())
        except BaseException as end:
            raise error from end
        raise error


def _comes_from_outside(error: BaseException) -> bool:
    """Whether a function was interrupted: it is cancelled, closed with the event loop, or somebody pressed Ctrl-C."""
    if isinstance(error, Exception):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the event loop is gone
        return True
    match error:
        case asyncio.CancelledError():
            return task is None or task.cancelling() > 0
        case GeneratorExit():
            return task is None
        case KeyboardInterrupt():
            return signal.getsignal(signal.SIGINT) is signal.default_int_handler or _is_raised_by(error, runners)
    return False


def _is_raised_by(error: BaseException, module: ModuleType) -> bool:
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return frames[-1].f_code.co_filename == module.__file__ if frames else False


def _all_of(generator: Generator[Any, Any, Any]) -> Iterator[Any]:
    """What a generator yields, and then what it returns."""
    yield from _listed((yield from generator))


def _listed(result: object) -> Iterable[Any]:
    """What a function has returned, as values: those of a list, one value, or none."""
    if result is None:
        return ()
    return result if isinstance(result, list | tuple) else (result,)
