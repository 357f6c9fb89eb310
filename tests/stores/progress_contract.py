"""What every Progress promises."""

import random
from collections.abc import Callable
from typing import Protocol

import pytest
import recording
from hypothesis import given, settings
from hypothesis import strategies as st
from killed import killed
from memory_progress import MemoryProgress
from recording import BATCH, CATEGORIES, batch, crawl, did

from sanderling.stores.ports import FIRST, Due, Finished, HostAside, ProgressView, RepoProgress, Unfinished

FAR = 2**40  # seconds
EMPTY = ProgressView(cursor="", completed=0, failed={}, segment=0, total_crawled=0, bytes_written=0)


class Store(RepoProgress, Protocol):
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
        assert (progress.due(FIRST, FAR, 10), progress.aside(10)) == ([], [])
        assert (progress.last_due(), progress.aside_of("a.example")) == (0, None)

    def test_a_restart_remembers(self, progress: Store, opens: Opens) -> None:
        crawl(progress, 3)
        before = progress.view()
        progress.close()

        again = opens()

        assert again.view() == before
        assert before == ProgressView(
            cursor=did(59), completed=54, failed={"not_found": 9, "timeout": 6}, segment=3, total_crawled=45,
            bytes_written=450, scheduled=3, due=1, hosts_aside=1,
        )  # fmt: skip
        assert again.cursor() == did(59)
        assert again.pending(batch(0)) == [did(3)]
        assert again.due(FIRST, FAR, 10) == [Due(number + 1, number, did(20 * number + 1)) for number in range(3)]
        assert again.aside(10) == [HostAside("b.example", "timeout", 3)]

    def test_without_a_cursor_the_old_one_stays(self, progress: Store) -> None:
        progress.record([], [], cursor=did(7), segment=1)

        progress.record([Finished(did(1), 5)], [], cursor=None, segment=2)

        assert (progress.cursor(), progress.view().segment) == (did(7), 2)

    def test_a_cursor_may_begin_anew(self, progress: Store) -> None:
        progress.record([], [], cursor=did(7), segment=1)

        progress.record([], [], cursor="", segment=1)

        assert progress.cursor() == ""

    def test_what_is_pending_keeps_its_order(self, progress: Store) -> None:
        failed = [Unfinished(did(4), "timeout", permanent=False), Unfinished(did(3), "timeout", False, 1, 0)]  # noqa: FBT003
        progress.record([Finished(did(2), 1)], failed, cursor=None, segment=1)

        assert progress.pending([did(5), did(2), did(4), did(3), did(1), did(5)]) == [did(5), did(4), did(1), did(5)]
        assert progress.pending([]) == []

    def test_what_failed_for_good_is_complete(self, progress: Store) -> None:
        progress.record([], [Unfinished(did(1), "timeout", permanent=False, failures=2, due=7)], cursor=None, segment=1)
        progress.record([], [Unfinished(did(1), "not_found", permanent=True, due=9)], cursor=None, segment=1)

        assert (progress.pending([did(1)]), progress.due(FIRST, FAR, 10)) == ([], [])
        assert progress.view().completed == 1
        assert progress.view().failed == {"not_found": 1}
        assert progress.view().total_crawled == 0

    def test_what_is_done_has_not_failed(self, progress: Store) -> None:
        for number, permanent in ((1, False), (2, True)):
            progress.record(
                [], [Unfinished(did(number), "timeout", permanent=permanent, due=3)], cursor=None, segment=1
            )

        progress.record([Finished(did(1), 3), Finished(did(2), 4)], [], cursor=None, segment=1)

        assert progress.due(FIRST, FAR, 10) == []
        assert progress.view().failed == {}
        assert (progress.view().completed, progress.view().total_crawled, progress.view().bytes_written) == (2, 2, 7)

    def test_a_did_fails_in_one_way_and_is_due_at_one_time(self, progress: Store) -> None:
        for category, failures, due in (("timeout", 1, 5), ("rate_limited", 400, 3)):
            failed = Unfinished(did(1), category, permanent=False, failures=failures, due=due)
            progress.record([], [failed], cursor=None, segment=1)

        assert progress.due(FIRST, FAR, 10) == [Due(3, 99, did(1))]
        assert (progress.view().failed, progress.view().scheduled) == ({"rate_limited": 1}, 1)

    def test_without_a_due_time_it_is_scheduled_no_more(self, progress: Store) -> None:
        for due in (5, None):
            progress.record([], [Unfinished(did(1), "timeout", permanent=False, due=due)], cursor=None, segment=1)

        assert (progress.due(FIRST, FAR, 10), progress.pending([did(1)])) == ([], [did(1)])
        assert progress.view().scheduled == 0

    def test_hosts_that_are_set_aside_are_known_with_reason_and_due_time(self, progress: Store) -> None:
        several = [HostAside(f"h{due}.example:80", "timeout", due) for due in (30, 20, 10)]
        progress.record([], [Unfinished(did(1), "timeout", permanent=False, due=20)], cursor=None, segment=1)
        progress.record([], [], cursor=None, segment=1, hosts=several)
        progress.record([], [], cursor=None, segment=1, hosts=[HostAside("h30.example:80", "unknown", 5)])

        assert progress.aside(2) == [HostAside("h30.example:80", "unknown", 5), several[2]]
        assert progress.aside_of("h20.example:80") == several[1]
        assert (progress.view().hosts_aside, progress.view().scheduled, progress.last_due()) == (3, 1, 20)
        assert progress.due(FIRST, FAR, 10) == [Due(20, 0, did(1))]

        progress.record([], [], cursor=None, segment=1, hosts=[HostAside("h20.example:80", "", 0)])
        assert (progress.aside_of("h20.example:80"), progress.view().hosts_aside) == (None, 2)
        progress.clear_aside()
        assert (progress.aside(10), progress.view().scheduled) == ([], 1)

    @pytest.mark.parametrize("permanent", [False, True])
    def test_what_is_complete_fails_no_more(self, progress: Store, permanent: bool) -> None:  # noqa: FBT001 - a parameter
        gone = Unfinished(did(2), "not_found", permanent=True)
        progress.record([Finished(did(1), 3)], [gone], cursor=None, segment=1)
        before = progress.view()

        again = [Unfinished(did(number), "timeout", permanent=permanent, due=5) for number in (1, 2)]
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

    def test_what_is_due_is_read_page_by_page_also_while_it_changes(self, progress: Store) -> None:
        """Of one due time there may be a million. What is read may be gone, or be due later, when the next page is."""
        numbers = random.Random(3).sample(range(100), 100)
        failed = [Unfinished(did(n), "timeout", permanent=False, failures=n % 3, due=n // 40) for n in numbers]
        progress.record([], failed, cursor=None, segment=1)
        expected = sorted(Due(n // 40, n % 3, did(n)) for n in numbers if n < 80)

        found: list[Due] = []
        while page := progress.due(found[-1] if found else FIRST, 1, 7):
            assert len(page) <= 7
            found += page
            later = Unfinished(page[-1].did, "timeout", permanent=False, due=5)
            progress.record([Finished(page[0].did, 1)], [later], cursor=None, segment=1)

        assert found == [each for each in expected if each > FIRST]
        assert progress.last_due() == 5

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
            left = [batch(number)[3] for number in range(records)]
            assert len(progress.due(FIRST, FAR, 10_000)) == records
            assert progress.pending([each for number in range(records + 2) for each in batch(number)]) == [
                *left, *batch(records), *batch(records + 1)
            ]  # fmt: skip
            assert view == ProgressView(
                cursor=did(BATCH * records - 1), completed=18 * records, segment=records, total_crawled=15 * records,
                failed={"not_found": 3 * records, "timeout": 2 * records}, bytes_written=150 * records,
                scheduled=records, due=1, hosts_aside=1,
            )  # fmt: skip
            seen.add(records)
            progress.close()
        assert len(seen) > 4, "hardly any of them got to record"

    def test_it_does_what_the_one_in_memory_does(self, progress: Store) -> None:
        @settings(max_examples=25)
        @given(st.lists(RECORDS, max_size=6))
        def play(records: list[tuple[list[Finished], list[Unfinished], list[HostAside]]]) -> None:
            progress.reset()
            twin = MemoryProgress()
            for done, failed, hosts in records:
                for each in (progress, twin):
                    each.record(done, failed, cursor=None, segment=1, hosts=hosts)
                assert progress.view() == twin.view()
                assert progress.pending(SOME) == twin.pending(SOME)
                assert progress.due(FIRST, 6, 5) == twin.due(FIRST, 6, 5)
                assert progress.last_due() == twin.last_due()
                assert progress.aside(9) == twin.aside(9)
                assert progress.reasons(SOME) == twin.reasons(SOME)
            for each in (progress, twin, progress):
                each.forget(SOME[:3])
            assert progress.view() == twin.view()
            for each in (progress, twin, progress):
                each.release(SOME[2:5])
            assert progress.view() == twin.view()
            assert progress.pending(SOME) == twin.pending(SOME)

        play()


SOME = [did(number) for number in range(7)]
RECORDS = st.tuples(
    st.lists(st.builds(Finished, st.sampled_from(SOME), st.just(7)), max_size=4),
    st.lists(
        st.builds(
            Unfinished,
            st.sampled_from(SOME),
            st.sampled_from(CATEGORIES),
            st.booleans(),
            st.integers(0, 120),
            st.none() | st.integers(1, 9),
        ),
        max_size=4,
    ),
    st.lists(
        st.builds(
            HostAside, st.sampled_from(["a.example", "b.example:80"]), st.sampled_from(["", "timeout"]), st.just(3)
        ),
        max_size=2,
    ),
)
