"""What is read out of Trackside's documents."""

import sqlite3
from collections.abc import Iterator

import pytest
from trackside_documents_made import (
    ABOUT,
    BASE,
    CHANNELS,
    EVENT,
    NOT_SET,
    PILOTS,
    RACE,
    ROUNDS,
    ZERO,
    Json,
    channel,
    detection,
    event,
    guid,
    lap,
    pilot,
    race,
    record,
    reply,
    result,
    round_of_races,
    usual_documents,
)

from sanderling.apis.polled import Wanted
from sanderling.apis.trackside import Trackside
from sanderling.stores.documents import Document, Parent, SourceError, SourceRow, SourceTable

SOURCE = Trackside(BASE)
SOME_CHANNELS = Wanted("channels", EVENT, EVENT, only=tuple(CHANNELS[:2]))


def read(kind: str, said: object) -> Document:
    return SOURCE.read(ABOUT[kind], reply(said))


def fault(kind: str, said: object) -> SourceError:
    with pytest.raises(SourceError) as raised:
        read(kind, said)
    return raised.value


def of(table: str, document: Document) -> dict[str, SourceRow]:
    return {row.key: row for row in document.rows if row.table == table}


def kept(document: Document) -> dict[str, frozenset[str]]:
    """What stays of each set that the document lists completely."""
    return {whole.table: whole.keys for whole in document.whole}


def test_an_event_is_a_row_with_its_times_as_they_came_and_as_read() -> None:
    values = of("events", read("event", [event()]))[EVENT].values

    assert (values["name"], values["laps"], values["pb_laps"], values["enabled"]) == ("Harbour Cup", 4, 3, True)
    assert (values["start_text"], values["start_local"]) == ("2026/05/03 0:00:00", "2026-05-03T00:00:00")
    assert (values["end_text"], values["end_local"]) == (NOT_SET, None)
    assert (values["race_length_text"], values["race_length_seconds"]) == ("00:02:00", 120.0)
    assert (values["club"], values["track"], values["sectors"]) == (None, None, "[]")


def test_colours_and_names_go_to_the_channel_of_the_same_place() -> None:
    lists = {"Channels": [CHANNELS[0], None, CHANNELS[1]], "ChannelDisplayNames": [None, "x", "Third\0"]}
    document = read("event", [event(**lists)])

    assert [(row.values["channel"], row.values["color"], row.values["display_name"]) for row in
            of("event_channels", document).values()] == [
        (CHANNELS[0], "#ff0000", None),
        (CHANNELS[1], "#0000ff", "Third"),
    ]  # fmt: skip
    assert kept(document)["event_channels"] == {f"{EVENT}/0", f"{EVENT}/2"}


def test_an_event_needs_nothing_though_it_names_pilots_and_channels() -> None:
    document = read("event", [event()])

    assert document.needs == ()
    assert [row.values["pilot"] for row in of("event_removed_pilots", document).values()] == [PILOTS[1]]
    assert of("event_pilot_channels", document)[guid("f", 9)].values["pilot"] == PILOTS[0]


def test_races_that_the_event_does_not_list_go() -> None:
    assert kept(read("event", [event(Races=[RACE, ZERO, None, RACE])]))["races"] == {RACE}
    assert kept(read("event", [event(Races=None)]))["races"] == frozenset()


def test_pilots_belong_to_the_event_and_one_who_is_not_listed_leaves_it() -> None:
    document = read("pilots", [pilot(PILOTS[0], CatchPhrase="Up!"), None])

    assert of("pilots", document)[PILOTS[0]].values["catch_phrase"] == "Up!"
    assert kept(document) == {"event_pilots": frozenset({f"{EVENT}/{PILOTS[0]}"})}
    assert document.needs == (Parent("events", EVENT),)


def test_rounds_are_those_of_their_own_document() -> None:
    summary = {"DropLow": 1}
    document = read(
        "rounds", [round_of_races(ROUNDS[0], PointSummary=summary), round_of_races(ROUNDS[1], 200, Valid=False)]
    )

    assert {key: row.values["round_order"] for key, row in of("rounds", document).items()} == dict(
        zip(ROUNDS, (100, 200), strict=True)
    )
    assert of("rounds", document)[ROUNDS[0]].values["point_summary"] == '{"DropLow": 1}'
    assert of("rounds", document)[ROUNDS[1]].values["point_summary"] is None
    assert kept(document) == {"rounds": frozenset(ROUNDS)}


