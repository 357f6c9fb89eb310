"""The HTTP client of a command: --contact says whom to reach because of it, --private whom it may ask."""

from collections.abc import Iterable
from dataclasses import replace

from sanderling.cli.command_error import CommandError
from sanderling.cli.config.file import hosts_in_force
from sanderling.clock import Clock
from sanderling.fetch.guard import Refused, check_url
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import Transport, guard_for
from sanderling.fetch.transport import make_transport as assemble_transport
from sanderling.limit import Limiter


def make_http(rules: HttpRules, contact: str | None, *, private: bool, clock: Clock | None = None) -> Http:
    """A client with these rules that names the contact. Raises CommandError."""
    return Http(_naming(rules, contact), guard_for(private=private), clock=clock)


def make_transport(
    rules: HttpRules, limiter: Limiter, bodies: int, contact: str | None, *, private: bool, clock: Clock | None = None
) -> Transport[Http]:
    """The same with a limiter, and with so many bytes for bodies. Raises CommandError."""
    return assemble_transport(_naming(rules, contact), limiter, bodies, private=private, clock=clock)


def _naming(rules: HttpRules, contact: str | None) -> HttpRules:
    try:
        rules = replace(rules, contact=contact)
    except ValueError as error:
        raise CommandError(f"--contact: {error}", code=2) from None
    if not (hosts := hosts_in_force.get()):
        return rules
    # Here and not at the top: few files have them.
    from sanderling.crawls.session import host_table  # noqa: PLC0415

    try:
        return replace(rules, hosts=host_table(hosts))
    except ValueError as error:
        raise CommandError(str(error), code=2) from None


def check_reach(flag: str, urls: Iterable[str], *, private: bool) -> None:
    """Raise CommandError if one of these will never be asked: better now than with every request."""
    try:
        for url in urls:
            check_url(url, guard_for(private=private))
    except Refused as refused:
        hint = "" if private else "; --private allows your own machine and network"
        raise CommandError(f"{flag}: {refused}{hint}", code=2) from None
