"""The page of the dashboard in a real browser: what it shows, how it goes on, and what people can do there."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from dashboard_browser import SECONDS, USUAL, Watched, beside, served
from dashboard_fake import FakeHouse, fake_dashboard
from dashboard_house import PID, TOKEN, polled
from fake_polling import VIEW
from house_statuses import ALL, PAGES, changed, many_hosts, put
from playwright.sync_api import Browser, Locator, Page, Route, expect, sync_playwright

from sanderling.pages.status import HostStatus
from sanderling.web.assets import FOLDER

HOSTILE = "<img src=x onerror=alert(1)>"
HOSTS = 10_000

expect.set_options(timeout=SECONDS * 1000)


def a_home(folder: Path) -> Path:
    """With one system of each sort, all of which said something just now."""
    for name, status in ALL.items():
        put(folder / name, changed(status, wall=time.time()))
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as library:
        yield library.chromium.launch(executable_path=program, args=["--no-sandbox"])


Opened = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Open an address in a browser of its own. Afterwards nothing must have gone wrong there."""
    watched: list[Watched] = []

    def open_page(url: str, **options: Any) -> Page:  # noqa: ANN401 - those of the library
        one = Watched(browser.new_context(**{**USUAL, **options}).new_page())
        watched.append(one)
        one.page.goto(url)
        return one.page

    yield open_page
    foreign = [url for each in watched for url in each.foreign()]
    errors = [error for each in watched for error in each.errors]
    for each in watched:
        each.page.context.close()
    assert foreign == []
    # A server that is away, or says no, is for the page to tell; the browser notes it all the same.
    assert [error for error in errors if "Failed to load resource" not in error] == []


def panel(page: Page) -> Locator:
    return page.get_by_role("tabpanel")


def choose(page: Page, name: str) -> None:
    page.get_by_role("tab", name=re.compile(rf"^{name}")).click()
    expect(panel(page).get_by_role("heading", level=2)).to_have_text(name)


def mark(page: Page) -> None:
    """Leave something that would be gone if the page were loaded again."""
    page.evaluate("window.marked = true")


def is_marked(page: Page) -> bool:
    return page.evaluate("window.marked === true") is True


# What is shown.


def test_shows_every_system_and_goes_on_by_itself(opened: Opened, tmp_path: Path) -> None:
    a_home(tmp_path)
    with served(tmp_path) as url:
        page = opened(url)
        expect(page.get_by_role("tab")).to_have_count(len(ALL))
        for name, status in ALL.items():
            choose(page, name)
            expect(panel(page).locator(".numbers dd")).to_have_count(8)
            assert status.system in panel(page).inner_text()
        mark(page)

        choose(page, "pages")
        put(tmp_path / "pages", changed(PAGES, wall=time.time(), waiting=77_123))
        expect(panel(page).locator(".doing")).to_contain_text("77,123 URLs wait")

        assert is_marked(page)
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#home")).to_have_text(tmp_path.name)


def test_an_empty_home_says_what_to_run_and_fills_by_itself(opened: Opened, tmp_path: Path) -> None:
    with served(tmp_path) as url:
        page = opened(url)
        expect(page.locator("#commands code")).to_have_text(
            ["sanderling demo sequence --out sequence", "sanderling events consume --demo"]
        )
        expect(page.locator("#house")).to_be_hidden()

        put(tmp_path / "pages", changed(PAGES, wall=time.time()))
        expect(page.get_by_role("tab")).to_have_count(1)
        expect(page.locator("#empty")).to_be_hidden()


def test_what_strangers_wrote_is_text(opened: Opened, tmp_path: Path) -> None:
    host = HostStatus(replace(VIEW, host=HOSTILE, state="open", why=HOSTILE), 1, HOSTILE)
    put(tmp_path / HOSTILE.replace("/", ""), changed(PAGES, wall=time.time(), hosts=(host,), counts={HOSTILE: 3}))
    with served(tmp_path) as url:
        page = opened(url)

        expect(page.locator(".hosts tbody button.link")).to_have_text(HOSTILE)
        expect(panel(page).locator(".troubles")).to_contain_text(HOSTILE)
        expect(page.get_by_role("tab")).to_contain_text(HOSTILE)
        expect(panel(page).locator(".bars")).to_contain_text(HOSTILE)
        page.locator(".hosts tbody button.link").click()
        expect(page.locator("#host")).to_contain_text(HOSTILE)
        assert page.locator("img").count() == 0


