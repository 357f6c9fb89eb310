"""`python -m sanderling` is `sanderling`."""

from sanderling.cli import main

if __name__ == "__main__":
    main()
