"""The simulated web as arithmetic: what it claims to serve is what a plain walk finds, and each host is as it says."""

import gzip
import hashlib
import re
import subprocess
import sys
from collections import Counter, deque
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from protego import Protego

from sanderling.fetch.classify import BadEncoding
from sanderling.fetch.decode import Body
from sanderling.stores.frontier_rows import End
from sanderling.worlds.site import ALL, LONGEST_PATH, SiteHost, World
from sanderling.worlds.site_pages import SitePage
from sanderling.worlds.weather import PIECES, TransportFault, WorldAnswer

TRAPS = ("/calendar/", "/a/", "/on/")


class Walk:
    """The slow and obvious crawler: breadth first over the pages, without weather, from one front page."""

    def __init__(self, world: World) -> None:
        self.origins = {host.tree.origin: host for host in world.hosts}
        self.ends: dict[str, dict[str, End]] = {host.name: {} for host in world.hosts}
        self.rules = {host.name: robots(host) for host in world.hosts}
        self.moves: dict[str, str] = {}
        first = world.hosts[0].tree.origin
        self.todo, self.known = deque([f"{first}/"]), {f"{first}/"}

    def run(self) -> dict[str, dict[str, End]]:
        while self.todo:
            url = self.todo.popleft()
            host, path = self.origins[origin(url)], path_of(url)
            self.ends[host.name][path], found = self.visit(host, path, url)
            for link in found:
                self.find(urldefrag(urljoin(url, link)).url)
        return self.ends

    def visit(self, host: SiteHost, path: str, url: str) -> tuple[End, list[str]]:
        rules = self.rules[host.name]
        if rules is None or not host.character.listens:
            return End.WAITING, []
        if not rules.can_fetch(url, "sanderling"):
            return End.REFUSED, []
        # Every site's sitemaps are known as soon as its robots.txt is.
        sitemaps = list(rules.sitemaps) if path == "/" else []
        page = host.page(path, {})
        if location := page.header("Location"):
            self.moves[url] = urljoin(url, location)
            return (End.FAILED if self.closes_a_loop(url) else End.MOVED), [location]
        if page.status != 200 or not unpacks(page):
            return End.FAILED, []
        return End.FETCHED, [*sitemaps, *links(page)]

    def closes_a_loop(self, url: str) -> bool:
        target = self.moves[url]
        while target != url and target in self.moves:
            target = self.moves[target]
        return target == url

    def find(self, url: str) -> None:
        outside = origin(url) not in self.origins or path_of(url).startswith(TRAPS)
        if url not in self.known and not outside:
            self.known.add(url)
            self.todo.append(url)


def robots(host: SiteHost) -> Protego | None:
    """The rules of a host, after redirects; None if nothing may be asked, as RFC 9309 has it for a 5xx."""
    page = host.page("/robots.txt", {})
    while location := page.header("Location"):
        page = host.page(location, {})
    if page.status >= 500:
        return None
    return Protego.parse(page.body.decode("utf-8", "replace") if page.status == 200 else "")


def links(page: SitePage) -> list[str]:
    body = gzip.decompress(page.body) if page.header("Content-Type") == "application/gzip" else page.body
    found = re.finditer(r'<a href="([^"]*)"|<loc>([^<]*)</loc>', body.decode("latin-1"))
    return [each[1] or each[2] for each in found]


def unpacks(page: SitePage) -> bool:
    try:
        Body(page.header("Content-Encoding"), most_raw=2**24, most_decoded=2**24).add(page.body)
    except BadEncoding:
        return False
    return True


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def path_of(url: str) -> str:
    return url.removeprefix(origin(url))


@pytest.mark.parametrize(("seed", "ordinary", "pages"), [(1, 8, 300), (2, 1, 1), (3, 0, 10), (4, 12, 7)])
def test_a_plain_walk_comes_to_exactly_the_ends_that_are_claimed(seed: int, ordinary: int, pages: int) -> None:
    world = World.make(seed, ordinary, pages)

    walked = Walk(world).run()

    for host in world.hosts:
        assert walked[host.name] == dict(host.ends()), host.name


