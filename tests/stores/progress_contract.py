"""What every Progress promises."""

import random
from collections.abc import Callable
from typing import Protocol

import pytest
import recording
from hypothesis import given, settings
from hypothesis import strategies as st
from killed import killed
from recording import BATCH, CATEGORIES, batch, crawl, did

from sanderling.stores.ports import Finished, Progress, ProgressView, Unfinished

EMPTY = ProgressView(cursor="", completed=0, failed={}, segment=0, total_crawled=0, bytes_written=0)


class Store(Progress, Protocol):
    def close(self) -> None: ...


Opens = Callable[[], Store]


class ProgressContract:
    """A subclass has the fixtures `opens`, to open the same store again, and `argument`, which tells a child where."""

    @pytest.fixture
    def progress(self, opens: Opens) -> Store:
        return opens()

    def test_it_begins_with_nothing(self, progress: Store) -> None:
        assert progress.cursor() == ""
        assert progress.view() == EMPTY
        assert progress.pending([did(2), did(1)]) == [did(2), did(1)]
        assert progress.failed(CATEGORIES, "", 10) == []

    def test_a_restart_remembers(self, progress: Store, opens: Opens) -> None:
        crawl(progress, 3)
        before = progress.view()
        progress.close()

        again = opens()

        assert again.view() == before
        assert before == ProgressView(
            cursor=did(59), completed=54, failed={"not_found": 9, "timeout": 6}, segment=3, total_crawled=45,
            bytes_written=450,
        )  # fmt: skip
        assert again.cursor() == did(59)
        assert again.pending(batch(0)) == [did(1), did(3)]

    def test_without_a_cursor_the_old_one_stays(self, progress: Store) -> None:
        progress.record([], [], cursor=did(7), segment=1)

        progress.record([Finished(did(1), 5)], [], cursor=None, segment=2)

        assert (progress.cursor(), progress.view().segment) == (did(7), 2)

    def test_a_cursor_may_begin_anew(self, progress: Store) -> None:
        progress.record([], [], cursor=did(7), segment=1)

        progress.record([], [], cursor="", segment=1)

        assert progress.cursor() == ""

    def test_what_is_pending_keeps_its_order(self, progress: Store) -> None:
        progress.record([Finished(did(2), 1)], [Unfinished(did(4), "timeout", permanent=False)], cursor=None, segment=1)

        assert progress.pending([did(5), did(2), did(4), did(1), did(5)]) == [did(5), did(4), did(1), did(5)]
        assert progress.pending([]) == []

    def test_what_failed_for_good_is_complete(self, progress: Store) -> None:
        progress.record([], [Unfinished(did(1), "not_found", permanent=True)], cursor=None, segment=1)

        assert progress.pending([did(1)]) == []
        assert progress.failed(CATEGORIES, "", 10) == []
        assert progress.view().completed == 1
        assert progress.view().failed == {"not_found": 1}
        assert progress.view().total_crawled == 0

    def test_what_is_done_has_not_failed(self, progress: Store) -> None:
        for number, permanent in ((1, False), (2, True)):
            progress.record([], [Unfinished(did(number), "timeout", permanent=permanent)], cursor=None, segment=1)

        progress.record([Finished(did(1), 3), Finished(did(2), 4)], [], cursor=None, segment=1)

        assert progress.failed(CATEGORIES, "", 10) == []
        assert progress.view().failed == {}
        assert (progress.view().completed, progress.view().total_crawled, progress.view().bytes_written) == (2, 2, 7)

    def test_a_did_fails_in_one_way_at_a_time(self, progress: Store) -> None:
        progress.record([], [Unfinished(did(1), "timeout", permanent=False)], cursor=None, segment=1)
        progress.record([], [Unfinished(did(1), "rate_limited", permanent=False)], cursor=None, segment=1)

        assert progress.failed(CATEGORIES, "", 10) == [(did(1), "rate_limited")]
        assert progress.view().failed == {"rate_limited": 1}

    @pytest.mark.parametrize("permanent", [False, True])
    def test_what_is_complete_fails_no_more(self, progress: Store, permanent: bool) -> None:  # noqa: FBT001 - a parameter
        gone = Unfinished(did(2), "not_found", permanent=True)
        progress.record([Finished(did(1), 3)], [gone], cursor=None, segment=1)
        before = progress.view()

        again = [Unfinished(did(number), "timeout", permanent=permanent) for number in (1, 2)]
        progress.record([], again, cursor=None, segment=1)

        assert progress.view() == before
        assert progress.pending([did(1), did(2)]) == []

    def test_done_and_failed_at_once_is_done(self, progress: Store) -> None:
        progress.record([Finished(did(1), 3)], [Unfinished(did(1), "timeout", permanent=False)], cursor=None, segment=1)

        assert progress.view().failed == {}
        assert progress.view().total_crawled == 1

    def test_to_say_it_twice_counts_once(self, progress: Store) -> None:
        """A caller whose connection broke does not know whether it was heard."""
        crawl(progress, 1)
        before = progress.view()

        progress.record([Finished(each, 10) for each in batch(0)[5:]] * 2, [], cursor=did(19), segment=1)

        assert progress.view() == before

    def test_failed_pages_in_the_order_of_dids(self, progress: Store) -> None:
        numbers = random.Random(3).sample(range(100), 100)
        failed = [Unfinished(did(number), CATEGORIES[number % 4], permanent=False) for number in numbers]
        progress.record([], failed, cursor=None, segment=1)
        for_good = [Unfinished(did(number), "unknown", permanent=True) for number in range(3, 20, 4)]
        progress.record([], for_good, cursor=None, segment=1)

        found: list[tuple[str, str]] = []
        for _ in range(10):
            page = progress.failed(["unknown", "timeout"], found[-1][0] if found else "", 7)
            assert len(page) <= 7
            found += page

        expected = [number for number in range(100) if number % 2 and not (number % 4 == 3 and number < 20)]
        assert found == [(did(number), CATEGORIES[number % 4]) for number in expected]

    def test_reset_forgets_everything(self, progress: Store, opens: Opens) -> None:
        crawl(progress, 2)

        progress.reset()

        assert progress.view() == EMPTY
        assert progress.pending(batch(0)) == batch(0)
        assert opens().view() == EMPTY

    def test_a_page_of_fifty_thousand(self, progress: Store) -> None:
        dids = [did(number) for number in range(50_000)]
        progress.record([Finished(each, 1) for each in dids[::2]], [], cursor=None, segment=1)

        assert progress.pending(dids) == dids[1::2]

    def test_odd_texts_are_only_texts(self, progress: Store) -> None:
        odd = ["did:web:é.example", "did:web:a%3A80", "did:plc:'; --", 'did:plc:"]', "did:x:\N{WAVING HAND SIGN}"]
        progress.record([Finished(each, 1) for each in odd[:2]], [], cursor=odd[-1], segment=1)

        assert progress.pending(odd) == odd[2:]
        assert progress.cursor() == odd[-1]

    def test_a_record_is_whole_or_not_there_whenever_the_crawl_is_killed(self, opens: Opens, argument: str) -> None:
        chance, seen = random.Random(5), set()
        for _ in range(8):
            killed([recording.__file__, argument], after=chance.randrange(1, 9))

            progress = opens()
            view = progress.view()
            records = int(view.cursor.rpartition(":")[2]) // BATCH + 1
            left = [did for number in range(records) for did in (batch(number)[1], batch(number)[3])]
            assert progress.pending([each for number in range(records + 2) for each in batch(number)]) == [
                *left, *batch(records), *batch(records + 1)
            ]  # fmt: skip
            assert view == ProgressView(
                cursor=did(BATCH * records - 1), completed=18 * records, segment=records, total_crawled=15 * records,
                failed={"not_found": 3 * records, "timeout": 2 * records}, bytes_written=150 * records,
            )  # fmt: skip
            seen.add(records)
            progress.close()
        assert len(seen) > 4, "hardly any of them got to record"

    def test_it_is_a_dict_of_states(self, progress: Store) -> None:
        @settings(max_examples=25)
        @given(st.lists(RECORDS, max_size=6))
        def play(records: list[tuple[list[Finished], list[Unfinished]]]) -> None:
            progress.reset()
            twin = Twin()
            for done, failed in records:
                before = progress.view().bytes_written
                progress.record(done, failed, cursor=None, segment=1)
                twin.record(done, failed)
                twin.compare(progress)
                assert progress.view().bytes_written >= before

        play()