def test_a_status_that_makes_no_sense_is_a_trouble_and_leaves_the_rest_alone(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    for name in ("events", "polling", "sequence"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "status.json").write_text(json.dumps({"system": name, "wall": time.time()}))
    with served(tmp_path) as url:
        page = opened(url)
        for name in ("sequence", "polling", "events"):
            choose(page, name)
            expect(panel(page).locator(".troubles")).to_contain_text("status.json makes no sense")
        choose(page, "pages")
        expect(panel(page).locator(".bars")).to_contain_text("fetched")


@pytest.fixture(scope="module")
def fake() -> Iterator[tuple[FakeHouse, str]]:
    house = FakeHouse(every=0.3)
    with beside(lambda: fake_dashboard(house)) as url:
        yield house, url


def test_each_system_has_its_own_part(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1])
    shown = {
        "pages": ["How pages ended", "1,180,022", "1,256,819 of 1,298,542 URLs"],
        "sequence": ["Lag", "Workers", "120 → 80", "at the head in 40 s", "29,988 ids in them skipped"],
        "repos": ["2 h 21 min left", "635,897 of 818,297 repos", "deactivated", "Number 38", "1.4 GB"],
        "polling": ["every 200 ms", "Changed just now", "race_result", "Lateness", "race.active_interval"],
        "events": ["throttling", "14,210", "batch-0001", "Replay all 3", "How posts were meant", "25%"],
    }

    for name, texts in shown.items():
        choose(page, name)
        for text in texts:
            expect(panel(page)).to_contain_text(text)


def test_plots_can_be_read_by_keyboard_and_in_words(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1])
    choose(page, "sequence")
    reader = panel(page).get_by_role("slider", name="Asked and kept")

    reader.focus()
    reader.press("Home")
    for _ in range(3):
        reader.press("ArrowRight")

    expect(reader).to_have_attribute("aria-valuetext", re.compile(r"^\d\d:\d\d:\d\d: asked [\d.]+/s, kept [\d.]+/s"))
    expect(panel(page).locator(".at").first).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    words = panel(page).get_by_role("img", name=re.compile("Lag, the last ten minutes. Now: behind"))
    expect(words).to_have_count(1)


def test_headings_are_in_order_and_everything_to_press_has_a_name(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1])
    for name in ALL:
        choose(page, name)
        levels = page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].filter(e => e.checkVisibility()).map(e => +e.tagName[1])"
        )
        unnamed = page.locator("button:visible").evaluate_all(
            "all => all.filter(e => !(e.textContent.trim() || e.getAttribute('aria-label'))).length"
        )

        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels)), levels
        assert unnamed == 0
    assert page.locator("main, header.top, nav").count() == 3


def test_digits_and_arrows_switch_systems_unless_somebody_types(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1])
    expect(page.get_by_role("tab")).to_have_count(5)
    page.keyboard.press("3")
    chosen = page.get_by_role("tab", selected=True)
    expect(chosen).to_contain_text("repos")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_contain_text("polling")
    page.keyboard.press("End")
    expect(chosen).to_contain_text("events")

    page.get_by_role("searchbox").press("2")

    expect(page.get_by_role("searchbox")).to_have_value("2")
    expect(chosen).to_contain_text("events")


def test_the_theme_is_the_systems_until_somebody_chooses(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1], color_scheme="dark")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(ground)

    page.get_by_role("button", name="Switch to the light theme").click()
    light = page.evaluate(ground)
    page.reload()

    assert dark == "rgb(14, 19, 21)"
    assert light == "rgb(245, 243, 239)" == page.evaluate(ground)
    expect(page.get_by_role("button", name="Switch to the dark theme")).to_be_visible()


def test_a_phone_needs_no_scrolling_sideways(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1], viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    for name in ALL:
        choose(page, name)
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide == [390, 390], name
    assert page.locator(".hosts tbody th").first.bounding_box()["width"] > 90  # type: ignore[index] # it is there