def test_only_channels_of_the_event_are_kept_and_a_prefix_of_zero_is_none() -> None:
    document = SOURCE.read(SOME_CHANNELS, reply([channel(1), channel(2, ChannelPrefix="F"), channel(3), channel(3)]))

    assert [(row.key, row.values["channel_prefix"]) for row in document.rows] == [
        (CHANNELS[0], None),
        (CHANNELS[1], "F"),
    ]
    assert (document.whole, document.needs) == ((), ())
    assert len(read("channels", [channel(1), channel(2), channel(3)]).rows) == 3


def test_a_lap_counts_if_its_detection_is_valid_and_lap_0_is_the_holeshot() -> None:
    laps = [lap(0), lap(1), lap(2), lap(3), lap(4, Detection=ZERO), lap(5, Detection=None, LapNumber=None)]
    detections = [detection(0), detection(1), detection(2, valid=False), detection(3, valid=None)]
    rows = of("laps", read("race", [race(Laps=laps, Detections=detections)])).values()

    assert [row.values["counts"] for row in rows] == [True, True, False, False, False, False]
    assert [row.values["is_holeshot"] for row in rows] == [True, False, False, False, False, False]
    assert [row.values["length_seconds"] for row in rows] == [12.0] * 6


def test_a_lap_with_a_detection_that_is_not_there_stays_and_does_not_count() -> None:
    document = read("race", [race(Laps=[lap(7)])])

    values = of("laps", document)[guid("1", 7)].values
    assert (values["detection"], values["counts"], values["length_seconds"]) == (None, False, 12.0)
    assert document.notes == (f"lap {guid('1', 7)}: names detection {guid('c', 7)}, which the race has not",)


def test_a_race_needs_its_event_round_pilots_and_channels() -> None:
    assert set(read("race", [race()]).needs) == {
        Parent("events", EVENT),
        Parent("rounds", ROUNDS[0]),
        *(Parent("pilots", key) for key in PILOTS),
        *(Parent("channels", key) for key in CHANNELS[:2]),
    }
    assert read("race", [record(RACE)]).needs == (Parent("events", EVENT),)


def test_what_a_race_does_not_list_any_more_goes() -> None:
    document = read(
        "race", [race(Laps=None, Detections=[detection(1), None], GamePoints=[record(guid("2"), Valid=True)])]
    )

    assert kept(document) == {
        "pilot_channels": frozenset({guid("f", 0), guid("f", 1)}),
        "detections": frozenset({guid("c", 1)}),
        "game_points": frozenset({guid("2")}),
        "laps": frozenset(),
    }


def test_an_empty_document_of_results_means_that_there_are_none() -> None:
    for empty in (b"", b"[]", b"\xef\xbb\xbf"):
        document = read("results", empty)

        assert (document.rows, kept(document)) == ((), {"results": frozenset()})


@pytest.mark.parametrize("kind", ["event", "pilots", "rounds", "channels", "race"])
def test_any_other_empty_document_is_an_error(kind: str) -> None:
    assert "an empty body, expected an array" in str(fault(kind, b""))


def test_results_may_leave_the_event_out_but_not_name_another() -> None:
    assert of("results", read("results", [result(1, Event=ZERO)]))[guid("9", 1)].values["event"] == EVENT

    document = read("results", [result(1), result(2, Event=guid("8"))])
    assert [row.key for row in document.rows] == [guid("9", 1)]
    assert document.notes[0].startswith(f"result {guid('9', 2)}: its Event is {guid('8')}")
    said = str(fault("results", [result(2, Event=guid("8"))]))
    assert said == f"Results.json: Event of {guid('9', 2)} is {guid('8')}, expected {EVENT}"


@pytest.mark.parametrize(
    ("kind", "said", "expected"),
    [
        ("race", [], "Race.json: 0 elements, expected one"),
        ("race", [race(), race()], "Race.json: 2 elements, expected one"),
        ("race", [None], "Race.json: 0 elements, expected one"),
        ("race", [7], "Race.json: Expected `object | null`, got `int` - at `$[0]`"),
        ("race", race(), "Race.json: Expected `array`, got `object`"),
        ("race", [race(ID=guid("8"))], f"Race.json: $[0].ID is {guid('8')}, expected {RACE}"),
        ("race", [race(ID="race-1")], "Race.json: found 'race-1', expected a GUID - at `$[0].ID`"),
        ("pilots", [pilot(ZERO)], "Pilots.json: found 00000000-0000-0000-0000-000000000000, expected an id of its own"),
        ("pilots", [{"Name": "x"}], "Pilots.json: Object missing required field `ID` - at `$[0]`"),
        ("race", b'[{"ID": "', "Race.json: 9 bytes that are no JSON: Input data was truncated"),
        ("rounds", b"<html>", "Rounds.json: 6 bytes that are no JSON"),
        ("rounds", b'[{"X": "\xff"}]', "Rounds.json: 12 bytes that are no JSON: 'utf-8' codec"),
        ("rounds", b"[" * 100_000, "Rounds.json: Expected `object | null`, got `array`"),
        ("rounds", b'[{"X":' * 50_000, "Rounds.json: 300000 bytes that are no JSON: maximum recursion depth"),
        ("pilots", [pilot(guid("b", n)) for n in range(10_001)], "Pilots.json: 20002 rows, expected at most 20000"),
    ],
)
def test_bad_documents_get_an_error_that_says_what_and_where(kind: str, said: object, expected: str) -> None:
    assert expected in str(fault(kind, said))


