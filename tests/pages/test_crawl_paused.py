"""A crawl that rests, and one that leaves a host alone, lose nothing by it."""

from pathlib import Path

from small_web import Web, crawl, page, web

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
    assert len(done.fetched) == 81
    assert done.complete


def test_one_that_is_stopped_while_it_is_paused_ends(tmp_path: Path) -> None:
    done = crawl(
        tmp_path / "out", two_hosts(), f"{A}/", allow=["b.example"], wanted={PAUSE: Control(paused=True)}, stop_after=60
    )

    assert not done.complete
    assert done.seconds < 100
