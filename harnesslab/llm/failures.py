"""What went wrong at an endpoint, in one sentence that says what to do; and keys taken out of everything shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_BOUND = 300
_KEYS = re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}|\b(?:sk|pk|gsk|hf|xai|key)[-_][\w-]{8,}|\bAIza[\w-]{20,}")
_OVERFLOW = re.compile(
    r"(?i)exceed_context_size|context_length_exceeded|context (?:length|size|window)|too many tokens"
)
_FILTERED = re.compile(r"(?i)moderat|content.?(?:filter|policy)|safety|flagged")
_REFUSED = re.compile(r"(?i)(?:unsupported|unrecognized|unknown|not support|extra inputs).{0,80}?['\"`](\w+)['\"`]")


def redact(text: str, *secrets: str | None) -> str:
    """``text`` without the given secrets and without anything that looks like an API key."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, "***")
    return _KEYS.sub(lambda found: f"{found[1] or ''}***", text)


def public_url(url: str) -> str:
    """A URL without user, password, query and fragment: what may be stored and shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def clip(text: Any, *secrets: str | None) -> str:
    """One short line of a server's own words."""
    line = redact(" ".join(str(text).split()), *secrets)
    return line if len(line) <= _BOUND else line[:_BOUND] + "…"


def explain_local(error: Any, model: str, context: int) -> str:
    """The embedded server's error object as a sentence."""
    told = error.get("message", error) if isinstance(error, Mapping) else error
    if _OVERFLOW.search(str(error)):
        return (
            f"the request does not fit the context of '{model}' ({context} tokens): {clip(told)}. "
            "Show less history, or load it with a larger context=..."
        )
    return f"the local model '{model}' refuses the request: {clip(told)}"


def local_cause(error: Any) -> str:
    """The same for the embedded server's error object."""
    return "context" if _OVERFLOW.search(str(error)) else "refused"


def status_cause(status: int, told: str, code: str | None = None) -> str:
    """Which row of :data:`harnesslab.rollout.owners.RULES` an HTTP error is."""
    if code == "insufficient_quota" or status == 402:
        return "quota"
    if status == 429:
        return "busy"
    if status == 413 or (status < 500 and _OVERFLOW.search(told)):
        return "context"
    if status in (401, 403):
        return "refused" if _FILTERED.search(told) else "key"
    if status in (404, 405, 410):
        return "model"
    if status in (400, 422) and _REFUSED.search(told):
        return "setup"
    return "server" if status >= 500 else "refused"


def explain_status(status: int, told: str, *, model: str, where: str, detail: str = "") -> str:
    """An HTTP error as a sentence. ``told`` is the server's message, redacted; ``detail`` what else is known."""
    said = f" The endpoint says: {told}" if told else ""
    if status in (401, 403):
        return f"{where} refuses the key (HTTP {status}); check api_key or OPENAI_API_KEY.{said}"
    if _OVERFLOW.search(told):
        return f"the request does not fit the context of '{model}' at {where}: show less history.{said}"
    if status == 404:
        return f"{where} knows no model '{model}' (HTTP 404), or base_url lacks its '/v1'.{detail}{said}"
    refused = _REFUSED.search(told)
    if status in (400, 422) and refused:
        return (
            f"'{model}' at {where} refuses the field '{refused[1]}' (HTTP {status}); leave it out "
            f"({refused[1]}=None), or give another in extra={{...}}.{said}"
        )
    if status == 429:
        return f"{where} still limits the rate or the quota is used up (HTTP 429); wait, or lower concurrency.{said}"
    return f"{where} failed for '{model}' with HTTP {status}.{said}"
