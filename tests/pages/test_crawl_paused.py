"""A crawl that rests, leaves a host alone, drains or is told to stop loses nothing by it."""

from pathlib import Path

from small_web import Web, crawl, page, web

from sanderling.pages.crawl import Crawl
from sanderling.stores.control_file import NOTHING, Control

A, B = "http://a.example", "http://b.example"
PAUSE, GO_ON = 2.0, 3_000.0  # longer than any patience


def two_hosts() -> Web:
    links = [f"{A}/{number}" for number in range(40)] + [f"{B}/{number}" for number in range(40)]
    return web(**{f"{A}/": page(*links), **{link: page() for link in links}})


def asked(site: Web, after: float, before: float, host: str = "http") -> int:
    return sum(after < when < before and url.startswith(host) for when, url in site.asked)


def test_nothing_is_asked_while_it_is_paused_and_everything_afterwards(tmp_path: Path) -> None:
    site = two_hosts()
    wanted = {PAUSE: Control(paused=True), GO_ON: NOTHING}

    done = crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"], wanted=wanted)

    assert asked(site, PAUSE + 1, GO_ON) == 0
    assert 0 < asked(site, 0, PAUSE) < 81
    assert len(done.fetched) == 81
    assert done.complete


def test_a_host_that_is_left_alone_is_not_asked_and_the_others_are(tmp_path: Path) -> None:
    site = two_hosts()
    wanted = {PAUSE: Control(hosts=frozenset({"b.example"})), GO_ON: NOTHING}

    done = crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"], wanted=wanted)

    assert asked(site, PAUSE + 1, GO_ON, B) == 0
    assert asked(site, PAUSE + 1, GO_ON, A) > 0
    # When nothing else is left it ends: what waits for the host that was left alone is for the next run.
    assert len([url for url in done.fetched if url.startswith(A)]) == 41
    assert not done.complete


def test_one_that_is_stopped_while_it_is_paused_ends(tmp_path: Path) -> None:
    done = crawl(
        tmp_path / "out", two_hosts(), f"{A}/", allow=["b.example"], wanted={PAUSE: Control(paused=True)}, stop_after=60
    )

    assert not done.complete
    assert done.seconds < 100


def chains() -> Web:
    """Two hosts, of which each page leads to the next and to one that leads nowhere; one has many that lead on."""
    pages = {f"{A}/wide{number}": page(f"{A}/deep{number}") for number in range(400)}
    pages |= {f"{A}/deep{number}": page() for number in range(400)}
    for host in (A, B):
        for number in range(60):
            pages[f"{host}/{number}"] = page(f"{host}/{number + 1}", f"{host}/leaf{number}")
            pages[f"{host}/leaf{number}"] = page()
    return web(**{f"{A}/": page(f"{A}/0", f"{B}/0", *(f"{A}/wide{number}" for number in range(400))), **pages})


def test_one_that_drains_asks_for_all_it_knows_and_for_nothing_it_finds_then(tmp_path: Path) -> None:
    site, undisturbed = chains(), chains()
    known: set[str] = set()
    before: set[str] = set()

    def note(crawl: Crawl) -> None:
        known.update(each.url for each in crawl.folder.ledger.waiting_rows())
        before.update(site.urls)

    drain = {PAUSE: Control(ending="drain")}
    drained = crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"], wanted=drain, heard=note)
    asked_for = set(site.urls)
    rest = crawl(tmp_path / "out", site, resume=True)
    whole = crawl(tmp_path / "undisturbed", undisturbed, f"{A}/", allow=["b.example"])

    assert not drained.complete
    assert len(known) > 300  # more than are loaded at a time
    assert asked_for == before | known
    assert drained.crawl.waiting > 300
    assert rest.complete
    assert sorted(rest.fetched) == sorted(whole.fetched)
    assert sorted(site.urls) == sorted(undisturbed.urls)


def test_one_that_is_told_to_stop_ends_as_by_a_signal(tmp_path: Path) -> None:
    site = two_hosts()

    done = crawl(tmp_path / "out", site, f"{A}/", allow=["b.example"], wanted={PAUSE: Control(ending="stop")})
    late = asked(site, PAUSE, GO_ON)
    rest = crawl(tmp_path / "out", site, resume=True)

    assert not done.complete
    assert late == 0
    assert done.seconds < PAUSE + 1
    assert len(rest.fetched) == 81
    assert len(site.urls) == len(set(site.urls))