SOME = [did(number) for number in range(7)]
RECORDS = st.tuples(
    st.lists(st.builds(Finished, st.sampled_from(SOME), st.just(7)), max_size=4),
    st.lists(st.builds(Unfinished, st.sampled_from(SOME), st.sampled_from(CATEGORIES), st.booleans()), max_size=4),
)


class Twin:
    """The obvious one."""

    def __init__(self) -> None:
        self.archived: set[str] = set()
        self.failed: dict[str, Unfinished] = {}

    def record(self, done: list[Finished], failed: list[Unfinished]) -> None:
        self.archived |= {each.did for each in done}
        for each in failed:
            known = self.failed.get(each.did)
            if known is None or not known.permanent:
                self.failed[each.did] = each
        for archived in self.archived:
            self.failed.pop(archived, None)

    def compare(self, progress: Store) -> None:
        view = progress.view()
        categories = [each.category for each in self.failed.values()]
        complete = self.archived | {each.did for each in self.failed.values() if each.permanent}
        waiting = sorted((each.did, each.category) for each in self.failed.values() if not each.permanent)
        assert view.failed == {category: categories.count(category) for category in categories}
        assert (view.completed, view.total_crawled) == (len(complete), len(self.archived))
        assert view.bytes_written == 7 * len(self.archived)
        assert progress.pending(SOME) == [each for each in SOME if each not in complete]
        assert progress.failed(CATEGORIES, "", 9) == waiting
