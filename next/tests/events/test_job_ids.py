"""Whose a job is: the cases of the seed's tests, those of production, and what a message adds."""

import pytest

from sanderling.events.job_ids import extract_project_id, project_of

UUID = "fc5d5ffb-36cc-4c8d-a288-f5215af7fb80"
OTHER = "0b7f9c1e-1111-4222-8333-444455556666"
SEED = [
    ("proj_abc123-brand-0", "proj_abc123"),
    ("proj_xyz-brand-5", "proj_xyz"),
    ("proj_xyz-toyota-5", "proj_xyz"),
    ("my-project-name-competitor-10", "my-project-name"),
    (UUID, None),
    (UUID.upper(), None),
    ("", None),
    ("proj_xyz-brand", None),
    ("proj_xyz-brand-abc", None),
    ("proj_xyz-0", None),
    ("  proj_xyz-brand-0  ", "proj_xyz"),
    ("proj-2024-q1-campaign-brand-3", "proj-2024-q1-campaign"),
]


@pytest.mark.parametrize(("job", "project"), SEED)
def test_the_cases_of_the_seed_hold_with_its_function_and_without(job: str, project: str | None) -> None:
    assert extract_project_id(job) == project
    assert project_of(job, "", seed=False) == project


def test_what_is_no_text_is_no_job() -> None:
    assert extract_project_id(None) is None
    assert extract_project_id(17) is None


@pytest.mark.parametrize(
    ("job", "told", "project"),
    [
        (f"{UUID}-competitor-Misa-0", "", UUID),
        (f"{UUID.upper()}-competitor-Coca-Cola-0", "", UUID),
        (f"{UUID}-brand-3", UUID, UUID),
        (f"{UUID}-brand-3", UUID.upper(), UUID),
        (f"{UUID}-brand-3", OTHER, None),  # one is wrong, and nobody can tell which
        (f"{UUID}-brand-3", "north-star", UUID),  # a UUID is a statement, a name a guess
        (f"{UUID}-7", "", None),  # may be a dry run that counts
        (f"{UUID}-dryrun-7", "", None),
        (UUID, OTHER, OTHER),
        ("north-star-coca-cola-0", "", None),  # two readings
        ("north-star-coca-cola-0", "north-star", "north-star"),
        ("north-star-coca-cola-0", "south", None),
        ("proj_xyz-brand-0", "proj_abc", None),
        ("proj_xyz-brand-0", OTHER, OTHER),
        ("", "proj_abc", None),
        ("", UUID, UUID),
        ("dryrun-brand-0", "", None),
        (f"x-{UUID}-brand-0", "", None),
        ("a-b-٣", "", None),  # no digit of ASCII
    ],
)
def test_none_where_two_projects_are_possible(job: str, told: str, project: str | None) -> None:
    assert project_of(job, told, seed=False) == project


def test_as_the_seed_has_it_the_message_stands_in() -> None:
    assert project_of("x", "proj_abc", seed=True) == "proj_abc"
    assert project_of(f"{UUID}-competitor-Misa-0", "", seed=True) == f"{UUID}-competitor"
