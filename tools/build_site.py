"""Build the documents as a site. Whatever is wrong with a link, an anchor or the navigation fails the build.

Usage: build_site.py [FOLDER], by default build; the site is FOLDER/site. The pages are docs/, and the README and the
changelog, which are no part of that folder: links between them are made to fit.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
CONFIG = "zensical.toml"
# The other pages are those below docs/, under the same name.
OTHERS = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
# Not what stands between backticks or in a block of code.
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class SiteError(Exception):
    """The site cannot be built as it is written."""


def main() -> None:
    """Build it where we are told to."""
    folder = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build")
    try:
        build(folder)
    except SiteError as error:
        sys.exit(f"build_site: {error}")


def build(folder: Path) -> None:
    """Make `folder`/site from nothing; a warning of the generator is an error."""
    pages = folder / "pages"
    for each in (pages, folder / "site"):
        shutil.rmtree(each, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)  # what is no page is taken as it is, as pictures are
    written = dict(staged())
    for name, text in written.items():
        (pages / name).write_text(text)
    shutil.copy(ROOT / "tools" / "site.css", pages)
    shutil.copytree(ROOT / "tools" / "theme", folder / "theme", dirs_exist_ok=True)
    shutil.copy(ROOT / CONFIG, folder)
    check_navigation(set(written))
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(folder / CONFIG)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode:
        said = COLOUR.sub("", done.stdout + done.stderr)
        raise SiteError(f"zensical ended with {done.returncode}:\n{said}")


def staged() -> Iterator[tuple[str, str]]:
    """Each page of the site: its name there, and its text with the links that fit there."""
    names = dict(OTHERS)
    for path in sorted(path for path in (ROOT / "docs").rglob("*") if path.is_file()):
        names[path.relative_to(ROOT).as_posix()] = path.relative_to(ROOT / "docs").as_posix()
    for source, name in names.items():
        if name.endswith(".md"):
            yield name, relinked((ROOT / source).read_text(), source, names)


def relinked(text: str, source: str, names: dict[str, str]) -> str:
    """Have the links of a page lead to the same pages from where it is in the site."""

    def fitting(found: re.Match[str]) -> str:
        link = found[1]
        if re.match(r"[a-z]+:", link):
            return link
        leads = os.path.normpath(PurePosixPath(source).parent / link)
        if leads not in names:
            raise SiteError(f"{source}: the link {link} leads to no page of the site")
        return os.path.relpath(names[leads], PurePosixPath(names[source]).parent)

    return "".join(part if code else LINK.sub(fitting, part) for part, code in parts(text))


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """Divide a page into prose and code; of each, whether it is code."""
    end = 0
    for found in CODE.finditer(text):
        yield text[end : found.start()], False
        yield found[0], True
        end = found.end()
    yield text[end:], False


def check_navigation(pages: set[str]) -> None:
    """Every page is in the navigation, once, and nothing else is."""
    listed = list(leaves(tomllib.loads((ROOT / CONFIG).read_text())["project"]["nav"]))
    twice = {name for name in listed if listed.count(name) > 1}
    for wrong, what in ((set(listed) - pages, "there is no such page"), (pages - set(listed), "it is missing")):
        if wrong:
            raise SiteError(f"{CONFIG}, nav: {', '.join(sorted(wrong))}: {what}")
    if twice:
        raise SiteError(f"{CONFIG}, nav: {', '.join(sorted(twice))}: more than once")


def leaves(nav: list[dict[str, object]]) -> Iterator[str]:
    """The pages that a navigation names."""
    for entry in nav:
        for below in entry.values():
            if isinstance(below, list):
                yield from leaves(below)
            else:
                yield str(below)


if __name__ == "__main__":
    main()
