"""Writes what people want of a system into its folder, and says what comes of it: for dashboard and command line."""

from collections.abc import Iterable
from shlex import join

from sanderling.ids import host_of, normalise
from sanderling.stores.control_file import Control, Wish, change_control
from sanderling.web.house import KINDS, Found
from sanderling.words import count

ASKING = tuple(kind for kind in KINDS if kind != "events")  # systems that ask hosts
MOST_NAMED = 5


class UnknownHostError(LookupError):
    """The system knows no such host; the message says which it knows."""


def want(found: Found, wish: Wish, wall: float, host: str = "", *, anew: bool = False) -> str:
    """Want it of the system from now on; what comes of that. Blocks. Raises FolderError or ValueError.

    With `anew`, a control.json that makes no sense is replaced.

    An ending is written also for one that seems not to run: one that hangs may hear it, and one that is started later
    takes it out.
    """
    if found.control_trouble and not anew:
        words = ("sanderling", "control", str(found.folder), wish, *((host,) if host else ()), "--replace")
        raise ValueError(f"{found.control_trouble}; repair the file, or forget what it says: {join(words)}")
    control = change_control(found.folder, lambda control: control.after(wish, host), anew=anew)
    return describe(found.name, wish, control, host, running=found.running(wall))


def describe(name: str, wish: Wish, control: Control, host: str = "", *, running: bool = True) -> str:
    """What comes of a wish, as a sentence."""
    match wish:
        case "pause":
            return f"{name} is paused: nothing new is begun"
        case "resume":
            return f"{name} goes on"
        case "leave":
            return f"{host} is left alone by {name}"
        case "let-go":
            return f"{host} is asked again by {name}"
        case "stop":
            said = f"{name} stops: what is in flight comes to its end"
        case "drain":
            said = f"{name} drains: it takes nothing new, and ends when what is known and due has its end"
    if not running:
        return f"{said}; but nothing seems to run there, and what is started later does not heed it"
    paused = control.paused and control.ending == "drain"
    return f"{said}; but it is paused, so resume it to let it end" if paused else said


def spell_host(found: Found, host: str, known: Iterable[str]) -> str:
    """The host as the system spells it, which `known` it asks. Raises HostError or UnknownHostError."""
    every = set(known)
    if host in every or host in found.control.hosts:
        return host
    spelled = host_of(host) if "://" in host else normalise(host, scheme="https")
    # A report has those that are asked most; if there are more, this may be one of them.
    if spelled in every or (found.report is not None and found.report.hosts_known > len(every)):
        return spelled
    named = ", ".join(f"{each!a:.60}" for each in sorted(every)[:MOST_NAMED])
    there = f"it knows {count(len(every), 'host')}" + (f", as {named}" if named else "")
    raise UnknownHostError(f"{found.name!a:.100} knows no host {host!a:.100}; {there}")
