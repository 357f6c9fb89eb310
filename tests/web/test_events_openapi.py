"""The description of the routes of `events`: all of them, nothing else, and such that others can use it."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from events_house import FakeControl, FakeLetters, FakeRows, events_house
from looping import in_loop

from sanderling.clock import SystemClock
from sanderling.web.app import DESCRIPTION, ROUTES
from sanderling.web.events_api import Behind, events_app
from sanderling.web.events_envelope import HEADER
from sanderling.web.parsing import Nothing
from sanderling.web.routes import Route

APP = events_app(Behind(FakeRows(), FakeLetters(), FakeControl()), SystemClock(), Random(1))
_ROUTES = APP[ROUTES]
TABLE = tuple(_ROUTES)
SECURED, OPEN = (
    msgspec.json.decode(msgspec.json.encode(APP[DESCRIPTION].document(secured=secured))) for secured in (True, False)
)
BASES = ("/api/v1/analytics/", "/api/v1/events/")


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_what_is_described_is_what_there_is() -> None:
    described = {(method, path) for method, path, _ in operations(SECURED)}
    routed = {(route.method, route.resource.canonical) for route in APP.router.routes() if route.resource}

    assert described == routed
    assert len(described) == len(TABLE) == 19


@in_loop
async def test_the_description_that_is_served_is_this_one_also_the_second_time() -> None:
    async with events_house() as with_token, events_house(token=None) as without:
        served = [
            (await opened.ask("GET", "/openapi.json")).data for opened in (with_token, with_token, without, without)
        ]

    assert served == [SECURED, SECURED, OPEN, OPEN]


@pytest.mark.parametrize("described", [SECURED, OPEN], ids=["with a token", "without"])
def test_a_validator_that_others_maintain_has_nothing_against_it(described: dict[str, Any]) -> None:
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")

    validator.validate(described)


def test_all_references_lead_somewhere_and_nothing_is_there_for_nobody() -> None:
    sorts = ("schemas", "responses", "parameters")
    there = {f"#/components/{sort}/{name}" for sort in sorts for name in SECURED["components"][sort]}

    assert set(references(SECURED)) == there


def test_no_name_in_it_says_where_a_type_of_ours_lives() -> None:
    assert not [name for name in SECURED["components"]["schemas"] if "." in name]


def test_every_route_has_a_name_of_its_own_and_says_what_it_is_for() -> None:
    names = [operation["operationId"] for _, _, operation in operations(SECURED)]

    assert len(set(names)) == len(names)
    assert all(operation["summary"].endswith(".") for _, _, operation in operations(SECURED))


def test_every_answer_is_described_with_its_envelope_and_the_id_of_its_request() -> None:
    schemas = SECURED["components"]["schemas"]
    for _, path, operation in operations(SECURED):
        assert {"$ref": "#/components/parameters/RequestId"} in operation["parameters"]
        answer = operation["responses"]["200"]
        assert HEADER in answer["headers"]
        if path.startswith(BASES):
            schema = schemas[answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
            assert {"success", "data", "meta"} <= set(schema["properties"])


def test_every_problem_is_described_with_both_forms() -> None:
    for response in SECURED["components"]["responses"].values():
        (media,) = response["content"]
        assert (media, HEADER in response["headers"]) == ("application/problem+json", True)
    required = set(SECURED["components"]["schemas"]["Problem"]["required"])
    assert required == {"title", "status", "detail", "error", "meta"}
    assert set(SECURED["components"]["schemas"]["Fault"]["required"]) == {"code", "message"}


def test_every_parameter_is_described_and_bounded() -> None:
    schemas = SECURED["components"]["schemas"]
    for _, path, operation in operations(SECURED):
        own = [each for each in operation["parameters"] if "$ref" not in each]
        in_path = {each["name"] for each in own if each["in"] == "path"}
        assert {f"{{{name}}}" for name in in_path} == {step for step in path.split("/") if step.startswith("{")}
        for each in own:
            named = each["schema"].get("$ref", "").rpartition("/")[2]
            schema = schemas[named] if named else each["schema"]
            bounded = {"maxLength", "maximum", "enum"} & set(schema) or schema.get("type") == "boolean"
            assert bounded, (path, each["name"])


def test_what_must_be_given_is_required() -> None:
    required = {
        path.rpartition("/")[2]: [each["name"] for each in operation["parameters"] if each.get("required")]
        for method, path, operation in operations(SECURED)
        if method == "GET" and path.startswith(BASES)
    }

    assert {name: given for name, given in required.items() if given} == {
        "posts": ["project_id"],
        "all": ["project_id"],
        "{id}": ["id"],
        "summary": ["project_id"],
        "trends": ["project_id", "from_date", "to_date"],
        "top-keywords": ["project_id"],
        "alerts": ["project_id"],
    }


def test_bodies_are_needed_and_take_nothing_unknown() -> None:
    needed = {
        each["operationId"]: each["requestBody"]["required"]
        for _, _, each in operations(SECURED)
        if "requestBody" in each
    }

    assert needed == {"change_modes": True, "replay": True}
    schemas = SECURED["components"]["schemas"]
    assert all(schemas[name]["additionalProperties"] is False for name in ("ModesGiven", "Replay"))


@pytest.mark.parametrize("route", TABLE, ids=lambda each: each.name)
def test_every_example_is_of_the_type_that_is_taken_or_given(route: Route) -> None:
    if route.example is not None:
        sent = msgspec.json.encode(route.example)
        assert msgspec.json.encode(msgspec.json.decode(sent, type=route.types.answer)) == sent
    if route.types.body is not Nothing:
        sent = msgspec.json.encode(route.body_example)
        assert msgspec.json.decode(sent, type=route.types.body) == route.body_example
