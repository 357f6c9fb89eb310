"""The HTTP client of a command: --contact says whom to reach because of it, --private whom it may ask."""

from collections.abc import Iterable
from dataclasses import replace

from sanderling.cli import CommandError
from sanderling.clock import Clock
from sanderling.fetch.guard import GuardRules, Refused, check_url
from sanderling.fetch.http import Http, HttpRules
from sanderling.flow.memory import Memory


def client(
    rules: HttpRules, contact: str | None, *, private: bool, clock: Clock | None = None, memory: Memory | None = None
) -> Http:
    """A client with these rules that names the contact. Raises CommandError."""
    try:
        named = replace(rules, contact=contact)
    except ValueError as error:
        raise CommandError(f"--contact: {error}", code=2) from None
    return Http(named, guard(private=private), clock=clock, memory=memory)


def guard(*, private: bool) -> GuardRules:
    """What may be asked: with `private` also our own machine and network, by name and by address."""
    return GuardRules(private=private, raw_addresses=private)


def check_reach(flag: str, urls: Iterable[str], *, private: bool) -> None:
    """Raise CommandError if one of these will never be asked: better now than with every request."""
    try:
        for url in urls:
            check_url(url, guard(private=private))
    except Refused as refused:
        hint = "" if private else "; --private allows your own machine and network"
        raise CommandError(f"{flag}: {refused}{hint}", code=2) from None
