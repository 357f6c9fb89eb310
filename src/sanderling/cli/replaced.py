"""Names of earlier releases, and what replaced each: commands, flags, and with these settings and variables.

An old name is never ignored: whoever uses it is told the new one. Behind a flag stand the words of its command, or of
the group that all had it.
"""

from collections.abc import Iterator, Mapping

from cyclopts import CycloptsError, UnknownOptionError

Words = tuple[str, ...]

COMMANDS = {
    "events dead list": "dead list DIR",
    "events dead replay": "dead replay DIR",
    "events dead show": "dead show DIR KEY",
    "events forget": "forget DIR errors",
    "events migrate down": "events migrate REVISION --yes",
    "events migrate status": "events migrate",
    "events migrate up": "events migrate head",
    "events status": "status DIR",
    "pages status": "status DIR",
    "pages verify": "verify DIR",
    "polling full": "polling run --once",
    "polling pause": "polling set KIND ID --pause",
    "polling promote": "polling set KIND ID --now",
    "polling resume": "polling set KIND ID --no-pause",
    "polling status": "status DIR",
    "repos directory import": "repos directory FILE",
    "repos directory update": "repos directory",
    "repos status": "status DIR",
    "repos verify": "verify DIR",
    "sequence dead list": "dead list DIR",
    "sequence dead replay": "dead replay DIR",
    "sequence dead show": "dead show DIR KEY",
    "sequence status": "status DIR",
}
FLAGS = {
    "events consume --demo": "`sanderling demo events`",
    "export --out": "--to FILE, as in --to posts.jsonl; --to jsonl:- prints",
    "polling run --budget": "--set adaptiveBudget=",
    "polling run --burst": "--set burst=",
    "polling run --concurrency": "--set concurrency=",
    "polling run --demo": "`sanderling demo polling`",
    "polling run --full-interval": "--set fullIntervalMs=",
    "polling run --jitter": "--set jitterMs=",
    "polling run --lease": "--set leaseMs=",
    "polling run --max-rps": "--rps",
    "polling run --race-active": "--set raceActiveMs=",
    "polling run --race-idle": "--set raceIdleMs=",
    "polling run --results-interval": "--set resultsMs=",
    "repos --output-dir": "--out",
    "repos crawl --default-pds-rps": "--rps",
    "repos crawl --demo": "`sanderling demo repos`",
    "repos crawl --passes": "--patience, for how long a host that does not answer is waited for; what fails is asked "
    "for again at a due time of its own",
    "sequence crawl --demo": "`sanderling demo sequence`",
    "sequence crawl --max-rps": "--rps",
}


def old_command(words: Words) -> str:
    """What to say to somebody who types a command of an earlier release; nothing if it is none."""
    for end in range(len(words), 1, -1):
        if new := COMMANDS.get(old := " ".join(words[:end])):
            return f"`sanderling {old}` is now `sanderling {new}`"
    return ""


def old_flag(command: Words, name: str) -> str:
    """What replaced a flag of a command, or a setting of a table; nothing if it never was one."""
    wanted = name.removeprefix("--").replace("_", "-")
    for whose, flag, new in _flags():
        shared = min(len(whose), len(command))
        if flag == wanted and whose[:shared] == command[:shared]:
            return new
    return ""


def old_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """What to say of variables that have set something in earlier releases."""
    for whose, flag, new in _flags():
        head, tail = f"SANDERLING_{whose[0].upper()}_", f"_{flag.replace('-', '_').upper()}"
        for name in environment:
            if name.startswith(head) and name.endswith(tail) and environment[name]:
                yield f"{name} sets nothing any more: --{flag} is now {new}"


def _flags() -> Iterator[tuple[Words, str, str]]:
    for old, new in FLAGS.items():
        *whose, flag = old.split()
        yield tuple(whose), flag.removeprefix("--"), new


def explain(error: CycloptsError) -> str:
    """The words of an error; of a flag that is gone, with what replaced it."""
    if isinstance(error, UnknownOptionError):
        flag = error.token.keyword or error.token.value  # the latter where a command still waits for its arguments
        if new := old_flag(tuple(error.command_chain or ()), flag):
            return f"{flag} is no flag any more: it is now {new}"
    return str(error)
