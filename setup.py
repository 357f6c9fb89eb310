"""Only the optional C part; everything else is in pyproject.toml. Without a compiler the package works, slower."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "sanderling.limit._lane",
            ["src/sanderling/limit/_lane.c"],
            extra_compile_args=["-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers"],
            optional=True,
        )
    ]
)
