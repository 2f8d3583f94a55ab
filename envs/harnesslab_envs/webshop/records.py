"""The published files, read and checked: products, their attributes, the instructions of people, reviews.

Everything in them is untrusted: texts are bounded, types are checked, and an error names the file, the place and the key.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.rollout.taskfiles import read_json

CATALOGUES = (
    ("items_shuffle_1000.json", "items_ins_v2_1000.json"),
    ("items_shuffle.json", "items_ins_v2.json"),
)
"""(products, their attributes): the 1,000 products that WebShop takes by default, or all of them."""
INSTRUCTIONS = "items_human_ins.json"
REVIEWS = "reviews.json"
MAX_MB = 128
"""A file is read into memory as a whole. Python needs about five times its size."""
LONG, SHORT = 20_000, 400
"""Characters of a description or a feature, and of a title, an option or an attribute; the rest is cut."""
MANY = 400
"""Entries of a list (options, features, attributes, reviews); the rest is left out."""
NO_PRICE = 100.0
"""Dollars, where none is published."""


@dataclass(frozen=True, slots=True)
class Review:
    """What a buyer wrote; ``stars`` as it was published."""

    title: str
    stars: str
    body: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a person, or a template, asks for: the text, the attributes and the values of options that it means."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """One product. ``pricing`` is one price in dollars, or the two ends of a range; ``options`` maps a name to values."""

    asin: str
    title: str
    description: str
    features: tuple[str, ...]
    pricing: tuple[float, ...]
    options: Mapping[str, tuple[str, ...]]
    category: str
    query: str
    path: str
    attributes: tuple[str, ...]
    template: Instruction | None
    human: tuple[Instruction, ...]
    rating: str = "N.A."
    reviews: tuple[Review, ...] = ()

    @property
    def price_tag(self) -> str:
        """The price as the shop shows it."""
        return " to ".join(f"${price}" for price in self.pricing)


@dataclass(frozen=True, slots=True)
class Files:
    """Where the files of one catalogue lie; ``reviews`` is optional."""

    products: Path
    attributes: Path
    instructions: Path
    reviews: Path | None

    def digest(self) -> str:
        """A hash of all files."""
        digest = hashlib.sha256()
        for path in (self.products, self.attributes, self.instructions, self.reviews):
            if path is not None:
                with path.open("rb") as stream:
                    digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()


def find_files(folder: Path) -> Files:
    """The files in a folder, under their published names; the 1,000 products where both catalogues are there.

    Raises EnvironmentUnavailable where one is missing, ConfigError where one is too large to be read.
    """
    there = [pair for pair in CATALOGUES if all((folder / name).is_file() for name in pair)]
    if not there or not (folder / INSTRUCTIONS).is_file():
        pairs = ", or ".join(" and ".join(pair) for pair in CATALOGUES)
        raise EnvironmentUnavailable(
            f"WebShop's data is not in {folder}: it must hold {INSTRUCTIONS}, and {pairs} "
            "(github.com/princeton-nlp/WebShop, setup.sh, says where they are)."
        )
    products, attributes = (folder / name for name in there[0])
    reviews = folder / REVIEWS
    files = Files(products, attributes, folder / INSTRUCTIONS, reviews if reviews.is_file() else None)
    for path in (files.products, files.attributes, files.instructions, files.reviews):
        size = path.stat().st_size / 1e6 if path is not None else 0
        if path is not None and size > MAX_MB:
            raise ConfigError(
                f"{path} has {size:,.0f} MB; files of up to {MAX_MB} MB are read. Use the 1,000 products "
                f"({' and '.join(CATALOGUES[0])}), or a smaller part: python -m harnesslab_envs.webshop.cut --help"
            )
    return files


def read_products(files: Files) -> dict[str, Product]:
    """The products by asin, in the order of the file. As published, those with a long or doubled asin are left out.

    Raises ConfigError that names the file, the place in it and the key.
    """
    attributes = _json(files.attributes, dict)
    human = _json(files.instructions, dict)
    reviews = _reviews(files.reviews)
    products: dict[str, Product] = {}
    for index, raw in enumerate(_json(files.products, list)):
        row = Row(files.products.name, f"product {index}", raw)
        asin = row.text("asin", SHORT)
        if asin == "nan" or not 0 < len(asin) <= 10 or asin in products:
            continue
        known = Row(files.attributes.name, f"entry {asin!r}", attributes.get(asin, {}))
        said = tuple(_said(files.instructions.name, asin, human.get(asin, [])))
        products[asin] = _product(asin, row, known, said, reviews.get(asin, ("N.A.", ())))
    if not products:
        raise ConfigError(f"{files.products} holds no products.")
    return products


def _product(
    asin: str, row: Row, known: Row, human: tuple[Instruction, ...], reviews: tuple[str, tuple[Review, ...]]
) -> Product:
    return Product(
        asin=asin,
        title=row.text("name", SHORT),
        description=row.text("full_description", LONG, empty=True),
        features=row.texts("small_description", LONG),
        pricing=_pricing(row),
        options=_options(row),
        category=row.text("category", SHORT),
        query=row.text("query", SHORT).lower().strip(),
        path=row.text("product_category", LONG),
        attributes=known.texts("attributes", SHORT),
        template=_template(known),
        human=human,
        rating=reviews[0],
        reviews=reviews[1],
    )


def _pricing(row: Row) -> tuple[float, ...]:
    """One price, or the first two of several: the ends of a range."""
    text = row.text("pricing", SHORT, empty=True)
    if not text:
        return (NO_PRICE,)
    prices = [re.sub(r"[^\d.]", "", part) for part in text.split("$")[1:]]
    try:
        found = tuple(float(price) for price in prices[:2])
    except ValueError:
        found = ()
    if not found or not all(math.isfinite(price) for price in found):
        raise row.error("pricing", f"must be a price in dollars or a range of two, not {text[:40]!r}")
    return found


def _options(row: Row) -> dict[str, tuple[str, ...]]:
    """Names and values in lower case; a slash is shown as a bar, as published."""
    raw = row.raw.get("customization_options") or {}
    if not isinstance(raw, dict):
        raise row.error("customization_options", f"must be an object, not {_kind(raw)}")
    options: dict[str, tuple[str, ...]] = {}
    left = MANY
    for name, contents in raw.items():
        if contents is None:
            continue
        if not isinstance(contents, list) or not all(isinstance(content, dict) for content in contents):
            raise row.error(f"customization_options.{name}", "must be a list of objects with a 'value'")
        values = [Row(row.file, row.place, content).text("value", SHORT) for content in contents[:left]]
        shown = (" ".join(value.split()).replace("/", " | ").lower() for value in values)
        options[clean(name, SHORT).lower()] = tuple(dict.fromkeys(filter(None, shown)))
        left -= len(values)
    return options


def _template(known: Row) -> Instruction | None:
    text = known.text("instruction", LONG, empty=True)
    attributes = known.texts("instruction_attributes", SHORT)
    return Instruction(text, attributes) if text and attributes else None


def _said(file: str, asin: str, raw: Any) -> Iterator[Instruction]:
    """What people said of a product. Instructions without attributes stay: leaving them out is the goals' business."""
    if not isinstance(raw, list):
        raise ConfigError(f"{file}, entry {asin!r}: must be a list of instructions, not {_kind(raw)}.")
    for index, one in enumerate(raw[:MANY]):
        row = Row(file, f"entry {asin!r}, instruction {index}", one)
        yield Instruction(
            row.text("instruction", LONG),
            row.texts("instruction_attributes", SHORT),
            row.texts("instruction_options", SHORT),
        )


