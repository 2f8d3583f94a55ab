"""The reference of all kinds, made from the code: ``python -m harnesslab.harness.reference > docs/interventions.md``.

A test compares the file in ``docs/`` with this, so that it cannot drift.
"""

from __future__ import annotations

import inspect
import typing
from typing import Any

from pydantic.fields import FieldInfo

from harnesslab.harness.base import HOOKS, LAYERS
from harnesslab.harness.kind import Kind, Params, When, brought_by, known_kinds
from harnesslab.harness.load import Manifest, PromptSpec
from harnesslab.harness.protocol import expected_form
from harnesslab.harness.regexes import DEADLINE, Regex

_INTRO = """# Interventions

This page is made from the code (`python -m harnesslab.harness.reference`); a test keeps it true.

An intervention is one YAML file in the folder of its layer. Its name is `layer/stem`. Layers are asked in the order
`contract`, `skill`, `action`, `regulation`, and in a layer by file name.

```yaml
kind: rescue                 # one of the kinds below
about: why it is here        # optional, one line
when:                        # optional; every condition must hold
  last_invalid: true
params:                      # checked by the kind; unknown keys are errors
  max_chars: 80
```

Patterns are Python regular expressions, searched anywhere in the text; `(?i)` at the start ignores case. A search that
takes longer than {deadline:g} s is charged to the intervention. YAML here has no aliases and no tags; keys must be unique;
only `true` and `false` are truth values.

## harness.toml

{manifest}

The table `[prompt]`:

{prompt}

Without any intervention the model gets the system prompt (with the tools listed, in the text and json protocols),
the instruction at the top of the first user message, the last turns, and the observation. The form of a reply:

| protocol | without tools | with tools |
|---|---|---|
{forms}

## Forced actions

Results report the share of executed actions that were *forced*: the harness decided them, not the model. An action is forced
when the harness left a single choice (`constrain`), replaced the action (`loop_breaker` with `force`), or executed
something that the reply does not say (`snap` to another action, a `rewrite` that changes words). Quotes, spaces, case and the
form of a reply do not count, so a kind that only adds quotes, and a `rescue` that copies the action, leave it the model's own.

## The trigger `when`

{when}

## Python files

A file `layer/stem.py` with functions named after the hooks ({hooks}) is an intervention too. They take and return plain
JSON forms of the context, draft, proposal and decision, or `None`. Define them at the top level of the file. It runs in a
confined process with the standard library only ([Python interventions are confined](confinement.md)). What each hook
gets and returns, with examples: [Write an intervention that no kind can say](howto/express.md).
"""


def reference() -> str:
    """The whole page as Markdown."""
    text = _INTRO.format(
        deadline=DEADLINE,
        manifest=_table(Manifest),
        prompt=_table(PromptSpec),
        when=_table(When),
        forms="\n".join(_form(protocol) for protocol in ("text", "json", "tools")),
        hooks=", ".join(f"`{hook}`" for hook in HOOKS),
    )
    # Those of this package only: the page must not depend on what else is installed.
    kinds = [cls for cls in known_kinds().values() if cls.__module__.startswith(("harnesslab.", "harnesslab_envs."))]
    parts = [text]
    for layer in LAYERS:
        parts.append(f"## Layer `{layer}`\n")
        members = [cls for cls in kinds if cls.layers[0] == layer]
        parts += [_section(cls) for cls in sorted(members, key=lambda cls: (cls.stage, cls.kind))]
    return "\n".join(parts)


def _section(cls: type[Kind[Any]]) -> str:
    own = cls.hooks
    layers = ", ".join(f"`{layer}/`" for layer in cls.layers)
    facts = [f"Folder: {layers}. Hooks: {', '.join(f'`{hook}`' for hook in own)}."]
    if "realize" in own:
        facts.append(f"Stage of `realize`: {cls.stage}.")
    if bringer := brought_by(cls.kind):
        facts.insert(0, "Comes with " + bringer.replace("'", "`") + ".")
    if cls.constrained_only:
        facts.append("Asked only where the backbone can enforce choices.")
    about = inspect.cleandoc(cls.__doc__ or "")
    example = f"```yaml\n{cls.example}```\n"
    return "\n\n".join((f"### {cls.kind}", about, " ".join(facts), _table(cls.Params), example))


def _table(model: type[Params]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name, info in model.model_fields.items():
        cells = (f"`{name}`", _type(info.annotation), _default(info), info.description or "")
        rows.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(rows)


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return "none"
    if isinstance(value, Params):
        return "as below"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (dict, tuple)):
        return "empty" if not value else f"`{value}`"
    text = value.pattern if isinstance(value, Regex) else str(value)
    return f"`{text}`" if text else "empty"


def _type(annotation: Any) -> str:
    """A type in words."""
    if typing.get_origin(annotation) is typing.Literal:
        return ", ".join(f"`{value}`" for value in typing.get_args(annotation))
    arguments = [arg for arg in typing.get_args(annotation) if arg not in (type(None), ...)]
    if typing.get_origin(annotation) is dict:
        return f"mapping to {_type(arguments[1])}"
    if typing.get_origin(annotation) is tuple:
        return f"list of {_type(arguments[0])}"
    if arguments:
        return " or ".join(_type(arg) for arg in arguments)
    if isinstance(annotation, type) and issubclass(annotation, Params):
        return ", ".join(f"`{name}`" for name in annotation.model_fields)
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", Regex: "pattern"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _form(protocol: Any) -> str:
    schema = {"parameters": {"required": ["x"]}}
    plain, tools = expected_form(protocol), expected_form(protocol, [{"function": schema}])
    return f"| {protocol} | {plain} | {tools} |".replace("<", "&lt;")


if __name__ == "__main__":
    print(reference(), end="")
