"""What went wrong at an endpoint, in one sentence that says what to do; and keys taken out of everything shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from harnesslab.llm.refusals import Refusal
from harnesslab.redaction import redact, scrub_head

_BOUND = 300
_LOOKED_AT = 20_000
NOTHING_REFUSED = Refusal()
_UNKNOWN_FIELD = re.compile(
    r"(?i)(?:unsupported|unrecognized|unknown|not support|extra inputs).{0,80}?['\"`](\w+)['\"`]"
)
_OVERFLOW = re.compile(
    r"(?i)exceed_context_size|context_length_exceeded|context.?(?:length|size|window|limit|overflow)|too many (?:input |prompt )?tokens|"
    r"(?:prompt|input|request|messages?)\b.{0,40}\b(?:is|are) too long|input (?:token count|length)|input is too long|"
    r"maximum (?:prompt|input|sequence) length|(?:inputs|prompt).{0,60}must (?:be|have) (?:<=?|less than|at most)|max_seq_len|"
    r"too large for (?:the )?model|string_above_max_length|超长"
)
_QUOTA = re.compile(
    r"(?i)insufficient[_ ](?:quota|balance|credits?|funds)|credit balance|out of credits|used all (?:available )?credits|"
    r"billing[_ ](?:hard )?limit|billing_hard_limit|exceeded_current_quota|payment required|requires? more credits|arrears"
)
_KEY = re.compile(
    r"(?i)api[_ ]?key.{0,12}(?:not valid|invalid|expired|missing|required|incorrect)|(?:invalid|incorrect|missing|expired|wrong)"
    r".{0,20}(?:api[_ ]?key|auth\w* header|token provided|access token|credentials)|unauthenticated|authentication_error"
)
_MODEL = re.compile(
    r"(?i)model[_ ]not[_ ](?:found|exist|supported)|invalid[_ ]model\b|not a valid model|(?:unknown|no such) model|"
    r"model.{0,80}(?:does not|doesn.t|not) (?:exist|found)\b|model_decommissioned"
)
_FILTERED = re.compile(r"(?i)moderat|content.?(?:filter|policy)|content management|safety|flagged|sensitive")
_OF_THE_REQUEST = ("tools", "tool_choice", "response_format", "grammar", "structured_outputs")
"""Fields whose values come from the task or the harness: a value that is refused is not the user's."""
_ARGUMENTS = {name: name for name in ("temperature", "max_tokens", "seed")} | {"max_completion_tokens": "max_tokens"}


def public_url(url: str) -> str:
    """A URL without user, password, query and fragment: what may be stored and shown."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return redact(re.split("[?#]", url.rpartition("@")[2])[0])
    host = parts.netloc.rpartition("@")[2]
    return redact(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")))


def clip(text: Any) -> str:
    """One short line of a server's own words, redacted."""
    line = redact(" ".join(redact(scrub_head(str(text), _LOOKED_AT)).split()))
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


def status_cause(status: int, told: str, code: str | None = None, refused: Refusal = NOTHING_REFUSED) -> str:
    """Which row of :data:`harnesslab.rollout.owners.RULES` an HTTP error is. ``told`` are the server's words."""
    said = f"{told} {code or ''}"
    if status == 402 or _QUOTA.search(said):
        return "quota"
    if status == 429:
        return "busy"
    if status == 413 or _OVERFLOW.search(said):
        return "context"
    if status in (400, 401, 403, 422):
        if _FILTERED.search(said):
            return "refused"
        if status in (401, 403) or _KEY.search(said):
            return "key"
    if status in (404, 405, 410) or (status in (400, 422) and _MODEL.search(said)):
        return "model"
    if refused.field:
        return "refused" if refused.value and refused.field in _OF_THE_REQUEST else "setup"
    if status in (400, 422) and _UNKNOWN_FIELD.search(told):
        return "setup"
    return "server" if status >= 500 else "refused"


NO_KEY = (
    "no key was sent: pass api_key=..., or in a YAML file api_key_env: NAME_OF_THE_VARIABLE. OPENAI_API_KEY is sent only "
    "where base_url is not given"
)


def explain_status(
    status: int,
    told: str,
    cause: str,
    *,
    model: str,
    where: str,
    detail: str = "",
    refused: Refusal = NOTHING_REFUSED,
    keyless: bool = False,
) -> str:
    """An HTTP error as a sentence. ``told`` is the server's message, redacted; ``detail`` what else is known.

    ``cause`` is that of :func:`status_cause`. ``keyless``: the request went out without a key.
    """
    said = f" The endpoint says: {told}" if told else ""
    if cause == "key":
        if keyless:
            return f"{where} requires a key (HTTP {status}), and {NO_KEY}.{said}"
        return f"{where} refuses the key (HTTP {status}); check api_key or OPENAI_API_KEY.{said}"
    if cause == "quota":
        return f"the quota or credit at {where} is used up (HTTP {status}).{said}"
    if cause == "context":
        return f"the request does not fit the context of '{model}' at {where} (HTTP {status}): show less history.{said}"
    if cause == "model":
        return f"{where} does not know the model '{model}' (HTTP {status}), or base_url lacks its '/v1'.{detail}{said}"
    if refused.field:
        what = f"the value of the field '{refused.field}'" if refused.value else f"the field '{refused.field}'"
        return f"'{model}' at {where} refuses {what} (HTTP {status}); {_remedy(refused)}.{said}"
    if cause == "busy":
        return f"{where} still limits the rate (HTTP 429); wait, or lower concurrency.{said}"
    return f"{where} failed for '{model}' with HTTP {status}.{said}"


def _remedy(refused: Refusal) -> str:
    argument = _ARGUMENTS.get(refused.field)
    other = "give another one, or " if refused.value else ""
    if argument:
        return f"{other}leave it out ({argument}=None)"
    if refused.field == "tools":
        return 'the harness can describe the tools in the prompt instead (protocol = "text" in harness.toml)'
    if refused.field in _OF_THE_REQUEST:
        return "pass connection=hl.Connection(constrain='none')"
    return f"{other}take it out of extra={{...}}"
