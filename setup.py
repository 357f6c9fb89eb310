"""Only the optional C parts; everything else is in pyproject.toml. Without a compiler the package works, slower."""

from setuptools import Extension, setup

FORMATS = "src/sanderling/formats"
ANALYSIS = "src/sanderling/events/analysis"
WARNINGS = ["-Wall", "-Wextra", "-Wno-missing-field-initializers"]

setup(
    ext_modules=[
        Extension(
            "sanderling.formats._repo",
            [f"{FORMATS}/_repo{part}.c" for part in ("", "_parse", "_commit", "_blocks", "_json", "_sha256")],
            depends=[f"{FORMATS}/_repo.h"],
            extra_compile_args=["-O3", "-fvisibility=hidden", *WARNINGS],
            optional=True,
        ),
        Extension(
            "sanderling.events.analysis._scan",
            [f"{ANALYSIS}/_scan{part}.c" for part in ("", "_phrases", "_weigh", "_windows")],
            depends=[f"{ANALYSIS}/_scan.h"],
            # Sums are those of the Python twin on every machine.
            extra_compile_args=["-O3", "-ffp-contract=off", "-fvisibility=hidden", *WARNINGS],
            optional=True,
        ),
    ]
)
