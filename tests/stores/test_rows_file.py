"""What a file of rows says is on disk is on disk: no power cut takes back what somebody was told."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.stores import durable, rows_file
from sanderling.stores.durable import write_new
from sanderling.stores.rows_file import RowsFile, reaches


class Disk:
    """Knows which files have changes that only the kernel's memory has. The calls are made all the same."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.unsafe: set[int] = set()  # inodes
        self.replaced: list[bool] = []  # of each file that got its name: whether all of it was safe
        sync = self._noting(os.fsync, self.unsafe.discard)
        for name in ("write", "ftruncate"):
            patch.setattr(os, name, self._noting(getattr(os, name), self.unsafe.add))
        patch.setattr(os, "fsync", sync)
        patch.setattr(durable, "sync_data", sync)
        patch.setattr(rows_file, "sync_data", sync)
        replace = Path.replace

        def noting(path: Path, target: Path) -> Path:
            self.replaced.append(path.stat().st_ino not in self.unsafe)
            return replace(path, target)

        patch.setattr(Path, "replace", noting)

    @staticmethod
    def _noting(call: Callable[..., int | None], note: Callable[[int], object]) -> Callable[..., int | None]:
        def noted(handle: int, *rest: object) -> int | None:
            result = call(handle, *rest)
            note(os.fstat(handle).st_ino)
            return result

        return noted


ROW = st.binary(max_size=20).map(lambda row: row.replace(b"\n", b"."))
# Rows that are appended, and whether the process dies before the ledger vouches for them.
GROUPS = st.lists(st.tuples(st.lists(ROW, max_size=4), st.booleans()), max_size=6)


@given(GROUPS)
def test_rows_that_are_vouched_for_are_on_disk_and_no_others_are_kept(
    tmp_path_factory: pytest.TempPathFactory, groups: list[tuple[list[bytes], bool]]
) -> None:
    path, kept, watermark = tmp_path_factory.mktemp("rows") / "rows", b"", 0
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch)
        rows = RowsFile(path, watermark)
        for group, dies in groups:
            end = rows.append(group)
            assert not disk.unsafe
            assert path.stat().st_size == end
            if dies:
                rows.close()
                rows = RowsFile(path, watermark)
                assert not disk.unsafe, "what is behind the watermark could come back"
            else:
                kept, watermark = kept + b"".join(row + b"\n" for row in group), end
            assert rows.length == watermark
            assert reaches(path, watermark)
        rows.close()

    assert path.read_bytes() == kept
    assert path.stat().st_mode & 0o600 == 0o600, "the next run opens it again"
    assert not reaches(path, len(kept) + 1)


def test_a_file_gets_its_name_when_all_of_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)

    write_new(tmp_path / "file", [b"a", b"b"])

    assert disk.replaced == [True]
