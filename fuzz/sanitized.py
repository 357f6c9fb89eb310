"""Python with the C of the package under the address and undefined behaviour sanitizers.

    python fuzz/sanitized.py FOLDER SCRIPT [ARGUMENT...]

makes a copy of the package in FOLDER, of links but for the C, which is compiled there, and runs SCRIPT with it. Python
itself is not instrumented: the library of the sanitizers is loaded before it, and all memory comes from `malloc`. So
what our C reads or writes outside of any object is seen.
"""

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FLAGS = ["-std=c11", "-g1", "-Og", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


class NoSanitizersError(Exception):
    """No compiler here has sanitizers that work; says what each lacks."""


def compiled(compiler: str, output: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Compile with the sanitizers."""
    command = [compiler, *FLAGS, *map(str, arguments), "-o", str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def find_compiler(folder: Path) -> str:
    """The first compiler whose sanitizers work; what is tried lies in `folder`. Raises NoSanitizersError."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    reasons = []
    for name in ("cc", "gcc", "clang"):
        if not shutil.which(name):
            reasons.append(f"no {name}")
        elif compiled(name, folder / "empty", folder / "empty.c").returncode:
            reasons.append(f"{name} has no sanitizers")
        else:
            return name
    raise NoSanitizersError(", ".join(reasons))


def extensions() -> list[Any]:
    """The C modules, as setup.py builds them: of setuptools, which has no types."""
    found: list[Any] = runpy.run_path(str(ROOT / "setup.py"))["EXTENSIONS"]
    return found


def build(folder: Path, compiler: str) -> None:
    """Make the copy of the package in `folder`."""
    shutil.rmtree(folder / "sanderling", ignore_errors=True)
    left_out = shutil.ignore_patterns("*.so", "*.c", "*.h", "__pycache__")
    shutil.copytree(ROOT / "src/sanderling", folder / "sanderling", ignore=left_out, copy_function=os.symlink)
    include, suffix = sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX")
    for each in extensions():
        output = folder / f"{each.name.replace('.', '/')}{suffix}"
        sources = [ROOT / source for source in each.sources]
        done = compiled(
            compiler, output, *each.extra_compile_args, *FLAGS, "-shared", "-fPIC", f"-I{include}", *sources
        )
        if done.returncode:
            raise RuntimeError(f"{each.name} does not compile: {done.stderr}")


def environment(folder: Path, compiler: str) -> dict[str, str]:
    """What a Python needs in its environment to run with the copy in `folder`. Raises NoSanitizersError."""
    asked = [compiler, "-print-file-name=libasan.so"]
    library = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(library).is_absolute():
        raise NoSanitizersError(f"{compiler} has no libasan.so that could be loaded before Python")
    return os.environ | {
        "LD_PRELOAD": library,
        "PYTHONPATH": str(folder.absolute()),
        "PYTHONMALLOC": "malloc",
        # Python ends without freeing all it has. What our own C leaves behind is seen by counting.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def main(folder: Path, *command: str) -> int:
    """Build the copy, run the command, and say how that ended."""
    try:
        compiler = find_compiler(folder)
        variables = environment(folder, compiler)
    except NoSanitizersError as error:
        print(f"The C modules cannot run under sanitizers here: {error}.")
        return 1
    build(folder, compiler)
    return subprocess.run([sys.executable, *command], env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
