"""The files that the page of the dashboard is made of."""

import re
import shutil
import subprocess

import pytest

from sanderling.web.assets import FOLDER

# What is on what, and how many times as bright it is at least: 4.5 to be read (WCAG AA), 3 to be seen.
CONTRASTS = [
    *((ink, ground, 4.5) for ink in ("ink", "muted", "tide", "amber", "coral") for ground in ("surface", "raised")),
    *((ink, "tide-soft", 4.5) for ink in ("ink", "muted", "tide", "amber", "coral")),
    *((tone, f"{tone}-soft", 4.5) for tone in ("tide", "amber", "coral")),
    ("muted", "slate-soft", 4.5),
    ("on-tide", "tide", 4.5),
    *((line, "surface", 3.0) for line in ("tide", "slate", "coral", "amber", "edge")),
    ("edge", "slate-soft", 3.0),
]


def brightness(colour: str) -> float:
    """The relative luminance of #rrggbb."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("above", "below", "least"), CONTRASTS)
def test_colours_can_be_told_from_what_they_are_on(above: str, below: str, least: float) -> None:
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (FOLDER / "app.css").read_text())
    colours = {name: themes for name, *themes in found}

    for one, other in zip(colours[above], colours[below], strict=True):
        dark, bright = sorted((brightness(one), brightness(other)))
        assert (bright + 0.05) / (dark + 0.05) >= least, (one, other)


PARSE = """
import { readFileSync } from "node:fs";
import vm from "node:vm";
for (const path of process.argv.slice(1)) new vm.SourceTextModule(readFileSync(path, "utf8"), { identifier: path });
"""


def test_scripts_can_be_parsed() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on this machine")
    options = ["--experimental-vm-modules", "--no-warnings", "--input-type=module"]
    paths = [str(path) for path in FOLDER.glob("*.js")]

    parsed = subprocess.run(  # noqa: S603 - our own files
        [node, *options, "-e", PARSE, *paths], text=True, check=False, capture_output=True
    )

    assert len(paths) > 5
    assert (parsed.returncode, parsed.stderr) == (0, "")


def test_the_files_need_nobody_else_and_make_no_markup_of_text() -> None:
    for path in FOLDER.glob("*.js"):
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path.name
    page = (FOLDER / "index.html").read_text()
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=\"", page)
