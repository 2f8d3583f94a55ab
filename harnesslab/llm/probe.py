"""What kind of server an endpoint is, asked once: one GET of its model list."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from harnesslab.llm.body import Constrain

_SECONDS = 5.0

# What a server puts into "owned_by" of its models, its kind, and how it enforces choices.
_KINDS: dict[str, tuple[str, Constrain]] = {
    "llamacpp": ("llama.cpp", "grammar"),
    "vllm": ("vllm", "structured_outputs"),
    "sglang": ("sglang", "json_schema"),
    "library": ("ollama", "json_schema"),
    "organization_owner": ("lm studio", "json_schema"),
    "system": ("openai", "json_schema"),
    "openai": ("openai", "json_schema"),
}


@dataclass(frozen=True, slots=True)
class Server:
    """Kind of server, how it enforces choices, and the models that it lists."""

    kind: str = "unknown"
    constrain: Constrain = "none"
    models: tuple[str, ...] = ()


def probe(base_url: str, api_key: str | None) -> Server | None:
    """Ask the endpoint; None when it does not answer, so that a later call may ask again. Blocks 5 s at most."""
    import httpx

    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        reply = httpx.get(f"{base_url.rstrip('/')}/models", headers=headers, timeout=_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    try:
        listed = reply.json()["data"] if reply.is_success else []
        models = [model for model in listed if isinstance(model, dict)]
    except (ValueError, KeyError, TypeError):
        models = []
    owners = {str(model.get("owned_by", "")) for model in models}
    if urlsplit(base_url).hostname == "api.openai.com":
        owners = {"openai"}
    kind, constrain = next((_KINDS[owner] for owner in sorted(owners) if owner in _KINDS), ("unknown", "none"))
    return Server(kind, constrain, tuple(str(model.get("id", "")) for model in models))
