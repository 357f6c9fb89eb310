"""The limiter without the rest of Sanderling: its folder and what that imports, and the examples for three clients."""

import ast
import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

import sanderling

pytestmark = pytest.mark.real
SOURCE = Path(sanderling.__file__).parent
EXAMPLES = SOURCE.parents[1] / "examples"


def imported(path: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name.startswith("sanderling."):
                place = SOURCE / name.removeprefix("sanderling.").replace(".", "/")
                yield place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@pytest.fixture(scope="module")
def taken_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package `sanderling` that is nothing but the limiter."""
    folder = tmp_path_factory.mktemp("taken_out")
    wanted = {*(SOURCE / "limit").glob("*.py")}
    while more := {each for path in wanted for each in imported(path)} - wanted:
        wanted |= more
    others = {path.relative_to(SOURCE).as_posix() for path in wanted if path.parent != SOURCE / "limit"}
    assert others <= {f"{name}.py" for name in "clock files forms ids options outcome redact".split()}
    for path in wanted:
        target = folder / "sanderling" / path.relative_to(SOURCE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (folder / "sanderling" / "__init__.py").touch()
    return folder


@pytest.mark.parametrize("client", ["aiohttp", "httpx", "requests"])
def test_the_example_runs_on_the_limiter_alone(client: str, taken_out: Path) -> None:
    refused = 0

    async def page(request: web.Request) -> web.Response:
        nonlocal refused
        if request.path == "/1" and not refused:
            refused += 1
            return web.Response(status=429, headers={"Retry-After": "0"})
        return web.Response(text="page")

    async def run() -> tuple[int | None, str]:
        application = web.Application()
        application.router.add_get("/{number}", page)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                EXAMPLES / f"limit_{client}.py",
                *(f"http://{host}:{port}/{number}" for number in range(3)),
                env=os.environ | {"PYTHONPATH": str(taken_out)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            printed, _ = await process.communicate()
            return process.returncode, printed.decode()
        finally:
            await runner.cleanup()

    code, printed = asyncio.run(run())

    assert code == 0, printed
    assert sorted(line.split()[0] for line in printed.splitlines()) == ["200"] * 2 + ["429"]


def test_nothing_else_is_there(taken_out: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import sanderling.limit, sys; print(sanderling.__file__); import sanderling.extract"],
        env=os.environ | {"PYTHONPATH": str(taken_out)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.stdout.startswith(str(taken_out))
    assert "No module named 'sanderling.extract'" in found.stderr
