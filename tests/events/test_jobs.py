"""Which project the id of a job names: the right one or none, never another's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.job_ids import LONGEST, JobId, as_uuid, parse_job

UUID = "fc5d5ffb-36cc-4c8d-a288-f5215af7fb80"
OTHER = "00000000-1111-2222-3333-444444444444"

WORDS = ["acme", "north", "star", "2024", "q1", "7", "proj_xyz", "été", "VF8"]
names = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("-".join)
anything = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("job_id", "project"),
    [
        ("proj_abc123-brand-0", "proj_abc123"),
        ("proj_xyz-brand-5", "proj_xyz"),
        ("proj_xyz-toyota-5", "proj_xyz"),
        ("my-project-name-competitor-10", "my-project-name"),
        (UUID, None),
        (UUID.upper(), None),
        ("", None),
        (None, None),
        ("proj_xyz-brand", None),
        ("proj_xyz-brand-abc", None),
        ("proj_xyz-0", None),
        ("  proj_xyz-brand-0\n", "proj_xyz"),
        ("proj-2024-q1-campaign-brand-3", "proj-2024-q1-campaign"),
    ],
)
def test_the_project_is_what_stands_before_kind_and_index(job_id: object, project: str | None) -> None:
    assert parse_job(job_id).project == project


@pytest.mark.parametrize(
    ("rest", "kind", "entity", "index"),
    [
        ("brand-0", "brand", "", 0),
        ("Brand-12", "brand", "", 12),
        ("brand-Acme-3", "brand", "Acme", 3),
        ("competitor-Misa-0", "competitor", "Misa", 0),
        ("competitor-Coca-Cola-0", "competitor", "Coca-Cola", 0),
        ("competitor-Galaxy-24-7", "competitor", "Galaxy-24", 7),
        ("competitor-VF8-0", "competitor", "VF8", 0),
        ("competitor-Cà Phê Sữa-1", "competitor", "Cà Phê Sữa", 1),
        ("competitor-株式会社-1", "competitor", "株式会社", 1),
        ("competitor-5", "competitor", "", 5),
        ("competitor-my-competitor-5", "competitor", "my-competitor", 5),
        ("competitor-brand-5", "competitor", "brand", 5),
        ("competitor-dryrun-5", "competitor", "dryrun", 5),
        ("competitor-Misa", "competitor", "Misa", None),
        ("competitor-Misa-²", "competitor", "Misa-²", None),
        ("competitor-Misa-1234567890", "competitor", "Misa-1234567890", None),
        ("brand", "brand", "", None),
        ("toyota-5", "other", "toyota", 5),
        ("coca-cola-007", "other", "coca-cola", 7),
    ],
)
def test_a_uuid_in_front_is_the_project(rest: str, kind: str, entity: str, index: int | None) -> None:
    job = parse_job(f"{UUID.upper()}-{rest}")

    assert (job.project, job.project_uuid) == (UUID, UUID)
    assert (job.kind, job.entity, job.index, job.dry_run) == (kind, entity, index, False)


@pytest.mark.parametrize(
    "job_id",
    [
        f"{UUID}-0",  # a dry run that counts?
        f"{UUID}-",
        f"{UUID}--0",
        f"{UUID}-toyota",
        f"{UUID}-{OTHER}-0",  # of whom is which?
        f"{UUID}_brand_0",
        f"{UUID}brand-0",
        f"proj-{UUID}-brand-0",
        f"job-{UUID}-0",
        "north-star-coca-cola-0",  # where does the project end?
        "my-brand-toyota-5",
        "acme-competitor-a-competitor-b-0",
        "acme-competitor-b-brand-0",
        "competitor-Misa-0",  # a project is missing, rather than called so
        "brand-Misa-0",
        "brand-competitor-0",
        "-brand-0",
        " -brand-0",
        "proj_xyz--0",
        "proj_xyz-brand-²",
        "proj_xyz-brand-٣",
        "proj_xyz-brand-1234567890",
        "proj_xyz-brand--1",
        "proj\0xyz-brand-1",
        "p" * LONGEST + "-brand-0",
        "-",
        "---",
        "   ",
    ],
)
def test_where_it_cannot_be_known_there_is_no_project(job_id: str) -> None:
    job = parse_job(job_id)

    assert (job.project, job.project_uuid, job.dry_run) == (None, None, False)
    assert job.raw == job_id.strip()


@pytest.mark.parametrize(
    "job_id",
    [
        UUID,
        f"  {UUID.upper()} ",
        f"{UUID}-dryrun-0",
        f"{UUID}-dry_run-1",
        "dryrun-acme-0",
        "DryRun-brand-0",
        "acme-dryrun-2",
    ],
)
def test_a_dry_run_belongs_to_no_project(job_id: str) -> None:
    job = parse_job(job_id)

    assert (job.project, job.dry_run, job.raw) == (None, True, job_id.strip())


@pytest.mark.parametrize("job_id", [None, 5, 5.5, True, [], {}, b"proj_xyz-brand-0"])
def test_what_is_no_text_says_nothing(job_id: object) -> None:
    assert parse_job(job_id) == JobId(None, "", "other", None, dry_run=False, raw="")


def test_a_named_project_is_no_uuid() -> None:
    job = parse_job("proj_xyz-competitor-Coca-Cola-3")

    assert (job.project, job.project_uuid) == ("proj_xyz", None)
    assert (job.kind, job.entity, job.index) == ("competitor", "Coca-Cola", 3)


@given(st.uuids(), anything, st.integers(0, 999_999_999))
def test_whatever_a_competitor_is_called_the_project_is_its_own(project: object, name: str, index: int) -> None:
    job = parse_job(f"{project}-competitor-{name}-{index}")

    assert (job.project, job.kind, job.entity, job.index) == (str(project), "competitor", name, index)


@given(names, names, st.integers(0, 99), st.sampled_from(["", "brand", "competitor", "competitor-"]), st.booleans())
def test_a_project_is_the_right_one_or_none(project: str, name: str, index: int, kind: str, twice: bool) -> None:  # noqa: FBT001 - drawn
    entity = f"{name}-competitor" if twice and kind == "competitor-" else name
    described = kind if kind in ("brand", "competitor") else f"{kind}{entity}"

    found = parse_job(f"{project}-{described}-{index}").project

    assert found in (project, None)
    if kind in ("brand", "competitor") or (kind == "competitor-" and not twice):
        assert found == project


@given(st.text(max_size=60) | anything.map(lambda text: f"{UUID}-{text}"))
def test_no_text_is_too_odd(text: str) -> None:
    job = parse_job(text)

    assert job.raw == text.strip()
    assert job.project is None or job.project.lower() in text.lower()
    assert job.index is None or job.project is not None


@pytest.mark.parametrize(
    "value", ["", "proj_xyz", UUID[:-1], UUID + "0", UUID.replace("-", ""), 5, None, ["x"], "é" * 200]
)
def test_what_is_no_uuid_is_none(value: object) -> None:
    assert as_uuid(value) is None


def test_a_uuid_is_spelled_in_one_way() -> None:
    assert as_uuid(f" {UUID.upper()} ") == UUID
