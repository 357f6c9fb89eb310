"""A command of ours that ends with whoever began it: `python -m sanderling.cli.demos.child pages crawl …`.

Its stdin is a pipe into which nobody writes. When the other side is gone, also after kill -9, the pipe ends, and so
does the command: as after Ctrl-C if it can, and otherwise at once.
"""

import os
import signal
import threading

from sanderling.cli import main

PATIENCE = 15.0  # seconds for it to come to its end


def end_with(pipe: int) -> None:
    """End this process when the pipe does."""
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(0,), daemon=True).start()
    main()
