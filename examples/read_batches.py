"""Batches of crawlers as a library: posts and errors of any generation, read one way, from files as they are stored.

Run it with some files: python examples/read_batches.py events/objects/crawl-results/*/*/*/*.json
"""

import sys
from collections import Counter
from pathlib import Path

from sanderling import read_batch


def main(paths: list[Path]) -> None:
    """Print the posts that people liked most, and why others are missing."""
    liked: list[tuple[int, str]] = []
    missing: Counter[str] = Counter()
    for path in paths:
        try:
            posts, errors = read_batch(path.read_bytes(), name=path.name)
        except ValueError as error:
            print(f"{path}: {error}", file=sys.stderr)
            continue
        liked += [(post.interaction.likes, f"{post.platform} {post.id}: {post.text[:60]!r}") for post in posts]
        missing.update(f"{error.category}: {error.code}" for error in errors)
    for likes, words in sorted(liked, reverse=True)[:5]:
        print(f"{likes:>9} likes  {words}")
    print(f"{len(liked)} posts; missing:", dict(missing))


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
