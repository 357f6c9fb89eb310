"""How the page of the dashboard looks: on a phone, in colours of one's own, and to a screen reader."""

import re
import time
from pathlib import Path
from typing import Any

from dashboard_browser import Opened, choose, panel, served
from dashboard_fake import FakeHouse
from known_reports import ALL, PAGES, changed, put
from playwright.sync_api import expect

pytest_plugins = ["dashboard_fixtures"]


def test_a_phone_needs_no_scrolling_sideways(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1], viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    for name in ALL:
        choose(page, name)
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide == [390, 390], name
    assert page.locator(".hosts tbody th").first.bounding_box()["width"] > 90  # type: ignore[index] # it is there


def test_what_is_written_along_the_road_never_touches(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(fake[1])
    expect(page.locator(".station text")).to_have_count(5)
    look = """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
        const room = 2;
        const all = [...document.querySelectorAll(".drawing text")];
        const boxes = all.filter(e => e.textContent).map(e => [e.textContent, e.getBoundingClientRect()]);
        const edge = document.querySelector(".drawing").getBoundingClientRect();
        const out = boxes.filter(([, box]) => box.left < edge.left || box.right > edge.right);
        const pairs = boxes.flatMap((one, at) => boxes.slice(at + 1).map(other => [one, other]));
        const close = pairs.filter(([[, a], [, b]]) => a.left < b.right + room && b.left < a.right + room
            && a.top < b.bottom && b.top < a.bottom);
        done([...out.map(([text]) => text), ...close.map(([[one], [other]]) => `${one} | ${other}`)]);
    })))"""

    for width in (320, 390, 640, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(look) == [], width


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

    page.get_by_role("searchbox", name="Search hosts").fill("0004")

    expect(said).to_have_text(re.compile(r"^\d+ of 200 hosts$"))  # and nothing of the changes before it