@pytest.mark.parametrize("width", [320, 390, 640, 768, 1280])
def test_what_is_written_along_the_road_never_touches(opened: Opened, fake: tuple[FakeHouse, str], width: int) -> None:
    page = opened(fake[1], viewport={"width": width, "height": 900})
    expect(page.locator(".station text")).to_have_count(5)

    touching = page.evaluate(
        """() => {
            const room = 2;
            const all = [...document.querySelectorAll(".drawing text")];
            const boxes = all.filter(e => e.textContent).map(e => [e.textContent, e.getBoundingClientRect()]);
            const edge = document.querySelector(".drawing").getBoundingClientRect();
            const out = boxes.filter(([, box]) => box.left < edge.left || box.right > edge.right);
            const pairs = boxes.flatMap((one, at) => boxes.slice(at + 1).map(other => [one, other]));
            const close = pairs.filter(([[, a], [, b]]) => a.left < b.right + room && b.left < a.right + room
                && a.top < b.bottom && b.top < a.bottom);
            return [...out.map(([text]) => text), ...close.map(([[one], [other]]) => `${one} | ${other}`)];
        }"""
    )

    assert touching == []


def test_the_smallest_phone_cuts_nothing_off(opened: Opened, fake: tuple[FakeHouse, str], tmp_path: Path) -> None:
    small: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "is_mobile": True, "has_touch": True}
    page = opened(fake[1], **small)
    for name in ALL:
        choose(page, name)
        outside = panel(page).evaluate(
            """panel => [...panel.querySelectorAll("*")]
                .filter(e => e.checkVisibility() && !e.closest("svg, .scrolled, thead"))
                .filter(e => e.getBoundingClientRect().right > panel.getBoundingClientRect().right)
                .map(e => e.textContent)"""
        )
        assert (outside, page.evaluate("document.documentElement.scrollWidth")) == ([], 320), name

    with served(tmp_path) as url:
        empty = opened(url, **small)
        expect(empty.locator("#commands code").first).to_be_visible()
        assert empty.evaluate("document.documentElement.scrollWidth") == 320


def test_a_large_number_does_not_cover_its_bar(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time(), counts={"fetched": 10**12, "failed": 3}))
    with served(tmp_path) as url:
        page = opened(url)
        expect(panel(page).locator(".bars")).to_contain_text("1,000,000,000,000")

        ends = (
            panel(page)
            .locator(".bars td.number")
            .first.evaluate(
                """cell => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                const bar = cell.nextElementSibling.firstElementChild;
                return [range.getBoundingClientRect().right, bar.getBoundingClientRect().left];
            }"""
            )
        )

    assert ends[0] < ends[1]


def test_everything_to_press_is_large_enough(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1])
    for name in ALL:
        choose(page, name)
        small = page.locator("button:visible").evaluate_all(
            """all => all.map(e => [e.textContent, e.getBoundingClientRect()])
                .filter(([, box]) => box.height < 24 || box.width < 24).map(([text]) => text)"""
        )
        assert small == [], name


def test_with_colours_of_ones_own_it_can_be_seen_what_is_chosen(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1], forced_colors="active")
    choose(page, "events")
    switches = panel(page).get_by_role("switch")

    colour = "e => getComputedStyle(e).backgroundColor"
    outline = "e => getComputedStyle(e).outlineStyle"

    assert [box.is_checked() for box in switches.all()] == [True, True, False]
    assert switches.nth(0).evaluate(colour) != switches.nth(2).evaluate(colour)
    assert page.get_by_role("tab", selected=True).evaluate(outline) == "solid"
    assert page.get_by_role("tab", selected=False).first.evaluate(outline) == "none"


def test_what_changes_by_itself_is_not_read_out_but_what_was_asked_for_is(
    opened: Opened, fake: tuple[FakeHouse, str]
) -> None:
    page = opened(fake[1])
    said = page.locator("#said")
    expect(said).to_have_text("Live.")
    choose(page, "polling")
    first = panel(page).locator(".changes li").first
    seen = first.inner_text()
    expect(first).not_to_have_text(seen)
    assert page.locator("#hosts [role=status], #hosts [aria-live]").count() == 0

    page.get_by_role("searchbox").fill("0004")

    expect(said).to_have_text(re.compile(r"^\d+ of 200 hosts$"))  # and nothing of the changes before it


