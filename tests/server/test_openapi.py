"""The OpenAPI document and the types of the front end are made from the models, and are up to date."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from harnesslab._version import __version__
from harnesslab.ledger import ACTS, Act
from harnesslab.server import answers, openapi
from harnesslab.server.handlers import Handler, routes
from harnesslab.store import STATES

SCHEMA_TS = Path(__file__).resolve().parents[2] / "extension" / "src" / "api" / "schema.ts"


def verbs(handler: type[Handler]) -> set[str]:
    """The verbs that a handler answers."""
    return {verb for verb in ("get", "post", "put", "patch", "delete") if verb in vars(handler)}


def test_the_document_is_that_of_the_models() -> None:
    assert openapi.FILE.read_text(encoding="utf-8") == openapi.text(), "run `make api` and commit what it writes"


def test_the_types_of_the_front_end_are_made_from_the_document() -> None:
    made_from = re.search(r"openapi\.yaml ([0-9a-f]{64})", SCHEMA_TS.read_text(encoding="utf-8"))
    digest = hashlib.sha256(openapi.FILE.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    assert made_from is not None and made_from[1] == digest, "run `make api` and commit what it writes"


def test_a_changed_model_changes_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    class More(answers.Live):
        """With one field more."""

        extra: int

    monkeypatch.setattr(
        openapi, "READS", [openapi.READS[0].__class__("live", "x", "x", openapi.queries.LabQuery, More, print)]
    )
    assert openapi.text() != openapi.FILE.read_text(encoding="utf-8")


def test_paths_and_verbs_agree(openapi_document: dict[str, Any]) -> None:
    assert {path: set(item) for path, item in openapi_document["paths"].items()} == {
        f"/{name}": verbs(handler) for name, handler, _ in routes()
    }


def test_the_words_are_those_of_the_ledger(openapi_document: dict[str, Any]) -> None:
    schemas = openapi_document["components"]["schemas"]
    assert schemas["Plan"]["properties"]["action"]["enum"] == list(ACTS) == list(get_args(Act))
    assert set(schemas["RefRow"]["properties"]["state"]["enum"]) == {*STATES, "commit"}


def test_every_field_of_an_answer_is_always_sent(openapi_document: dict[str, Any]) -> None:
    for name, schema in openapi_document["components"]["schemas"].items():
        if name != "ActionBody":
            assert set(schema["required"]) == set(schema["properties"]), name


def test_every_verb_is_authenticated_and_authorised() -> None:
    for _, handler, _ in routes():
        assert handler.auth_resource == "harnesslab"
        for verb in verbs(handler):
            method = vars(handler)[verb]
            # Both decorators wrap: the outer one is `authenticated`, which calls the inner one, `authorized`.
            assert method.__wrapped__.__wrapped__, (handler, verb)


def test_the_document_has_the_version_of_the_package(openapi_document: dict[str, Any]) -> None:
    assert openapi_document["info"]["version"] == __version__
