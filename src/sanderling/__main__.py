"""The command `sanderling`, and `python -m sanderling`: how the process begins and ends, around the command line.

Little is imported here, and nothing of ours: Ctrl-C may come while the rest is still being loaded, and must end the
process without a traceback then, too.
"""

import gc
import io
import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn, TextIO

INTERRUPTED = 130


def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    """End at once and without a word: nothing was begun yet, or all has ended."""
    os._exit(INTERRUPTED)


# At once, not in `main`: a script has a few lines to go until it calls that. One that ignores Ctrl-C goes on to.
INTERRUPTIBLE = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if INTERRUPTIBLE:
    signal.signal(signal.SIGINT, leave)


def main() -> NoReturn:
    """Run the command that the process was called with, and exit."""
    output = open_streams()
    # Loading makes 100,000 objects that stay; to look for garbage among them takes a tenth of the start.
    gc.disable()
    try:
        from sanderling.cli import main as command_line  # noqa: PLC0415 - see above

        if INTERRUPTIBLE:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command_line()
    except (OSError, ExceptionGroup):
        if output.problem is None:
            raise
        output.end()
    except KeyboardInterrupt:  # between two lines of ours
        os._exit(INTERRUPTED)
    finally:
        if INTERRUPTIBLE:
            signal.signal(signal.SIGINT, leave)


class Output(io.FileIO):
    """What is below stdout: remembers why it could not be written to, so that nothing else is blamed."""

    problem: OSError | None = None

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - whatever has bytes in it
        """Write, or raise OSError."""
        try:
            return super().write(data)
        except OSError as error:
            self.problem = error
            raise

    def end(self) -> NoReturn:
        """Exit because of the problem."""
        # What is left in the buffer goes nowhere, instead of failing once more at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        if isinstance(self.problem, BrokenPipeError):
            # Whoever read this has gone, as `head` does: that ends it like Ctrl-C, and without a word.
            sys.exit(INTERRUPTED)
        sys.stderr.write(f"sanderling: cannot write to stdout: {self.problem and self.problem.strerror}\n")
        sys.exit(1)


class Errors(io.FileIO):
    """What is below stderr: drops what cannot be written, since a full disk of logs must not end a crawl."""

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - whatever has bytes in it
        """Write what can be written."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return memoryview(data).nbytes


def open_streams() -> Output:
    """Make all three streams fit to be used, whatever they were when the process began; gives what is below stdout.

    One that is closed is opened again. Otherwise a database would be opened in its place, and be written to. Reading
    gives nothing then, writing to stdout fails, as it should, and what goes to stderr is dropped.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest number that is free, which is this one
    if sys.stdin is None:
        sys.stdin = os.fdopen(0)
    output = Output(1, "wb", closefd=False)
    sys.stdout = _text(output, sys.stdout, "strict")
    sys.stderr = _text(Errors(2, "wb", closefd=False), sys.stderr, "backslashreplace")
    return output


def _text(below: io.FileIO, before: TextIO | None, errors: str) -> io.TextIOWrapper:
    """The stream of text over `below`, like the one that was there before."""
    encoding = before.encoding if before else "utf-8"
    unbuffered = isinstance(before, io.TextIOWrapper) and before.write_through  # as PYTHONUNBUFFERED has it
    return io.TextIOWrapper(
        below if unbuffered else io.BufferedWriter(below),
        encoding,
        errors if encoding.lower().startswith("utf") else "replace",  # a question mark for what it cannot show
        line_buffering=errors != "strict" or below.isatty(),
        write_through=unbuffered,
    )


if __name__ == "__main__":
    main()