# How it goes on.


def test_without_the_token_nothing_is_shown(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path, token=TOKEN) as url:
        page = opened(url)
        field = page.get_by_label("Token")
        expect(field).to_be_visible()
        assert tmp_path.name not in page.locator("body").inner_text()
        expect(page.locator("#house")).to_be_hidden()

        field.fill("not-the-token-at-all")
        field.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("that is not the token")
        expect(page.get_by_role("tab")).to_have_count(0)

        field.fill(TOKEN)
        field.press("Enter")
        expect(page.get_by_role("tab")).to_have_count(1)
        expect(page.locator("#login")).to_be_hidden()
        assert page.evaluate("document.cookie") == ""


def test_survives_the_servers_restart(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path) as url:
        page = opened(url)
        expect(page.locator("#state")).to_have_text("Live")
        mark(page)
    expect(page.locator("#state")).to_have_text("Reconnecting")

    put(tmp_path / "pages", changed(PAGES, wall=time.time(), waiting=4_321))
    with served(tmp_path, port=int(url.rpartition(":")[2])):
        expect(page.locator("#state")).to_have_text("Live")
        expect(panel(page).locator(".doing")).to_contain_text("4,321 URLs wait")
        assert is_marked(page)

        # The new server has another word for what comes from its page.
        page.get_by_role("button", name="Pause a.example").click()
        expect(page.locator(".toast")).to_contain_text("Done:")


def test_a_new_server_that_knows_nobody_asks_who_comes(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path, token=TOKEN) as url:
        page = logged_in(opened(url))

    with served(tmp_path, port=int(url.rpartition(":")[2]), token=TOKEN):
        expect(page.get_by_label("Token")).to_be_visible()
        expect(page.locator("#house")).to_be_hidden()


def logged_in(page: Page) -> Page:
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_label("Token").press("Enter")
    expect(page.get_by_role("tab")).to_have_count(1)
    return page


def test_who_logs_out_leaves_nothing_behind_neither_there_nor_in_their_other_pages(
    opened: Opened, tmp_path: Path
) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path, token=TOKEN) as url:
        page, elsewhere = logged_in(opened(url)), logged_in(opened(url))
        other = page.context.new_page()
        other.goto(url)
        expect(other.get_by_role("tab")).to_have_count(1)

        page.locator("#theme").focus()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Log out")).to_be_focused()
        page.keyboard.press("Enter")

        for each in (page, other):
            expect(each.get_by_label("Token")).to_be_visible()
            expect(each.get_by_role("button", name="Log out")).to_be_hidden()
            assert "a.example" not in each.content()
            assert tmp_path.name not in each.content()
        expect(elsewhere.locator("#state")).to_have_text("Live")
        logged_in(page)
        expect(page.locator(".audit tbody tr")).to_contain_text(["log out"])


def test_where_there_is_no_token_nobody_can_log_out(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path) as url:
        page = opened(url)
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#logout")).to_be_hidden()


@pytest.mark.parametrize(("remembers", "lasting"), [(5, "the last minute"), (150, "the last three minutes")])
def test_a_plot_is_of_the_time_that_something_is_known_of(opened: Opened, remembers: int, lasting: str) -> None:
    house = FakeHouse(systems=("pages",), every=0.3, clock=lambda: 1_800_000_000.0, remembers=remembers)
    with beside(lambda: fake_dashboard(house)) as url:
        page = opened(url)
        plot = panel(page).get_by_role("img", name=re.compile(f"^Asked and kept, {lasting}. Now: asked"))
        expect(plot).to_be_visible()
        expect(plot.locator(".nothing")).to_be_hidden()
        times = plot.locator(".time").all_text_contents()

    assert 2 <= len(times) <= 6
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d" if remembers == 5 else r"\d\d:\d\d", each) for each in times)


def test_a_plot_of_which_nothing_is_known_says_so(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time(), running=False))
    with served(tmp_path) as url:
        page = opened(url)

        expect(panel(page).locator(".plot .nothing").first).to_be_visible()
        expect(page.locator(".drawing .back text")).to_have_text("nothing runs now")


