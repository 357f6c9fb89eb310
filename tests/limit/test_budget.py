from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit.budget import Budget, BudgetRules


def spent(budget: Budget, requests: int, tries: int) -> int:
    """How many of so many retries were granted."""
    return sum(budget.spend(requests) for _ in range(tries))


def test_a_small_crawl_may_retry_from_the_reserve() -> None:
    budget = Budget(BudgetRules(share=0.1, reserve=2, most=100))

    assert spent(budget, requests=1, tries=5) == 2


def test_a_request_earns_only_once() -> None:
    budget = Budget(BudgetRules(share=0.5, reserve=0, most=100))

    assert spent(budget, requests=4, tries=10) == 2
    assert spent(budget, requests=4, tries=10) == 0


def test_no_more_than_the_most_is_saved_up() -> None:
    budget = Budget(BudgetRules(share=0.1, reserve=10, most=20))

    assert spent(budget, requests=10**12, tries=100) == 20


def test_a_refund_may_be_spent_again() -> None:
    budget = Budget(BudgetRules(share=0, reserve=1, most=5))
    assert budget.spend(0)
    assert not budget.spend(0)

    budget.refund()

    assert budget.spend(0)


def test_a_total_that_falls_earns_nothing_and_counts_on_from_there() -> None:
    budget = Budget(BudgetRules(share=0.5, reserve=0, most=100))
    assert spent(budget, requests=1000, tries=100) == 100

    assert not budget.spend(0)
    assert budget.credit == 0

    assert spent(budget, requests=4, tries=10) == 2


TOTALS = st.integers(0, 10**6)
RULES = st.builds(
    lambda share, reserve, more: BudgetRules(share, reserve, max(1.0, reserve + more)),
    st.floats(0, 1),
    st.floats(0, 50),
    st.floats(0, 100),
)


@given(RULES, st.lists(st.one_of(TOTALS, st.none()), max_size=200))
def test_retries_never_exceed_what_was_earned(rules: BudgetRules, steps: list[int | None]) -> None:
    """A number is the total told to `spend`, None is a refund; a total may fall at any time."""
    budget, told, earned = Budget(rules), 0, rules.reserve

    granted = 0
    for step in steps:
        if step is None:
            budget.refund()
            earned += 1
        else:
            granted += budget.spend(step)
            earned += rules.share * max(0, step - told)
            told = step

        assert granted <= earned + 1e-6
        assert 0 <= budget.credit <= rules.most


@given(RULES, st.lists(TOTALS, max_size=200).map(sorted))
def test_retries_stay_a_share_of_the_requests(rules: BudgetRules, totals: list[int]) -> None:
    budget = Budget(rules)

    for granted, total in enumerate(filter(budget.spend, totals), start=1):
        assert granted <= rules.reserve + rules.share * total + 1e-6


def test_a_host_that_is_down_is_called_a_tenth_more_often_and_no_more() -> None:
    """Every attempt fails and each item wants three more: 4.0 attempts per item without a budget."""
    rules = BudgetRules(share=0.1, reserve=10, most=100)
    budget, items, attempts = Budget(rules), 10_000, 0

    for item in range(1, items + 1):
        attempts += 1 + next((n for n in range(3) if not budget.spend(item)), 3)

    assert (attempts - rules.reserve) / items <= 1.1
    assert attempts / items > 1.09
