"""A ledger of a few dictionaries, and random calls that are made to it and to a real one at once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

from sanderling.clock import FakeClock
from sanderling.ids import url_key
from sanderling.stores import (
    Batch,
    EndedUrl,
    FoundUrl,
    HostNote,
    Ledger,
    PageMemory,
    QueuedUrl,
    RetryUrl,
    RowFile,
    StoredUrl,
)

HOSTS = [f"host{number}.example" for number in range(5)]
PLAN = {"depth": 3, "allow": ["a", "b"]}
KINDS = ("new", "again", "visit", "live")


@dataclass
class Waits:
    url: str
    host: str
    kind: str
    priority: int
    due: float
    order: int
    failures: int = 0
    code: str = ""


@dataclass
class Model:
    """What every ledger has to do. `rows` are the keys beside the rows of this run."""

    run: int = 1
    known: set[bytes] = field(default_factory=set)
    waits: dict[bytes, Waits] = field(default_factory=dict)
    ended: dict[bytes, EndedUrl] = field(default_factory=dict)
    rows: list[bytes] = field(default_factory=list)
    memory: dict[bytes, PageMemory] = field(default_factory=dict)
    parked: dict[str, float] = field(default_factory=dict)
    held: dict[str, set[bytes]] = field(default_factory=dict)
    stored: Counter[str] = field(default_factory=Counter)
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    forgotten: set[bytes] = field(default_factory=set)
    files: dict[tuple[int, str], RowFile] = field(default_factory=dict)
    order: int = 0
    finished: bool = False

    def take(self, host: str, limit: int, now: float) -> tuple[list[str], float | None]:
        taken = self.held.setdefault(host, set())
        urls, wait = [], None
        for kind in KINDS:
            free = [w for k, w in self.waits.items() if w.host == host and w.kind == kind and k not in taken]
            ready = sorted((w for w in free if w.due <= now), key=lambda w: (w.due or -w.priority, w.order))
            urls += [w.url for w in ready[:limit]]
            later = [w.due for w in free if now < w.due < inf]
            if len(ready) > limit:
                wait = 0.0
            elif later:
                wait = min(min(later) - now, inf if wait is None else wait)
        taken.update(url_key(url) for url in urls)
        return urls, wait

    def due_hosts(self, now: float) -> set[str]:
        return {
            w.host
            for w in self.waits.values()
            if w.host not in self.held and w.due < inf and self.parked.get(w.host, 0) <= now
        }

    def commit(self, batch: Batch) -> set[str]:
        awake, before = set(), self.order
        for stored in batch.stored:
            key = stored.item.key
            was = self.waits.pop(key)
            self.rows.append(key)
            self.ends[stored.end, stored.code] += 1
            self.stored[was.host] += was.kind != "visit"
            if stored.visit_at is not None:
                self.waits[key] = replace(was, kind="visit", due=stored.visit_at, failures=0, code="")
        for ended in batch.ended:
            self.waits.pop(ended.item.key)
            self.ended[ended.item.key] = ended
            self.ends[ended.end, ended.code] += 1
        for again in batch.again:
            waits = self.waits[again.item.key]
            waits.kind = "again" if waits.kind == "new" else waits.kind
            waits.due, waits.failures, waits.code = again.due, again.failures, again.code
            awake |= {waits.host} if again.due < inf else set()
        for item in batch.items():
            self.held.get(item.host, set()).discard(item.key)
        for found in batch.found:
            key = url_key(found.url)
            if key not in self.known | self.forgotten:
                self.known.add(key)
                self.order += 1
                self.waits[key] = Waits(
                    found.url, found.host, found.kind, found.priority, found.due, self.order, 0, found.code
                )
                awake |= {found.host} if found.due < inf else set()
        for note in batch.hosts:
            if note.parked is not None:
                self.parked.pop(note.host, None)
                if note.parked:
                    self.parked[note.host] = note.parked
                else:
                    awake.add(note.host)
        visits = any(each.visit_at is not None for each in batch.stored)
        self.finished = self.finished and not (batch.again or visits or self.order > before)
        self.memory |= {each.key: each for each in batch.memory}
        self.files |= {(each.process, each.file): each for each in batch.files}
        awake = {host for host in awake if host not in self.parked}
        for host in awake:
            self.held.setdefault(host, set())
        return awake

    def nothing_waits(self) -> bool:
        return not any(w.kind != "visit" and w.due < inf and w.host not in self.parked for w in self.waits.values())

    def retry(self, end: str, now: float) -> int:
        if end == "waiting":
            moved = [w for w in self.waits.values() if w.kind != "visit" and w.due > now]
            for waits in moved:
                waits.due, waits.failures = 0.0, 0
            self.parked.clear()
            return len(moved)
        chosen = [key for key, ended in self.ended.items() if ended.end == end]
        for key in sorted(chosen):
            ended = self.ended.pop(key)
            self.ends[end, ended.code] -= 1
            self.order += 1
            item = ended.item
            self.waits[key] = Waits(item.url, item.host, "again", item.priority, 0.0, self.order)
            self.parked.pop(item.host, None)
        return len(chosen)

    def visit_now(self, changed: dict[str, float], now: float) -> set[str]:
        late = set()
        for url, at in changed.items():
            key, host = url_key(url), url.split("/", 3)[2]
            if key in self.memory and self.memory[key].seen < at and host in self.held:
                late.add(host)
                waits = self.waits.get(key)
                if waits is not None and waits.kind == "visit" and waits.due > now:
                    waits.due, waits.failures = 0.0, 0
        return late

    def forget(self, key: bytes) -> bool:
        self.waits.pop(key, None)
        if (ended := self.ended.pop(key, None)) is not None:
            self.ends[ended.end, ended.code] -= 1
        self.memory.pop(key, None)
        self.rows = [row for row in self.rows if row != key]
        self.forgotten.add(key)
        known = key in self.known
        self.known.discard(key)
        return known

    def new_run(self, now: float) -> None:
        self.run += 1
        self.finished = False
        self.known.clear()
        self.waits.clear()
        self.ended.clear()
        self.rows.clear()
        self.stored.clear()
        self.ends.clear()
        self.held.clear()
        self.parked = {host: until for host, until in self.parked.items() if until > now}


async def play(open_it: Callable[[FakeClock], Ledger], seed: int, steps: int = 60) -> None:
    """Make the same random calls to a ledger and to the model, with reopenings, and compare every answer."""
    random, clock, model = Random(seed), FakeClock(), Model()
    ledger = await open_it(clock).__aenter__()
    in_hand: dict[bytes, QueuedUrl] = {}

    def found() -> FoundUrl:
        host = random.choice(HOSTS)
        kind, priority = random.choice([("new", 0), ("new", 0), ("new", 7), ("new", -3), ("live", 0)])
        due = random.choice([0.0] * 5 + [inf, clock.wall() + random.choice([5, 50])])
        return FoundUrl(
            f"https://{host}/{random.randrange(80)}", host, kind=kind, priority=priority, due=due,
            depth=random.randrange(4), function=random.choice(["", "item"]), data=random.choice([b"", b"{}"]),
        )  # fmt: skip

    def batch() -> Batch:
        stored, ended, again, memory = [], [], [], []
        for key in random.sample(sorted(in_hand), random.randint(0, len(in_hand))):
            item = in_hand.pop(key)
            match random.randrange(4):
                case 0:
                    ended.append(EndedUrl(item, random.choice(["failed", "refused"]), "TIMEOUT", 503, "why", 3))
                case 1:
                    due = random.choice([0.0, clock.wall() + random.choice([2, 30]), inf])
                    again.append(RetryUrl(item, due, item.failures + 1, "TIMEOUT"))
                case _:
                    visit = clock.wall() + 20 if random.random() < 0.4 else None
                    stored.append(StoredUrl(item, visit_at=visit))
                    memory.append(PageMemory(key, f'"{random.random()}"', "", b"x", clock.wall(), 20.0))
        hosts = []
        if random.random() < 0.2:
            parked = random.choice([0.0, clock.wall() + 40, inf, None])
            hosts = [HostNote(random.choice(HOSTS), parked, b"503", "https://good/", b"pace")]
        files = [RowFile(ledger.process, "pages.jsonl", len(model.rows), len(model.rows), 7)]
        links = [found() for _ in range(random.randrange(12))]
        return Batch(stored, ended, again, links, hosts, memory, files, {("bytes", ""): 10})

    async def reopen() -> None:
        nonlocal ledger
        await ledger.__aexit__(None, None, None)
        model.held.clear()
        in_hand.clear()
        ledger = await open_it(clock).__aenter__()
        assert (ledger.run, ledger.finished) == (model.run, model.finished)
        assert {(each.process, each.file): each for each in await ledger.row_files()} == model.files

    async def look_for_hosts() -> None:
        due = model.due_hosts(clock.wall())
        limit = random.choice([1, 50])
        found = await ledger.hosts(limit)
        assert limit == 1 or due <= {work.name for work in found}
        for work in found:
            assert work.stored == model.stored[work.name]
            assert work.parked == (work.name in model.parked)
            if work.name not in due:  # its `due` was left from before a kill
                assert not (await ledger.take(work.name, 9)).items
                ledger.release(work.name)
            else:
                model.held[work.name] = set()

    async def step() -> None:
        match random.randrange(22):
            case 0 | 1 | 2 | 3 | 4 | 5:
                one = batch()
                assert set(await ledger.commit(one)) == model.commit(one)
            case 6 | 7 | 8 | 9 | 10:
                host = random.choice([*model.held, None])
                if host is not None:
                    limit = random.randint(1, 6)
                    taken = await ledger.take(host, limit)
                    urls, wait = model.take(host, limit, clock.wall())
                    assert [item.url for item in taken.items] == urls
                    assert (taken.next_wait is None) == (wait is None)
                    assert abs((taken.next_wait or 0) - (wait or 0)) < 0.01
                    for item in taken.items:
                        waits = model.waits[item.key]
                        assert (item.failures, item.code, item.kind) == (waits.failures, waits.code, waits.kind)
                        assert item.memory == model.memory.get(item.key)
                        in_hand[item.key] = item
            case 11 | 12:
                await look_for_hosts()
            case 13:
                host = random.choice([*model.held, None])
                if host is not None:
                    ledger.release(host)
                    for key in model.held.pop(host):
                        in_hand.pop(key, None)
            case 14:
                clock.advance(random.choice([1, 10, 60]))
            case 15:
                await reopen()
            case 16:
                end = random.choice(["failed", "refused", "waiting"])
                total = model.retry(end, clock.wall())
                assert await ledger.retry(end) == total
                model.finished = model.finished and not total
            case 17:
                key = random.choice([*sorted(model.known), url_key("https://host1.example/79")])
                host = next(h for h in HOSTS if url_key(f"https://{h}/")[:5] == key[:5])
                busy = key in in_hand
                result = await ledger.forget([(host, key)])
                assert (result.count, list(result.busy)) == ((0, [key]) if busy else (model.forget(key), []))
            case 19 | 20 | 21:
                urls = [f"https://{HOSTS[0]}/{number}" for number in range(80)]
                urls += [waits.url for waits in model.waits.values()]
                changed = {url: clock.wall() - random.choice([0, 9, 99]) for url in urls}
                assert set(await ledger.visit_now(changed)) == model.visit_now(changed, clock.wall())
            case 18:
                model.finished = await ledger.finish()
                assert model.finished == model.nothing_waits()
                if ledger.finished and random.random() < 0.5:
                    await ledger.new_run()
                    model.new_run(clock.wall())
                    in_hand.clear()

    async def compare() -> None:
        counts = await ledger.counts()
        waiting = {key for key, waits in model.waits.items() if waits.kind != "visit"}
        assert counts.known == len(model.known) + len(model.forgotten & set(model.rows)) or model.forgotten
        assert counts.waiting == len(waiting)
        assert ledger.finished == model.finished
        ends = {name: n for name, n in counts.ends.items() if name != ("bytes", "")}
        assert ends == {name: n for name, n in model.ends.items() if n}
        assert {each.key async for each in ledger.tasks("waiting")} == waiting
        for end in ("failed", "refused"):
            keys = {key for key, ended in model.ended.items() if ended.end == end}
            assert {each.key async for each in ledger.tasks(end)} == keys
        by_host = {each.host: each.waiting for each in await ledger.waiting_by_host(9)}
        assert by_host == Counter(model.waits[key].host for key in waiting)
        key = random.choice([url_key(f"https://{HOSTS[2]}/{number}") for number in range(80)])
        shown = await ledger.show(HOSTS[2], key)
        expected = (
            model.ended[key].end if key in model.ended
            else "waiting" if key in waiting or key in model.waits
            else "stored" if key in model.known
            else "forgotten" if key in model.forgotten
            else None
        )  # fmt: skip
        assert (shown.state if shown else None) == expected
        assert await ledger.verify(model.rows) == []

    try:
        for number in range(steps):
            await step()
            if number % 10 == 9:
                await compare()
    finally:
        await ledger.__aexit__(None, None, None)