def test_what_was_missed_is_a_gap_in_the_plots(opened: Opened) -> None:
    house = FakeHouse(systems=("pages",), every=0.3, clock=lambda: 1_800_000_000.0)
    with beside(lambda: fake_dashboard(house)) as url:
        page = opened(url)
        expect(panel(page).locator(".plot").first).to_be_visible()
        assert panel(page).locator(".gap").count() == 0
        before = panel(page).locator(".plot .line.kept").first.get_attribute("d") or ""
    expect(page.locator("#state")).to_have_text("Reconnecting")

    later = FakeHouse(systems=("pages",), every=0.3, clock=lambda: 1_800_000_120.0, remembers=5)
    with beside(lambda: fake_dashboard(later, int(url.rpartition(":")[2]))):
        expect(panel(page).locator(".gap").first).to_be_attached()
        after = panel(page).locator(".plot .line.kept").first.get_attribute("d") or ""

    assert (before.count("M"), after.count("M")) == (1, 2)  # what was known before is still there


# Hosts.


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    home = tmp_path_factory.mktemp("many")
    put(home / "pages", changed(many_hosts(HOSTS), wall=time.time()))
    with served(home) as url:
        yield home, url


def test_ten_thousand_hosts_scroll_in_a_small_page(opened: Opened, many: tuple[Path, str]) -> None:
    ordered = [
        each.view.host for each in sorted(many_hosts(HOSTS).hosts, key=lambda each: (-each.view.rate, each.view.host))
    ]
    page = opened(many[1])
    window, rows = page.locator(".window"), page.locator(".hosts tbody tr")
    window.scroll_into_view_if_needed()
    expect(rows.filter(has_text=ordered[0])).to_be_visible()

    most = 0
    for place in (9_999, 5_000, 123, 7_777, 0):
        window.evaluate("(e, top) => { e.scrollTop = top }", place * 36)
        row = page.locator(f'.hosts tr[aria-rowindex="{place + 2}"]')
        expect(row.locator("th")).to_have_text(ordered[place])
        expect(row).to_be_in_viewport()
        most = max(most, rows.count())

    assert most < 300
    expect(page.locator(".hosts")).to_have_attribute("aria-rowcount", str(HOSTS + 1))


def test_hosts_are_sorted_and_searched(opened: Opened, many: tuple[Path, str]) -> None:
    page = opened(many[1])
    page.locator("#hosts").scroll_into_view_if_needed()
    head = page.get_by_role("columnheader", name="Host")

    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(page.locator(".hosts tbody th").first).to_have_text("host-00000.example")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator(".hosts tbody th").first).to_have_text(f"host-{HOSTS - 1:05}.example")
    page.get_by_role("searchbox").fill("-0424")
    expect(page.locator(".hosts tbody th")).to_have_count(10)
    expect(page.locator("#hosts header")).to_contain_text("10 of 10,000 hosts")
    page.get_by_role("searchbox").fill("nobody")
    expect(page.locator("#hosts")).to_contain_text("No host has that in its name.")


def test_hosts_stay_until_those_in_the_other_order_are_there(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1])
    page.locator("#hosts").scroll_into_view_if_needed()
    first = page.locator(".hosts tbody th").first
    expect(first).to_have_text("a00000.example")
    held: list[Route] = []
    page.route("**/api/hosts?*sort=queued*", lambda route: held.append(route))  # noqa: PLW0108 - the library marks what it is given

    with page.expect_request("**/api/hosts?*sort=queued*"):
        page.get_by_role("columnheader", name="Queued").get_by_role("button").click()
    expect(first).to_have_text("a00000.example")
    assert page.locator(".hosts tr[data-loading]").count() == 0

    held[0].continue_()
    expect(first).not_to_have_text("a00000.example")
    page.unroute_all(behavior="wait")


# What people do.


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_pausing_a_host_is_written_and_recorded(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path) as url:
        page = opened(url)
        page.get_by_role("button", name="Pause b.example").click()

        expect(page.get_by_role("button", name="Resume b.example")).to_be_visible()
        expect(page.locator(".toast")).to_contain_text("Done:")
        expect(page.locator(".audit tbody tr")).to_contain_text(["pause host b.example"])

    assert json.loads((tmp_path / "pages" / "control.json").read_text()) == {"paused": False, "hosts": ["b.example"]}
    (entry,) = lines(tmp_path / "audit.jsonl")
    assert (entry["action"], entry["what"], entry["who"], entry["done"]) == (
        "pause_host",
        "b.example",
        "this machine",
        True,
    )


