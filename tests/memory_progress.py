"""Progress in memory: the obvious one, which the others are compared with."""

from collections import Counter
from collections.abc import Sequence

from sanderling.stores.ports import FIRST, MOST_FAILURES, Due, Finished, HostAside, ProgressView, Unfinished


class MemoryProgress:
    """Keeps it for as long as it lives; `close` changes nothing."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._cursor, self._segment = "", 0
        self._sizes: dict[str, int] = {}
        self._failed: dict[str, Unfinished] = {}
        self._hosts: dict[str, HostAside] = {}
        self._removed = 0  # bytes that were written once

    def forget(self, dids: Sequence[str]) -> None:
        for did in dids:
            self._removed += self._sizes.pop(did, 0)
            self._failed.pop(did, None)

    def release(self, dids: Sequence[str]) -> None:
        self.forget(dids)

    def reasons(self, dids: Sequence[str]) -> dict[str, str]:
        return {did: self._failed[did].category for did in dids if did in self._failed}

    def cursor(self) -> str:
        return self._cursor

    def record(
        self,
        done: Sequence[Finished],
        failed: Sequence[Unfinished],
        *,
        cursor: str | None,
        segment: int,
        hosts: Sequence[HostAside] = (),
    ) -> None:
        for each in done:
            self._sizes.setdefault(each.did, each.size)
        for known in failed:
            before = self._failed.get(known.did)
            if before is None or not before.permanent:
                self._failed[known.did] = known
        for did in self._sizes:
            self._failed.pop(did, None)
        for host in hosts:
            self._hosts.pop(host.host, None)
            if host.category:
                self._hosts[host.host] = host
        self._cursor, self._segment = self._cursor if cursor is None else cursor, segment

    def _scheduled(self) -> list[Due]:
        open_ones = (each for each in self._failed.values() if not each.permanent)
        return sorted(
            Due(each.due, min(each.failures, MOST_FAILURES), each.did) for each in open_ones if each.due is not None
        )

    def pending(self, dids: Sequence[str]) -> list[str]:
        known = {*self._sizes, *(each.did for each in self._failed.values() if each.permanent)}
        known |= {each.did for each in self._scheduled()}
        return [did for did in dids if did not in known]

    def due(self, after: Due, until: int, limit: int) -> list[Due]:
        return [each for each in self._scheduled() if each > after and each.due <= until][:limit]

    def last_due(self) -> int:
        return max(self._scheduled(), default=FIRST).due

    def aside(self, limit: int) -> list[HostAside]:
        return sorted(self._hosts.values(), key=lambda each: (each.due, each.host))[:limit]

    def aside_of(self, host: str) -> HostAside | None:
        return self._hosts.get(host)

    def clear_aside(self) -> None:
        self._hosts.clear()

    def view(self) -> ProgressView:
        scheduled = self._scheduled()
        return ProgressView(
            cursor=self._cursor,
            completed=len(self._sizes) + sum(each.permanent for each in self._failed.values()),
            failed=dict(sorted(Counter(each.category for each in self._failed.values()).items())),
            segment=self._segment,
            total_crawled=len(self._sizes),
            bytes_written=sum(self._sizes.values()) + self._removed,
            scheduled=len(scheduled),
            due=scheduled[0].due if scheduled else None,
            hosts_aside=len(self._hosts),
        )

    def close(self) -> None:
        """Nothing is held."""
