"""The cookies of one part of a fleet's crawl: on its server with the commits of the part, and nowhere else.

They may let somebody in. So they are neither in a ledger, whose snapshots are in the object store, nor in a folder.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from sanderling.fetch.cookies import Cookie
from sanderling.stores.frontier_file import key_of


class FleetCookies:
    """The cookies that the commits of a part have `kept`; what changes of them is `pending` for its next commit."""

    def __init__(self, kept: Sequence[bytes], pending: dict[bytes, bytes]) -> None:
        self._pending = pending  # by key; empty if it is gone
        self._had: dict[str, Cookie] = {}
        for each in kept:
            # Of another release: then the host sets it again.
            with suppress(msgspec.MsgspecError):
                cookie = msgspec.json.decode(each, type=Cookie)
                self._had[_name(cookie)] = cookie

    def load(self) -> Iterable[Cookie]:
        """Those of whoever had the part before, in the order in which they were set."""
        return sorted(self._had.values(), key=lambda each: each.created)

    def save(self, cookies: Iterable[Cookie]) -> None:
        """Have these kept with the next commit, instead of the ones before."""
        now = {_name(each): each for each in cookies}
        changed = {name: msgspec.json.encode(each) for name, each in now.items() if self._had.get(name) != each}
        gone = {name: b"" for name in self._had if name not in now}
        self._pending.update((key_of(name), body) for name, body in (changed | gone).items())
        self._had = now


def _name(cookie: Cookie) -> str:
    """What tells it from all others: no part of it has a line break."""
    return "\n".join((cookie.domain, cookie.path, cookie.name, str(cookie.host_only)))
