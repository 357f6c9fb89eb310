"""What a crawl asks for next, and what becomes of each repo.

A DID is in one of three places. *In memory*: it waits, or is in flight. *Scheduled*: the progress has it with a due
time, so it is settled for the cursor. *Ended*: archived, or gone for good. One that failed and is asked again within
seconds is in memory and scheduled: it is *held*, so that nobody reads it from the schedule a second time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil, inf

from sanderling.apis.atproto import AtprotoCategory
from sanderling.clock import Clock
from sanderling.engine.classes import Class
from sanderling.engine.ports import Settled
from sanderling.ids import HostError, host_of
from sanderling.limit import Limiter
from sanderling.outcome import Outcome
from sanderling.repos.feeding import Feeder
from sanderling.repos.handler import Understood, category_of
from sanderling.repos.hosts import QueuedRepo, RepoHost, RepoRequest
from sanderling.repos.measures import ARCHIVED, RepoMeasures
from sanderling.repos.packing import Packed
from sanderling.repos.rules import RepoRules
from sanderling.repos.sink import MOVED_DUE, Archived, Note, RepoWriter, WrittenRepos
from sanderling.stores.ports import Due, HostAside, Unfinished

NEW = (Class.NEW,)


class RepoSource:
    """Hosts with what waits for them, and how repos ended."""

    def __init__(
        self,
        writer: RepoWriter,
        feeder: Feeder,
        limiter: Limiter,
        measures: RepoMeasures,
        rules: RepoRules,
        clock: Clock,
    ) -> None:
        self.hosts: dict[str, RepoHost] = {}
        self.ended: Counter[str] = Counter()  # by category, or "archived"
        self.records = 0
        self.dropped: Counter[str] = Counter()  # records of repos that were archived without them, by why
        self.waiting = 0  # DIDs in memory that are not in flight
        self.stored = 0  # DIDs on disk that wait for a host which is away, or was
        self.hosts_aside = 0
        self.refused = 0  # DIDs that were refused for too long, and are left to another run
        self._writer = writer
        self._water = feeder.water
        self._feeder = feeder
        self._limiter = limiter
        self._measures = measures
        self._rules = rules
        self._clock = clock
        self._by_url: dict[str, RepoHost | None] = {}
        self._held = feeder.held

    # What is next.

    @property
    def loading(self) -> bool:
        """Whether something is on its way from disk."""
        return not self._feeder.idle

    def enough(self, inflight: int) -> bool:  # noqa: ARG002 - the port's
        """All of it is wanted."""
        return False

    def drain(self) -> None:
        """Read no more of the directory."""
        self._feeder.drain()

    def classes(self, host: RepoHost, now: float) -> Sequence[Class]:
        """What is due: DIDs that were not asked for yet, and such as were put off."""
        if not host.later or host.later[0][0] > now:
            return NEW if host.ready else ()
        return (Class.NEW, Class.AGAIN) if host.ready else (Class.AGAIN,)

    def due(self, host: RepoHost, now: float) -> float | None:  # noqa: ARG002 - the port's
        """When there is next something to take."""
        if host.ready:
            return 0.0
        return host.later[0][0] if host.later else None

    def take(self, host: RepoHost, of: Class, now: float) -> RepoRequest | None:
        """The next DID of a class."""
        return self._taken(host, host.pop_new() if of is Class.NEW else host.pop_again(now))

    def take_untried(self, host: RepoHost, now: float) -> RepoRequest | None:
        """A DID that was not asked for yet; of a host that was set aside, the one that is left in memory."""
        del now
        if host.aside and host.probe:
            did, host.probe = host.probe, ""
            self._count_stored(host, -1)
            return host.ask(did)
        return self._taken(host, host.pop_last())

    def _taken(self, host: RepoHost, did: str | None) -> RepoRequest | None:
        if did is None:
            return None
        self.waiting -= 1
        self._measures.dispatched += 1
        self._feeder.want(host)
        return host.ask(did)

    # What there is to ask for.

    def feed(self, found: Iterable[QueuedRepo]) -> Sequence[RepoHost]:
        """These are to be asked for; the hosts that they are at."""
        now, wall = self._clock.now(), self._clock.wall()
        fed: dict[RepoHost, None] = {}
        for queued in found:
            host = None if queued.did in self._held else self._host_of(queued)
            if host is not None:
                host.size += 1
                self._take_in(host, queued, now, wall)
                fed[host] = None
        for host in fed:
            self._retime(host)
        return list(fed)

    def bring_back(self, host: RepoHost, found: Iterable[QueuedRepo], *, last: bool) -> None:
        """These were left on disk while the host was away; whether they are the last."""
        now, wall = self._clock.now(), self._clock.wall()
        for queued in found:
            if queued.did not in self._held and self._host_at(queued.url) is host:
                self._count_stored(host, -1)
                self._take_in(host, queued, now, wall)
        if last and not host.aside:
            self._count_stored(host, -host.stored)  # what is not there any more has moved, or was left out

    def _take_in(self, host: RepoHost, queued: QueuedRepo, now: float, wall: float) -> None:
        did, due = queued.did, queued.due
        if queued.url != host.url:
            host.elsewhere = host.elsewhere or {}
            host.elsewhere[did] = queued.url
        elif host.elsewhere:
            host.elsewhere.pop(did, None)
        if host.aside:
            if due != host.group:  # else it is where it should be
                self._store(host, did)
            return
        self.waiting += 1
        if due is not None:
            self._held.add(did)
        if queued.failures and due is not None:
            host.recall(did, queued.failures, now)
            # A clock that was wrong must not put anything off for longer than we ever do.
            host.put_off(did, now + min(self._rules.again[-1], max(0.0, due - wall)))
        else:
            host.put(did)

    def _host_of(self, queued: QueuedRepo) -> RepoHost | None:
        """The host to ask; None if the DID is decided."""
        listed = self._rules.leave_out
        if queued.did in listed.dids:
            self._end(queued.did, AtprotoCategory.LEFT_OUT)
        elif listed.has_host(queued.url):
            # For now: it may move to another host, and that one may be asked.
            self.ended[AtprotoCategory.LEFT_OUT.value] += 1
            self._note(Unfinished(queued.did, AtprotoCategory.LEFT_OUT.value, permanent=False), leaves=True)
        elif (host := self._host_at(queued.url)) is None:
            self._end(queued.did, AtprotoCategory.REFUSED, url=queued.url)
        else:
            return host
        return None

    def _host_at(self, url: str) -> RepoHost | None:
        """The host of that address; None if it is none."""
        if url not in self._by_url:
            try:
                name = host_of(url)
                self._by_url[url] = self.hosts.setdefault(name, RepoHost(name, url=url))
            except HostError:
                self._by_url[url] = None
        return self._by_url[url]

    # What became of it.

    def settled(self, host: RepoHost, work: RepoRequest, settled: Settled[Understood], now: float) -> None:
        """The host answered."""
        del now
        if isinstance(settled.result, Packed):
            self._archive(work.key, settled.result)
        else:
            category = settled.result or category_of(settled.outcome)
            self._end(work.key, category, host.failures(work.key) + 1, work.url)
        self._retime(host)

    def later(self, host: RepoHost, work: RepoRequest, outcome: Outcome, due: float) -> None:
        """It has not failed."""
        if due == inf:
            self.refused += 1
            host.forget(work.key)
            self._schedule(work.key, category_of(outcome), 0, self._rules.patience)
        elif host.aside:
            self._store(host, work.key)
        else:
            self._put_off(host, work.key, due)

    def failed(self, host: RepoHost, work: RepoRequest, outcome: Outcome, failures: int, due: float | None) -> None:
        """It failed so many times in a row; without a due time, for this run."""
        if due is None:
            self._end(work.key, category_of(outcome), failures)
        elif host.aside:
            self._store(host, work.key)
        else:
            self._put_off(host, work.key, due)
            self._schedule(work.key, category_of(outcome), failures, due - self._clock.now(), leaves=False)
        self._retime(host)

    def leave(self, host: RepoHost, outcome: Outcome, due: float) -> None:
        """The host does not answer: what waits for it goes to disk, with its reason and its due time."""
        host.due_at = self._due_in(max(0.0, due - self._clock.now()))
        if host.aside:
            # What waits keeps its due time, by which it is found.
            self._writer.add(HostAside(host.name, host.reason.value, host.due_at))
            return
        host.reason, host.group = category_of(outcome), host.due_at
        self._measures.blocked += 1
        self.hosts_aside += 1
        self._writer.add(HostAside(host.name, host.reason.value, host.due_at))
        dids = host.pop_all()
        self.waiting -= len(dids)
        for did in dids:
            self._store(host, did)
        self._feeder.look()

    def welcome(self, host: RepoHost) -> None:
        """It answers again: what waits for it is read from disk at once."""
        self.hosts_aside -= 1
        self._writer.add(HostAside(host.name, "", 0))
        if host.probe:
            host.put(host.probe)
            self.waiting += 1
            self._count_stored(host, -1)
            host.probe = ""
        if host.stored:
            host.unread = [*(host.unread or ()), Due(host.group, 0, "")]
            self._feeder.want(host)

    def written(self, result: WrittenRepos) -> Iterable[RepoHost]:
        """These are on disk, and in memory no more."""
        self._held.difference_update(result.dids)
        self.ended -= Counter(each.category for each in result.moved)
        self._feeder.locate_again([Due(MOVED_DUE, 0, each.did) for each in result.moved])
        return ()

    def _put_off(self, host: RepoHost, did: str, due: float) -> None:
        host.put_off(did, due)
        self.waiting += 1

    def _store(self, host: RepoHost, did: str) -> None:
        """Let a DID wait on disk for a host that is away. One is kept in memory as well, to probe the host with."""
        stays = not host.probe
        self._count_stored(host, 1)
        failed = Unfinished(did, host.reason.value, False, host.failures(did), host.group)  # noqa: FBT003 - a row
        host.forget(did)
        if stays:
            host.probe = did
        self._note(failed, leaves=not stays)

    def _count_stored(self, host: RepoHost, number: int) -> None:
        host.stored += number
        self.stored += number

    def _archive(self, did: str, packed: Packed) -> None:
        stats = packed.stats
        self.ended[ARCHIVED] += 1
        self.records += stats.records
        if stats.missing or stats.bad_records or stats.bad_keys:
            self.dropped.update(missing=stats.missing, bad_record=stats.bad_records, bad_key=stats.bad_keys)
        self._measures.archived(packed)
        self._water.settle(did)
        self._writer.add(Archived(did, packed.block), len(packed.block))

    def _end(self, did: str, category: AtprotoCategory, failures: int = 0, url: str = "") -> None:
        """It was not archived: for good if its category is, and it has not moved from `url`; else for this run."""
        self.ended[category.value] += 1
        if category.permanent:
            self._note(Unfinished(did, category.value, permanent=True), leaves=True, url=url)
        else:
            self._schedule(did, category, failures, self._rules.patience)

    def _schedule(
        self, did: str, category: AtprotoCategory, failures: int, wait: float, *, leaves: bool = True
    ) -> None:
        due = self._due_in(wait)
        self._note(Unfinished(did, category.value, permanent=False, failures=failures, due=due), leaves=leaves)

    def _due_in(self, seconds: float) -> int:
        return max(1, ceil(self._clock.wall() + seconds))

    def _note(self, failed: Unfinished, *, leaves: bool, url: str = "") -> None:
        if failed.due is not None:
            self._held.add(failed.did)
        self._water.settle(failed.did)
        self._writer.add(Note(failed, leaves, url))

    def _retime(self, host: RepoHost) -> None:
        rps = host.rate(self._rules.usual_rps)
        if host.cap != rps:
            host.cap = rps
            self._limiter.cap(host.name, rps, f"hosts of {host.size:,} repos get {rps:g} a second")
