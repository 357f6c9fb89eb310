"""What strangers found in the second edition, and what keeps it from coming back: a test, or why it cannot occur."""

import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from crawl.sites import HTML, Answer, Site, crawl, page, pages_options, rows, served

from sanderling.crawl.system import tasks, verify
from sanderling.fetch.connect import Guarded
from sanderling.fetch.guard import Refused
from sanderling.files import Exit, FolderError

TESTS = Path(__file__).parent.parent
# The name of a test, or the reason why there is none.
REPAIRS = {
    "a body of comments without a type never returns": "test_no_text_makes_an_expression_slow",
    "spaces in Content-Length are quadratic": "test_a_hostile_answer_is_one_outcome",
    "chosen tag names cost seconds": "test_40_000_chosen_tag_names_are_no_worse_than_others",
    "a chunk of a negative length in a WARC": "test_records_of_other_writers",
    "a bomb in a WARC": "test_a_record_with_a_bomb_costs_no_memory",
    "empty frames and members": "test_many_empty_members_end_it_and_cost_in_proportion",
    "patterns of jobs are polynomial": "test_no_text_makes_an_expression_slow",
    "a head that comes byte by byte": "test_what_is_four_times_as_long_does_not_cost_sixteen_times_as_much",
    "robots.txt with many stars": "test_rules_with_stars_beyond_the_bound_are_read_more_strictly",
    "scripts of rendered pages send anything": "test_nothing_leaves_a_hostile_page",
    "Chromium without its sandbox": "test_as_root_the_sandbox_is_not_switched_off_silently",
    "headers with secrets follow a redirect": "test_nothing_that_a_person_set_goes_to_another_origin",
    "a password in the environment of children": "test_a_reader_has_neither_our_environment_nor_our_descriptors",
    "--private proposed for what a page named": "test_private_is_proposed_for_what_a_person_typed_only",
    "a resumed crawl forgets its --rps": "test_a_crawl_that_goes_on_keeps_its_pace",
    "two folders request one host at once": "test_a_crawl_beside_another_leaves_its_hosts_alone",
    # 60 % of failures
    "faster": "test_a_host_of_which_three_responses_in_five_fail_is_never_requested_faster_than_at_the_start",
    "600 items beside eight facets": "test_an_honest_site_that_looks_like_a_trap_is_fetched_whole",
    "retried failures wait instead": "test_failures_that_are_retried_fail_again_by_their_own_fault",
    "another --keep, --depth, --allow is ignored": "test_other_options_are_heeded_or_refused",
    "forget deletes an export": "test_exports_are_written_anew_or_refused_before_anything_is_removed",
    "a name that begins to point inside": "test_a_host_whose_name_leads_inside_is_set_aside",
    "forget beside a crawl leaves the page": "test_a_crawl_that_runs_forgets_too",
    "items of a crawl with --processes": "there are no parts any more: one ledger has all items",
    "a resumed crawl begins with earlier counters": "there are no parts any more: counts are the ledger's",
    "--processes auto fails on macOS": "test_other_systems_have_neither",
    "ledger.next is known to some commands only": "no file takes the ledger's place any more: SQLite changes it",
    "all of them decided, beside what waits": "test_bounds_say_what_they_cut_and_a_larger_one_goes_on",
    "show finds nothing where forget does": "test_show_finds_what_forget_finds",
    "--where on a field that is nowhere": "test_what_is_refused_changes_nothing",
    "export cannot overwrite": "test_replace_writes_anew",
    "a noindex row keeps its language": "test_what_a_page_says_to_robots",
    "refusals use up the host's pace": "test_private_is_proposed_for_what_a_person_typed_only",
}  # fmt: skip


def test_each_repair_has_its_test() -> None:
    tests = " ".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    assert [name for name in REPAIRS.values() if " " not in name and f"def {name}(" not in tests] == []


@pytest.mark.real
async def test_private_is_proposed_for_what_a_person_typed_only(tmp_path: Path) -> None:
    """A page that leads to the machine itself, or to a metadata service, costs nothing and proposes nothing."""
    links = ["http://169.254.169.254/latest", "/a"]
    site = Site({"/": page("Front", links=links), "/a": page("A")})
    async with served(site):
        allow = ("169.254.169.254",)
        code, run = await crawl(pages_options(tmp_path, site.base + "/", allow=allow, private=True))
    report = run.report(running=False)

    assert code == Exit.DONE
    assert site.requests == ["/", "/a"]
    said = " ".join([*report.troubles, *(" ".join(each.words) for each in report.hints)])
    assert "--private" not in said
    assert {row["end"] for row in rows(tmp_path, "failed.jsonl").values()} == {"refused"}


@pytest.mark.real
async def test_other_options_are_heeded_or_refused(tmp_path: Path) -> None:
    site = Site({"/": page("Front", links=["/a"]), "/a": page("A")})
    async with served(site):
        await crawl(pages_options(tmp_path, site.base + "/", max_pages=1))
        for given in ({"depth": 3}, {"allow": ("b.example",)}, {"text": "none"}, {"only": ("/a",)}):
            with pytest.raises(FolderError, match=next(iter(given))):
                await crawl(pages_options(tmp_path, **given))
        await crawl(pages_options(tmp_path, max_pages=9, keep="html"))
    assert ["body_path" in row for row in rows(tmp_path).values()] == [False, True]


@pytest.mark.real
async def test_a_host_whose_name_leads_inside_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages wait: none of them has failed."""
    turned = False

    def turn(request: web.Request) -> Answer:
        nonlocal turned
        turned = True
        return 200, {**HTML, "Connection": "close"}, page("Turn", links=[f"/{n}" for n in range(30)])

    make_socket = Guarded.make_socket

    def look(self: Guarded, address: Any) -> socket.socket:
        if turned:
            raise Refused("it leads to 169.254.169.254")
        return make_socket(self, address)

    monkeypatch.setattr(Guarded, "make_socket", look)
    site = Site({"/": turn})
    async with served(site):
        code, _ = await crawl(pages_options(tmp_path, site.base + "/", patience=1.0))
        waiting = [each async for each in tasks(tmp_path, "waiting", None, None)]

    assert (code, len(waiting)) == (Exit.WAITING, 30)
    assert site.requests == ["/"]


@pytest.mark.real
async def test_show_finds_what_forget_finds(tmp_path: Path) -> None:
    from crawl.sites import job_options

    from sanderling.crawl.system import forget, show

    site, file, out = Site({"*": (200, HTML, "x")}), tmp_path / "a.py", tmp_path / "out"
    text = 'from sanderling import Job\njob = Job("a", start="BASE/x?b=1&a=2")\n@job.read\ndef r(_): return {"a": 1}'
    async with served(site):
        file.write_text(text.replace("BASE", site.base))
        await crawl(job_options(out, file))
        for url in (f"{site.base}/x?b=1&a=2", f"{site.base}/x?a=2&b=1"):
            assert len((await show(out, url)).records) == 1
        assert await forget(out, (f"{site.base}/x?b=1&a=2",)) == "addresses forgotten: 1"
        assert not (await show(out, f"{site.base}/x?b=1&a=2")).records
    assert not (await verify(out)).faults
