"""What went wrong at an endpoint, in one sentence that says what to do; and keys taken out of everything shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from harnesslab.redaction import redact

_BOUND = 300
_REFUSAL = re.compile(
    r"(?i)unsupported|unrecogni[sz]ed|unknown|unexpected|not (?:be )?(?:support|permit|allow|accept|implement|valid|recogni)|"
    r"does ?n.t (?:support|accept)|does not|extra|invalid|forbidden|deprecated|cannot|can't|no such|no longer"
)
_SETUP = re.compile(r"(?i)(?:unsupported|unrecognized|unknown|not support|extra inputs).{0,80}?['\"`](\w+)['\"`]")
_OVERFLOW = re.compile(
    r"(?i)exceed_context_size|context_length_exceeded|context (?:length|size|window)|too many tokens"
)
_FILTERED = re.compile(r"(?i)moderat|content.?(?:filter|policy)|safety|flagged")


def public_url(url: str) -> str:
    """A URL without user, password, query and fragment: what may be stored and shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return redact(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")))


def clip(text: Any) -> str:
    """One short line of a server's own words, redacted."""
    line = redact(" ".join(redact(str(text)).split()))
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
    if status in (400, 422) and _SETUP.search(told):
        return "setup"
    return "server" if status >= 500 else "refused"


NO_KEY = (
    "no key was sent: pass api_key=..., or in a YAML file api_key_env: NAME_OF_THE_VARIABLE. OPENAI_API_KEY is sent only "
    "where base_url is not given"
)


def refused_field(told: str, error: Any, sent: Collection[str]) -> str:
    """The field of the request that a 400 or 422 refuses; empty where it names none of those that were ``sent``.

    ``error`` is the body of the reply: OpenAI's ``param`` and FastAPI's ``loc`` name the field, else ``told`` does.
    """
    fields = [name for name in sent if name not in ("model", "messages")]
    inner = error.get("error", error) if isinstance(error, Mapping) else error
    param = inner.get("param") if isinstance(inner, Mapping) else None
    if isinstance(param, str) and param.split(".")[0].split("[")[0] in fields:
        return param.split(".")[0].split("[")[0]
    details = next((e["detail"] for e in (error, inner) if isinstance(e, Mapping) and "detail" in e), None)
    for detail in details if isinstance(details, list) else []:
        places = detail.get("loc") if isinstance(detail, Mapping) else None
        for place in places if isinstance(places, list) else []:
            if place in fields:
                return str(place)
    if not _REFUSAL.search(told):
        return ""
    named = [(match.start(), name) for name in fields if (match := re.search(rf"(?<!\w){re.escape(name)}(?!\w)", told))]
    return min(named)[1] if named else ""


def explain_status(
    status: int, told: str, *, model: str, where: str, detail: str = "", refused: str = "", keyless: bool = False
) -> str:
    """An HTTP error as a sentence. ``told`` is the server's message, redacted; ``detail`` what else is known.

    ``refused`` is the field that was refused. ``keyless``: the request went out without a key.
    """
    said = f" The endpoint says: {told}" if told else ""
    if status in (401, 403):
        if keyless:
            return f"{where} wants a key (HTTP {status}), and {NO_KEY}.{said}"
        return f"{where} refuses the key (HTTP {status}); check api_key or OPENAI_API_KEY.{said}"
    if _OVERFLOW.search(told):
        return f"the request does not fit the context of '{model}' at {where}: show less history.{said}"
    if status == 404:
        return f"{where} knows no model '{model}' (HTTP 404), or base_url lacks its '/v1'.{detail}{said}"
    if status in (400, 422) and refused:
        return (
            f"'{model}' at {where} refuses the field '{refused}' (HTTP {status}); leave it out "
            f"({refused}=None), or give another in extra={{...}}.{said}"
        )
    if status == 429:
        return f"{where} still limits the rate or the quota is used up (HTTP 429); wait, or lower concurrency.{said}"
    return f"{where} failed for '{model}' with HTTP {status}.{said}"
