"""A catalogue that fits into memory, cut from the whole one without ever holding it.

All products that people wrote instructions for stay, in their order, so that the goals, their order and the published
splits stay as well; of the others, which only make the search harder, the first few do.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from harnesslab.errors import ConfigError, HarnesslabError
from harnesslab.rollout.taskfiles import TaskFileError, read_json
from harnesslab_envs.webshop.records import CATALOGUES, INSTRUCTIONS

CHUNK = 1 << 20
MAX_ITEM = 1 << 26
"""Characters of one product."""
MAX_BLANKS = 1_000
"""Characters between a value and the mark after it."""
KEYS = (
    "asin",
    "name",
    "category",
    "query",
    "product_category",
    "pricing",
    "small_description",
    "full_description",
    "customization_options",
)
PRODUCTS, ATTRIBUTES = CATALOGUES[-1]


def cut(source: Path, target: Path, others: int, tell: Callable[[str], None] = lambda _: None) -> int:
    """Write the smaller files into the folder ``target`` and return the number of products. Raises ConfigError."""
    if target.resolve() == source.resolve():
        raise ConfigError("The smaller catalogue needs a folder of its own.")
    try:
        target.mkdir(parents=True, exist_ok=True)
        asked = set(read_json(source / INSTRUCTIONS))
        with (source / PRODUCTS).open(encoding="utf-8-sig") as stream:
            kept = _write(target / PRODUCTS, "[]", _chosen(items(stream, PRODUCTS), asked, others))
        tell(f"{len(kept):,} products")
        with (source / ATTRIBUTES).open(encoding="utf-8-sig") as stream:
            entries = ((asin, value) for asin, value in items(stream, ATTRIBUTES) if asin in kept)
            _write(target / ATTRIBUTES, "{}", entries)
        shutil.copyfile(source / INSTRUCTIONS, target / INSTRUCTIONS)
    except TaskFileError as error:
        raise ConfigError(f"The catalogue in {source} cannot be cut: {error}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"The catalogue in {source} cannot be cut: {type(error).__name__}: {error}") from error
    return len(kept)


def items(stream: TextIO, name: str, chunk: int = CHUNK) -> Iterator[tuple[str, Any]]:
    """The members of the one list or object that the stream holds, as (key, value); a list's have empty keys.

    ``name`` is for the errors: ConfigError where it is cut short or no JSON.
    """
    reader = _Reader(stream, name, chunk)
    opening = reader.mark("[{")
    closing = "]" if opening == "[" else "}"
    first = True
    while reader.peek() != closing:
        if not first:
            reader.mark(",")
        key = ""
        if opening == "{":
            key = str(reader.value())
            reader.mark(":")
        yield key, reader.value()
        first = False


class _Reader:
    """JSON values from a stream, one at a time; holds one value and a chunk."""

    def __init__(self, stream: TextIO, name: str, chunk: int):
        self._stream, self._name, self._chunk = stream, name, chunk
        self._text, self._at = "", 0
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """The next character that is no blank. Raises ConfigError at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at].isspace():
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            self._more()

    def mark(self, allowed: str) -> str:
        """Take one of some characters."""
        found = self.peek()
        if found not in allowed:
            raise ConfigError(f"{self._name} is no list or object of JSON: {found!r} stands where {allowed!r} must.")
        self._at += 1
        return found

    def value(self) -> Any:
        """Take a value. It is whole when a mark follows: what ends with the text so far may go on in the next chunk."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (json.JSONDecodeError, RecursionError):
                end = len(self._text)
            if self._text[end : end + MAX_BLANKS].lstrip()[:1] in tuple(",:]}"):
                self._at = end
                return value
            if len(self._text) - self._at > MAX_ITEM:
                raise ConfigError(f"{self._name} holds a value that is no JSON, or is too long.")
            self._more()

    def _more(self) -> None:
        more = self._stream.read(self._chunk)
        if not more:
            raise ConfigError(f"{self._name} is cut short, or is no JSON.")
        self._text, self._at = self._text[self._at :] + more, 0


def _chosen(products: Iterable[tuple[str, Any]], asked: Collection[str], others: int) -> Iterator[tuple[str, Any]]:
    for _, product in products:
        if not isinstance(product, dict):
            raise ConfigError(f"{PRODUCTS} holds something that is no product.")
        if product.get("asin") not in asked:
            others -= 1
        if product.get("asin") in asked or others >= 0:
            yield str(product.get("asin")), {key: product[key] for key in KEYS if key in product}


def _write(path: Path, brackets: str, entries: Iterable[tuple[str, Any]]) -> set[str]:
    """One member a line; returns the keys. A list's keys are not written."""
    keys: set[str] = set()
    with path.open("w", encoding="utf-8") as out:
        out.write(brackets[0])
        for number, (key, value) in enumerate(entries):
            keys.add(key)
            name = f"{json.dumps(key)}: " if brackets == "{}" else ""
            out.write(f"{',' if number else ''}\n{name}{json.dumps(value)}")
        out.write(f"\n{brackets[1]}\n")
    return keys


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m harnesslab_envs.webshop.cut", description=__doc__)
    parser.add_argument("source", type=Path, help=f"the folder with {PRODUCTS}, {ATTRIBUTES} and {INSTRUCTIONS}")
    parser.add_argument("target", type=Path, help="a folder for the smaller files")
    parser.add_argument("--others", type=int, default=10_000, help="products that nobody asked for (10,000)")
    chosen = parser.parse_args()
    try:
        cut(chosen.source, chosen.target, chosen.others, print)
    except HarnesslabError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
