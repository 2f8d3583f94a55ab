"""The shop's pages as text, in the form that WebShop calls ``text_rich``: one thing a line, buttons in marks.

A page is a list of parts. Its text and what can be clicked on it both come from that list, so that they always agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harnesslab_envs.webshop.markup import plain
from harnesslab_envs.webshop.records import Product

SEARCH, BACK, PREVIOUS, NEXT, BUY = "Search", "Back to Search", "< Prev", "Next >", "Buy Now"
SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")
A_PAGE = 10
"""Products on a page of results."""
MAX_TEXT = 12_000
"""Characters of a description, of all features or of all reviews that are shown."""
MAX_OPTIONS = 12_000
"""Characters of a page's options; those beyond are not shown, but can be clicked all the same."""
MAX_PAGE = 19_000
"""Characters of a page. Only a product that is no product reaches it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A line of a page. ``group`` is the option's name; ``on`` says that it was clicked before."""

    text: str
    kind: Literal["text", "button", "option", "product"] = "text"
    group: str = ""
    on: bool = False


def search_page() -> list[Part]:
    """Where a visit begins."""
    return [Part("WebShop"), Part(SEARCH, "button")]


def results_page(products: Sequence[Product], page: int, visited: Collection[str]) -> list[Part]:
    """Ten of the products that were found; ``page`` counts from 1."""
    parts = [Part(BACK, "button"), Part(f"Page {page} (Total results: {len(products)})")]
    if page > 1:
        parts.append(Part(PREVIOUS, "button"))
    if page * A_PAGE < len(products):
        parts.append(Part(NEXT, "button"))
    for product in products[(page - 1) * A_PAGE : page * A_PAGE]:
        parts.append(Part(product.asin, "product", on=product.asin in visited))
        parts += [Part(plain(product.title)), Part(product.price_tag)]
    return parts


def item_page(product: Product, chosen: Mapping[str, str], *, attributes: bool) -> list[Part]:
    """One product with its options; ``attributes`` offers the page that tells them."""
    parts = [Part(BACK, "button"), Part(PREVIOUS, "button")]
    for name, values in product.options.items():
        parts.append(Part(plain(name)))
        parts += [Part(value, "option", name, chosen.get(name) == value) for value in values]
    parts += [Part(plain(product.title)), Part(f"Price: {product.price_tag}"), Part(f"Rating: {product.rating}")]
    parts += [Part(name, "button") for name in SUB_PAGES if attributes or name != "Attributes"]
    return [*parts, Part(BUY, "button")]


def sub_page(product: Product, name: str) -> list[Part]:
    """One of SUB_PAGES."""
    reviews = (text for one in product.reviews for text in (f'"{one.title}"', one.stars, one.body))
    texts: Mapping[str, Iterable[str]] = {
        "Description": [product.description],
        "Features": product.features,
        "Reviews": reviews,
        "Attributes": [*product.attributes, product.category, product.query, product.path],
    }
    lines = [line for text in texts[name] if (line := plain(text))]
    shown = _cut("\n".join(lines), MAX_TEXT) or f"No {name}"
    return [Part(BACK, "button"), Part(PREVIOUS, "button"), Part(shown)]


def done_page() -> list[Part]:
    """After the purchase. What it was worth is not told."""
    return [Part("Thank you for shopping with us!")]


def clickable(parts: Iterable[Part]) -> dict[str, Part]:
    """What can be clicked, by the text that clicks it. A button goes before an option of the same text, as published."""
    found: dict[str, Part] = {}
    for part in parts:
        name = part.text.lower()
        hidden = part.kind == "option" and name in found and found[name].kind != "option"
        if part.kind != "text" and name != SEARCH.lower() and not hidden:
            found[name] = part
    return found


def render(parts: Iterable[Part]) -> str:
    """The page as text. Options that were chosen are told at the top, the last one first."""
    lines: list[str] = []
    chosen: list[str] = []
    length = hidden = 0
    for part in parts:
        line = _line(part)
        if part.kind == "option":
            length += len(line)
            if part.on:
                chosen.insert(0, f"You have clicked {part.text}.")
            elif length > MAX_OPTIONS:
                hidden += 1
                continue
        elif hidden:
            lines.append(f"[{hidden} more, not shown]")
            hidden = 0
        lines.append(line)
    return _cut("\n".join([*chosen, *lines]), MAX_PAGE)


def _line(part: Part) -> str:
    if part.kind == "text":
        return part.text
    mark = "clicked button" if part.on else "button"
    before = {"option": "  ", "product": "\n"}.get(part.kind, "")
    return f"{before}[{mark}] {part.text} [{mark}_]"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n[{len(text) - limit} characters cut]"
