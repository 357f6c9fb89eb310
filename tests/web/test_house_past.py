"""The last day of every system, on disk: bounded, shared, and never what holds the dashboard up."""

from pathlib import Path

import msgspec
import pytest
from dashboard_house import dashboard
from known_reports import PAGES, put
from looping import in_loop

from sanderling.stores.durable import FolderError
from sanderling.web.house_past import DAY, EVERY, FILE, MOST_POINTS, Means, Past, PastQuery

WALL = 1_800_000_000


def test_a_mean_is_of_what_is_known() -> None:
    means = Means()
    for point in (2.0, None, 4.0):
        means.take("pages", {"kept": point, "lag": None})
    means.take("repos", {"kept": None})

    assert means.give() == {"pages": {"kept": 3.0}}
    assert means.give() == {}


@pytest.mark.parametrize("seconds", [3600, 21600, 86400])
def test_a_range_has_its_points_and_no_more_than_can_be_drawn(tmp_path: Path, seconds: int) -> None:
    past = Past(tmp_path)
    for back in range(0, DAY, 1200):
        past.write(WALL - back, {"pages": {"kept": float(back)}})

    shown = past.read(PastQuery("pages", seconds), WALL)  # type: ignore[arg-type]

    points = shown.series["kept"]
    assert len(points) * shown.every == seconds
    assert len(points) <= MOST_POINTS
    assert points[-1] == 0.0
    assert [each for each in points if each is not None] == [float(back) for back in range(0, seconds, 1200)][::-1]
    assert shown.from_ + (len(points) - 1) * shown.every <= WALL


def test_the_file_holds_a_day_however_long_it_is_written(tmp_path: Path) -> None:
    past, sizes = Past(tmp_path), []
    for day in range(3):
        for back in range(0, DAY, 600):
            past.write(WALL + day * DAY + back, {"pages": {"kept": float(day), "failed": 0.0}})
        sizes.append((tmp_path / FILE).stat().st_size)

    assert sizes[1] == sizes[2]
    shown = past.read(PastQuery("pages", 86400), WALL + 3 * DAY - EVERY)
    assert {each for each in shown.series["kept"] if each is not None} == {2.0}


def test_systems_that_are_gone_for_a_day_are_forgotten(tmp_path: Path) -> None:
    past = Past(tmp_path)
    past.write(WALL, {"old": {"kept": 1.0}})
    past.write(WALL + DAY + EVERY, {"new": {"kept": 1.0}})

    assert past.read(PastQuery("old", 86400), WALL).series == {}
    assert past.read(PastQuery("new", 86400), WALL + DAY + EVERY).series["kept"][-1] == 1.0


@in_loop
async def test_a_point_is_written_every_ten_seconds_and_none_where_nothing_runs(tmp_path: Path) -> None:
    past = Past(tmp_path)
    await past.take(WALL, [("pages", {"kept": None})])
    await past.take(WALL + 10, [])
    assert not (tmp_path / FILE).exists()

    for second in range(11, 31):
        await past.take(WALL + second, [("pages", {"kept": float(second)})])

    kept = [each for each in past.read(PastQuery("pages"), WALL + 30).series["kept"] if each is not None]
    assert kept == [15.5, 25.5]


@in_loop
@pytest.mark.parametrize("how", ["folder", "link", "text"])
async def test_a_file_that_cannot_be_written_is_said_and_holds_nothing_up(tmp_path: Path, how: str) -> None:
    match how:
        case "folder":
            (tmp_path / FILE).mkdir()
        case "link":
            (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
        case "text":
            (tmp_path / FILE).write_text("not a database" * 100)
    past = Past(tmp_path)

    await past.take(WALL, [("pages", {"kept": 1.0})])

    assert FILE in past.trouble
    assert not (tmp_path / "elsewhere").exists()
    if how != "text":
        assert past.read(PastQuery("pages"), WALL).trouble == past.trouble
    else:
        with pytest.raises(FolderError):
            past.read(PastQuery("pages"), WALL)


@in_loop
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("system=pages&range=3600", 200),
        ("system=pages&range=86400", 200),
        ("system=pages&range=5", 400),
        ("system=pages&range=1e9", 400),
        ("system=nobody", 404),
        ("", 400),
    ],
)
async def test_the_past_is_asked_for_by_system_and_range(tmp_path: Path, query: str, status: int) -> None:
    put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path) as house:
        answer = await house.ask("GET", f"/api/history?{query}")

    assert answer.status == status
    if status == 200:
        assert set(msgspec.json.decode(answer.body)) == {"every", "from", "series", "trouble"}