def test_a_host_is_paused_where_it_is_opened_and_that_is_undone(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path) as url:
        page = opened(url, viewport={"width": 390, "height": 844})
        page.get_by_role("button", name="b.example", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.locator(".hosts tbody .badge").filter(has_text="paused")).to_have_count(1)

        page.get_by_role("button", name="Undo").press("Enter")
        expect(page.locator(".audit tbody tr")).to_contain_text(["resume host b.example", "pause host b.example"])
        expect(page.locator(".hosts tbody .badge").filter(has_text="paused")).to_have_count(0)
        expect(page.locator(".window")).to_be_focused()

    assert json.loads((tmp_path / "pages" / "control.json").read_text()) == {"paused": False, "hosts": []}


def test_who_uses_the_keyboard_stays_where_they_are(opened: Opened) -> None:
    with beside(lambda: fake_dashboard(FakeHouse(every=0.3))) as url:
        page = opened(url)
        choose(page, "polling")
        setting = panel(page).get_by_label("discovery.interval", exact=True)
        setting.fill("61")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator(".toast")).to_have_count(1)
        expect(setting).to_be_focused()

        page.get_by_role("button", name="Pause c00002.example").press("Enter")
        expect(page.locator(".toast")).to_have_count(2)
        expect(page.get_by_role("button", name="Resume c00002.example")).to_be_focused()


def test_what_can_be_undone_is_offered_to_be(opened: Opened) -> None:
    house = FakeHouse(every=0.3)
    with beside(lambda: fake_dashboard(house)) as url:
        page = opened(url)

        def undo() -> None:
            page.locator(".toast").last.get_by_role("button", name="Undo").click()

        choose(page, "polling")
        panel(page).get_by_role("button", name="Pause race 7f3ac201").click()
        undo()
        panel(page).get_by_label("race.interval", exact=True).fill("12")
        panel(page).get_by_role("button", name="Set race.interval").click()
        undo()
        expect(panel(page).get_by_label("race.interval", exact=True)).to_have_value("10")
        panel(page).get_by_role("button", name="Promote").first.click()
        expect(page.locator(".toast").last).to_contain_text("promote target")
        expect(page.locator(".toast").last.get_by_role("button")).to_have_count(1)
        choose(page, "events")
        panel(page).get_by_role("switch", name="Batches within messages").check()
        panel(page).get_by_role("button", name="Apply").click()
        undo()
        expect(panel(page).get_by_role("switch", name="Batches within messages")).not_to_be_checked()

    modes = [str({"new": True, "legacy": True, "inline": inline, "canary": 0.25}) for inline in (True, False)]
    done = [(each["action"], each["what"]) for each in reversed(house.audit)]
    assert done == [
        ("pause_target", "race 7f3ac201"),
        ("resume_target", "race 7f3ac201"),
        ("set", "race.interval 12"),
        ("set", "race.interval None"),
        ("promote_target", "race 1c19e04"),
        *(("modes", each) for each in modes),
    ]


def test_pausing_a_system_is_asked_first(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path) as url:
        page = opened(url)
        pause = panel(page).get_by_role("button", name="Pause", exact=True)

        pause.click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert not (tmp_path / "audit.jsonl").exists()

        pause.click()
        page.get_by_role("dialog").get_by_role("button", name="Pause it").click()
        expect(page.locator(".toast")).to_contain_text("Done:")
        assert json.loads((tmp_path / "pages" / "control.json").read_text())["paused"] is True


