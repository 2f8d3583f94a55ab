"""Writes the pages that are made from code: settings, command line, errors, REST, and the tutorials' copies.

They are not committed. ``docs/interventions.md``, ``failures.md`` and ``reply-formats.md`` are made from code as well, but
committed, because people read them without building anything; tests keep them up to date.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import harnesslab.errors
from harnesslab.errors import HarnesslabError
from harnesslab.trainer.config import Model, Settings, TrainFile

ROOT = Path(__file__).parent.parent


def write_all(docs: Path) -> None:
    """Write every generated page below ``docs``, and only those whose text changed."""
    pages = {"settings": settings(), "cli": cli(), "errors": errors(), "rest": rest()}
    for name, text in pages.items():
        _write(docs / "reference" / f"{name}.md", text)
    _remove_stale(docs / "reference")
    for notebook in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        target = docs / "tutorials" / notebook.name
        # Images are named as seen from notebooks/.
        _write(target, notebook.read_text(encoding="utf-8").replace("../docs/images/", "../images/"))


def _remove_stale(reference: Path) -> None:
    """Delete pages that autosummary wrote for names that have left the API page: they would be built again, with warnings."""
    listed = set(re.findall(r"^   ~?([\w.]+)$", (reference / "api.md").read_text(encoding="utf-8"), re.MULTILINE))
    for page in (reference / "generated").glob("*.rst"):
        if page.stem not in listed:
            page.unlink()


def settings() -> str:
    """The keys of a training's file and of ``Trainer(settings=...)``, from the pydantic models."""
    return "\n".join(
        [
            "# Settings",
            "",
            "`Trainer(settings={...})` takes the keys below. `Trainer(config_path=...)` and `harnesslab train` read them from a YAML",
            "file. A setting passed in code takes precedence over the file. Unknown keys are errors.",
            "",
            "```{literalinclude} ../../config/train_harness.yaml",
            ":language: yaml",
            "```",
            "",
            "## The file",
            "",
            *_fields(TrainFile),
            "",
            "`llm` has these keys:",
            "",
            *_fields(Model),
            "",
            "In `llm.options`, `api_key_env` names the environment variable that holds the key.",
            "",
            "## `settings`",
            "",
            *_fields(Settings),
            "",
        ]
    )


def _fields(model: type[BaseModel]) -> list[str]:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "required" if default is PydanticUndefined else f"`{default!r}`"
        if isinstance(default, BaseModel):
            shown = "see below"
        rows.append(f"| `{name}` | {_type(field.annotation)} | {shown} | {_cell(field.description or '')} |")
    return rows


def _type(annotation: Any) -> str:
    if get_origin(annotation) is not None and (arguments := get_args(annotation)):
        if type(None) in arguments:
            return " or ".join(_type(part) for part in arguments if part is not type(None)) + ", optional"
        if str(annotation).startswith("typing.Literal"):
            return ", ".join(f"`{part!r}`" for part in arguments)
    return _cell(f"`{getattr(annotation, '__name__', None) if not get_args(annotation) else annotation}`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def cli() -> str:
    """The command line's own help, as typer renders it."""
    made = subprocess.run(
        [sys.executable, "-m", "typer", "harnesslab.cli", "utils", "docs", "--name", "harnesslab"],
        check=True, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    head, _, rest = made.stdout.partition("\n")
    return f"# Command line\n\nA mistake is one line on stderr and exit code 1.\n{rest}" if head else made.stdout


def errors() -> str:
    """The hierarchy of errors, with their docstrings."""
    lines = [
        "# Errors and warnings",
        "",
        "Everything that harnesslab raises on purpose is a `HarnesslabError`: catch it to catch them all. A message names the thing, says what",
        "is wrong and what to do. In a notebook you see your own line and the sentence; `traceback.print_exception(error)` prints all frames.",
        "",
        "All of them are in {mod}`harnesslab.errors`. {doc}`../failures` says what each kind of failure does to an episode and to a run.",
        "",
    ]
    lines += _tree(HarnesslabError, 0)
    lines += ["", "Warnings:", ""]
    found = vars(harnesslab.errors).values()
    lines += [
        _entry(cls, 0)
        for cls in found
        if inspect.isclass(cls) and issubclass(cls, Warning) and cls.__module__ == "harnesslab.errors"
    ]
    return "\n".join([*lines, ""])


def _tree(cls: type, depth: int) -> list[str]:
    below = sorted((c for c in cls.__subclasses__() if c.__module__ == "harnesslab.errors"), key=lambda c: c.__name__)
    return [_entry(cls, depth), *(line for child in below for line in _tree(child, depth + 1))]


def _entry(cls: type, depth: int) -> str:
    first = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
    return f"{'  ' * depth}- {{exc}}`~harnesslab.errors.{cls.__name__}`: {first}"


def rest() -> str:
    """The routes of the Jupyter server extension, from its OpenAPI description."""
    spec = yaml.safe_load((ROOT / "harnesslab" / "server" / "openapi.yaml").read_text(encoding="utf-8"))
    lines = ["# REST", "", " ".join(spec["info"]["description"].split()), ""]
    lines += [
        f"All paths are below `{spec['servers'][0]['url']}`. The description is `harnesslab/server/openapi.yaml`",
        "",
    ]
    lines[-2] += " (OpenAPI 3.1), made from the server's pydantic models; tests check every answer against it."
    shared = spec["components"].get("parameters", {})
    for path, item in spec["paths"].items():
        for method, operation in item.items():
            if method not in {"get", "post", "put", "patch", "delete"}:
                continue
            lines += [f"## `{method.upper()} {path}`", "", operation["summary"] + ".", ""]
            given = [shared[p["$ref"].rsplit("/", 1)[1]] if "$ref" in p else p for p in operation.get("parameters", [])]
            if given:
                lines += ["| parameter | in | type | meaning |", "|---|---|---|---|"]
                lines += [
                    f"| `{p['name']}` | {p['in']} | {_schema(p.get('schema', {}))} | {_cell(p.get('description', ''))} |"
                    for p in given
                ]
                lines.append("")
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body:
                lines += [f"Body: {_schema(body)}.", ""]
            lines += [
                f"- {status}: {answer.get('description', 'a problem, see `Problem`')}{_answer(answer)}"
                for status, answer in operation.get("responses", {}).items()
            ]
            lines.append("")
    lines += ["## Schemas", ""]
    for name, schema in spec["components"].get("schemas", {}).items():
        lines += [f"### {name}", ""]
        if schema.get("description"):
            lines += [" ".join(schema["description"].split()), ""]
        if properties := schema.get("properties"):
            lines += ["| key | type | meaning |", "|---|---|---|"]
            required = set(schema.get("required", ()))
            for key, value in properties.items():
                optional = "" if key in required else ", optional"
                lines.append(f"| `{key}` | {_schema(value)}{optional} | {_cell(value.get('description', ''))} |")
            lines.append("")
        else:
            lines += [f"{_schema(schema)}", ""]
    return "\n".join(lines)


def _answer(answer: dict[str, Any]) -> str:
    for kind, content in answer.get("content", {}).items():
        return f" ({_schema(content['schema'])})" if kind == "application/json" else f" (`{kind}`)"
    return ""


def _schema(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for word, joiner in (("anyOf", " or "), ("oneOf", " or "), ("allOf", " and ")):
        if word in schema:
            return joiner.join(_schema(part) for part in schema[word])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "any")
    if kind == "array" and "items" in schema:
        return f"array of {_schema(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_schema(schema['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
