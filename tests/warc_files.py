"""WARC files as another program reads them."""

from pathlib import Path

import pytest

from sanderling.crawls.archive import segments


def captured(folder: Path, crawl: int = 1) -> list[str]:
    """The URL of each capture of a folder, in order, as warcio reads them, with all digests right."""
    warcio = pytest.importorskip("warcio", reason="warcio is not installed: pip install warcio")
    found = []
    for path in segments(folder, f"pages-{crawl:04}"):
        with path.open("rb") as file:
            for record in warcio.ArchiveIterator(file, check_digests="raise"):
                record.content_stream().read()
                if record.rec_type in ("response", "revisit"):
                    found.append(record.rec_headers.get_header("WARC-Target-URI"))
    return found
