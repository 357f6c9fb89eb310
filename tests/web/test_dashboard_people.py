"""What people do on the page of the dashboard: look for hosts, pause, replay, change settings."""

import json
import re
import time
from pathlib import Path
from typing import Any

from dashboard_browser import Opened, beside, choose, panel, served
from dashboard_fake import FakeHouse, fake_dashboard
from dashboard_house import PID, polled, queued
from known_reports import ALL, PAGES, changed, many_hosts, put
from playwright.sync_api import Route, expect

HOSTS = 10_000

pytest_plugins = ["dashboard_fixtures"]


# Hosts.


def test_ten_thousand_hosts_scroll_in_a_small_page(opened: Opened, many: tuple[Path, str]) -> None:
    ordered = [each.host for each in sorted(many_hosts(HOSTS).hosts, key=lambda each: (-each.rate, each.host))]
    page = opened(many[1])
    window, rows = page.locator(".window"), page.locator(".hosts tbody tr")
    window.scroll_into_view_if_needed()
    page.get_by_role("columnheader", name="Allowed").get_by_role("button").click()
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
    page.get_by_role("searchbox", name="Search hosts").fill("-0424")
    expect(page.locator(".hosts tbody th")).to_have_count(10)
    expect(page.locator("#hosts header")).to_contain_text("10 of 10,000 hosts")
    page.get_by_role("searchbox", name="Search hosts").fill("nobody")
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
    put(tmp_path / "pages", changed(PAGES, wall=time.time()))
    (tmp_path / "pages" / "control.json").mkdir()
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


def test_items_are_turned_page_by_page_and_each_page_has_an_address(
    opened: Opened, fake: tuple[FakeHouse, str]
) -> None:
    page = opened(f"{fake[1]}/#/pages")
    first = page.locator(".items tbody th").first
    expect(first).to_contain_text("/page/0")
    expect(page.locator(".items tbody tr")).to_have_count(50)

    page.get_by_role("button", name="Next page").click()
    expect(first).to_contain_text("/page/50")
    page.reload()
    expect(first).to_contain_text("/page/50")
    page.go_back()
    expect(first).to_contain_text("/page/0")
    page.get_by_role("searchbox", name="Search these items").fill("503")
    expect(page).to_have_url(re.compile("search=503"))


def test_a_letter_that_was_given_up_is_replayed_from_its_list(opened: Opened, tmp_path: Path) -> None:
    with beside(lambda: queued(tmp_path / "events", "one", "two")), served(tmp_path) as url:
        page = opened(f"{url}/#/events?items=given+up&search=two")
        expect(page.locator(".items tbody th")).to_have_text(["two"])
        page.get_by_role("button", name="Replay two").last.click()
        expect(page.locator(".toast")).to_contain_text("1 message ready again")
        expect(page.locator("#items")).to_contain_text("Nothing is given up with that in it.")


def test_a_range_is_chosen_kept_in_the_address_and_told_in_words(opened: Opened, fake: tuple[FakeHouse, str]) -> None:
    page = opened(f"{fake[1]}/#/sequence")
    for label, lasting in (("1 h", "the last hour"), ("24 h", "the last day")):
        panel(page).get_by_role("button", name=label, exact=True).click()
        plot = panel(page).get_by_role("img", name=re.compile(f"^Lag, {lasting}. Now: behind"))
        expect(plot).to_be_visible()
        expect(plot.locator(".nothing")).to_be_hidden()
    page.reload()
    expect(plot).to_be_visible()
    panel(page).get_by_role("button", name="10 min").click()
    expect(panel(page).get_by_role("img", name=re.compile("^Lag, the last ten minutes"))).to_be_visible()