def test_each_path_has_one_end_and_the_counts_are_theirs() -> None:
    for host in World.make(1).hosts:
        ends = list(host.ends())

        assert len(ends) == len(dict(ends))
        assert host.expected() == Counter(end for _, end in ends)
        assert host.pages == host.expected()[End.FETCHED]


def test_a_walk_finds_the_same_at_other_addresses() -> None:
    world = World.make(1, ordinary=3, pages=20)
    moved = world.at({host.name: f"http://127.0.0.1:{9000 + at}" for at, host in enumerate(world.hosts)})

    assert Walk(moved).run() == Walk(world).run()


QUESTIONS = [(host, path, now) for now in range(40) for host in ALL for path in ("/", "/sitemap.xml", "/no")]


def answers(seed: int) -> list[WorldAnswer]:
    world = World.make(seed, ordinary=2, pages=30)
    return [world.ask(f"{host}.example", path, {}, now * 0.3) for host, path, now in QUESTIONS]


def test_the_same_seed_gives_the_same_answers() -> None:
    assert answers(7) == answers(7)
    assert answers(7) != answers(8)


def test_another_process_serves_the_same_bytes() -> None:
    code = """
import hashlib
from sanderling.worlds.site import World
world = World.make(5, ordinary=3, pages=40)
asked = [world.ask(host.name, path, {}, 0.0) for host in world.hosts for path, _ in host.ends()]
print(hashlib.sha256(repr(asked).encode()).hexdigest())
"""
    runs = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": number}, capture_output=True, check=True)  # noqa: S603
        for number in ("1", "2")
    ]

    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.strip()) == hashlib.sha256().digest_size * 2


def test_what_one_host_is_asked_changes_nothing_for_another() -> None:
    busy, calm = World.make(1, ordinary=2), World.make(1, ordinary=2)
    for now in range(100):
        busy.ask("resets.example", "/", {}, now)

    assert [busy.ask("ordinary-2.example", "/", {}, now) for now in range(20)] == [
        calm.ask("ordinary-2.example", "/", {}, now) for now in range(20)
    ]


def test_ordinary_hosts_are_of_all_sizes() -> None:
    world = World.make(1, ordinary=8, pages=300)

    assert [host.pages for host in world.hosts[:8]] == [10, 16, 26, 43, 70, 114, 185, 300]


def test_a_world_can_be_small_or_large() -> None:
    assert [host.name for host in World.make(1, ordinary=2, others=["dead"]).hosts] == [
        "ordinary-1.example",
        "ordinary-2.example",
        "dead.example",
    ]
    assert len(World.make(1, ordinary=482).hosts) == 482 + len(ALL)


def test_what_cannot_be_made_is_said() -> None:
    with pytest.raises(ValueError, match="ordinary is -1"):
        World.make(1, ordinary=-1)
    with pytest.raises(ValueError, match="pages 0"):
        World.make(1, pages=0)
    with pytest.raises(ValueError, match="no character angry; expected some of slow, quota"):
        World.make(1, others=["slow", "angry"])
    with pytest.raises(ValueError, match=r"no host 'x.example' among the 1 of this world"):
        World.make(1, ordinary=1, others=()).ask("x.example", "/", {}, 0.0)


def ask(word: str, path: str = "/", times: int = 1, every: float = 0.0, **headers: str) -> list[WorldAnswer]:
    world = World.make(1, ordinary=1)
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return [world.ask(f"{word}.example", path, said, 1000 + every * number) for number in range(times)]


def header(answer: WorldAnswer, name: str) -> str | None:
    return dict(answer.headers).get(name)


def test_the_slow_one_takes_longer_the_more_it_is_asked() -> None:
    together = [answer.latency for answer in ask("slow", times=20)]
    apart = [answer.latency for answer in ask("slow", times=20, every=1.0)]

    assert together[-1] > 3.9
    assert max(apart) < 1.0


