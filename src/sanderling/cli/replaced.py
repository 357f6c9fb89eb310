"""Flags and settings of earlier releases that are gone, and what replaced each."""

from cyclopts import CycloptsError, UnknownOptionError

REPLACED: dict[tuple[tuple[str, ...], str], str] = {
    (("repos", "crawl"), "passes"): "what fails is asked for again at a due time of its own; --patience says for how "
    "long a host that does not answer is waited for"
}


def replaced(command: tuple[str, ...], name: str) -> str:
    """What replaced a flag or a setting; nothing if it never was one."""
    return REPLACED.get((command, name.removeprefix("--").replace("_", "-")), "")


def explain(error: CycloptsError) -> str:
    """The words of an error; of a flag that is gone, with what replaced it."""
    if isinstance(error, UnknownOptionError) and error.token.keyword is not None:
        flag = error.token.keyword
        if why := replaced(tuple(error.command_chain or ()), flag):
            return f"{flag} is no flag any more: {why}."
    return str(error)
