"""Start a reader: `python -m sanderling.readers SOCKET LOG`, two descriptors. Only the pool does this."""

import sys

from sanderling.readers.reader import main

main(int(sys.argv[1]), int(sys.argv[2]))
