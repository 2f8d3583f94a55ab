"""The OpenAPI document says what the handlers do, and the front end is made from it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from harnesslab._version import __version__
from harnesslab.server.handlers import Handler, routes
from harnesslab.server.queries import ActionBody


def resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The node itself or what its `$ref` names."""
    if "$ref" not in node:
        return node
    found: Any = document
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)


def described(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """What a schema demands, in the terms that pydantic uses too."""
    schema = resolved(document, schema)
    keys = ("type", "enum", "default", "minimum", "maximum", "maxLength")
    return {key: schema[key] for key in keys if key in schema}


def demanded(model: type[BaseModel]) -> dict[str, tuple[dict[str, Any], bool]]:
    """Each field of a model: what it demands and whether it must be given."""
    schema = model.model_json_schema()
    fields = {}
    for name, node in schema["properties"].items():
        fields[name] = (described(schema, node), name in schema.get("required", []))
    return fields


def verbs(handler: type[Handler]) -> set[str]:
    """The verbs that a handler answers."""
    return {verb for verb in ("get", "post", "put", "patch", "delete") if verb in vars(handler)}


def test_paths_and_verbs_agree(openapi: dict[str, Any]) -> None:
    assert {path: set(item) for path, item in openapi["paths"].items()} == {
        f"/{name}": verbs(handler) for name, handler, _ in routes()
    }


def test_parameters_agree(openapi: dict[str, Any]) -> None:
    for name, handler, arguments in routes():
        operation = openapi["paths"][f"/{name}"]
        if "get" not in operation:
            continue
        given = {}
        for parameter in operation["get"]["parameters"]:
            parameter = resolved(openapi, parameter)
            given[parameter["name"]] = (described(openapi, parameter["schema"]), parameter.get("required", False))
        assert given == demanded(arguments.get("query", getattr(handler, "query", None))), name


def test_the_body_of_an_action_agrees(openapi: dict[str, Any]) -> None:
    schema = openapi["components"]["schemas"]["Action"]
    given = {
        name: (described(openapi, node), name in schema["required"]) for name, node in schema["properties"].items()
    }
    given["expect"] = ({"type": "object"}, True)
    assert given == demanded(ActionBody)


def test_every_verb_is_authenticated_and_authorised() -> None:
    for _, handler, _ in routes():
        assert handler.auth_resource == "harnesslab"
        for verb in verbs(handler):
            method = vars(handler)[verb]
            # Both decorators wrap: the outer one is `authenticated`, which calls the inner one, `authorized`.
            assert method.__wrapped__.__wrapped__, (handler, verb)


def test_the_document_has_the_version_of_the_package(openapi: dict[str, Any]) -> None:
    assert openapi["info"]["version"] == __version__
