"""The description of the routes of each API: all of them, nothing else, and such that others can use it."""

from collections.abc import Iterator
from random import Random
from typing import Annotated, Any, cast

import msgspec
import pytest
from events_house import events_house
from looping import in_loop
from msgspec import UNSET, Meta, UnsetType
from polling_house import house

from sanderling.clock import SystemClock
from sanderling.web.app import DESCRIPTION, ROUTES
from sanderling.web.events_api import events_app
from sanderling.web.events_envelope import HEADER
from sanderling.web.openapi import EXAMPLES, About, document
from sanderling.web.parsing import Nothing
from sanderling.web.polling_api import polling_app
from sanderling.web.routes import Route
from sanderling.web.stream import Streams

Json = dict[str, Any]

NOBODY = cast("Any", None)  # nothing is asked of it
APPS = {
    "polling": polling_app(NOBODY, SystemClock(), Streams(SystemClock()), ()),
    "events": events_app(NOBODY, NOBODY, NOBODY, SystemClock(), Random(1)),
}
DOCUMENTS: dict[tuple[str, bool], Json] = {
    (name, secured): msgspec.json.decode(msgspec.json.encode(app[DESCRIPTION](secured=secured)))
    for name, app in APPS.items()
    for secured in (True, False)
}
POLLING, EVENTS = DOCUMENTS["polling", True], DOCUMENTS["events", True]
ROUTED = [(name, route) for name, app in APPS.items() for route in app[ROUTES]]
every_api = pytest.mark.parametrize("name", APPS)
every_route = pytest.mark.parametrize(("api", "route"), ROUTED, ids=[f"{name} {each.name}" for name, each in ROUTED])


def operations(described: Json) -> Iterator[tuple[str, str, Json]]:
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


@every_api
def test_what_is_described_is_what_there_is(name: str) -> None:
    described = {(method, path) for method, path, _ in operations(DOCUMENTS[name, True])}
    routed = {(route.method, route.resource.canonical) for route in APPS[name].router.routes() if route.resource}

    assert described == routed
    assert len(described) == len(APPS[name][ROUTES]) == {"polling": 24, "events": 19}[name]


@in_loop
async def test_the_description_that_is_served_is_this_one_also_the_second_time() -> None:
    served = []
    async with house() as first, house(token=None) as second, events_house() as third, events_house(token=None) as last:
        for opened in (first, second, third, last):
            answers = [(await opened.ask("GET", "/openapi.json")).data for _ in range(2)]
            assert answers[0] == answers[1]
            served.append(answers[0])

    assert served == list(DOCUMENTS.values())


@pytest.mark.parametrize("which", DOCUMENTS, ids=str)
def test_a_validator_that_others_maintain_has_nothing_against_it(which: tuple[str, bool]) -> None:
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")

    validator.validate(DOCUMENTS[which])


@every_api
def test_all_references_lead_somewhere_and_nothing_is_there_for_nobody(name: str) -> None:
    described = DOCUMENTS[name, True]
    sorts = ("schemas", "responses", "parameters")
    there = {f"#/components/{sort}/{each}" for sort in sorts for each in described["components"].get(sort, ())}

    assert set(references(described)) == there
    assert not [each for each in described["components"]["schemas"] if "." in each]  # says where a type of ours lives


@every_api
def test_every_route_has_a_name_of_its_own_and_says_what_it_is_for(name: str) -> None:
    names = [operation["operationId"] for _, _, operation in operations(DOCUMENTS[name, True])]

    assert len(set(names)) == len(names)
    assert all(each["summary"].endswith((".", ",")) for _, _, each in operations(DOCUMENTS[name, True]))


def test_a_token_is_needed_everywhere_but_where_everyone_may_go() -> None:
    assert POLLING["security"] == [{"token": []}]
    exceptions = {path: each["security"] for _, path, each in operations(POLLING) if "security" in each}
    assert exceptions == {"/health": [], "/ready": [], "/hooks/promote": [{"token": []}, {"hook": []}]}
    refused = {path for _, path, each in operations(POLLING) if "401" not in each["responses"]}
    assert refused == {"/health", "/ready"}


@every_api
def test_without_a_token_none_is_described_and_strangers_are_forbidden(name: str) -> None:
    described = DOCUMENTS[name, False]

    assert described["security"] == []
    assert "securitySchemes" not in described["components"]
    assert all("403" in each["responses"] and "401" not in each["responses"] for _, _, each in operations(described))
    assert not any("security" in each for _, _, each in operations(described))


