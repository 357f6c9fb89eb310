"""The routes described for others, as OpenAPI 3.1."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from sanderling.serving.access import Needs
from sanderling.serving.routes import PROBLEM_TYPE, Route

_USUAL = (400, 401, 403, 405, 409, 500, 503)  # what every route may end with


class ProblemShape(msgspec.Struct):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


def describe(title: str, version: str, routes: Iterable[Route]) -> dict[str, Any]:
    """The document."""
    routes = list(routes)
    kinds = {kind for route in routes for kind in route.types.values() if not _is_raw(kind)} | {ProblemShape}
    ordered = sorted(kinds, key=str)
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    by_kind = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, schemas: Mapping[Any, dict[str, Any]], components: Mapping[str, Any]) -> dict[str, Any]:
    given = route.types.get("return")
    if _is_raw(given):
        content: dict[str, Any] = {"text/event-stream": {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": schemas[given]}}
    problem = {PROBLEM_TYPE: {"schema": schemas[ProblemShape]}}
    codes = sorted({*_USUAL, *route.problems, *((408, 413, 415) if "body" in route.types else ())})
    operation: dict[str, Any] = {
        "operationId": route.function.__name__,
        "summary": route.help,
        "responses": {
            str(route.status): {"description": "What was asked for.", "content": content},
            **{str(code): {"description": HTTPStatus(code).phrase, "content": problem} for code in codes},
        },
        "security": [{"token": []}] if route.needs is Needs.CHANGE else [{}, {"token": []}],
    }
    parameters = [
        {
            "name": name,
            "in": place,
            "required": place == "path" or name in shape.get("required", ()),
            "schema": schema,
        }
        for place in ("path", "query")
        if place in route.types
        for shape in [components[schemas[route.types[place]]["$ref"].rpartition("/")[2]]]
        for name, schema in shape["properties"].items()
    ]
    if parameters:
        operation["parameters"] = parameters
    if "body" in route.types:
        operation["requestBody"] = {"content": {"application/json": {"schema": schemas[route.types["body"]]}}}
    return operation


def _is_raw(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, web.StreamResponse | web.Request)