def test_the_quota_says_when_to_come_back() -> None:
    answers = ask("quota", times=12)

    assert [answer.status for answer in answers] == [200] * 10 + [429] * 2
    assert header(answers[-1], "Retry-After") == "4"
    assert {answer.status for answer in ask("quota", times=100, every=0.2)} == {200}


def test_the_silent_quota_says_nothing() -> None:
    answers = ask("silent", times=41)

    assert [answer.status for answer in answers] == [200] * 40 + [429]
    assert not {name for name, _ in answers[-1].headers} - {"Content-Type", "Content-Length"}


def test_the_liar_promises_ten_times_what_it_allows() -> None:
    answers = ask("lying", times=21)

    assert [answer.status for answer in answers] == [200] * 20 + [429]
    assert [header(answers[-1], f"X-RateLimit-{name}") for name in ("Limit", "Remaining", "Reset")] == [
        "200",
        "180",
        "10",
    ]


def test_the_failing_one_is_well_then_fails_then_is_well() -> None:
    answers = ask("failing", times=80, every=1.0)

    assert [answer.status for answer in answers] == [200] * 10 + [500] * 60 + [200] * 10


@pytest.mark.parametrize(
    ("word", "faults"),
    [
        ("ordinary-1", {TransportFault.NONE: 1.0}),
        ("resets", {TransportFault.NONE: 0.8, TransportFault.RESET: 0.1, TransportFault.CUT: 0.1}),
        ("truncating", {TransportFault.NONE: 0.8, TransportFault.TRUNCATED: 0.2}),
        ("stalling", {TransportFault.STALL: 1.0}),
        ("dead", {TransportFault.REFUSED: 1.0}),
    ],
)
def test_faults_come_as_often_as_is_said(word: str, faults: dict[TransportFault, float]) -> None:
    seen = Counter(answer.fault for answer in ask(word, times=1000))

    assert {fault: count / 1000 for fault, count in seen.items()} == pytest.approx(faults, abs=0.04)


def test_what_is_cut_is_half_of_the_body_and_what_stalls_all_of_it() -> None:
    body = bytes(range(200))

    def pieces(fault: TransportFault) -> list[tuple[float, bytes]]:
        return list(WorldAnswer(200, (), body, 0.1, fault, pause=2.0).pieces())

    assert pieces(TransportFault.NONE) == [(0.0, body)]
    assert pieces(TransportFault.CUT) == pieces(TransportFault.TRUNCATED) == [(0.0, body[:100])]
    assert [pause for pause, _ in pieces(TransportFault.STALL)] == [0.0] + [2.0] * (PIECES - 1)
    assert b"".join(piece for _, piece in pieces(TransportFault.STALL)) == body


def test_one_slow_body_in_eight_pauses_longer_than_a_client_waits() -> None:
    pauses = [answer.pause for answer in ask("stalling", times=1000)]

    assert sum(pause > 15 for pause in pauses) / 1000 == pytest.approx(1 / 8, abs=0.03)


def test_nothing_is_cut_where_there_is_nothing_to_cut() -> None:
    etag = header(ask("truncating")[0], "ETag")

    answers = ask("truncating", times=200, If_None_Match=etag or "")

    assert {(answer.status, answer.fault) for answer in answers} == {(304, TransportFault.NONE)}


def test_what_robots_txt_forbids_is_served_and_counted_as_forbidden() -> None:
    world = World.make(1, ordinary=1)
    refused = [(host, path) for host in world.hosts for path, end in host.ends() if end is End.REFUSED]

    assert len(refused) == 6
    assert all(host.forbids(path) and host.page(path, {}).status == 200 for host, path in refused)
    assert world.host("robots-failing.example").forbids("/birds/marsh-1")
    assert not world.host("robots-failing.example").forbids("/robots.txt")
    assert not world.host("robots.example").forbids("/private/open")


def test_a_path_may_not_grow_for_ever() -> None:
    assert ask("trap", "/a/b" * (LONGEST_PATH // 4) + "/")[0].status == 414
    assert ask("trap", "/a/b" * 1000 + "/")[0].status == 200