@every_api
def test_every_problem_is_described_as_one(name: str) -> None:
    responses = DOCUMENTS[name, True]["components"]["responses"]

    assert all(list(each["content"]) == ["application/problem+json"] for each in responses.values())
    assert "Retry-After" in responses["Problem503"]["headers"]


def test_every_answer_of_events_is_described_with_its_envelope_and_the_id_of_its_request() -> None:
    components = EVENTS["components"]
    for _, path, operation in operations(EVENTS):
        assert {"$ref": "#/components/parameters/RequestId"} in operation["parameters"]
        answer = operation["responses"]["200"]
        assert HEADER in answer["headers"]
        if path.startswith("/api/v1/"):
            schema = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            assert {"success", "data", "meta"} <= set(components["schemas"][schema]["properties"])
    assert all(HEADER in response["headers"] for response in components["responses"].values())
    assert set(components["schemas"]["Problem"]["required"]) == {"title", "status", "detail", "error", "meta"}
    assert set(components["schemas"]["Fault"]["required"]) == {"code", "message"}


@every_api
def test_every_parameter_is_described_and_bounded(name: str) -> None:
    described = DOCUMENTS[name, True]
    for _, path, operation in operations(described):
        own = [each for each in operation["parameters"] if "$ref" not in each]
        in_path = {each["name"] for each in own if each["in"] == "path"}
        assert {f"{{{each}}}" for each in in_path} == {step for step in path.split("/") if step.startswith("{")}
        for each in own:
            named = each["schema"].get("$ref", "").rpartition("/")[2]
            schema = described["components"]["schemas"][named] if named else each["schema"]
            bounded = {"maxLength", "maximum", "enum"} & set(schema) or schema.get("type") == "boolean"
            assert bounded, (path, each["name"])


def test_what_must_be_given_is_required() -> None:
    required = {
        path.rpartition("/")[2]: [each["name"] for each in operation["parameters"] if each.get("required")]
        for method, path, operation in operations(EVENTS)
        if method == "GET" and path.startswith("/api/v1/")
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


def test_a_body_is_needed_where_one_without_members_would_be_refused_and_takes_nothing_unknown() -> None:
    needed = {
        each["operationId"]: each["requestBody"]["required"]
        for described in (POLLING, EVENTS)
        for _, _, each in operations(described)
        if "requestBody" in each
    }

    assert needed == {
        "change_target": True,
        "hook": True,
        "change_setting": True,
        "purge": True,
        "promote_target": False,
        "promote": False,
        "change_modes": True,
        "replay": True,
    }
    schemas = POLLING["components"]["schemas"] | EVENTS["components"]["schemas"]
    taken = ("TargetPatch", "Hook", "Promotions", "ModesGiven", "Replay")
    assert all(schemas[name]["additionalProperties"] is False for name in taken)


def as_sent(value: Json, kind: type) -> object:
    """What becomes of JSON that is read as a type and written again."""
    return msgspec.json.decode(msgspec.json.encode(msgspec.convert(value, kind, strict=False)))


@every_route
def test_every_example_is_of_the_type_that_is_taken_or_given(api: str, route: Route) -> None:
    example = msgspec.json.decode(EXAMPLES.read_bytes())[f"Sanderling {api}"].get(route.name, {})
    assert ("body" in example) == (route.types.body is not Nothing)

    if "body" in example:
        assert as_sent(example["body"], route.types.body) == example["body"] != {}
    if "answer" in example and not isinstance(example["answer"], str):
        assert as_sent(example["answer"], route.types.answer) == example["answer"]


def test_every_example_is_of_a_route_there_is() -> None:
    examples = msgspec.json.decode(EXAMPLES.read_bytes())

    assert {(api, name) for api, names in examples.items() for name in names} <= {
        (f"Sanderling {api}", route.name) for api, route in ROUTED
    }


class Where(msgspec.Struct, frozen=True):
    id: str


class Choice(msgspec.Struct, frozen=True):
    first: Annotated[int, Meta(ge=1, description="One or more.")]
    second: str | UnsetType = UNSET


class Given(msgspec.Struct, frozen=True):
    """Where it is."""

    where: Where


async def look(path: Where, query: Choice) -> Given:  # noqa: ARG001 - as it is described
    """Look.

    It is there,
    or not.
    """
    return Given(path)


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
