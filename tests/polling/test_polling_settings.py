import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.apis.polled import PolledKind
from sanderling.apis.trackside import KINDS
from sanderling.polling.settings import GENERAL, Keys, PollingSettings, SettingError, Sort

KEYS = Keys(KINDS)
DEFAULT = KEYS.read({})[0]
# Something else everywhere, so that a value that was kept cannot be mistaken for a default.
BEFORE = PollingSettings(
    enabled=False,
    concurrency=7,
    burst=77,
    jitter=0.01,
    full=20.0,
    lease=60.0,
    budget=3.5,
    fastest=2.0,
    slowest=99.0,
    usual={kind.name: 33.0 for kind in KINDS},
    active={"race": 0.5},
)
ALL_KEYS = [key for entry in KEYS.entries for key in entry.keys]
FULL_WIDTH = "\N{FULLWIDTH DIGIT FIVE}"
NONSENSE = [
    *("", " ", "nan", "inf", "-inf", "-1", "-0", "1e400", "1e3", "0x10", "1_000", "1,5", "1..5", ".", "null"),
    *(
        "9" * 5000,
        "9" * 30,
        "0" * 38 + "100",
        "\0",
        "5\0",
        "5\n6",
        "200 ms s",
        "2 weeks",
        "\ud800",
        "\N{RIGHT-TO-LEFT OVERRIDE}5",
    ),
    *("٢٠٠", FULL_WIDTH, f"{FULL_WIDTH}s", "1\N{LATIN SMALL LETTER LONG S}"),
]


def in_force(key: str, text: str) -> PollingSettings:
    settings, problems = KEYS.read({key: text})
    assert problems == ()
    return settings


def test_without_texts_the_defaults_are_in_force() -> None:
    assert KEYS.read({}) == (
        PollingSettings(
            enabled=True,
            concurrency=2,
            burst=10,
            jitter=0.15,
            full=10.0,
            lease=30.0,
            budget=0.0,
            fastest=1.0,
            slowest=3600.0,
            usual={"event": 10.0, "pilots": 10.0, "rounds": 10.0, "channels": 60.0, "race": 10.0, "results": 2.0},
            active={"race": 0.2},
        ),
        (),
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("200", 0.2),
        ("200ms", 0.2),
        ("2s", 2.0),
        ("1.5 s", 1.5),
        (" 1m ", 60.0),
        ("1M", 60.0),
        ("50", 0.05),
        (".5s", 0.5),
        ("100.", 0.1),
        ("1h", 3600.0),
        ("366d", 31_622_400.0),
        ("0", 0.0),
        ("0s", 0.0),
        ("333.3333", 333.333 / 1000),
    ],
)
def test_durations_are_milliseconds_unless_they_say_otherwise(text: str, seconds: float) -> None:
    assert in_force("scheduler.resultsMs", text).usual["results"] == seconds


@pytest.mark.parametrize("text", ["true", "on", "yes", "1", "True", " ON ", "false", "off", "no", "0", "FALSE", "Off"])
def test_a_switch_has_many_spellings(text: str) -> None:
    assert in_force("scheduler.enabled", text).enabled == (text.strip().lower() in {"true", "on", "yes", "1"})


@pytest.mark.parametrize(
    ("key", "fits", "fails"),
    [
        ("concurrency", ["1", "1000", "2.0"], ["0", "1001", "1.5", "2s"]),
        ("burst", ["1", "100000"], ["0", "100001"]),
        ("jitterMs", ["0", "0.001", "60s"], ["60001", "61s"]),
        ("fullIntervalMs", ["50", "366d"], ["0", "49.9999", "366.1d"]),
        ("leaseMs", ["1s", "1d"], ["0", "999.9", "86400001"]),
        ("adaptiveBudget", ["0", "0.001", "2.5", "1000000"], ["0.0001", "1000000.1", "1s"]),
        ("adaptiveMinMs", ["50", "1h"], ["0", "49"]),
        ("adaptiveMaxMs", ["1000", "366d"], ["0", "49", "367d"]),
        ("raceActiveMs", ["0", "50", "366d"], ["49", "0.001", "367d"]),
        ("raceIdleMs", ["0", "50", "366d"], ["49", "0.001", "367d"]),
        ("channelsMs", ["0", "50", "366d"], ["49", "0.001", "367d"]),
    ],
)
def test_every_number_has_bounds(key: str, fits: list[str], fails: list[str]) -> None:
    for text in fits:
        assert KEYS.read({f"scheduler.{key}": text})[1] == (), text
        KEYS.checked(f"scheduler.{key}", text)
    for text in fails:
        settings, (problem,) = KEYS.read({f"scheduler.{key}": text}, BEFORE)
        assert f"scheduler.{key} is {text!r}, expected " in problem
        with pytest.raises(SettingError, match=re.escape(f"scheduler.{key} is {text!r}, expected ")):
            KEYS.checked(f"scheduler.{key}", text)
        assert settings == kept_only(f"scheduler.{key}")


