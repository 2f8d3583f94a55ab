"""The OpenAPI document of the server, made from the models of its questions and answers.

`python -m harnesslab.server.openapi` writes it to `openapi.yaml`; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from harnesslab._version import __version__
from harnesslab.server import answers, queries
from harnesslab.server.routes import READS

FILE = Path(__file__).with_name("openapi.yaml")
HEADER = """\
# Generated from harnesslab/server/{answers,queries,routes}.py by `make api`; do not edit.
# The route tests check every answer against it, and extension/src/api/schema.ts is generated from it.
"""
ABOUT = (
    "Reads labs (git refs, notes and the record store) under the Jupyter root, and acts on them with the same code, lock and "
    "compare-and-swap as the kernel library. Every verb needs an authenticated user who is authorised for the resource "
    "`harnesslab` (GET: `read`, POST: `write`). GET changes nothing. A lab is named by its path below the Jupyter root; a "
    "path that leaves the root is 404."
)
PROBLEMS = (
    "400 bad ref or value, 403 not allowed, 404 outside the root or no such thing, 409 lock held, baseline moved, conflict, "
    "dubious ownership or newer database, 410 vanished lab, 422 corrupt repository, 504 deadline."
)
_REF = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """The document as plain data."""
    paths: dict[str, Any] = {
        f"/{route.name}": {"get": _get(route.operation, route.summary, route.query, _json(route.answer))}
        for route in READS
    }
    archive = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
    paths["/export"] = {"get": _get("exportHarness", "The harness at a ref as a zip file", queries.RefQuery, archive)}
    paths["/actions"] = {
        "post": {
            "operationId": "act",
            "summary": "Do what a plan says, if the lab is still as the plan saw it",
            "requestBody": {"required": True, "content": _json(queries.ActionBody)},
            "responses": _responses(_json(answers.Done)),
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "harnesslab server extension", "version": __version__, "description": ABOUT},
        "servers": [{"url": "/harnesslab"}],
        "paths": paths,
        "components": {
            "responses": {"Problem": {"description": PROBLEMS, "content": _json(answers.Problem)}},
            "schemas": _schemas(),
        },
    }


def text() -> str:
    """The document as `openapi.yaml` holds it."""
    return HEADER + yaml.safe_dump(document(), sort_keys=False, allow_unicode=True, width=120)


def _get(operation: str, summary: str, query: type[BaseModel], content: dict[str, Any]) -> dict[str, Any]:
    schema = query.model_json_schema()
    required = schema.get("required", [])
    parameters = [
        {"name": name, "in": "query", **_described(node), **({"required": True} if name in required else {})}
        for name, node in schema["properties"].items()
    ]
    return {
        "operationId": operation,
        "summary": summary,
        "parameters": parameters,
        "responses": _responses(content),
    }


def _described(node: dict[str, Any]) -> dict[str, Any]:
    """The description belongs to the parameter, the rest to its schema."""
    schema = _untitled(node)
    about = schema.pop("description", None)
    return {**({"description": about} if about else {}), "schema": schema}


def _json(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}


def _responses(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "200": {"description": "The answer", "content": content},
        "default": {"$ref": "#/components/responses/Problem"},
    }


def _schemas() -> dict[str, Any]:
    said: list[type[BaseModel]] = [answers.Problem, answers.Done, *(route.answer for route in READS)]
    modes: list[tuple[type[BaseModel], JsonSchemaMode]] = [(model, "serialization") for model in said]
    _, schema = models_json_schema([*modes, (queries.ActionBody, "validation")], ref_template=_REF)
    found: dict[str, Any] = _untitled(schema["$defs"])
    return found


def _untitled(node: Any) -> Any:
    """Without the titles that pydantic makes of the names of fields."""
    if isinstance(node, dict):
        return {key: _untitled(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))}
    return [_untitled(each) for each in node] if isinstance(node, list) else node


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8", newline="\n")
