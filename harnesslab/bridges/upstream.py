"""The model behind the proxy: requests go on with the caller's own headers, and faults come back as they are."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import httpx

from harnesslab.bridges.dialects import Dialect
from harnesslab.bridges.items import with_tools
from harnesslab.errors import BackboneError
from harnesslab.llm.types import Backbone, Completion, Request

_HOP = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
        "accept-encoding",
        "expect",
    ]
)
_BACK = _HOP | {"content-encoding"}
OWN = "x-harnesslab"
"""Headers that begin so are the proxy's own, and are never sent on."""


class UpstreamFault(BackboneError):
    """The upstream answered with something that is not a reply; ``response`` goes to the caller as it is."""

    def __init__(self, response: httpx.Response):
        self.response = response
        super().__init__(f"the upstream answered with status {response.status_code}", cause="busy")


class Upstream(Backbone):
    """Answers one request of an agent: its own body with the messages of the harness. Each reply's ``body`` is the upstream's."""

    def __init__(
        self, client: httpx.AsyncClient, dialect: Dialect, body: Mapping[str, Any], headers: Mapping[str, str]
    ):
        self._client, self._dialect, self._body, self._headers = client, dialect, body, headers
        self.seconds = 0.0
        self.calls = 0

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model that the agent asked for."""
        return {"kind": "upstream", "model": str(self._body.get("model") or "")}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """One reply. Raises UpstreamFault for any answer that is not one."""
        body = with_tools(self._dialect.patch(self._body, request.messages), request.tools)
        for name in ("temperature", "max_tokens"):
            if (value := getattr(request, name)) is not None:
                body[name if name in self._body or name == "temperature" else _limit(self._body)] = value
        began = time.perf_counter()
        try:
            response = await self._client.post(
                self._dialect.path.lstrip("/"),
                content=json.dumps(body).encode("utf-8", "replace"),
                headers=self._headers,
            )
        finally:
            self.seconds += time.perf_counter() - began
            self.calls += 1
        if response.status_code != 200:
            raise UpstreamFault(response)
        try:
            raw = response.json()
            completion = self._dialect.completion(raw)
        except (ValueError, KeyError, TypeError, AttributeError, BackboneError) as error:
            raise UpstreamFault(response) from error
        return Completion(
            completion.text, completion.tool_calls, completion.finish_reason, completion.prompt_tokens,
            completion.completion_tokens, completion.model, body=raw,
        )  # fmt: skip


def sent_on(headers: Mapping[str, str]) -> dict[str, str]:
    """The caller's headers for the upstream, keys included; they are stored nowhere."""
    kept = {
        name: value for name, value in headers.items() if name.lower() not in _HOP and not name.lower().startswith(OWN)
    }
    return kept | {"accept-encoding": "identity"}


def sent_back(headers: Mapping[str, str]) -> dict[str, str]:
    """The upstream's headers for the caller."""
    return {name: value for name, value in headers.items() if name.lower() not in _BACK}


def _limit(body: Mapping[str, Any]) -> str:
    """What the request calls its limit on tokens."""
    known = ("max_completion_tokens", "max_output_tokens", "max_tokens")
    return next((name for name in known if name in body), "max_tokens")
