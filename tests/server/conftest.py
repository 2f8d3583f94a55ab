"""A Jupyter server with the extension in a temporary root that holds a lab, and a client that checks each answer."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import labmaker
import pytest
import tornado.httpclient

# `pytest_plugins` is for the topmost conftest only, and its hooks for asynchronous tests concern this folder alone.
from pytest_jupyter.jupyter_core import *  # noqa: F403
from pytest_jupyter.jupyter_server import *  # noqa: F403

Fetch = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
def jp_server_config() -> Any:
    """The extension is on, and nothing is reachable without a decorator that says so."""
    from traitlets.config import Config

    return Config(
        {
            "ServerApp": {
                "jpserver_extensions": {"harnesslab.server": True},
                "allow_unauthenticated_access": False,
                "open_browser": False,
            }
        }
    )


@pytest.fixture(scope="session")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """One lab, made once; tests get copies. Time stamps are old enough to be trusted at once."""
    folder = tmp_path_factory.mktemp("pattern") / "kitchen"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # commits carry the name of the product, not that of a user
        return folder, labmaker.make_lab(folder)


@pytest.fixture
def lab(jp_root_dir: Path, pattern: tuple[Path, dict[str, str]]) -> dict[str, str]:
    """A lab at `labs/kitchen` below the Jupyter root; the ids of its candidates by name."""
    shutil.copytree(pattern[0], jp_root_dir / "labs" / "kitchen", symlinks=True)
    return pattern[1]


@pytest.fixture
def fetch(jp_fetch: Any, check_answer: Callable[[str, str, int, Any], None]) -> Fetch:
    """Ask an endpoint: `await fetch("lab", lab="labs/kitchen")` gives (status, body); errors do not raise."""

    async def ask(name: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        options: dict[str, Any] = {"params": query}
        if body is not None:
            options |= {"method": "POST", "body": json.dumps(body)}
        try:
            response = await jp_fetch("harnesslab", name, **options)
        except tornado.httpclient.HTTPClientError as error:
            assert error.response is not None
            response = error.response
        if response.headers["Content-Type"].startswith("application/zip"):
            return response.code, response.body
        answer = json.loads(response.body)
        check_answer(name, "get" if body is None else "post", response.code, answer)
        return response.code, answer

    return ask


@pytest.fixture(scope="session")
def openapi_document() -> dict[str, Any]:
    """The OpenAPI document."""
    import yaml

    import harnesslab.server

    text = (Path(harnesslab.server.__file__).parent / "openapi.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


@pytest.fixture(scope="session")
def check_answer(openapi_document: dict[str, Any]) -> Callable[[str, str, int, Any], None]:
    """Compare an answer with the schema that the OpenAPI document gives for it; unknown keys fail too."""
    import jsonschema

    def closed(schema: Any) -> Any:
        if isinstance(schema, dict):
            extra = {"additionalProperties": False} if "properties" in schema else {}
            return {key: closed(value) for key, value in schema.items()} | extra
        return [closed(each) for each in schema] if isinstance(schema, list) else schema

    components = closed(openapi_document["components"])

    def check(name: str, verb: str, status: int, answer: Any) -> None:
        operation = openapi_document["paths"][f"/{name}"][verb]
        if status == 200:
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        else:
            schema = {"$ref": "#/components/schemas/Problem"}
        jsonschema.Draft202012Validator({**schema, "components": components}).validate(answer)

    return check
