"""Who is searched for, by whom, and which batch is whose."""

import re
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.job_ids import as_uuid, parse_job
from sanderling.worlds.social_market import (
    BRANDS,
    PLATFORMS,
    SIZES,
    Brand,
    Market,
    MarketRules,
    SearchRun,
    without_marks,
)

RULES = st.builds(
    MarketRules,
    projects=st.integers(1, 12),
    competitors=st.integers(0, 4),
    longest=st.integers(1, 5),
    dry_runs=st.integers(0, 4),
)


def market(rules: MarketRules | None = None) -> Market:
    return Market(rules or MarketRules(projects=10), Random(1))


def runs(of: Market, rounds: int = 1) -> list[SearchRun]:
    return [of.run(number) for number in range(rounds * of.round)]


@given(RULES, st.integers(0, 5))
def test_in_a_round_every_job_has_all_its_batches_in_their_order(rules: MarketRules, turn: int) -> None:
    made = Market(rules, Random(3))

    places: dict[int, list[int]] = {}
    for number in range(turn * made.round, (turn + 1) * made.round):
        run = made.run(number)
        assert (run.round, run.number) == (turn, number)
        places.setdefault(run.job.place, []).append(run.index)

    assert places == {job.place: list(range(job.batches)) for job in made.jobs}
    assert all(1 <= job.batches <= rules.longest for job in made.jobs)


@given(RULES)
def test_only_the_last_batch_of_a_job_is_smaller(rules: MarketRules) -> None:
    for run in runs(Market(rules, Random(5))):
        full = SIZES[run.job.platform]
        last = run.index == run.job.batches - 1
        assert 1 <= run.size <= full
        assert last or run.size == full


@given(RULES)
def test_every_project_has_its_jobs_on_both_platforms(rules: MarketRules) -> None:
    made = Market(rules, Random(7))

    searched = Counter((job.project.id, job.brand.name, job.platform) for job in made.jobs if job.project)
    wanted = [(each.id, brand.name) for each in made.projects for brand in (each.brand, *each.competitors)]
    assert searched == Counter((*each, platform) for each in wanted for platform in PLATFORMS)
    assert sum(job.project is None for job in made.jobs) == rules.dry_runs
    assert len({project.id for project in made.projects}) == rules.projects


def test_the_batches_of_jobs_come_mixed() -> None:
    jobs = [run.job.place for run in runs(market())]

    assert sum(one == other for one, other in pairwise(jobs)) < len(jobs) / 4


@given(st.integers(0, 10**6))
def test_the_id_of_a_job_says_whose_it_is(number: int) -> None:
    run = market().run(number)

    job = parse_job(run.job_id)

    assert job.project == run.project_id
    assert job.dry_run == (run.job.project is None)
    assert len(run.job_id) <= 100


SHAPES = {
    "a UUID and brand": r"[0-9a-f-]{36}-brand-\d+",
    "a UUID and a competitor with hyphens in its name": r"[0-9a-f-]{36}-competitor-\w+-\w+-\d+",
    "a UUID and a competitor with Vietnamese letters": r"[0-9a-f-]{36}-competitor-[\w-]*[ăâđêôơưếấầậ][\w-]*-\d+",
    "a UUID in capitals": r"[0-9A-F]{8}-[0-9A-F-]{27}-competitor-.*",
    "a name and brand": r"proj_[0-9a-f]{6}-brand-\d+",
    "a name and a competitor": r"proj_[0-9a-f]{6}-[A-Za-z]+-\d+",
    "a name and a competitor with hyphens": r"proj_[0-9a-f]{6}-competitor-[\w-]+-\d+",
    "a name with hyphens and brand": r"[a-z]+-\w+-[a-z]+\d*-brand-\d+",
    "a name with hyphens and competitor": r"[a-z]+-\w+-[a-z]+\d*-competitor-\d+",
    "a dry run": r"[0-9a-f-]{36}",
    "a dry run in capitals": r"[0-9A-F-]{36}",
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_ids_of_jobs_come_in_every_shape(shape: str) -> None:
    made = market()

    assert any(re.fullmatch(shape, run.job_id) for run in runs(made, rounds=8))


def test_all_batches_of_a_job_have_one_id_and_jobs_of_one_platform_have_different_ones() -> None:
    ids: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for run in runs(market(), rounds=4):
        ids.setdefault((run.job_id, run.job.platform), set()).add((run.round, run.job.place))

    assert all(len(jobs) == 1 for jobs in ids.values())


def test_two_of_five_projects_are_older_than_uuids() -> None:
    assert sum(as_uuid(project.id) is None for project in market().projects) == 4


def test_a_search_counts_its_batches_through_all_rounds() -> None:
    made = market()
    counted: dict[int, list[int]] = {}
    for run in runs(made, rounds=3):
        counted.setdefault(run.job.place, []).append(run.counted)

    assert all(sorted(each) == list(range(len(each))) for each in counted.values())


def test_a_brand_is_written_in_four_ways() -> None:
    assert Brand.of("Sếu Đỏ-7") == Brand("Sếu Đỏ-7", bare="Seu Do-7", slug="Sếu-Đỏ-7", tag="seudo7")


@given(st.text("aăâàáđĐeêếoôơớuưứiíyỳ -7"))
def test_without_marks_there_are_none(text: str) -> None:
    assert without_marks(without_marks(text)) == without_marks(text)
    assert without_marks(text).isascii()
    assert len(without_marks(text)) == len(text)


def test_names_have_hyphens_digits_and_vietnamese_letters() -> None:
    assert any("-" in name for name in BRANDS)
    assert any(letter.isdigit() for name in BRANDS for letter in name)
    assert sum(not name.isascii() for name in BRANDS) >= 3
    assert len(set(BRANDS)) == len(BRANDS)
