import pytest
from memory_progress import MemoryProgress
from progress_contract import Opens, ProgressContract


@pytest.fixture
def opens() -> Opens:
    one = MemoryProgress()
    return lambda: one


class TestMemoryProgress(ProgressContract):
    """The twin keeps the same promises, but for that of outliving its process."""

    test_a_record_is_whole_or_not_there_whenever_the_crawl_is_killed = None  # type: ignore[assignment]
