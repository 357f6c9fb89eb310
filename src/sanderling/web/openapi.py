"""The routes as an OpenAPI 3.1 document, made of the same table and types that requests are checked by.

Examples are in examples.json: of each API by its title, of each route by its name, an `answer`, a `body` or both.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from sanderling.web.access import HOOK_HEADER
from sanderling.web.parsing import JSON
from sanderling.web.problems import MEDIA_TYPE, Problem, title
from sanderling.web.routes import Route

VERSION = "3.1.0"
EXAMPLES = Path(__file__).parent / "examples.json"
STREAM = "text/event-stream"
SCHEMA, RESPONSE = "#/components/schemas/{name}", "#/components/responses/{name}"
# What any request may end with, wherever it goes.
USUAL = (400, 405, 408, 413, 415, 500, 503)
TOLD_IN: Mapping[int, str] = {401: "WWW-Authenticate", 405: "Allow", 503: "Retry-After"}

Json = dict[str, Any]

_MODULE = re.compile(rb"sanderling(?:\.[a-z_]+)+\.(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class About:
    """What the document says about the whole."""

    title: str
    version: str
    description: str
    around: Callable[[Json], None] = lambda _: None  # adds what is around every answer


def document(about: About, routes: Iterable[Route], *, secured: bool) -> Json:
    """The document; `secured` if there is a token."""
    routes, examples = tuple(routes), msgspec.json.decode(EXAMPLES.read_bytes()).get(about.title, {})
    schemas = _Schemas(routes)
    paths: dict[str, Json] = {}
    for route in routes:
        operation = _operation(route, schemas, examples.get(route.name, {}), secured=secured)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    statuses = sorted({status for route in routes for status in _statuses(route, secured=secured)})
    components: Json = {
        "schemas": schemas.shared,
        "responses": {_name(status): _problem(status, schemas.of(Problem)) for status in statuses},
    }
    described = {
        "openapi": VERSION,
        "info": {"title": about.title, "version": about.version, "description": about.description},
        "paths": paths,
        "components": components | ({"securitySchemes": _schemes()} if secured else {}),
        "security": [{"token": []}] if secured else [],  # routes that differ say so
    }
    about.around(described)
    # A generic type of a generic type is named with the module of the latter, which is nobody's concern.
    named: Json = msgspec.json.decode(_MODULE.sub(b"", msgspec.json.encode(described)))
    return named


class _Schemas:
    """The schemas of all types that routes take and give."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        every = [route.types for route in routes]
        bodies = [types.body for types in every if _fields(types.body)]
        answers = [types.answer for types in every if types.answer is not web.StreamResponse]
        shared = list(dict.fromkeys([Problem, *bodies, *answers]))
        taken = list(dict.fromkeys(kind for types in every for kind in (types.path, types.query)))
        schemas, self.shared = msgspec.json.schema_components(shared, ref_template=SCHEMA)
        self._known = dict(zip(shared, schemas, strict=True))
        # Parameters are described one by one, where they are taken; their types are not told to anyone.
        schemas, parts = msgspec.json.schema_components(taken, ref_template=SCHEMA)
        names = [schema["$ref"].rpartition("/")[2] for schema in schemas]
        self._parameters = {kind: parts[name] for kind, name in zip(taken, names, strict=True)}
        self.shared |= {name: part for name, part in parts.items() if name not in names}

    def of(self, kind: Any) -> Json:  # noqa: ANN401 - whatever type a function returns
        """The schema of a type, or where it is."""
        schema: Json = self._known[kind]
        return schema

    def members(self, kind: type[msgspec.Struct]) -> Json:
        """The schema of a struct itself."""
        name = str(self._known[kind]["$ref"]).rpartition("/")[2] if kind in self._known else ""
        schema: Json = self.shared[name] if name else self._parameters[kind]
        return schema


def _operation(route: Route, schemas: _Schemas, example: Json, *, secured: bool) -> Json:
    types, (summary, description) = route.types, route.words
    operation: Json = {
        "operationId": route.name,
        "summary": summary,
        "parameters": [
            *_parameters("path", schemas.members(types.path)),
            *_parameters("query", schemas.members(types.query)),
        ],
        "responses": {
            str(route.status): _answer(route, schemas, example),
            **{str(each): {"$ref": RESPONSE.format(name=_name(each))} for each in _statuses(route, secured=secured)},
        },
    }
    if description:
        operation["description"] = description
    if _fields(types.body):
        operation["requestBody"] = _body(route, schemas, example)
    if secured and route.everyone:
        operation["security"] = []
    elif secured and route.hook:
        operation["security"] = [{"token": []}, {"hook": []}]
    return operation


def _parameters(where: str, schema: Json) -> Iterator[Json]:
    for name, its in schema["properties"].items():
        said = dict(its)
        description = {"description": said.pop("description")} if "description" in said else {}
        yield {"name": name, "in": where, "required": name in schema["required"], "schema": said, **description}


def _body(route: Route, schemas: _Schemas, example: Json) -> Json:
    kind = route.types.body
    content: Json = {"schema": {**schemas.of(kind), **route.body_rule}}
    if "body" in example:
        content["example"] = example["body"]
    needed = bool(schemas.members(kind)["required"] or route.body_rule)
    return {"required": needed, "content": {JSON: content}}


def _answer(route: Route, schemas: _Schemas, example: Json) -> Json:
    answer = route.types.answer
    stream = answer is web.StreamResponse
    content: Json = {"schema": {"type": "string"} if stream else schemas.of(answer)}
    if "answer" in example:
        content["example"] = example["answer"]
    return {"description": "What was asked for.", "content": {STREAM if stream else JSON: content}}


def _statuses(route: Route, *, secured: bool) -> tuple[int, ...]:
    """Those of all problems that a route may end with."""
    refused = () if secured and route.everyone else (401,) if secured else (403,)
    return tuple(sorted({*USUAL, *route.problems, *refused}))


def _problem(status: int, schema: Json) -> Json:
    header = TOLD_IN.get(status)
    return {
        "description": title(status),
        "content": {MEDIA_TYPE: {"schema": schema}},
        **({"headers": {header: {"schema": {"type": "string"}}}} if header else {}),
    }


def _schemes() -> Json:
    return {
        "token": {"type": "http", "scheme": "bearer"},
        "hook": {"type": "apiKey", "in": "header", "name": HOOK_HEADER},
    }


def _name(status: int) -> str:
    return f"Problem{status}"


def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)
