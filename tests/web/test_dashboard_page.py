"""The page of the dashboard in a real browser: what it shows, and how it goes on."""

import json
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest
from dashboard_browser import Opened, a_home, beside, choose, is_marked, mark, panel, served
from dashboard_fake import FakeHouse, fake_dashboard
from dashboard_house import TOKEN
from known_reports import ALL, PAGES, changed, host, put
from playwright.sync_api import Page, expect

HOSTILE = "<img src=x onerror=alert(1)>"

pytest_plugins = ["dashboard_fixtures"]


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
    found = host(HOSTILE, 1, HOSTILE, state="open", why=HOSTILE)
    put(tmp_path / HOSTILE.replace("/", ""), changed(PAGES, wall=time.time(), hosts=(found,), counts={HOSTILE: 3}))
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


def test_each_system_has_its_own_part(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1])
    shown = {
        "pages": ["How pages ended", "1,180,022", "1,256,819 of 1,298,542 URLs"],
        "sequence": ["Lag", "Workers", "120 → 80", "at the head in 40 s", "29,988 ids in them skipped"],
        "repos": ["2 h 21 min left", "635,897 of 818,297 repos", "deactivated", "Number 38", "1.4 GB"],
        "polling": ["every 200 ms", "Changed just now", "race_result", "Lateness", "race.active_interval"],
        "jobs": ["How requests ended", "8,044", "8,076 of 8,400 requests"],
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
    expect(page.get_by_role("tab")).to_have_count(len(ALL))
    page.keyboard.press("3")
    chosen = page.get_by_role("tab", selected=True)
    expect(chosen).to_contain_text("repos")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_contain_text("polling")
    page.keyboard.press("End")
    expect(chosen).to_contain_text("jobs")

    page.get_by_role("searchbox", name="Search hosts").press("2")

    expect(page.get_by_role("searchbox", name="Search hosts")).to_have_value("2")
    expect(chosen).to_contain_text("jobs")


def test_a_key_is_for_the_same_system_whether_it_runs_has_ended_or_is_not_there(opened: Opened, tmp_path: Path) -> None:
    now = time.time()
    for name in ("pages", "polling", "repos"):
        put(tmp_path / name, changed(ALL[name], wall=now, running=name != "pages"))
    put(tmp_path / "a-second-crawl", changed(PAGES, wall=now))
    with served(tmp_path) as url:
        page = opened(url)
        chosen = page.get_by_role("tab", selected=True)
        expect(page.get_by_role("tab")).to_contain_text(["a-second-crawl", "pages", "repos", "polling"])
        for key, name in (("4", "polling"), ("3", "repos"), ("1", "a-second-crawl"), ("1", "pages")):
            page.keyboard.press(key)
            expect(chosen).to_contain_text(name)
        page.keyboard.press("2")
        expect(page.locator("#said")).to_have_text("There is no sequence in this home.")
        expect(chosen).to_contain_text("pages")

        put(tmp_path / "repos", changed(ALL["repos"], wall=time.time(), running=False))
        page.keyboard.press("4")
        expect(chosen).to_contain_text("polling")


def test_what_ended_says_when_and_offers_nothing_that_needs_it_to_run(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path / "repos", changed(ALL["repos"], wall=time.time() - 90, running=False))
    put(tmp_path / "pages", PAGES, time.time() - 90)
    with served(tmp_path) as url:
        page = opened(f"{url}/#/repos")
        expect(panel(page).locator(".since")).to_have_text(re.compile(r"^ended at \d\d:\d\d:\d\d, 9\d s ago$"))
        assert "time left" not in panel(page).inner_text()
        expect(panel(page).locator("header button:visible")).to_have_count(0)
        expect(page.locator(".hosts tbody .act button:visible")).to_have_count(0)
        choose(page, "pages")
        expect(panel(page).locator(".badge").first).to_have_text("silent")
        expect(panel(page).locator(".since")).to_contain_text("it did not say that it ended")


def test_every_view_has_an_address_that_can_be_shared_and_gone_back_to(opened: Opened, tmp_path: Path) -> None:
    a_home(tmp_path)
    with served(tmp_path) as url:
        page = opened(f"{url}/#/sequence")
        heading = panel(page).get_by_role("heading", level=2)
        expect(heading).to_have_text("sequence")
        choose(page, "repos")
        page.get_by_role("button", name="b.example").first.click()
        expect(page.locator("#host")).to_contain_text("b.example")
        shared = page.url

        other = opened(shared)
        expect(other.locator("#host")).to_contain_text("b.example")
        expect(panel(other).locator("h2")).to_have_text("repos")

        page.go_back()
        expect(page.locator("#host")).to_be_hidden()
        page.go_back()
        expect(heading).to_have_text("sequence")
        page.go_forward()
        expect(heading).to_have_text("repos")


@pytest.mark.parametrize("hash_", ["#/%E0%A4%A?host=%00", "#/__proto__", f"#/{HOSTILE}?host={HOSTILE}", "#main", "#/"])
def test_an_address_that_makes_no_sense_shows_what_there_is(opened: Opened, tmp_path: Path, hash_: str) -> None:
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    with served(tmp_path) as url:
        page = opened(f"{url}/{hash_}")
        expect(panel(page).locator("h2")).to_have_text("pages")
        expect(page.locator(".hosts tbody button.link")).to_have_count(2)
        expect(page.locator("#host")).to_be_hidden()
        assert page.locator("img").count() == 0


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
