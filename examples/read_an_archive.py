"""Only the reader of archives: the posts in an .rca that `sanderling repos crawl` wrote, finished or still growing.

Run it with a file: python examples/read_an_archive.py archive/segment_0001.rca app.bsky.feed.post
"""

import json
import sys
from pathlib import Path

from sanderling import RcaReader


def main(path: Path, collection: str) -> None:
    """Print every record of a collection, and what else there is."""
    with path.open("rb") as file:
        archive = RcaReader(file)
        for repo in archive:  # every checksum is compared on the way
            for key, record in repo.records(collection):
                print(repo.did, key, json.loads(record))
        for name, counts in archive.counts().items():
            print(f"{counts.records:>8} records of {counts.repos} repos in {name}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
