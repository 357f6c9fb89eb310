"""Replays pages of a folder with pywb, for a Python that has it, and prints the title of each as JSON."""

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from pywb.apps.frontendapp import FrontEndApp  # type: ignore[import-not-found]
from pywb.manager.manager import main as manager  # type: ignore[import-not-found]
from werkzeug.test import Client


def main(folder: Path, urls: list[str]) -> None:
    """Make a collection of the segments and our own index, and ask pywb for each URL, the last capture of it."""
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        manager(["init", "kept"])
        for path in (folder / "warc").iterdir():
            kind = "indexes" if path.suffix == ".cdxj" else "archive"
            shutil.copy(path, f"collections/kept/{kind}/{path.name}")
        client = Client(FrontEndApp())
        said = {}
        for url in urls:
            text = client.get(f"/kept/mp_/{url}").get_data(as_text=True)
            said[url] = next(iter(re.findall("<title>(.*?)</title>", text)), text[:200])
        print(json.dumps(said))  # noqa: T201 - for the test


main(Path(sys.argv[1]), sys.argv[2:])
