"""The description of the routes: all of them, nothing else, and such that others can use it."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest
from looping import in_loop
from msgspec import UNSET, Meta, UnsetType
from polling_house import KINDS, SNAPSHOT, FakeControl, house

from sanderling.clock import SystemClock
from sanderling.web.app import ROUTES
from sanderling.web.openapi import About, document
from sanderling.web.parsing import Nothing
from sanderling.web.polling_api import ABOUT, polling_app
from sanderling.web.routes import Asked, Route
from sanderling.web.stream import Streams

APP = polling_app(FakeControl(), SystemClock(), Streams(SystemClock()), SNAPSHOT)
_ROUTES = APP[ROUTES]
TABLE = tuple(_ROUTES)
SECURED = document(ABOUT, TABLE, secured=True)
OPEN = document(ABOUT, TABLE, secured=False)


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
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from references(inner)


def test_what_is_described_is_what_there_is() -> None:
    described = {(method, path) for method, path, _ in operations(SECURED)}
    routed = {(route.method, route.resource.canonical) for route in APP.router.routes() if route.resource}

    assert described == routed
    assert len(described) == len(TABLE) == 24


@in_loop
async def test_the_description_that_is_served_is_this_one() -> None:
    async with house() as with_token, house(token=None) as without:
        served = [(await opened.ask("GET", "/openapi.json")).data for opened in (with_token, without)]

    assert served == [msgspec.json.decode(msgspec.json.encode(each)) for each in (SECURED, OPEN)]


@pytest.mark.parametrize("described", [SECURED, OPEN], ids=["with a token", "without"])
def test_a_validator_that_others_maintain_has_nothing_against_it(described: dict[str, Any]) -> None:
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")

    validator.validate(msgspec.json.decode(msgspec.json.encode(described)))


def test_all_references_lead_somewhere_and_nothing_is_there_for_nobody() -> None:
    found = set(references(SECURED))
    there = {f"#/components/{sort}/{name}" for sort in ("schemas", "responses") for name in SECURED["components"][sort]}

    assert found == there


def test_every_route_has_a_name_of_its_own_and_says_what_it_is_for() -> None:
    names = [operation["operationId"] for _, _, operation in operations(SECURED)]

    assert len(set(names)) == len(names)
    assert all(operation["summary"].endswith((".", ",")) for _, _, operation in operations(SECURED))


def test_a_token_is_needed_everywhere_but_where_everyone_may_go() -> None:
    assert SECURED["security"] == [{"token": []}]
    exceptions = {path: each["security"] for _, path, each in operations(SECURED) if "security" in each}
    assert exceptions == {"/health": [], "/ready": [], "/hooks/promote": [{"token": []}, {"hook": []}]}
    refused = {path for _, path, each in operations(SECURED) if "401" not in each["responses"]}
    assert refused == {"/health", "/ready"}


def test_without_a_token_none_is_described_and_strangers_are_forbidden() -> None:
    assert OPEN["security"] == []
    assert "securitySchemes" not in OPEN["components"]
    assert all("403" in each["responses"] and "401" not in each["responses"] for _, _, each in operations(OPEN))
    assert not any("security" in each for _, _, each in operations(OPEN))


def test_every_problem_is_described_as_one() -> None:
    for name, response in SECURED["components"]["responses"].items():
        assert name.startswith("Problem")
        assert set(response["content"]) == {"application/problem+json"}
    assert "Retry-After" in SECURED["components"]["responses"]["Problem503"]["headers"]


def test_every_parameter_of_a_path_is_described_and_bounded() -> None:
    for _, path, operation in operations(SECURED):
        in_path = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert {f"{{{name}}}" for name in in_path} == {step for step in path.split("/") if step.startswith("{")}
        for each in operation["parameters"]:
            schema = each["schema"]
            assert {"maxLength", "maximum", "enum"} & set(schema), (path, each["name"])


@pytest.mark.parametrize(
    "route", [route for route in TABLE if route.body_example is not None], ids=lambda each: each.name
)
def test_every_example_of_a_body_is_one_that_is_taken(route: Route) -> None:
    sent = msgspec.json.encode(route.body_example)

    assert msgspec.json.decode(sent, type=route.types.body) == route.body_example
    assert sent != b"{}"


@pytest.mark.parametrize(
    "route", [route for route in TABLE if route.types.body is not Nothing], ids=lambda each: each.name
)
def test_every_body_that_is_described_has_an_example(route: Route) -> None:
    assert route.body_example is not None


@pytest.mark.parametrize("route", TABLE, ids=lambda each: each.name)
def test_every_example_of_an_answer_is_of_the_type_that_is_given(route: Route) -> None:
    if route.example is not None:
        assert isinstance(route.example, str if route.name == "events" else route.types.answer)


def test_a_body_is_needed_where_one_without_members_would_be_refused() -> None:
    needed = {
        each["operationId"]: each["requestBody"]["required"]
        for _, _, each in operations(SECURED)
        if "requestBody" in each
    }

    assert needed == {
        "change_target": True,
        "hook": True,
        "change_setting": True,
        "purge": True,
        "promote_target": False,
        "promote": False,
    }


def test_unknown_parameters_and_members_are_described_as_refused() -> None:
    schemas = SECURED["components"]["schemas"]

    assert all(schemas[name]["additionalProperties"] is False for name in ("TargetPatch", "Hook", "Promotions"))


def test_the_kinds_of_the_fake_are_those_it_says() -> None:
    assert tuple(kind.name for kind in KINDS if kind.active_seconds is None) == SNAPSHOT


class Where(msgspec.Struct, frozen=True):
    id: str


class Choice(msgspec.Struct, frozen=True):
    first: Annotated[int, Meta(ge=1, description="One or more.")]
    second: str | UnsetType = UNSET


class Given(msgspec.Struct, frozen=True):
    """Where it is."""

    where: Where


async def look(asked: Asked[Where, Choice, Nothing]) -> Given:
    """Look.

    It is there,
    or not.
    """
    return Given(asked.path)


def test_a_description_is_made_of_the_types_and_the_words_of_a_function() -> None:
    described = document(About("T", "1", "D"), [Route("GET", "/a/{id}", look)], secured=False)

    operation = described["paths"]["/a/{id}"]["get"]
    assert (operation["summary"], operation["description"]) == ("Look.", "It is there, or not.")
    assert operation["parameters"] == [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
        {
            "name": "first",
            "in": "query",
            "required": True,
            "schema": {"type": "integer", "minimum": 1},
            "description": "One or more.",
        },
        {"name": "second", "in": "query", "required": False, "schema": {"type": "string"}},
    ]
    assert "requestBody" not in operation
    # A type that is both a path and a part of an answer is described for the answer.
    assert set(described["components"]["schemas"]) == {"Problem", "Given", "Where"}
