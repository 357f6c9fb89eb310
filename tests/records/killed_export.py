"""Exports that kill themselves, each in a process of its own: `FOLDER [[TO, OUT, POINT], …]`.

A point is a call of our code; at point 0 it comes to its end, and says how many points there are.
"""

import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from types import FrameType

from sanderling.records import export as export_module
from sanderling.records import parts
from sanderling.records.export import export
from sanderling.records.folders import open_records
from sanderling.records.open_target import TargetOptions, open_target
from sanderling.records.selection import Selection

# What writes; not what only makes rows, of which there are many more calls.
OURS = ("durable.py", "rows_file.py", "/files.py", "/parts.py", "/tables.py", "_table.py", "/tempfile.py")
NOT = {"read_rows", "csv_line", "_csv_cell", "plain_rows", "<genexpr>"}


class Points:
    """Counts calls within what writes, of functions and of the system, and kills at one of them."""

    def __init__(self, last: int) -> None:
        self.seen = 0
        self._last = last

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event in ("call", "c_call", "c_return") and code.co_name not in NOT and code.co_filename.endswith(OURS):
            self.seen += 1
            if self.seen == self._last:
                os.kill(os.getpid(), signal.SIGKILL)


def run(folder: str, to: str, point: int) -> None:
    export_module.BATCH, parts.ROWS = 40, 100
    points = Points(point)
    with closing(open_records(Path(folder))) as source, closing(open_target(TargetOptions(to), "x")) as target:
        sys.setprofile(points)
        export(source, target, Selection(), new=True, watch=lambda *_: None)
        sys.setprofile(None)
    sys.stdout.write(f"{points.seen}\n")
    sys.stdout.flush()


def main(folder: str, runs: str) -> None:
    for to, point in json.loads(runs):
        child = os.fork()  # before anything is imported that has threads
        if child == 0:
            run(folder, to, point)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
