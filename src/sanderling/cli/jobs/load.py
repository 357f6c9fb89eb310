"""Loads the job that a file defines, and reads the arguments that a command line gives it."""

import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from sanderling.cli.command_error import CommandError
from sanderling.jobs.job import Job, JobError
from sanderling.words import printable

EXPECTED = "job = Job(…)"


def load_job(wanted: str) -> Job:
    """The job of `FILE`, or of several in it the one that `FILE:NAME` names. Raises CommandError."""
    path, name = _split(wanted)
    if not path.is_file():
        found = "it is a folder" if path.is_dir() else "there is no such file"
        raise CommandError(f"cannot read {path}: {found}; expected a Python file with {EXPECTED}", code=2)
    module = _import(path)
    jobs = {each: value for each, value in vars(module).items() if isinstance(value, Job)}
    named = [job for each, job in jobs.items() if not name or name in (each, job.name)]
    different = list(dict.fromkeys(named))
    if len(different) == 1:
        return different[0]
    listed = ", ".join(jobs)
    if not jobs:
        raise CommandError(f"{path} has no Job; expected {EXPECTED} in it", code=2)
    if not name:
        first = f"{path}:{next(iter(jobs))}"
        raise CommandError(f"{path} has {len(different)} jobs: {listed}; choose one, as in {first}", code=2)
    raise CommandError(f"{path} has no Job {name!r}; expected one of: {listed}", code=2)


def digest_job(wanted: str) -> str:
    """What tells the file of a job from another, in few letters; what it imports is not looked at."""
    return sha256(_split(wanted)[0].read_bytes()).hexdigest()[:6]


def _split(wanted: str) -> tuple[Path, str]:
    """The file and the name of a job in it. A file may have a colon in its own name."""
    file, colon, name = wanted.rpartition(":")
    if not colon or Path(wanted).exists():
        return Path(wanted), ""
    return Path(file), name


def _import(path: Path) -> ModuleType:
    # A name of its own: a job called json.py must not stand for the library of that name.
    name = f"sanderling_job_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise CommandError(f"cannot read {path}: expected a Python file, whose name ends in .py", code=2)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # which dataclasses and types look into
    with _beside(path.resolve().parent):
        try:
            spec.loader.exec_module(module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a file may raise anything, sys.exit too
            raise CommandError(printable(_words(path, error)), code=2) from error
    return module


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """While a job is loaded, modules beside it can be imported, and no __pycache__ is left there."""
    before, writes = list(sys.path), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path[:] = before
        sys.dont_write_bytecode = writes


def _words(path: Path, error: BaseException) -> str:
    """What is wrong with the file, and where."""
    if isinstance(error, SyntaxError):
        return f"{error.filename or path}:{error.lineno or 1}: {type(error).__name__}: {error.msg}"
    own = str(path.resolve().parent)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame for frame in frames if frame.filename.startswith(own)] or [frames[-1]]
    said = " ".join(str(error).split())
    return f"{lines[-1].filename}:{lines[-1].lineno}: {type(error).__name__}{f': {said}' if said else ''}"


def read_arguments(job: Job, given: Sequence[str]) -> Mapping[str, str]:
    """The arguments that `--set name=value` gives, as texts. Raises CommandError."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise CommandError(f"--set: {each!r} has no =, expected name=value{_known(job)}", code=2)
        if name in found:
            raise CommandError(f"--set: {name} is given twice, expected one value", code=2)
        found[name] = value
    try:
        job.arguments_with(found)
    except JobError as error:
        raise CommandError(f"--set: {error}", code=2) from None
    return found


def _known(job: Job) -> str:
    known = ", ".join(f"{name} ({type(value).__name__})" for name, value in job.arguments.items())
    return f"; {job.name} has {known}" if known else f"; {job.name} has no arguments"
