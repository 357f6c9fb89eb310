"""Ends a crawl whose event loop a function of its job holds: no other host would be requested, no signal heard.

Those functions are the async ones, and those before each request, which run in the crawl's process.

The next run requests that address a while after the others; if it holds the loop again, it has failed.
"""

import asyncio
import os
import sys
import threading
from pathlib import Path

import msgspec

from sanderling.crawl.functions import Functions
from sanderling.files import Exit, write_file

TURN = 1.0  # seconds between two looks
MOST_TURNS = 60  # in which the loop did not turn; counted, since a computer may sleep
AFTER = 60.0  # seconds for which the others go first


class Held(msgspec.Struct):
    """An address whose function held the loop."""

    times: int
    place: str  # in the job's file


class Watchdog:
    """A thread that sees whether the loop turns."""

    def __init__(self, folder: Path, file: Path) -> None:
        self._note = folder / "held.json"
        self._file = str(file)
        self.held: dict[str, Held] = {}  # by URL
        if self._note.exists():
            self.held = msgspec.json.decode(self._note.read_bytes(), type=dict[str, Held])
        self._has_turned = True
        self._is_over = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no longer."""
        self._is_over.set()

    def drop(self, url: str) -> None:
        """It has ended; asked for again, it begins anew."""
        del self.held[url]
        self._write()

    def _write(self) -> None:
        write_file(self._note, msgspec.json.encode(self.held))

    def _turned(self) -> None:
        self._has_turned = True

    def _watch(self) -> None:
        turns = 0
        while not self._is_over.wait(TURN):
            if self._has_turned:
                turns, self._has_turned = 0, False
                self._loop.call_soon_threadsafe(self._turned)
            else:
                turns += 1
            if turns >= MOST_TURNS:
                self._end()
                turns = 0

    def _end(self) -> None:
        """End this process, if it is a function of the job that holds the loop."""
        url = place = ""
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - there is no other way to look
        while frame is not None and not url:
            if frame.f_code.co_filename == self._file and not place:
                place = f"{Path(self._file).name}:{frame.f_lineno}, {frame.f_code.co_name}"
            if frame.f_code is Functions.read_async.__code__:
                url = frame.f_locals["head"].url
            elif frame.f_code is Functions.prepare.__code__:
                url = frame.f_locals["url"]
            frame = frame.f_back
        if not url:
            return
        times = self.held[url].times if url in self.held else 0
        self.held[url] = Held(times + 1, place)
        self._write()
        said = f"{place} holds the whole crawl at {url}; let it await, or do its work in a plain function that reads"
        sys.stderr.write(f"sanderling: {said}\n")
        sys.stderr.flush()
        os._exit(Exit.LATER)
