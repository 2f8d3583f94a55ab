"""Which field of a request an endpoint refuses, and whether it is the field or its value.

Servers say it in many ways: OpenAI's ``param``, pydantic's ``loc``, a JSON pointer, a name in quotes, a sentence; in an
object, a list, or JSON within a string. Only fields that were sent are looked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from harnesslab.plainjson import loads

_MOST = 400
"""Parts of an error body that are looked at."""
_PLACES = ("param", "loc", "field", "path", "parameter", "pointer", "property", "instancePath")
_BODY = ("body", "$", "#", "request", "json")
_NEVER = ("model", "messages")
"""A refused message is the request's own fault, and an unknown model has a cause of its own."""

_REFUSED = re.compile(
    r"(?i)unsupported|unrecogni[sz]ed|unknown|unexpected|additional propert|"
    r"not (?:be )?(?:\w+ly )?(?:a )?(?:set|support|permit|allow|accept|implement|valid|recogni|available|known|defined)|"
    r"(?:does|do|did|is|are)(?: not|n.t) (?:support|accept|allow|recogni|have)|extra|forbidden|deprecated|"
    r"cannot|can't|must not|may not|no such|no longer|invalid|illegal|disallowed|"
    r"(?:must|should|has to|have to|need to|can only|may only|expected) "
)
_OF_VALUE = re.compile(
    r"(?i)unsupported value|(?:invalid|illegal|wrong) (?:value|type)|invalid [\w'\"`.]+ value|not a valid (?:value|type|int|integer|number|float|string|boolean)|"
    r"range|too (?:large|small|big|high|low|long|many)|at (?:least|most)|greater|less|larger|smaller|exceed|maxim|minim|between|"
    r"\bonly\b|\b(?:must|should) be (?!empty|absent|omitted|removed)|<=|>=|positive|negative|int_|float_|_type\b|_parsing|"
    r"[<>] ?\d|is not one of|literal_error|enum\b|expected (?:an?|one) |default"
)
_OF_FIELD = re.compile(
    r"(?i)extra_forbidden|extra (?:inputs|fields)|unsupported[_ ](?:param|arg|field|propert|key|option)|unknown[_ ](?:name|param|arg|field|propert|key|option)|"
    r"unrecogni[sz]ed[_ ](?:request|param|arg|field|propert|key)|additional propert|(?:param\w*|field|argument)_not_supported|"
    r"(?:cannot|must not|may not) (?:both )?be (?:set|specified|given|used|sent)"
)
_ALTERNATIVES = re.compile(
    r"(?i)expected one of|(?<!not )(?<!not a )(?<!not an )\b(?:supported|allowed|valid|available|accepted|permitted)"
    r"(?: \w+)? (?:fields?|param\w*|arguments?|options?|keys?|propert\w+|names?)\b|\buse\b|\binstead\b"
)
"""What follows are the fields that the server would take."""


class Refusal(NamedTuple):
    """The name of the refused field, empty where none is named. ``value``: the field is known, its value is refused."""

    field: str = ""
    value: bool = False


def refusal(error: Any, sent: Collection[str]) -> Refusal:
    """What the body of an HTTP 400 or 422 refuses of the fields that were ``sent``."""
    names = {_plain(name): name for name in sent if name not in _NEVER}
    places: list[str] = []
    texts: list[str] = []
    for place, text in _parts(error):
        (places if place else texts).append(text)
    field = next((found for place in places if (found := _head(place, names))), "")
    if not field and not any(_head(place, {_plain(name): name for name in _NEVER}) for place in places):
        field = next((found for text in texts if (found := _named(text, names))), "")
    if not field:
        return Refusal()
    said = " ".join(texts)
    return Refusal(field, bool(_OF_VALUE.search(said)) and not _OF_FIELD.search(said))


def _parts(error: Any) -> Iterator[tuple[bool, str]]:
    """The texts of an error body in their order; true for those that are the place of a field."""
    stack: list[tuple[str, Any]] = [("", error)]
    for _ in range(_MOST):
        if not stack:
            return
        key, value = stack.pop()
        if isinstance(value, Mapping):
            stack += reversed([(str(name), inner) for name, inner in value.items()])
        elif isinstance(value, (list, tuple)):
            if key == "loc":
                yield True, ".".join(map(str, value))
            else:
                stack += reversed([(key, inner) for inner in value])
        elif isinstance(value, str):
            if key in _PLACES:
                yield True, value
                continue
            if value.lstrip()[:1] in ("{", "["):
                try:
                    stack.append((key, loads(value)))
                    continue
                except ValueError:
                    pass
            # pydantic's errors as Python prints them
            yield from ((True, found) for found in re.findall(r"'loc': \(([^)]*)\)", value))
            yield False, value


def _plain(name: str) -> str:
    """A name without what camelCase and snake_case differ in."""
    return name.replace("_", "").casefold()


def _head(place: str, names: Mapping[str, str]) -> str:
    """The field at the head of a path: ``body.seed``, ``#/seed``, ``tools[0].function``, ``('body', 'seed')``."""
    words = [word for word in re.findall(r"[$#]|[A-Za-z]\w*", place) if word not in _BODY]
    return names.get(_plain(words[0]), "") if words else ""


def _named(text: str, names: Mapping[str, str]) -> str:
    """The first field that a refusing sentence names, those in quotes first."""
    if not _REFUSED.search(text):
        return ""
    text = _ALTERNATIVES.split(text)[0]
    quoted = re.findall(r"['\"`]((?:[\w$#]+[./])*\w+)['\"`]", text)
    bare = re.findall(r"(?<![\w/.-])((?:(?:body|\$|#)[./])*[A-Za-z]\w*)", text)
    return next((found for word in [*quoted, *bare] if (found := _head(word, names))), "")
