from sanderling.apis.polled import PolledKind
from sanderling.polling.source import PATIENCE, Needs

KINDS = (
    PolledKind("event", 10.0),
    PolledKind("pilots", 10.0, needs=("event",)),
    PolledKind("race", 10.0, needs=("event", "pilots")),
)


def test_a_kind_waits_for_those_it_needs_of_the_same_event() -> None:
    needs = Needs(KINDS)

    assert needs.lacking(1, "e", "event", 0.0) == ()
    assert needs.lacking(2, "e", "race", 0.0) == ("event", "pilots")
    assert needs.had("e", "event")
    assert not needs.had("e", "event"), "only the first is news"
    assert needs.lacking(2, "e", "race", 0.0) == ("pilots",)
    assert needs.lacking(3, "another", "race", 0.0) == ("event", "pilots")
    needs.had("e", "pilots")
    assert needs.lacking(2, "e", "race", 0.0) == ()


def test_nothing_waits_for_ever() -> None:
    """What it needs may be paused, switched off, or broken for good."""
    needs = Needs(KINDS)

    assert needs.lacking(2, "e", "race", 5.0)
    assert needs.lacking(2, "e", "race", 5.0 + PATIENCE - 0.1)
    assert needs.lacking(2, "e", "race", 5.0 + PATIENCE) == ()
    assert needs.lacking(4, "e", "race", 5.0 + PATIENCE), "each waits from when it was first to run"


def test_what_was_had_before_a_restart_counts() -> None:
    needs = Needs(KINDS)
    needs.load({("e", "event"), ("e", "pilots")})

    assert needs.lacking(2, "e", "race", 0.0) == ()


def test_after_a_purge_everything_is_needed_again() -> None:
    needs = Needs(KINDS)
    needs.load({("e", "event"), ("e", "pilots")})
    needs.forget()

    assert needs.lacking(2, "e", "race", 0.0) == ("event", "pilots")


def test_an_unknown_kind_needs_nothing() -> None:
    assert Needs(KINDS).lacking(1, "e", "lottery", 0.0) == ()