def kept_only(key: str) -> PollingSettings:
    """What is in force if all but this one are as they are without texts, and this one as before."""
    numbers = KEYS._numbers(DEFAULT) | {key: KEYS._numbers(BEFORE)[key]}
    following = {entry.key: numbers[entry.follows] for entry in KEYS.entries if entry.follows and entry.key != key}
    return KEYS._settings(numbers | following)


@pytest.mark.parametrize("text", NONSENSE)
def test_what_cannot_be_read_leaves_things_as_they_were(text: str) -> None:
    for key in ALL_KEYS:
        canonical = KEYS.spellings(key)[0]

        settings, (problem,) = KEYS.read({key: text}, BEFORE)
        stays = next(each.text for each in KEYS.listed({key: text}, BEFORE) if each.key == canonical)

        assert settings == kept_only(canonical)
        assert problem.startswith(f"{key} is ")
        assert problem.endswith(f"; in force is {stays}")
        assert problem.isprintable()
        assert len(problem) < 300
        assert KEYS.read({key: text})[0] == DEFAULT


names = st.sampled_from(ALL_KEYS) | st.text(max_size=30).map("scheduler.".__add__) | st.text(max_size=30)
numbers = st.floats().map(str) | st.integers(-1000, 10**12).map(str)
with_units = st.tuples(numbers, st.sampled_from(["", "ms", "s", " s", "m", "h", "d", "w"])).map("".join)
values = st.sampled_from(NONSENSE) | st.text(max_size=50) | with_units


@given(st.dictionaries(names, values, max_size=30), st.sampled_from([None, BEFORE, DEFAULT, PollingSettings()]))
@example({"": "7", "scheduler.": "1", "scheduler": "2"}, None)
def test_whatever_the_texts_are_reading_them_gives_settings_within_bounds(
    texts: dict[str, str], before: PollingSettings | None
) -> None:
    settings, problems = KEYS.read(texts, before)

    assert settings.fastest <= settings.slowest
    assert set(settings.usual) == {kind.name for kind in KINDS}
    assert set(settings.active) == {"race"}
    for entry, setting in zip(KEYS.entries, KEYS.listed(texts, before), strict=True):
        assert KEYS.checked(setting.key, setting.text) == (setting.key, setting.text)
        assert KEYS.checked(setting.key, setting.default) == (setting.key, setting.default)
        assert setting.set == any(key in texts for key in entry.keys)
    for problem in problems:
        assert problem.isprintable()
        assert len(problem) < 400
    assert KEYS.read(texts, settings)[0] == settings, "the same texts again change nothing"


@given(st.dictionaries(st.sampled_from(ALL_KEYS), values, max_size=10))
def test_canonical_texts_mean_what_the_texts_meant(texts: dict[str, str]) -> None:
    settings, _ = KEYS.read(texts)

    canonical = {setting.key: setting.text for setting in KEYS.listed(texts)}

    assert KEYS.read(canonical) == (settings, ())


@given(st.floats(0.05, 31_622_400))
def test_a_default_of_a_kind_is_the_same_as_its_canonical_text(seconds: float) -> None:
    keys = Keys([PolledKind("match", seconds)])
    (setting,) = (each for each in keys.listed({}) if each.key == "scheduler.matchMs")

    assert re.fullmatch(r"[0-9]+(\.[0-9]{1,3})?", setting.default)
    assert keys.read({setting.key: setting.default}) == keys.read({})
    assert keys.read({})[0].usual["match"] == pytest.approx(seconds, abs=1e-6)


def test_a_default_of_a_kind_keeps_within_the_bounds_too() -> None:
    assert Keys([PolledKind("match", 0.001, active_seconds=0.0001)]).read({})[0] == PollingSettings(
        usual={"match": 0.05}, active={"match": 0.05}
    )


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("2s", "2000"), ("1.5 S", "1500"), ("0.0505 s", "50.5"), ("0", "0"), ("00100", "100"), ("1d", "86400000")],
)
def test_the_canonical_text_of_a_duration_is_in_milliseconds(text: str, canonical: str) -> None:
    assert KEYS.checked("scheduler.resultsMs", text) == ("scheduler.resultsMs", canonical)


def test_another_spelling_of_a_key_means_the_same() -> None:
    assert KEYS.checked("scheduler.resultsIntervalMs", "5s") == ("scheduler.resultsMs", "5000")
    assert KEYS.checked("scheduler.raceIntervalMs", "5s") == ("scheduler.raceIdleMs", "5000")
    assert KEYS.spellings("scheduler.raceIntervalMs") == ("scheduler.raceIdleMs", "scheduler.raceIntervalMs")
    assert in_force("scheduler.raceIntervalMs", "5s") == replace(DEFAULT, usual={**DEFAULT.usual, "race": 5.0})


