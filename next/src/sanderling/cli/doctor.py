"""`sanderling doctor`: this machine, the installation and the configuration, a line each."""

import os
import resource
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from sanderling.cli.commands import all_commands
from sanderling.cli.context import Context
from sanderling.cli.resolve import FILE, all_options, doubtful_variables, read_document, resolve
from sanderling.cli.screen import print_lines
from sanderling.files import Exit, FolderError
from sanderling.observe.render import Line, show_bytes
from sanderling.options import OptionError, Options
from sanderling.redact import Secret, SecretError

_ROOM = 1 << 30  # bytes: runs pause when less is free
_DESCRIPTORS = 4096

# A check's name, whether it is well, and what was found; with "missing", something optional.
Finding = tuple[str, bool, str]


class DoctorOptions(Options):
    """`doctor` has no options."""


def doctor(_options: DoctorOptions, context: Context) -> Exit:
    """Print what was checked; FAILED if something would keep a command from working."""
    findings = [*_machine(context), *_extras(), *_configuration(context)]
    lines: list[Line] = [
        [("ok   " if well else "BAD  ", "good" if well else "bad"), (f"{name:<14} ", "dim"), (found, "")]
        for name, well, found in findings
    ]
    print_lines(lines, context.out, context)
    return Exit.DONE if all(well for _, well, _ in findings) else Exit.FAILED


def _machine(context: Context) -> Iterator[Finding]:
    yield "Sanderling", True, version("sanderling")
    yield "Python", sys.version_info >= (3, 11), sys.version.partition(" ")[0]
    free = shutil.disk_usage(context.folder).free
    yield (
        "disk",
        free > _ROOM,
        f"{show_bytes(free)} free in {context.folder}" + ("" if free > _ROOM else f"; {show_bytes(_ROOM)} are needed"),
    )
    writable = os.access(context.folder, os.W_OK)
    yield "folder", writable, f"{context.folder} is {'' if writable else 'not '}writable"
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    advice = "" if limit >= _DESCRIPTORS else "; for many hosts type ulimit -n 65536"
    yield "open files", True, f"{limit:,} at most{advice}"


def _extras() -> Iterator[Finding]:
    """Each extra with what it installs."""
    wanted: dict[str, list[str]] = {}
    for line in requires("sanderling") or []:
        requirement, _, marker = line.partition(";")
        name = requirement.replace("[", " ").replace(">", " ").replace("<", " ").replace("=", " ").split()[0]
        extra = marker.partition("extra ==")[2].strip(" \"'")
        if name != "sanderling" and extra != "dev" and "python_version" not in marker:
            wanted.setdefault(extra, []).append(name)
    for extra, names in wanted.items():
        missing = [name for name in names if not _installed(name)]
        if not extra:
            yield "packages", not missing, f"missing: {', '.join(missing)}" if missing else f"{len(names)} installed"
        else:
            found = f'not installed; pip install "sanderling[{extra}]"' if missing else "installed"
            yield f"extra {extra}", True, found


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _configuration(context: Context) -> Iterator[Finding]:
    """What a run would refuse: the file, the variables, and secrets that cannot be read."""
    try:
        document = read_document({}, context)
    except (OptionError, FolderError) as error:
        yield "configuration", False, str(error)
        return
    yield "configuration", True, f"{FILE} is well" if document else f"no {FILE} here: defaults"
    secrets: dict[str, Secret] = {}
    for kind in all_options(all_commands(context.systems)):
        try:
            settings = resolve(kind, {}, context, document)
        except OptionError as error:
            yield "variable", False, str(error)
            continue
        for setting in settings:
            for secret in _secrets_in(setting.value):
                secrets[secret.source] = secret
        for sentence in doubtful_variables(kind, context):
            yield "variable", False, sentence
    for source, secret in secrets.items():
        try:
            secret.reveal()
        except SecretError as error:
            yield "secret", False, str(error)
        else:
            yield "secret", True, f"{source} can be read"


def _secrets_in(value: object) -> Iterator[Secret]:
    match value:
        case Secret():
            yield value
        case Options():
            yield from value.secrets()
        case dict():
            for each in value.values():
                yield from _secrets_in(each)
        case tuple():
            for each in value:
                yield from _secrets_in(each)
