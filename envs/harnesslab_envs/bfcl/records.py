"""The published tasks, as they lie in the package, and how they are split."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentUnavailable
from harnesslab.rollout.env import Split, Task
from harnesslab.rollout.taskfiles import read_jsonl

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
"""The four published categories: 200 tasks each, which are variants of the same 200 scenarios."""
SHARES: Mapping[Split, float] = {"search": 0.3, "gate": 0.2, "sealed": 0.5}
DOMAIN = 50
"""Scenarios in a row that are about one leading API: files, vehicle, trading, travel."""
MORE_TOOLS = "I have updated some more functions you can choose from. What about now?"
"""The user's turn in which held-out functions arrive: BFCL's own words."""

_DOCS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function, as the ground truth writes it: ``args`` by position, ``kwargs`` by name."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """One task. ``turns``: what the user says; ``gold``: the calls of each turn; ``held_out``: by turn, the
    functions that are not offered before it."""

    id: str
    category: str
    scenario: int
    turns: tuple[str, ...]
    gold: tuple[tuple[Call, ...], ...]
    apis: tuple[str, ...]
    config: Mapping[str, Any]
    held_out: Mapping[int, tuple[str, ...]]

    @property
    def long_context(self) -> bool:
        """Whether the APIs are to fill their answers with much that does not matter."""
        return self.category == "long_context"


def package_data() -> Path:
    """The data folder of bfcl-eval. Raises EnvironmentUnavailable where the package is not installed."""
    found = importlib.util.find_spec("bfcl_eval")
    if found is None or not found.submodule_search_locations:
        raise EnvironmentUnavailable("bfcl-eval is not installed. Get it with: harnesslab envs install bfcl")
    return Path(found.submodule_search_locations[0]) / "data"


@lru_cache(maxsize=1)
def read_records() -> dict[str, Record]:
    """All 800 tasks by id."""
    return {record.id: record for category in CATEGORIES for record in _read_category(category)}


def divide(records: Iterable[Record]) -> dict[Split, tuple[Task, ...]]:
    """Tasks by split. The four variants of a scenario stay together, and each split holds every API in its share."""
    by_scenario: dict[int, list[Record]] = {}
    for record in records:
        by_scenario.setdefault(record.scenario, []).append(record)
    domains: dict[int, list[int]] = {}
    for scenario in sorted(by_scenario, key=_shuffle_key):
        domains.setdefault(scenario // DOMAIN, []).append(scenario)
    splits: dict[Split, tuple[Task, ...]] = {}
    start = 0.0
    for split, share in SHARES.items():
        bounds = [(round(start * len(members)), round((start + share) * len(members))) for members in domains.values()]
        chosen = [members[low:high] for members, (low, high) in zip(domains.values(), bounds, strict=True)]
        splits[split] = tuple(_in_turn(chosen, by_scenario, split))
        start += share
    return splits


@lru_cache(maxsize=1)
def schemas() -> dict[str, tuple[dict[str, Any], ...]]:
    """For each API, its functions as OpenAI schemas."""
    folder = package_data() / "multi_turn_func_doc"
    return {api: tuple(map(_schema, _lines(folder / f"{file}.json"))) for api, file in _DOCS.items()}


def _read_category(category: str) -> Iterator[Record]:
    name = f"BFCL_v4_multi_turn_{category}.json"
    answers = {entry["id"]: entry["ground_truth"] for entry in _lines(package_data() / "possible_answer" / name)}
    for entry in _lines(package_data() / name):
        yield Record(
            id=entry["id"],
            category=category,
            scenario=int(entry["id"].rsplit("_", 1)[1]),
            turns=tuple("\n".join(said["content"] for said in turn) or MORE_TOOLS for turn in entry["question"]),
            gold=tuple(tuple(map(read_call, turn)) for turn in answers[entry["id"]]),
            apis=tuple(entry["involved_classes"]),
            config=entry["initial_config"],
            held_out={int(turn): tuple(names) for turn, names in entry.get("missed_function", {}).items()},
        )


def read_call(text: str) -> Call:
    """A call written in Python, read and not run. Raises ValueError for anything but literal arguments."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"{text!r} is no call")
    kwargs = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg is not None}
    return Call(node.func.id, tuple(map(ast.literal_eval, node.args)), kwargs)


def _in_turn(
    domains: Sequence[Sequence[int]], by_scenario: Mapping[int, Sequence[Record]], split: Split
) -> Iterator[Task]:
    """Domains and categories in turn, so that the first n tasks hold each in about its share."""
    for turn in range(len(CATEGORIES)):
        for place in range(max(map(len, domains))):
            for domain in (members for members in domains if place < len(members)):
                variants = by_scenario[domain[place]]
                record = variants[(place + turn) % len(variants)]
                yield Task(record.id, split, record.category, options={"task": record.id})


def _shuffle_key(scenario: int) -> str:
    return hashlib.sha256(f"bfcl multi-turn {scenario}".encode()).hexdigest()


def _schema(doc: Mapping[str, Any]) -> dict[str, Any]:
    """A published document as an OpenAI schema. What it says of the whole API, with every function, is left out."""
    about = str(doc["description"]).rpartition("Tool description: ")[2]
    parameters = _json_schema(doc["parameters"])
    # One document has the list of required arguments beside its parameters.
    parameters.setdefault("required", list(doc.get("required", ())))
    return {"type": "function", "function": {"name": doc["name"], "description": about, "parameters": parameters}}


def _json_schema(node: Any) -> Any:
    """The same with JSON Schema's names for types; a property may itself be called ``type``."""
    if not isinstance(node, dict):
        return node
    result = dict(node)
    if isinstance(node.get("type"), str):
        result["type"] = _TYPES.get(node["type"], node["type"])
    if isinstance(node.get("properties"), dict):
        result["properties"] = {name: _json_schema(spec) for name, spec in node["properties"].items()}
    if isinstance(node.get("items"), dict):
        result["items"] = _json_schema(node["items"])
    return result


def _lines(path: Path) -> list[Any]:
    return [value for _, value in read_jsonl(path)]