@pytest.mark.parametrize(
    ("kind", "said", "column", "expected"),
    [
        ("race", [race(Round=7)], "round", "$[0].Round: found a value of type int, expected a text"),
        ("race", [race(RaceNumber="1")], "race_number", "$[0].RaceNumber: Expected `int | null`, got `str`"),
        ("race", [race(Valid=1)], "valid", "$[0].Valid: Expected `bool | null`, got `int`"),
        ("event", [event(Start="soon")], "start_text", "$[0].Start: found 'soon', expected a date like"),
        (
            "event",
            [event(RaceLength="2 min")],
            "race_length_seconds",
            "$[0].RaceLength: found '2 min', expected a span",
        ),
        ("event", [event(Laps=2**63)], "laps", "$[0].Laps: Expected `int` <= 9223372036854775807"),
        ("channels", [channel(1, Number=1.5)], "number", "$[0].Number: Expected `int | null`, got `float`"),
    ],
)
def test_an_odd_value_is_left_out_with_a_note(kind: str, said: object, column: str, expected: str) -> None:
    document = read(kind, said)

    assert document.rows[0].values[column] is None
    assert len(document.notes) == 1
    assert document.notes[0].startswith(expected)


def test_of_two_records_with_one_id_the_first_counts() -> None:
    document = read("race", [race(Laps=[], Detections=[detection(1), detection(1, valid=False)])])

    assert of("detections", document)[guid("c", 1)].values["valid"] is True
    assert document.notes == (f"detections: '{guid('c', 1)}' is listed twice; the first counts",)


@pytest.mark.parametrize("status", [204, 304, 404, 500, 999])
def test_a_document_comes_with_status_200_only(status: int) -> None:
    with pytest.raises(SourceError, match=f"Race.json: HTTP {status}, expected 200"):
        SOURCE.read(ABOUT["race"], reply([race()], status))


KINDS = {"text": "text", "integer": "integer", "real": "real", "boolean": "integer"}


def created(table: SourceTable) -> str:
    columns = "".join(
        f", {column.name} {KINDS[column.kind]}" + (f" REFERENCES {column.references} (id)" if column.references else "")
        for column in table.columns
    )
    return f"CREATE TABLE {table.name} (id text PRIMARY KEY{columns}) STRICT"


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA foreign_keys = ON")
    for table in SOURCE.schema.tables:
        connection.execute(created(table))  # no name is quoted, so none may be a word of SQL
    yield connection
    connection.close()


def store(database: sqlite3.Connection, document: Document) -> None:
    for row in document.rows:
        names, places = ", ".join(row.values), ", ?" * len(row.values)
        text = f"INSERT INTO {row.table} (id, {names}) VALUES (?{places})"  # noqa: S608 - names that a schema has checked
        database.execute(text, (row.key, *row.values.values()))


def test_what_a_race_day_says_goes_into_tables_with_foreign_keys(database: sqlite3.Connection) -> None:
    stored: set[Parent] = set()

    for kind, said in usual_documents().items():
        document = read(kind, said)
        assert set(document.needs) <= stored
        store(database, document)
        stored |= {Parent(row.table, row.key) for row in document.rows}

    counted = "SELECT count(*) FROM laps JOIN detections ON detections.id = laps.detection WHERE counts AND valid"
    assert database.execute(counted).fetchone() == (2,)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_what_a_document_needs_is_what_the_foreign_keys_ask_for(database: sqlite3.Connection) -> None:
    documents: dict[str, list[Json]] = usual_documents()
    store(database, read("event", documents["event"]))

    document = read("race", documents["race"])

    assert document.needs
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        store(database, document)
