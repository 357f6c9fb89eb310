"""The limiter of every command that asks hosts: what hosts share is in sanderling.toml, whichever command runs."""

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import replace
from typing import Literal

from sanderling.cli.config.file import hosts_in_force, limits_in_force
from sanderling.clock import Clock
from sanderling.limit import Limiter, LimiterRules
from sanderling.limit.slices import SliceStore

Law = Literal["governor", "aimd"]  # of those there are, the ones for crawls; `contract` is for what is planned


# What limiters of several processes share, in a process that is one of them.
slices_in_force: ContextVar[SliceStore | None] = ContextVar("slices_in_force", default=None)


def make_limiter(rules: LimiterRules, clock: Clock | None = None, logins: Iterable[str] = ()) -> Limiter:
    """A limiter with these rules, and with the limits of the file. `logins` are hosts that every process asks."""
    limits, hosts = limits_in_force.get(), hosts_in_force.get()
    if hosts:
        rules = replace(rules, caps={pattern: each.rps for pattern, each in hosts.items() if each.rps is not None})
    rules = rules if limits is None else limits.applied(rules)
    slices = slices_in_force.get()
    if slices is not None:
        pages = (each.login.host for each in (hosts or {}).values() if each.login is not None)
        rules = rules.with_logins((*logins, *pages))
    return Limiter(rules, clock=clock, slices=slices)