def test_of_two_spellings_the_canonical_one_counts() -> None:
    texts = {"scheduler.raceIntervalMs": "5s", "scheduler.raceIdleMs": "7s"}

    settings, (problem,) = KEYS.read(texts)

    assert settings.usual["race"] == 7.0
    assert problem.startswith("scheduler.raceIntervalMs is set beside scheduler.raceIdleMs")


def test_kinds_of_the_whole_follow_its_interval_unless_they_have_their_own() -> None:
    texts = {"scheduler.fullIntervalMs": "4s", "scheduler.pilotsMs": "9s", "scheduler.roundsMs": "0"}

    settings, _ = KEYS.read(texts)
    listed = {each.key: each for each in KEYS.listed(texts)}

    assert [settings.usual[kind] for kind in ("event", "pilots", "rounds", "channels", "race")] == [4, 9, 0, 60, 10]
    assert listed["scheduler.eventMs"][1:3] == ("4000", "4000")
    assert listed["scheduler.pilotsMs"][1:3] == ("9000", "4000")
    assert listed["scheduler.pilotsMs"].set
    assert not listed["scheduler.eventMs"].set


def test_removing_a_text_brings_back_the_default_whatever_was_before() -> None:
    assert KEYS.read({}, BEFORE) == (DEFAULT, ())


def test_a_shortest_interval_above_the_longest_changes_neither() -> None:
    settings, (problem,) = KEYS.read({"scheduler.adaptiveMinMs": "2h"}, BEFORE)
    fresh, _ = KEYS.read({"scheduler.adaptiveMinMs": "10s", "scheduler.adaptiveMaxMs": "9s"})

    assert (settings.fastest, settings.slowest) == (2.0, 99.0)
    assert "adaptiveMinMs is 7200000 and scheduler.adaptiveMaxMs is 3600000" in problem
    assert problem.endswith("in force are 2000 and 99000")
    assert (fresh.fastest, fresh.slowest) == (1.0, 3600.0)
    assert KEYS.read({"scheduler.adaptiveMinMs": "1h"})[1] == (), "equal is in order"


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("scheduler.concurency", "scheduler.concurrency"),
        ("scheduler.Concurrency", "scheduler.concurrency"),
        ("SCHEDULER.BURST", "scheduler.burst"),
        ("burst", "scheduler.burst"),
        (" raceactivems ", "scheduler.raceActiveMs"),
        ("race-active-ms", "scheduler.raceActiveMs"),
        ("resultsInterval", "scheduler.resultsMs"),
    ],
)
def test_for_a_misspelt_key_the_nearest_is_suggested(key: str, meant: str) -> None:
    with pytest.raises(SettingError) as caught:
        KEYS.checked(key, "1")

    assert str(caught.value) == f"{key!r} is no setting, did you mean {meant}?"


def test_for_a_key_like_no_other_all_are_named() -> None:
    with pytest.raises(SettingError, match=r"'ui.title' is no setting, expected one of scheduler.enabled, .*resultsMs"):
        KEYS.checked("ui.title", "1")
    with pytest.raises(SettingError, match="is no setting"):
        KEYS.spellings("scheduler.")


def test_unknown_keys_are_a_problem_if_they_are_ours() -> None:
    settings, problems = KEYS.read({"ui.title": "x", "Scheduler.Burst": "5", "scheduler.\0": "1"})

    assert settings == DEFAULT
    assert problems == (
        "'Scheduler.Burst' is no setting and says nothing; did you mean scheduler.burst?",
        r"'scheduler.\x00' is no setting and says nothing",
    )


def test_of_many_unknown_keys_some_are_named_and_all_are_counted() -> None:
    _, problems = KEYS.read({f"scheduler.{number}{'x' * 10_000}": "1" for number in range(1000)})

    assert len(problems) == 21
    assert problems[-1].startswith("980 more keys")
    assert max(map(len, problems)) < 150


@pytest.mark.parametrize(
    "kinds",
    [
        [PolledKind("full", 1)],
        [PolledKind("lease", 1)],
        [PolledKind("adaptiveMin", 1)],
        [PolledKind("race", 1), PolledKind("race", 1)],
        [PolledKind("race", 1, active_seconds=1), PolledKind("raceActive", 1)],
        [PolledKind("race", 1), PolledKind("raceInterval", 1)],
    ],
)
def test_a_kind_whose_keys_are_taken_is_refused(kinds: list[PolledKind]) -> None:
    with pytest.raises(ValueError, match=r"kinds: the key 'scheduler\..*Ms' of one is taken by 'scheduler"):
        Keys(kinds)


def test_every_setting_says_what_it_means_in_one_sentence() -> None:
    for entry in KEYS.entries:
        assert re.fullmatch(r"[A-Z][^.]+\.", entry.meaning)
    assert KEYS.entries[: len(GENERAL)] == GENERAL
    assert {entry.sort for entry in GENERAL} == set(Sort)
