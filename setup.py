"""Only the optional C parts; everything else is in pyproject.toml. Without a compiler the package works, slower."""

from glob import glob
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Wno-missing-field-initializers"]


def extension(folder: str, name: str, *flags: str) -> Extension:
    """The module `name` of a folder in src/: all files there whose names begin so."""
    return Extension(
        f"{folder.removeprefix('src/').replace('/', '.')}.{name}",
        sorted(glob(f"{folder}/{name}*.c", root_dir=ROOT)),  # noqa: PTH207 - setuptools wants paths below the root
        depends=sorted(glob(f"{folder}/{name}*.h", root_dir=ROOT)),  # noqa: PTH207 - the same
        extra_compile_args=["-O3", "-fvisibility=hidden", *flags, *WARNINGS],
        optional=True,
    )


EXTENSIONS = [
    extension("src/sanderling/pages", "_complexity"),
    extension("src/sanderling/pages", "_reader", "-ffp-contract=off"),  # votes are those of the Python twin
    extension("src/sanderling/formats", "_repo"),
    # Sums are those of the Python twin on every machine.
    extension("src/sanderling/events/analysis", "_scan", "-ffp-contract=off"),
]

if __name__ == "__main__":
    setup(ext_modules=EXTENSIONS)