def test_what_is_refused_says_why(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "polling", changed(ALL["polling"], wall=time.time()))
    with served(tmp_path) as url:
        page = opened(url)
        panel(page).get_by_role("button", name="Pause", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Pause it").click()

        expect(page.locator(".toast.refused")).to_contain_text("Refused:")
        expect(page.locator(".audit tbody tr")).to_contain_text(["refused"])
        (entry,) = lines(tmp_path / "audit.jsonl")
        assert entry["why"] in page.locator(".toast.refused").inner_text()


def test_a_setting_is_not_overwritten_while_somebody_types(opened: Opened, tmp_path: Path) -> None:
    with beside(lambda: polled(tmp_path / "polling")), served(tmp_path) as url:
        page = opened(url)
        row = panel(page).locator(".settings tbody tr").first
        key, usual = row.locator("code").inner_text(), row.locator("input").input_value()
        row.locator("input").fill("not a value of it")
        page.locator("h1").click()
        for followers in (91, 92):  # what comes in meanwhile
            put(tmp_path / "polling", changed(ALL["polling"], wall=time.time(), pid=PID, followers=followers))
            expect(panel(page).locator(".numbers")).to_contain_text(str(followers))
        assert row.locator("input").input_value() == "not a value of it"

        row.get_by_role("button", name="Set").click()
        expect(page.locator(".toast.refused")).to_contain_text(key)
        row.locator("input").fill(usual)
        expect(row.get_by_role("button", name="Set")).to_be_hidden()


def test_everything_that_was_given_up_is_replayed_only_if_that_is_meant(
    opened: Opened, fake: tuple[FakeHouse, str]
) -> None:
    house, url = fake
    page = opened(url)
    choose(page, "events")
    panel(page).get_by_role("button", name="Replay all 3").click()
    page.get_by_role("dialog").get_by_role("button", name="Replay all").click()
    expect(page.locator(".toast")).to_have_count(1)
    panel(page).get_by_role("button", name="Replay batch-0002").click()
    expect(page.locator(".toast")).to_have_count(2)
    panel(page).get_by_role("switch", name="Batches within messages").check()
    panel(page).get_by_role("button", name="Apply").click()
    expect(page.locator(".toast")).to_have_count(3)

    done = [(each["action"], each["what"]) for each in reversed(house.audit)]
    modes = {"new": True, "legacy": True, "inline": True, "canary": 0.25}
    assert done == [("replay_dead", "True"), ("replay_dead", "batch-0002"), ("modes", str(modes))]


# The files.


# What is on what, and how many times as bright it is at least: 4.5 to be read (WCAG AA), 3 to be seen.
CONTRASTS = [
    *((ink, ground, 4.5) for ink in ("ink", "muted", "tide", "amber", "coral") for ground in ("surface", "raised")),
    *((ink, "tide-soft", 4.5) for ink in ("ink", "muted", "tide", "amber", "coral")),
    *((tone, f"{tone}-soft", 4.5) for tone in ("tide", "amber", "coral")),
    ("muted", "slate-soft", 4.5),
    ("on-tide", "tide", 4.5),
    *((line, "surface", 3.0) for line in ("tide", "slate", "coral", "amber", "edge")),
    ("edge", "slate-soft", 3.0),
]


def brightness(colour: str) -> float:
    """The relative luminance of #rrggbb."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("above", "below", "least"), CONTRASTS)
def test_colours_can_be_told_from_what_they_are_on(above: str, below: str, least: float) -> None:
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (FOLDER / "app.css").read_text())
    colours = {name: themes for name, *themes in found}

    for one, other in zip(colours[above], colours[below], strict=True):
        dark, bright = sorted((brightness(one), brightness(other)))
        assert (bright + 0.05) / (dark + 0.05) >= least, (one, other)


PARSE = """
import { readFileSync } from "node:fs";
import vm from "node:vm";
for (const path of process.argv.slice(1)) new vm.SourceTextModule(readFileSync(path, "utf8"), { identifier: path });
"""


def test_scripts_can_be_parsed() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on this machine")
    options = ["--experimental-vm-modules", "--no-warnings", "--input-type=module"]
    paths = [str(path) for path in FOLDER.glob("*.js")]

    parsed = subprocess.run(  # noqa: S603 - our own files
        [node, *options, "-e", PARSE, *paths], text=True, check=False, capture_output=True
    )

    assert len(paths) > 5
    assert (parsed.returncode, parsed.stderr) == (0, "")


def test_the_files_need_nobody_else_and_make_no_markup_of_text() -> None:
    for path in FOLDER.glob("*.js"):
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path.name
    page = (FOLDER / "index.html").read_text()
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=\"", page)