def _reviews(path: Path | None) -> dict[str, tuple[str, tuple[Review, ...]]]:
    """(average rating, reviews) by asin."""
    found = {}
    for index, raw in enumerate(_json(path, list) if path is not None else []):
        row = Row(REVIEWS, f"entry {index}", raw)
        rows = row.raw.get("reviews") or []
        if not isinstance(rows, list):
            raise row.error("reviews", f"must be a list, not {_kind(rows)}")
        reviews = []
        for place, one in enumerate(rows[:MANY]):
            review = Row(REVIEWS, f"entry {index}, review {place}", one)
            stars = review.text("score", SHORT, empty=True) or review.text("stars", SHORT, empty=True)
            body = review.text("review", LONG, empty=True)
            reviews.append(Review(review.text("title", SHORT, empty=True), stars, body))
        rating = row.text("average_rating", SHORT, empty=True) or "N.A."
        found[row.text("asin", SHORT)] = (rating, tuple(reviews))
    return found


class Row:
    """One object of a file, whose values are read with checks. Raises ConfigError where it is no object."""

    def __init__(self, file: str, place: str, raw: Any):
        self.file, self.place = file, place
        if not isinstance(raw, dict):
            raise ConfigError(f"{file}, {place}: must be an object, not {_kind(raw)}.")
        self.raw: dict[str, Any] = raw

    def text(self, key: str, limit: int, *, empty: bool = False) -> str:
        """A text, cut at ``limit``; a number is written out. With ``empty``, none and null are the empty text."""
        value = self.raw.get(key)
        if value is None and empty:
            return ""
        if key not in self.raw:
            raise self.error(key, "is missing")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.error(key, f"must be a text, not {_kind(value)}")
        return clean(str(value), limit)

    def texts(self, key: str, limit: int) -> tuple[str, ...]:
        """A list of texts; one text is a list of one, an object stands for its values, none and null for nothing."""
        value = self.raw.get(key)
        if isinstance(value, dict):
            value = list(value.values())
        if value is None or value == "":
            return ()
        items = value if isinstance(value, list) else [value]
        rows = (Row(self.file, self.place, {key: item}) for item in items[:MANY])
        return tuple(text for row in rows if (text := row.text(key, limit, empty=True)))

    def error(self, key: str, message: str) -> ConfigError:
        """The error for a key."""
        return ConfigError(f"{self.file}, {self.place}, key '{key}': {message}.")


def clean(text: str, limit: int) -> str:
    """At most ``limit`` characters, and no lone surrogate, which is no UTF-8."""
    return text[:limit].encode("utf-8", "replace").decode()


def _json(path: Path, kind: type) -> Any:
    value = read_json(path)
    if not isinstance(value, kind):
        raise ConfigError(f"{path} must hold {'a list' if kind is list else 'an object'}, not {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "null")
