"""`sanderling` and `python -m sanderling`."""

import sys

from sanderling.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
