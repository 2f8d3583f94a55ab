"""From the readable source to the three published files."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import yaml

NOTICE = "made up for harnesslab; no real product, brand or seller"


def build(source: str) -> dict[str, str]:
    """File name to text. Products come in the order of a hash of their titles, as the published ones are shuffled."""
    kinds: list[dict[str, Any]] = yaml.safe_load(source)
    made = sorted(
        ((kind, entry) for kind in kinds for entry in [*kind["products"], _rival(kind)]), key=lambda pair: asin(pair[1])
    )
    asked = [entry for _, entry in made if "goal" in entry]
    return {
        "items_shuffle.json": _lines("[", [_dump(_product(kind, entry)) for kind, entry in made], "]"),
        "items_ins_v2.json": _lines("{", [_entry(entry, _attributes(kind, entry)) for kind, entry in made], "}"),
        "items_human_ins.json": _lines("{", [_entry(entry, [_instruction(entry)]) for entry in asked], "}"),
    }


def asin(entry: dict[str, Any]) -> str:
    """Ten characters, as Amazon's are; ours begin with HL."""
    return "HL" + base64.b32encode(hashlib.sha256(entry["title"].encode()).digest()).decode()[:8]


def _product(kind: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "asin": asin(entry),
        "notice": NOTICE,
        "name": entry["title"],
        "category": kind["category"],
        "query": kind["query"],
        "product_category": kind["path"],
        "pricing": entry["price"],
        "small_description": entry["features"],
        "full_description": entry["about"],
        "customization_options": {
            name: [{"value": value, "image": None} for value in values] for name, values in kind["options"].items()
        },
        "images": ["none"],
    }


def _rival(kind: dict[str, Any]) -> dict[str, Any]:
    """A dear product that has what is wanted of another."""
    rival, wanted = kind["rival"], kind["products"][kind["rival"]["like"]]["goal"]["want"]
    features = [text[0].upper() + text[1:] for text in wanted]
    about = "Our finest quality, in a box of its own."
    return {
        "title": rival["title"],
        "price": rival["price"],
        "attributes": wanted,
        "features": features,
        "about": about,
    }


def _attributes(kind: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    if "goal" not in entry:
        return {"attributes": entry["attributes"]}
    wanted = entry["goal"]["want"]
    return {
        "attributes": entry["attributes"],
        "instruction": f"Find me {', '.join(wanted)} {kind['query']}",
        "instruction_attributes": wanted,
    }


def _instruction(entry: dict[str, Any]) -> dict[str, Any]:
    goal = entry["goal"]
    return {
        "asin": asin(entry),
        "instruction": goal["say"],
        "attributes": entry["attributes"],
        "options": goal["choose"],
        "instruction_attributes": goal["want"],
        "instruction_options": goal["choose"],
    }


def _entry(entry: dict[str, Any], value: Any) -> str:
    return f"{_dump(asin(entry))}: {_dump(value)}"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(opening: str, items: list[str], closing: str) -> str:
    """One item a line, so that a change is one line of a diff."""
    return f"{opening}\n" + ",\n".join(items) + f"\n{closing}\n"
