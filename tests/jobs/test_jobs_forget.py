"""What a job is to forget is gone with its records, whenever it was killed, and never asked for again."""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_api import api, run
from small_shop import SHOP, items, shop, shop_job

from sanderling.crawls.kept import Keep
from sanderling.jobs import forget
from sanderling.jobs.verify import verify_job
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_requests import RequestFrontier


def item(number: int) -> str:
    """The page of an item, of which one record comes."""
    return f"{SHOP}/item/{number}"


def made(folder: Path, keep: Keep | None = None) -> Path:
    """A job that has ended."""
    run(shop_job(), folder, api(shop()), rps=100, keep=keep)
    return folder


def numbers(folder: Path) -> list[int]:
    """Of which items there are records."""
    return sorted(each["number"] for each in run(shop_job(), folder, api(shop()), rps=100).records)


@settings(max_examples=8, deadline=None)
@given(gone=st.sets(st.sampled_from([each["number"] for each in items(without=13)]), min_size=1, max_size=6))
def test_records_go_with_the_request_that_they_came_of(
    tmp_path_factory: pytest.TempPathFactory, gone: set[int]
) -> None:
    folder = made(tmp_path_factory.mktemp("job") / "out")
    for some in (sorted(gone)[:2], sorted(gone)[2:]):  # what moved up is found in its turn
        lines = [item(number) for number in some]
        counted = forget.survey(folder, lines)
        forget.begin(folder, lines, [])
        assert forget.finish(folder) == counted == (len(some), len(some), 0, 0)

    assert verify_job(folder).problems == []
    assert numbers(folder) == [each["number"] for each in items(without=13) if each["number"] not in gone]
    assert verify_job(folder).problems == []


@pytest.mark.parametrize("keep", ["html", "warc"])
def test_answers_that_are_kept_go_too(tmp_path: Path, keep: Keep) -> None:
    folder = made(tmp_path / "out", keep)
    forget.begin(folder, [item(17)], [])

    removed = forget.finish(folder)

    assert (removed.records, removed.files, removed.captures) == (1, int(keep == "html"), int(keep == "warc"))
    assert verify_job(folder).problems == []
    held = [path for path in folder.rglob("*") if path.is_file()]
    unpacked = {
        path: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in held
    }
    assert [path.name for path, data in unpacked.items() if b"/item/17 " in data or b'/item/17"}' in data] == []


def test_what_was_forgotten_is_not_asked_for_again(tmp_path: Path) -> None:
    folder = made(tmp_path / "out")
    forget.begin(folder, [f"{SHOP}/*"], [])
    forget.finish(folder)
    ledger = RequestFrontier(folder / "frontier.db", ())
    ledger.note(begun=False)  # so that the job says once more where it starts
    ledger.close()
    again = api(shop())

    run(shop_job(), folder, again, rps=100)

    assert [url for url in again.urls if not url.endswith("/robots.txt")] == []


def test_records_of_an_earlier_release_are_refused_before_anything_changes(tmp_path: Path) -> None:
    folder = made(tmp_path / "out")
    ledger = RequestFrontier(folder / "frontier.db", ())
    ledger._db.execute("DELETE FROM wrote WHERE id = (SELECT max(id) FROM wrote)")
    ledger.close()

    with pytest.raises(FolderError, match="earlier release"):
        forget.begin(folder, [item(17)], [])
    assert not (folder / "forgotten.json").exists()


class KilledError(BaseException):
    """Nobody catches it."""


def test_killed_before_any_step_the_next_run_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, left = made(tmp_path / "out", "warc"), 0
    real: list[tuple[Any, str]] = [(os, "fsync"), (os, "truncate"), (Path, "replace"), (Path, "unlink")]

    def dying(step: Any) -> Any:  # noqa: ANN401 - a function
        def last(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - the same
            nonlocal left
            left -= 1
            if left < 0:
                raise KilledError
            return step(*given, **more)

        return last

    forget.begin(folder, [item(17), item(19)], [])
    for at in range(200):
        with monkeypatch.context() as patched:
            left = at
            for of, name in real:
                patched.setattr(of, name, dying(getattr(of, name)))
            try:
                forget.finish(folder)
            except KilledError:
                continue
        break

    assert at > 8
    assert verify_job(folder).problems == []
    assert {17, 19}.isdisjoint(numbers(folder))
