"""The one redactor: known secrets, in whatever way they are written, leave everything that is stored or shown.

Whoever is handed a secret says so with :func:`remember`. :func:`scrub` takes the remembered ones out of a text and
:func:`scrub_json` out of a JSON value; :func:`redact` also takes out what looks like an API key, for texts of which
nothing depends on the exact words. A secret is found raw, split over lines or string literals, URL-encoded, in JSON
or HTML escapes, in Base64 and in hex, in any case.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

HIDDEN = "***"
_PLACEHOLDER = re.compile(r"(?s).{0,5}|(?i:[a-z]{1,9}|not-needed|no-key|lm-studio|sk-no-key-required|placeholder)")
"""What is given as a key where none is needed, and words that could stand in any text."""
_SPLITTABLE = 12
_LONGEST = 5_000
"""Characters that a secret may take, however it is written."""
_GAP = r"(?:\\[nrt]|[\s\"'+\\\u200b]){0,8}"
_KEYS = re.compile(
    r"(?i)\b(bearer\s+|basic\s+)[\w.~+/=-]{8,}|\b(?:sk|pk|gsk|hf|xai|key|ghp|nvapi|r8|pplx)[-_][\w-]{8,}|\bAIza[\w-]{20,}"
)
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|authorization|credential|cookie")
_SECRET_VARIABLE = re.compile(r"(?:_API_KEY|_TOKEN|_SECRET|_SECRET_KEY|_ACCESS_KEY|_PASSWORD)$")
_KEY_LIKE = re.compile(r"(?=[\w.~-]{16,}$)(?=.*\d)[\w.~-]+")

_DROPPED = dict.fromkeys(map(ord, " \t\n\r\f\v\"'+\\\u200b\u0307nrt")) | {ord("ı"): "i"}
"""What may be between the characters of a split secret; without it, and without case, finding one is a plain search."""

_lock = threading.Lock()
_known: dict[str, tuple[re.Pattern[str], frozenset[str]]] = {}


def remember(*secrets: str | None) -> None:
    """Take these texts out of everything from now on; None and short ones are ignored."""
    with _lock:
        for secret in secrets:
            if secret and secret not in _known and not _PLACEHOLDER.fullmatch(secret):
                plain, split = _writings(secret)
                pattern = re.compile("|".join([*map(re.escape, plain), *split]), re.IGNORECASE)
                _known[secret] = pattern, frozenset(map(_core, plain))


def remember_url(url: str) -> None:
    """Remember what is secret in a URL: the password, the values of the query, parts of the path like a key."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    remember(*(unquote(part) for part in user.split(":")), *(value for _, value in parse_qsl(parts.query)))
    remember(*(part for part in parts.path.split("/") if _KEY_LIKE.fullmatch(unquote(part))))


def remember_settings(value: Any, named: bool = False) -> None:
    """Remember the texts below keys such as ``api_key`` or ``Authorization`` in a JSON value."""
    stack = [(value, named)]
    while stack:
        item, secret = stack.pop()
        if isinstance(item, Mapping):
            stack += [(inner, secret or bool(_SECRET_NAME.search(str(key)))) for key, inner in item.items()]
        elif isinstance(item, (list, tuple)):
            stack += [(inner, secret) for inner in item]
        elif secret and isinstance(item, str):
            remember(item, item.rpartition(" ")[2])


def remember_environment() -> None:
    """Remember the values of environment variables whose names say that they are secret, such as OPENAI_API_KEY."""
    remember(*(value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name) and len(value) >= 8))


def scrub(text: str) -> str:
    """``text`` without the remembered secrets."""
    if not _known:
        return text
    core = _core(text)
    for pattern, cores in list(_known.values()):
        # The patterns are slow on long texts, and nearly all texts hold no secret.
        if any(one in core for one in cores):
            text = pattern.sub(HIDDEN, text)
    return text


def scrub_head(text: str, limit: int) -> str:
    """At most the first ``limit`` characters of ``text`` without the remembered secrets; the rest is not looked at."""
    if len(text) <= limit + _LONGEST:
        return scrub(text)[:limit]
    # A secret that is cut in two at the end is not found: the last piece is left away.
    return scrub(text[: limit + _LONGEST])[:-_LONGEST][:limit]


def _core(text: str) -> str:
    return "".join(text.casefold().translate(_DROPPED).split())


def scrub_json(value: Any) -> Any:
    """A JSON value without the remembered secrets, in its keys as well; the value itself where there is none in it."""
    if not _known:
        return value
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {scrub(key) if isinstance(key, str) else key: scrub_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [scrub_json(item) for item in value]
    return tuple(scrub_json(item) for item in value) if isinstance(value, tuple) else value


def redact(text: str) -> str:
    """``text`` without the remembered secrets and without anything that looks like an API key."""
    return _KEYS.sub(lambda found: f"{found[1] or ''}{HIDDEN}", scrub(text))


def _writings(secret: str) -> tuple[list[str], list[str]]:
    """The ways to write a secret, longest first, and the pattern that finds it split."""
    raw = secret.encode("utf-8", "replace")
    plain = [secret, quote(secret, safe=""), json.dumps(secret)[1:-1], html.escape(secret), raw.hex()]
    if len(secret) >= _SPLITTABLE:
        for skip in range(3):
            # Base64 of a longer text that holds the secret: the three alignments, without the characters at the ends.
            coded = base64.b64encode(b"\0" * skip + raw).decode().rstrip("=")
            inner = coded[(skip * 8 + 5) // 6 : len(raw + b"\0" * skip) * 8 // 6]
            plain += [inner, inner.replace("+", "-").replace("/", "_")]
        split = [_GAP.join(map(re.escape, secret))]
    else:
        split = []
    return sorted(set(plain), key=len, reverse=True), split
